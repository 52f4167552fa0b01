// The one place where the state of an execution changes.
//
// `move_to` writes the whole state vector, re-derives the public state, keeps the lane's counts, and works
// out anew whether the execution is offered to workers and when its next clock runs out. Everything those
// depend on (lease, delay, deadline, timeout) is set before. A grant does not survive a change of state.
#pragma once

#include <array>
#include <string>

#include "core/context.h"
#include "core/rule.h"
#include "core/standing.h"
#include "core/unit.h"

namespace flowfabric::core {

// The target vectors of the transition table (specification 01 §2.4); `move_to` fills in the public state.
namespace vectors {
StateVector waiting(AttemptState attempt);
StateVector delayed(BlockingReason reason, AttemptState attempt);
// By whom follows from the reason.
StateVector blocked(BlockingReason reason, AttemptState attempt);
StateVector running();
StateVector lost(OwnershipState how);
StateVector suspended(BlockingReason reason);
StateVector terminal(TerminalOutcome outcome, AttemptState attempt);
}  // namespace vectors

// A new execution enters its first state.
void enter(Unit& unit, Execution& execution, StateVector state, std::string blocking_detail,
           const Context& at);
void move_to(Unit& unit, Execution& execution, StateVector state, std::string blocking_detail,
             const Context& at);
// A change that is not one of state: progress, a renewal.
void note_mutation(Execution& execution, const Context& at);
// A change of what its place in line depends on, other than its state: priority, a grant.
void renew_offer(Execution& execution, const Context& at);
// The clocks of an execution that has not ended, in the order in which their rules are applied.
struct RuleClock {
  Rule rule{};
  std::optional<std::int64_t> at_ms;
};
std::array<RuleClock, 7> clocks_of(const Execution& execution);
// The earliest of them, but for those of rules that are off.
std::optional<std::int64_t> earliest_clock(const Execution& execution, const RuleSet& off = {});
// How often something is looked at that waits for what nobody can announce.
inline constexpr std::int64_t kUnblockIntervalMs = 5000;

// ---- steps that several operations share ----

// The tag that events carry in a column of its own; empty: there is none.
std::string instance_tag(const Tags& tags);

void append_lease_event(Unit& unit, const Execution& execution, LeaseEventType type, std::string reason,
                        const Context& at);

void append_operator_event(Unit& unit, const Execution& execution, OperatorEventType type, Tags details,
                           const Context& at);

// What a signal did: for subscribers, and in the words of its delivery.
struct EventEffect {
  std::string shown;
  std::string raw;
};
void append_signal_event(Unit& unit, const Execution& execution, const Signal& signal, EventEffect effect,
                         const Context& at);

void append_tag_event(Unit& unit, const Execution& execution, TagEventType type, const std::string& tag,
                      const std::string& value, const Context& at);

// Takes back the grant that reserves the execution, if there is one.
void drop_grant(Unit& unit, Execution& execution);

// Ends the lease in force, remembers how, and leaves the rest of the row to the caller.
void release_lease(Unit& unit, Execution& execution, LastLeaseEnd end, std::string reason, const Context& at);
// Names the lease that is ending now.
LastLeaseEnd lease_end(const Execution& execution, LeaseEnd by);

struct AttemptEnd {
  AttemptLifecycle how{};
  std::string failure_reason{};
  std::string failure_category{};
  std::string result{};
  bool is_retried{false};  // another attempt will follow
};
// Writes the history row of the attempt in progress.
void end_attempt(Unit& unit, const Execution& execution, AttemptEnd end, const Context& at);

// Ends the lease; the same attempt will go on later. `suspension` names what it waits for.
void pause_attempt(Unit& unit, Execution& execution, LastLeaseEnd end, const std::string& release_reason,
                   const std::string& suspension, const Context& at);

// Ends the attempt in progress and the lease in force, if there are any, because somebody else wants it.
void stop_attempt(Unit& unit, Execution& execution, const std::string& failure_reason, LeaseEnd by,
                  const std::string& release_reason, const Context& at);

// Back in line, or to the rest of its delay.
void back_in_line(Unit& unit, Execution& execution, const Context& at);

// The terminal transition, with its completion event; and what follows from it for the flow. `finish` does
// both.
void end_execution(Unit& unit, Execution& execution, TerminalOutcome outcome, const Context& at);
void follow_end(Unit& unit, const Execution& execution, const Context& at);
void finish(Unit& unit, Execution& execution, TerminalOutcome outcome, const Context& at);

// How many edges one operation resolves; the rest goes on by the clock.
inline constexpr std::uint32_t kEdgesPerStep = 256;
// Names what `follow_end` will need, if the execution is known to belong to a flow.
void want_dependents(Unit& unit, const ExecutionId& ending);
// The `want` of a request that may end its execution.
template <class Request>
void want_ending(Unit& unit, const Request& request, const PartitionCounts&) {
  unit.want<Execution>(request.execution_id);
  want_dependents(unit, request.execution_id);
}

// ---- rules that follow a move ----

// The other rules are told of moves that concern them. This file knows none of them: the table is filled in
// by core/lifecycle/followers.cpp.
struct Followers {
  // It is going to be offered, and may need a rank in its lane.
  void (*comes_in_line)(Unit& unit, Execution& execution, const Context& at);
  // No worker holds it any more: it gives back its slots and reservations.
  void (*leaves_worker)(Unit& unit, Execution& execution, const Context& at);
  // It ends while it is suspended.
  void (*ends_suspended)(Unit& unit, const Execution& execution, const std::string& reason,
                         const Context& at);
  // A member of a flow has ended.
  void (*member_ended)(Unit& unit, const Execution& execution, const Context& at);
};
extern const Followers kFollowers;

}  // namespace flowfabric::core
