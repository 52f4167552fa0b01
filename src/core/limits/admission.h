// Admission: the checks between a candidate and the worker that would take it, and what becomes of a
// candidate that fails them.
//
// Quota policies record what they let through, and budgets set aside what they say, before it is handed out;
// both take it back if it is not. What is refused is held back under the id of the limit that refused it, so
// that whatever clears the limit finds it again.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

inline constexpr std::uint32_t kLookedAtPerStep = 100;

struct LimitRefusal {
  ErrorCode code{};  // for a caller who asked for this execution
  BlockingReason reason{};
  Uuid limit_id;
  std::string detail;
  std::string exhausted;  // what is used up: a dimension, `rate` or `concurrency`
  std::optional<std::int64_t> clears_at_ms{};
  bool cancels{false};  // it is not to wait
};
Error to_error(const LimitRefusal& refusal);

// Fetches what `admit` will look at in a few steps, where a store across a network would be asked for each.
void fetch_limits(Unit& unit, const std::vector<ExecutionId>& ids, const Context& at);
// Lets the execution through, or says what is in the way.
std::optional<LimitRefusal> admit(Unit& unit, const ExecutionId& id, Context& at);
// Everything that is in its way.
std::vector<LimitRefusal> refusals_of(Unit& unit, const Execution& execution, Context& at);
// It was let through, and then not handed out.
void withdraw(Unit& unit, const ExecutionId& id, const Context& at);
// What it was given when it was let through, and holds as long as its lease.
void give_back(Unit& unit, Execution& execution, const Context& at);
// Fetches what `give_back` will change for these, together.
void fetch_to_give_back(Unit& unit, const std::vector<ExecutionId>& ids, const Context& at);
// Takes it out of the line until the limit clears; or cancels it, if that is the limit's action.
void hold_back(Unit& unit, const ExecutionId& id, const LimitRefusal& refusal, Context& at);

// Lets it go if nothing is in the way any more.
void recheck(Unit& unit, const ExecutionId& id, Context& at);

// Rechecks the oldest of what a limit holds back. True: there were as many as asked for, so there may be
// more.
bool let_go(Unit& unit, const Uuid& limit_id, std::uint32_t count, Context& at);
// Rechecks the next page of all that it holds back, and notes where to go on.
void look_at_blocked(Unit& unit, const Uuid& limit_id, Recheck& recheck, bool& has_blocked,
                     bool changed_before, Context& at);

// Refuses while a budget of the flow says that it is to take no more members.
Result<void> check_takes_members(Unit& unit, const FlowId& flow, const Context& at);

}  // namespace flowfabric::core
