#include "core/views/read.h"

#include "core/flow/cancel_flow.h"
#include "core/offer.h"
#include "core/registry/lane.h"
#include "core/transition.h"

namespace flowfabric::core {

namespace {

std::optional<LeaseSnapshot> current_lease(const Execution& execution) {
  const auto& lease = execution.lease;
  if (!lease.lease_id || !lease.lease_expires_at_ms) return std::nullopt;
  return LeaseSnapshot{.lease_id = *lease.lease_id,
                       .lease_epoch = execution.lease_epoch,
                       .worker_id = lease.worker_id,
                       .worker_instance_id = lease.worker_instance_id,
                       .expires_at = *lease.lease_expires_at_ms,
                       .attempt_index = execution.attempt.attempt_index,
                       .last_heartbeat_at = lease.lease_last_renewed_at_ms};
}

AttemptSnapshot ended_attempt(const Attempt& attempt) {
  return {.attempt_index = attempt.attempt_index,
          .attempt_id = attempt.attempt_id,
          .attempt_type = attempt.attempt_type,
          .attempt_state = attempt.attempt_state,
          .worker_id = attempt.worker_id,
          .worker_instance_id = attempt.worker_instance_id,
          .lease_epoch = attempt.lease_epoch,
          .started_at = attempt.started_at_ms,
          .ended_at = attempt.terminal_at_ms,
          .previous_attempt_index = attempt.lineage.previous_attempt_index,
          .reason = attempt.lineage.lineage_reason,
          .requested_by = attempt.lineage.lineage_requested_by,
          .fallback_tier = attempt.fallback_tier,
          .failure_reason = attempt.failure_reason,
          .failure_category = attempt.failure_category,
          .result = attempt.result.data};
}

AttemptSnapshot current_attempt(const Execution& execution) {
  const auto& attempt = execution.attempt;
  const bool paused = attempt.attempt_suspended_at_ms.has_value();
  return {.attempt_index = attempt.attempt_index,
          .attempt_id = attempt.attempt_id.value_or(AttemptId{}),
          .attempt_type = attempt.attempt_type,
          .attempt_state = paused ? AttemptLifecycle::suspended : AttemptLifecycle::started,
          .worker_id = execution.lease.worker_id,
          .worker_instance_id = execution.lease.worker_instance_id,
          .lease_epoch = execution.lease_epoch,
          .started_at = attempt.attempt_started_at_ms.value_or(0),
          .ended_at = std::nullopt,
          .previous_attempt_index = attempt.lineage.previous_attempt_index,
          .reason = attempt.lineage.lineage_reason,
          .requested_by = attempt.lineage.lineage_requested_by,
          .fallback_tier = attempt.fallback_tier,
          .failure_reason = "",
          .failure_category = "",
          .result = ""};
}

ExecutionSnapshot as_stored(const Execution& execution, const ExecutionSpec& spec) {
  return {.execution_id = execution.key(),
          .flow_id = execution.flow_id,
          .lane_id = execution.lane_id,
          .namespace_ = execution.namespace_,
          .execution_kind = spec.execution_kind,
          .state = execution.state,
          .blocking_detail = execution.blocking_detail,
          .priority = execution.priority,
          .attempt_id = execution.attempt.attempt_id,
          .current_attempt_index = execution.attempt.attempt_index,
          .total_attempt_count = execution.total_attempt_count,
          .retry_count = execution.retry_count,
          .replay_count = execution.replay_count,
          .lease_reclaim_count = execution.lease_reclaim_count,
          .lease_epoch = execution.lease_epoch,
          .lease = current_lease(execution),
          .current_waitpoint = std::nullopt,
          .created_at = execution.created_at_ms,
          .started_at = execution.started_at_ms,
          .completed_at = execution.terminal_at_ms,
          .delay_until = execution.delay_until_ms,
          .deadline_at = execution.deadline_at_ms,
          .last_transition_at = execution.last_transition_at_ms,
          .last_mutation_at = execution.last_mutation_at_ms,
          .failure_reason = execution.failure_reason,
          .last_failure_message = execution.last_failure_message,
          .cancellation_reason = execution.cancellation_reason,
          .cancelled_by = execution.cancelled_by,
          .progress_percent = execution.progress_pct,
          .progress_message = execution.progress_message,
          .trace_context = spec.trace_context,
          .tags = execution.tags,
          .budget_ids = split_ids<BudgetId>(execution.budget_ids),
          .quota_policy_id = execution.quota_policy_id,
          .last_capability_mismatch_at = execution.last_capability_mismatch_at_ms,
          .last_hmac_validation_failed_at = std::nullopt};
}

}  // namespace

ExecutionSnapshot snapshot(const Execution& execution, const ExecutionSpec& spec, LaneState lane_state) {
  auto seen = as_stored(execution, spec);
  if (!hands_out(lane_state) && seen.state.eligibility_state == EligibilityState::eligible_now) {
    seen.state.eligibility_state = EligibilityState::blocked_by_lane_state;
    seen.state.blocking_reason = BlockingReason::paused_by_policy;
    seen.blocking_detail = "lane " + execution.lane_id + " is " + std::string(enum_name(lane_state));
  }
  return seen;
}

void show_if_parked(Unit& unit, const Execution& execution, ExecutionSnapshot& seen) {
  if (execution.state.lifecycle_phase != LifecyclePhase::runnable) return;
  if (owed_to(unit, execution) != OwedCancel::parked) return;
  // (It is counted and listed as what it was until the clock comes to it.)
  seen.state = parked(execution.state);
  seen.state.public_state = derive_public_state(seen.state);
  seen.blocking_detail = parked_detail(execution);
}

WorkerView view(const Worker& worker) {
  return {.worker_id = worker.worker_id,
          .worker_instance_id = worker.worker_instance_id,
          .namespace_ = worker.namespace_,
          .lanes = worker.lanes,
          .capabilities = split_capabilities(worker.capabilities_csv),
          .last_heartbeat_at = worker.last_heartbeat_ms,
          .liveness_ttl_ms = worker.liveness_ttl_ms,
          .registered_at = worker.registered_at_ms};
}

std::vector<AttemptSnapshot> attempts(const Execution& execution, const std::vector<Attempt>& ended) {
  std::vector<AttemptSnapshot> all;
  for (const auto& attempt : ended) all.push_back(ended_attempt(attempt));
  if (has_live_attempt(execution)) all.push_back(current_attempt(execution));
  return all;
}

std::optional<AttemptKey> result_attempt(const Execution& execution) {
  if (execution.state.public_state != PublicState::completed) return std::nullopt;
  return AttemptKey{execution.partition_key, execution.execution_id, execution.attempt.attempt_index};
}

LeaseEventView view(const LeaseEvent& event) {
  return {.event_id = event.event_id,
          .execution_id = {event.partition_key, event.execution_id},
          .type = event.event_type,
          .lease_id = event.lease_id,
          .lease_epoch = event.lease_epoch,
          .attempt_id = event.attempt_id,
          .attempt_index = event.attempt_index,
          .worker_id = event.worker_id,
          .worker_instance_id = event.worker_instance_id,
          .reason = event.reason,
          .namespace_ = event.namespace_,
          .tags = event.tags,
          .occurred_at = event.occurred_at_ms};
}

CompletionEventView view(const CompletionEvent& event) {
  return {.event_id = event.event_id,
          .execution_id = {event.partition_key, event.execution_id},
          .flow_id = event.flow_id,
          .outcome = event.outcome,
          .namespace_ = event.namespace_,
          .tags = event.tags,
          .occurred_at = event.occurred_at_ms};
}

OperatorEventView view(const OperatorEvent& event) {
  return {.event_id = event.event_id,
          .execution_id = {event.partition_key, event.execution_id},
          .type = event.event_type,
          .details = event.details,
          .namespace_ = event.namespace_,
          .tags = event.tags,
          .occurred_at = event.occurred_at_ms};
}

SignalEventView view(const SignalEvent& event) {
  return {.event_id = event.event_id,
          .execution_id = {event.partition_key, event.execution_id},
          .signal_id = event.signal_id,
          .waitpoint_id = event.waitpoint_id,
          .source_identity = event.source_identity,
          .effect = event.effect,
          .namespace_ = event.namespace_,
          .tags = event.tags,
          .occurred_at = event.occurred_at_ms};
}

WorkerEventView view(const WorkerEvent& event) {
  return {.event_id = event.event_id,
          .namespace_ = event.namespace_,
          .worker_instance_id = event.worker_instance_id,
          .worker_id = event.worker_id,
          .kind = event.event_kind,
          .reason = event.reason,
          .occurred_at = event.occurred_at_ms};
}

}  // namespace flowfabric::core
