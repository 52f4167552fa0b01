#include "core/lifecycle/priority.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/operation.h"
#include "core/transition.h"

namespace flowfabric::core {

Result<PriorityChanged> apply(Unit& unit, const ChangePriority& request, Context& at) {
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  if (found->state.lifecycle_phase != LifecyclePhase::runnable ||
      found->state.eligibility_state != EligibilityState::eligible_now) {
    return fail_with(ErrorCode::execution_not_eligible, "",
                     "Only an execution that waits for a worker has a place in line.");
  }
  auto& execution = unit.edit<Execution>(request.execution_id);
  const auto before = execution.priority;
  execution.priority = std::clamp(request.new_priority, kMinPriority, kMaxPriority);
  renew_offer(execution, at);
  append_operator_event(
      unit, execution, OperatorEventType::priority_changed,
      {{"old_priority", std::to_string(before)}, {"new_priority", std::to_string(execution.priority)}}, at);
  return PriorityChanged{request.execution_id};
}

FLOWFABRIC_OPERATION(ChangePriority)

}  // namespace flowfabric::core
