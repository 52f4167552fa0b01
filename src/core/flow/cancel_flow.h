// Cancelling what belongs together: a flow with its members, and the losing siblings of a decided join.
//
// Either is written down first (ff_cancel_backlog with its members, ff_pending_cancel_groups) and then done
// step by step, so that a crash in the middle loses nothing. From the moment it is written down, no member
// that is owed a cancel can be claimed.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<FlowCancellation> apply(Unit& unit, const CancelFlow& request, Context& at);
Result<CancelAcknowledged> apply(Unit& unit, const AckCancelMember& request, Context& at);

// Writes down when a cancelled flow that never had a member is removed.
void keep_empty(Unit& unit, const Flow& flow, const Context& at);

// The flow fails with its first member, if it is to.
void fail_fast(Unit& unit, const Execution& failed, const Context& at);

enum class OwedCancel { none, cancelled, parked };
// What becomes of a member of a cancelled flow when somebody or the clock comes to it.
OwedCancel owed_to(Unit& unit, const Execution& execution);
// How a member is held back while others of its flow finish: stored when the clock comes to it, and shown
// from the moment of the cancel.
StateVector parked(const StateVector& state);
std::string parked_detail(const Execution& execution);
// The execution is about to be claimed or skipped, but its flow was cancelled: then it gets what it is owed.
// Resolving its dependents is left to the caller.
OwedCancel cancel_if_owed(Unit& unit, Execution& execution, const Context& at);

// With what this batch has changed. The flow must be locked, so that nobody claims or adds one meanwhile.
std::vector<MemberPhase> members_of(Unit& unit, const FlowKey& flow);

// One step of cancelling a flow's members.
struct CancelStep {
  bool finished{false};          // nothing is owed any more
  bool waits_for_active{false};  // let_active_finish: something still runs
};
CancelStep cancel_members(Unit& unit, const FlowKey& key, Context& at);
// Only this one, if it is owed a cancel.
void cancel_member(Unit& unit, const FlowKey& key, const ExecutionId& id, Context& at);
// It cannot be read, and is owed nothing any more.
void give_up_member(Unit& unit, const FlowKey& key, const ExecutionId& id);
// The members that the next step would cancel.
OwedCancels next_page(const FlowKey& key);
Rule run_cancel_backlog_clock(Unit& unit, const FlowKey& key, Context& at);

// One step of cancelling the siblings of a decided join.
Rule run_sibling_cancel_clock(Unit& unit, const EdgeGroupKey& key, Context& at);

}  // namespace flowfabric::core
