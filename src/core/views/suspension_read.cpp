#include "core/views/suspension_read.h"

#include "core/suspension/suspension.h"
#include "model/waitpoint_token.h"

namespace flowfabric::core {

WaitpointView view(const Waitpoint& waitpoint) {
  const auto parts = split_token(waitpoint.token);
  return {.waitpoint_id = waitpoint.waitpoint_id,
          .waitpoint_key = waitpoint.waitpoint_key,
          .state = waitpoint.state,
          .required_signal_names = waitpoint.required_signal_names,
          .created_at = waitpoint.created_at_ms,
          .activated_at = waitpoint.activated_at_ms,
          .expires_at = waitpoint.expires_at_ms,
          .execution_id = waitpoint.owner(),
          .token_kid = parts ? std::string(parts->kid) : "",
          .token_fingerprint = token_fingerprint(waitpoint.token),
          .signal_count = waitpoint.signal_count,
          .matched_signal_count = waitpoint.matched_signal_count,
          .close_reason = waitpoint.close_reason};
}

SuspensionView view(const Suspension& suspension) {
  const auto& details = suspension.details;
  // It has done what it does, once there is no timeout any more.
  const bool escalated = details.timeout_behavior == TimeoutBehavior::escalate && !details.timeout_at_ms;
  return {.suspension_id = details.suspension_id.value_or(SuspensionId{}),
          .execution_id = suspension.owner(),
          .attempt_index = details.attempt_index,
          .reason_code = details.reason_code,
          .requested_by = details.requested_by,
          .suspended_at = details.suspended_at_ms,
          .timeout_at = details.timeout_at_ms,
          .timeout_behavior = escalated ? std::nullopt : std::optional(details.timeout_behavior),
          .resume_condition = details.resume_condition,
          .resume_delay_ms = details.resume_delay_ms,
          .continuation_metadata_pointer = details.continuation_metadata_pointer,
          .satisfied = details.satisfied_set,
          .last_signal_at = details.last_signal_at_ms,
          .last_hmac_validation_failed_at = suspension.last_hmac_validation_failed_at_ms,
          .closed_at = details.closed_at_ms,
          .close_reason = details.close_reason,
          .resume_trigger = details.resume_trigger,
          .closer_signal_id = std::nullopt,
          .waitpoints = {},
          .signals = {}};
}

SuspendedEntry entry_of(const Suspension& suspension, const Execution& execution) {
  const auto& details = suspension.details;
  SuspendedEntry entry{.execution_id = suspension.owner(),
                       .namespace_ = execution.namespace_,
                       .lane_id = execution.lane_id,
                       .suspended_at_ms = details.suspended_at_ms,
                       .timeout_at = details.timeout_at_ms,
                       .reason = details.reason_code,
                       .waitpoint_ids = {}};
  for (const auto& key : waitpoints_of(suspension.owner(), details)) {
    entry.waitpoint_ids.push_back(key.waitpoint_id);
  }
  return entry;
}

}  // namespace flowfabric::core
