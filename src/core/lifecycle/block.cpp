#include "core/lifecycle/block.h"

#include "core/execution/lease.h"
#include "core/operation.h"
#include "core/registry/unblock.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

// The reasons that callers may give.
bool may_be_given(BlockingReason reason) {
  return reason == BlockingReason::waiting_for_budget || reason == BlockingReason::waiting_for_quota ||
         reason == BlockingReason::waiting_for_capable_worker ||
         reason == BlockingReason::paused_by_operator || reason == BlockingReason::paused_by_policy;
}

std::unexpected<Error> not_eligible(const std::string& advice) {
  return fail_with(ErrorCode::execution_not_eligible, "", advice);
}

Result<void> check_may_block(const Execution& execution, BlockingReason reason) {
  const auto& state = execution.state;
  if (state.lifecycle_phase == LifecyclePhase::terminal) return std::unexpected(not_active(execution));
  const bool runnable = state.lifecycle_phase == LifecyclePhase::runnable &&
                        state.eligibility_state != EligibilityState::blocked_by_dependencies;
  if (!runnable)
    return not_eligible("Only an execution that could be waiting for a worker can be held back.");
  const bool by_operator = reason == BlockingReason::paused_by_operator;
  if (state.blocking_reason == BlockingReason::paused_by_operator && !by_operator) {
    return not_eligible("An operator holds the execution; it stays held until it is released.");
  }
  return {};
}

}  // namespace

Result<EligibilityChange> apply(Unit& unit, const BlockExecution& request, Context& at) {
  if (auto ok = check_text("detail", request.detail); !ok) return std::unexpected(ok.error());
  if (!may_be_given(request.reason)) {
    return fail_with(ErrorCode::invalid_blocking_reason, std::string(enum_name(request.reason)),
                     "Give waiting_for_budget, waiting_for_quota, waiting_for_capable_worker, "
                     "paused_by_operator or paused_by_policy.");
  }
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  if (auto ok = check_may_block(*found, request.reason); !ok) return std::unexpected(ok.error());
  auto& execution = unit.edit<Execution>(request.execution_id);
  move_to(unit, execution, vectors::blocked(request.reason, execution.state.attempt_state), request.detail,
          at);
  if (is_blocked_on_route(execution)) arm_route(unit, execution.route_id, at.now_ms + kUnblockIntervalMs);
  return EligibilityChange{request.execution_id, execution.state.public_state};
}

Result<EligibilityChange> apply(Unit& unit, const UnblockExecution& request, Context& at) {
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  const auto expected = vectors::blocked(request.expected_reason, found->state.attempt_state);
  const bool blocked = may_be_given(request.expected_reason) &&
                       found->state.lifecycle_phase == expected.lifecycle_phase &&
                       found->state.eligibility_state == expected.eligibility_state &&
                       found->state.blocking_reason == expected.blocking_reason;
  if (!blocked) return not_eligible("The execution is not held back for this reason.");
  auto& execution = unit.edit<Execution>(request.execution_id);
  back_in_line(unit, execution, at);
  return EligibilityChange{request.execution_id, execution.state.public_state};
}

Result<EligibilityChange> apply(Unit& unit, const HoldExecution& request, Context& at) {
  return apply(unit,
               BlockExecution{.execution_id = request.execution_id,
                              .reason = BlockingReason::paused_by_operator,
                              .detail = request.reason.empty() ? "held by operator" : request.reason},
               at);
}

Result<EligibilityChange> apply(Unit& unit, const ReleaseExecution& request, Context& at) {
  return apply(unit, UnblockExecution{request.execution_id, BlockingReason::paused_by_operator}, at);
}

FLOWFABRIC_OPERATION(BlockExecution)
FLOWFABRIC_OPERATION(UnblockExecution)
FLOWFABRIC_OPERATION(HoldExecution)
FLOWFABRIC_OPERATION(ReleaseExecution)

}  // namespace flowfabric::core
