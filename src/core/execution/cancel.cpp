#include "core/execution/cancel.h"

#include "core/execution/lease.h"
#include "core/operation.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

bool needs_no_fence(const std::string& source) {
  return source == kOperatorOverride || source == "flow_cascade" || source == "system_timeout";
}

bool is_given(const LeaseFence& fence) {
  return fence != LeaseFence{};
}

// What runs is cancelled by its holder, or by somebody who needs no fence. Whoever gives one is held to it.
Result<void> check_right_to_cancel(Unit& unit, const CancelExecution& request, Context& at) {
  const auto& execution = *unit.find<Execution>(request.execution_id);
  const bool running = execution.state.lifecycle_phase == LifecyclePhase::active;
  if (!is_given(request.fence)) {
    if (!running || needs_no_fence(request.source)) return {};
    return check_fence_shape(request.fence, Unfenced::never, request.source);
  }
  if (!running || is_outlived(execution, request.fence)) {
    return fail_with(ErrorCode::stale_lease, "",
                     "The lease is not in force any more: stop working on this task.");
  }
  auto held = check_lease(unit, request.execution_id, request.fence, OnExpiry::mark, at);
  if (!held) return std::unexpected(held.error());
  return {};
}

// What has ended tells those who ask without a fence, and the holder of the last lease, how. Nothing: there
// is something to cancel, or the caller has no right to know.
std::optional<Result<Cancelled>> answer_of_ended(const Execution& execution, const LeaseFence& fence) {
  const Cancelled done{execution.key()};
  if (repeats(execution, fence, LeaseEnd::cancel)) return done;
  if (execution.state.lifecycle_phase != LifecyclePhase::terminal) return std::nullopt;
  if (is_given(fence) && !was_last(execution, fence)) return std::nullopt;
  if (execution.state.terminal_outcome == TerminalOutcome::cancelled) return done;
  auto error = not_active(execution);
  error.code = ErrorCode::terminal;
  error.advice = "The execution has already ended; there is nothing to cancel.";
  return std::unexpected(std::move(error));
}

}  // namespace

void stop(Unit& unit, Execution& execution, const std::string& reason, const std::string& by,
          const Context& at) {
  stop_attempt(unit, execution, "cancelled: " + reason, LeaseEnd::cancel, "cancelled", at);
  execution.cancellation_reason = reason;
  execution.cancelled_by = by;
  end_execution(unit, execution, TerminalOutcome::cancelled, at);
}

Result<Cancelled> apply(Unit& unit, const CancelExecution& request, Context& at) {
  if (auto ok = check_text("reason", request.reason, kAnyLength); !ok) return std::unexpected(ok.error());
  if (auto ok = check_text("source", request.source); !ok) return std::unexpected(ok.error());
  if (is_given(request.fence)) {
    if (auto ok = check_fence_shape(request.fence, Unfenced::never, ""); !ok) {
      return std::unexpected(ok.error());
    }
  }
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  if (auto answer = answer_of_ended(*found, request.fence)) return *std::move(answer);
  if (auto ok = check_right_to_cancel(unit, request, at); !ok) return std::unexpected(ok.error());

  auto& execution = unit.edit<Execution>(request.execution_id);
  stop(unit, execution, truncate_utf8(request.reason, kMaxTextBytes),
       request.source.empty() ? request.execution_id.to_string() : request.source, at);
  follow_end(unit, execution, at);
  return Cancelled{request.execution_id};
}

FLOWFABRIC_OPERATION(CancelExecution, .want = want_ending)

}  // namespace flowfabric::core
