#include "core/lifecycle/replay.h"

#include "core/execution/lease.h"
#include "core/flow/dependency.h"
#include "core/operation.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

// What the last run has left on the execution. Its attempts, with their results, stay in the history.
void clear_last_run(Execution& execution, const Context& at) {
  execution.terminal_at_ms.reset();
  execution.failure_reason.clear();
  execution.last_failure_message.clear();
  execution.cancellation_reason.clear();
  execution.cancelled_by.clear();
  execution.retry_count = 0;
  execution.progress_pct.reset();
  execution.progress_message.clear();
  execution.progress_updated_at_ms.reset();
  if (execution.deadline_at_ms && *execution.deadline_at_ms <= at.now_ms) execution.deadline_at_ms.reset();
}

}  // namespace

Result<Replayed> apply(Unit& unit, const ReplayExecution& request, Context& at) {
  if (auto ok = check_text("reason", request.reason); !ok) return std::unexpected(ok.error());
  if (auto ok = check_text("requested_by", request.requested_by); !ok) return std::unexpected(ok.error());
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  if (found->state.lifecycle_phase != LifecyclePhase::terminal) {
    return fail_with(ErrorCode::execution_not_terminal, "", "The execution has not ended yet.");
  }
  const auto cap = unit.require<ExecutionSpec>(request.execution_id).policy.max_replay_count;
  if (found->replay_count >= cap) {
    return fail_with(ErrorCode::max_replays_exhausted, std::to_string(cap),
                     "The execution was replayed as often as its policy allows: submit it anew.");
  }
  const bool skipped_member = found->state.terminal_outcome == TerminalOutcome::skipped && found->flow_id;
  auto& execution = unit.edit<Execution>(request.execution_id);
  clear_last_run(execution, at);
  ++execution.replay_count;
  const bool ran = execution.total_attempt_count > 0;
  const auto last_index = execution.attempt.attempt_index;
  execution.attempt =
      CurrentAttempt{.attempt_index = last_index,
                     .lineage = {.previous_attempt_index = ran ? std::optional(last_index) : std::nullopt,
                                 .lineage_reason = request.reason,
                                 .lineage_requested_by = request.requested_by}};
  const std::string branch = skipped_member ? "skipped_flow_member" : "normal";
  Tags details{{"branch", branch}};
  std::string blocking_detail;
  if (skipped_member) {
    reopen_join(unit, execution);
    blocking_detail = execution.blocking_detail;
    details.emplace("groups_reset", "1");
  }
  append_lease_event(unit, execution, LeaseEventType::replay_initiated, branch, at);
  append_operator_event(unit, execution, OperatorEventType::replayed, std::move(details), at);
  move_to(unit, execution, vectors::waiting(AttemptState::pending_replay_attempt), blocking_detail, at);
  if (skipped_member) resolve_again(unit, request.execution_id, at);
  return Replayed{execution.state.public_state};
}

FLOWFABRIC_OPERATION(ReplayExecution)

}  // namespace flowfabric::core
