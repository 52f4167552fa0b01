#include "core/execution/report.h"

#include "core/execution/lease.h"
#include "core/execution/retry.h"
#include "core/operation.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

// The execution whose lease is about to end. Nothing to do (null) when the call repeats the one that ended
// it: then the recorded answer stands.
Result<Execution*> begin_report(Unit& unit, const ExecutionId& id, const LeaseFence& fence,
                                const std::string& source, LeaseEnd operation, Context& at) {
  if (auto ok = check_fence_shape(fence, Unfenced::by_operator, source); !ok) {
    return std::unexpected(ok.error());
  }
  const auto* known = unit.find<Execution>(id);
  if (known && repeats(*known, fence, operation)) return nullptr;
  if (known && is_outlived(*known, fence)) {
    return fail_with(ErrorCode::stale_lease, "", "A later lease of this execution has ended since.");
  }
  auto held = check_lease(unit, id, fence, OnExpiry::mark, at);
  if (!held) return std::unexpected(held.error());
  return &unit.edit<Execution>(id);
}

}  // namespace

Result<Completed> apply(Unit& unit, const CompleteExecution& request, Context& at) {
  auto begun =
      begin_report(unit, request.execution_id, request.fence, request.source, LeaseEnd::complete, at);
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return Completed{};
  auto& execution = **begun;
  end_attempt(unit, execution, {.how = AttemptLifecycle::ended_success, .result = request.result}, at);
  release_lease(unit, execution, lease_end(execution, LeaseEnd::complete), "completed", at);
  finish(unit, execution, TerminalOutcome::success, at);
  return Completed{};
}

std::optional<Failed> schedule_retry(Unit& unit, Execution& execution, const AttemptFailure& failure,
                                     Context& at) {
  const auto& policy = unit.require<ExecutionSpec>(execution.key()).policy;
  const auto next =
      next_try(policy, execution.retry_count, execution.attempt.fallback_tier, failure.category, at.random);
  if (!next) return std::nullopt;

  const Failed answer{.retry_scheduled = true,
                      .delay_until = saturating_add(at.now_ms, next->wait_ms.value_or(0)),
                      .next_attempt_index = execution.total_attempt_count};
  end_attempt(unit, execution,
              {.how = AttemptLifecycle::ended_failure,
               .failure_reason = failure.reason,
               .failure_category = failure.category,
               .is_retried = true},
              at);
  auto end = lease_end(execution, failure.ended_by);
  end.ended_delay_until_ms = answer.delay_until;
  end.ended_next_attempt_index = answer.next_attempt_index;
  release_lease(unit, execution, std::move(end), failure.release_reason, at);

  const auto failed_index = execution.attempt.attempt_index;
  execution.attempt =
      CurrentAttempt{.attempt_index = failed_index,
                     .fallback_tier = next->fallback_tier,
                     .lineage = {.previous_attempt_index = failed_index, .lineage_reason = failure.reason}};
  if (!next->fallback_tier) ++execution.retry_count;
  execution.failure_reason = failure.reason;
  if (!next->wait_ms) {
    move_to(unit, execution, vectors::waiting(AttemptState::pending_retry_attempt), "", at);
    return answer;
  }
  execution.delay_until_ms = answer.delay_until;
  move_to(unit, execution,
          vectors::delayed(BlockingReason::waiting_for_retry_backoff, AttemptState::pending_retry_attempt),
          "retry backoff until " + time_to_text(answer.delay_until) + " (attempt " +
              std::to_string(failed_index) + " failed: " + failure.reason + ")",
          at);
  return answer;
}

Failed fail_attempt(Unit& unit, Execution& execution, const AttemptFailure& failure,
                    const std::string& release_reason_if_last, Context& at) {
  if (auto retry = schedule_retry(unit, execution, failure, at)) return *retry;
  end_attempt(unit, execution,
              {.how = AttemptLifecycle::ended_failure,
               .failure_reason = failure.reason,
               .failure_category = failure.category},
              at);
  release_lease(unit, execution, lease_end(execution, failure.ended_by), release_reason_if_last, at);
  execution.failure_reason = failure.reason;
  finish(unit, execution, TerminalOutcome::failed, at);
  return Failed{};
}

Result<Failed> apply(Unit& unit, const FailExecution& request, Context& at) {
  if (auto ok = check_text("reason", request.reason, kAnyLength); !ok) return std::unexpected(ok.error());
  if (auto ok = check_text("category", request.category, kAnyLength); !ok) return std::unexpected(ok.error());
  auto begun = begin_report(unit, request.execution_id, request.fence, request.source, LeaseEnd::fail, at);
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) {
    const auto& end = unit.find<Execution>(request.execution_id)->last_end;
    if (!end.ended_next_attempt_index) return Failed{};
    return Failed{true, end.ended_delay_until_ms.value_or(0), *end.ended_next_attempt_index};
  }
  auto& execution = **begun;
  const AttemptFailure failure{.reason = truncate_utf8(request.reason, kMaxTextBytes),
                               .category = truncate_utf8(request.category, kMaxTextBytes),
                               .ended_by = LeaseEnd::fail,
                               .release_reason = "failed_retry_scheduled"};
  return fail_attempt(unit, execution, failure, "failed_terminal", at);
}

Result<Delayed> apply(Unit& unit, const DelayExecution& request, Context& at) {
  if (request.delay_until < 0 || request.delay_ms.value_or(0) < 0) {
    return fail_with(ErrorCode::invalid_input, "delay_until or delay_ms: negative",
                     "Give a time in milliseconds since the Unix epoch, or how many milliseconds from now.");
  }
  auto begun = begin_report(unit, request.execution_id, request.fence, request.source, LeaseEnd::delay, at);
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) {
    const auto& end = unit.find<Execution>(request.execution_id)->last_end;
    return Delayed{end.ended_delay_until_ms.value_or(0)};
  }
  auto& execution = **begun;
  const auto until = request.delay_ms
                         ? saturating_add(at.now_ms, static_cast<std::uint64_t>(*request.delay_ms))
                         : request.delay_until;
  auto end = lease_end(execution, LeaseEnd::delay);
  end.ended_delay_until_ms = until;
  pause_attempt(unit, execution, std::move(end), kWorkerDelay, kWorkerDelay, at);
  execution.delay_until_ms = until;
  move_to(unit, execution,
          vectors::delayed(BlockingReason::waiting_for_delay, AttemptState::attempt_interrupted),
          "delayed until " + time_to_text(until), at);
  return Delayed{until};
}

Result<WaitingForChildren> apply(Unit& unit, const WaitForChildren& request, Context& at) {
  auto begun =
      begin_report(unit, request.execution_id, request.fence, request.source, LeaseEnd::wait_children, at);
  if (!begun) return std::unexpected(begun.error());
  if (!*begun) return WaitingForChildren{};
  auto& execution = **begun;
  pause_attempt(unit, execution, lease_end(execution, LeaseEnd::wait_children), kWaitingChildren,
                kWaitingChildren, at);
  // Back in line at once, unless its join is undecided.
  const char* detail = execution.dependencies_pending ? "waiting for child executions to complete" : "";
  move_to(unit, execution, vectors::waiting(AttemptState::attempt_interrupted), detail, at);
  return WaitingForChildren{};
}

namespace {

std::size_t weight(const CompleteExecution& request) {
  return sizeof(request) + request.result.size();
}

}  // namespace

FLOWFABRIC_OPERATION(CompleteExecution, .want = want_ending, .weight = weight)
FLOWFABRIC_OPERATION(FailExecution, .want = want_ending)
FLOWFABRIC_OPERATION(DelayExecution)
FLOWFABRIC_OPERATION(WaitForChildren)

}  // namespace flowfabric::core
