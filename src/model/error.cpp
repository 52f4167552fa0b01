#include "flowfabric/error.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/describe.h"

namespace flowfabric {
namespace {

using enum ErrorCode;
using Name = std::string_view;

constexpr ErrorInfo missing(ErrorCode code, Name name) {
  return {code, name, ErrorKind::not_found, ErrorClass::terminal, 404, "", std::nullopt};
}
constexpr ErrorInfo invalid(ErrorCode code, Name name) {
  return {code, name, ErrorKind::validation, ErrorClass::terminal, 400, "", std::nullopt};
}
constexpr ErrorInfo contended(ErrorCode code, Name name) {
  return {code, name, ErrorKind::contention, ErrorClass::retryable, 409, "contention", true};
}
constexpr ErrorInfo limited(ErrorCode code, Name name) {
  return {code, name, ErrorKind::contention, ErrorClass::retryable, 429, name, true};
}
constexpr ErrorInfo conflicting(ErrorCode code, Name name) {
  return {code, name, ErrorKind::conflict, ErrorClass::terminal, 409, name, false};
}
constexpr ErrorInfo in_state(ErrorCode code, Name name, ErrorClass error_class, Name http_kind) {
  return {code, name, ErrorKind::state, error_class, 409, http_kind, false};
}
constexpr ErrorInfo broken(ErrorCode code, Name name, int http_status) {
  return {code, name, ErrorKind::bug, ErrorClass::bug, http_status, "", false};
}

constexpr auto kTable = std::to_array<ErrorInfo>({
    // not found
    missing(execution_not_found, "execution_not_found"),
    missing(flow_not_found, "flow_not_found"),
    missing(attempt_not_found, "attempt_not_found"),
    missing(budget_not_found, "budget_not_found"),
    missing(quota_policy_not_found, "quota_policy_not_found"),
    missing(stream_not_found, "stream_not_found"),
    missing(suspension_not_found, "suspension_not_found"),
    missing(worker_not_found, "worker_not_found"),
    missing(operation_not_found, "operation_not_found"),
    missing(edge_not_found, "edge_not_found"),
    missing(unknown_waitpoint, "unknown_waitpoint"),
    // validation
    invalid(invalid_input, "invalid_input"),
    invalid(capability_mismatch, "capability_mismatch"),
    invalid(invalid_capabilities, "invalid_capabilities"),
    invalid(invalid_policy_json, "invalid_policy_json"),
    invalid(payload_too_large, "payload_too_large"),
    invalid(signal_limit_exceeded, "signal_limit_exceeded"),
    invalid(invalid_waitpoint_key, "invalid_waitpoint_key"),
    invalid(invalid_token, "invalid_token"),
    invalid(token_expired, "token_expired"),
    invalid(missing_token, "missing_token"),
    invalid(waitpoint_not_token_bound, "waitpoint_not_token_bound"),
    invalid(retention_limit_exceeded, "retention_limit_exceeded"),
    invalid(invalid_lease_for_suspend, "invalid_lease_for_suspend"),
    invalid(invalid_dependency, "invalid_dependency"),
    invalid(invalid_waitpoint_for_execution, "invalid_waitpoint_for_execution"),
    invalid(invalid_blocking_reason, "invalid_blocking_reason"),
    invalid(invalid_offset, "invalid_offset"),
    invalid(unauthorized, "unauthorized"),
    invalid(invalid_budget_scope, "invalid_budget_scope"),
    invalid(budget_override_not_allowed, "budget_override_not_allowed"),
    invalid(invalid_quota_spec, "invalid_quota_spec"),
    invalid(invalid_kid, "invalid_kid"),
    invalid(invalid_secret_hex, "invalid_secret_hex"),
    invalid(invalid_grace_ms, "invalid_grace_ms"),
    invalid(invalid_tag_key, "invalid_tag_key"),
    invalid(invalid_frame_type, "invalid_frame_type"),
    invalid(fence_required, "fence_required"),
    invalid(partial_fence_triple, "partial_fence_triple"),
    invalid(corruption, "corruption"),
    invalid(handle_from_other_backend, "handle_from_other_backend"),
    // contention
    contended(use_claim_resumed_execution, "use_claim_resumed_execution"),
    contended(not_a_resumed_execution, "not_a_resumed_execution"),
    contended(execution_not_leaseable, "execution_not_leaseable"),
    contended(lease_conflict, "lease_conflict"),
    contended(invalid_claim_grant, "invalid_claim_grant"),
    contended(claim_grant_expired, "claim_grant_expired"),
    contended(no_eligible_execution, "no_eligible_execution"),
    contended(waitpoint_not_found, "waitpoint_not_found"),
    contended(waitpoint_pending_use_buffer_script, "waitpoint_pending_use_buffer_script"),
    contended(stale_graph_revision, "stale_graph_revision"),
    contended(execution_not_active, "execution_not_active"),
    contended(execution_not_eligible, "execution_not_eligible"),
    contended(execution_not_in_eligible_set, "execution_not_in_eligible_set"),
    contended(execution_not_reclaimable, "execution_not_reclaimable"),
    contended(no_active_lease, "no_active_lease"),
    limited(rate_limit_exceeded, "rate_limit_exceeded"),
    limited(concurrency_limit_exceeded, "concurrency_limit_exceeded"),
    {retry_exhausted, "retry_exhausted", ErrorKind::contention, ErrorClass::retryable, 500, "retry_exhausted",
     false},
    // conflict
    conflicting(dependency_already_exists, "dependency_already_exists"),
    conflicting(cycle_detected, "cycle_detected"),
    conflicting(self_referencing_edge, "self_referencing_edge"),
    conflicting(execution_already_in_flow, "execution_already_in_flow"),
    conflicting(waitpoint_already_exists, "waitpoint_already_exists"),
    conflicting(budget_attach_conflict, "budget_attach_conflict"),
    conflicting(quota_attach_conflict, "quota_attach_conflict"),
    conflicting(rotation_conflict, "rotation_conflict"),
    conflicting(active_attempt_exists, "active_attempt_exists"),
    // state
    in_state(stale_lease, "stale_lease", ErrorClass::terminal, "state_conflict"),
    in_state(lease_expired, "lease_expired", ErrorClass::terminal, "already_satisfied"),
    in_state(lease_revoked, "lease_revoked", ErrorClass::terminal, "already_satisfied"),
    in_state(execution_not_suspended, "execution_not_suspended", ErrorClass::informational, "state_conflict"),
    in_state(already_suspended, "already_suspended", ErrorClass::informational, "state_conflict"),
    in_state(already_satisfied, "already_satisfied", ErrorClass::informational, "already_satisfied"),
    in_state(waitpoint_closed, "waitpoint_closed", ErrorClass::informational, "state_conflict"),
    in_state(waitpoint_not_pending, "waitpoint_not_pending", ErrorClass::informational, "state_conflict"),
    in_state(pending_waitpoint_expired, "pending_waitpoint_expired", ErrorClass::informational,
             "state_conflict"),
    in_state(waitpoint_not_open, "waitpoint_not_open", ErrorClass::informational, "state_conflict"),
    in_state(duplicate_signal, "duplicate_signal", ErrorClass::informational, "already_satisfied"),
    in_state(target_not_signalable, "target_not_signalable", ErrorClass::terminal, "state_conflict"),
    in_state(resume_condition_not_met, "resume_condition_not_met", ErrorClass::terminal, "state_conflict"),
    in_state(execution_not_terminal, "execution_not_terminal", ErrorClass::terminal,
             "execution_not_terminal"),
    in_state(max_replays_exhausted, "max_replays_exhausted", ErrorClass::terminal, "max_replays_exhausted"),
    in_state(replay_not_allowed, "replay_not_allowed", ErrorClass::terminal, "replay_not_allowed"),
    in_state(stream_closed, "stream_closed", ErrorClass::terminal, "state_conflict"),
    in_state(stale_owner_cannot_append, "stale_owner_cannot_append", ErrorClass::terminal, "state_conflict"),
    in_state(stream_already_closed, "stream_already_closed", ErrorClass::informational, "already_satisfied"),
    in_state(ok_already_applied, "ok_already_applied", ErrorClass::informational, "already_satisfied"),
    in_state(attempt_already_terminal, "attempt_already_terminal", ErrorClass::informational,
             "already_satisfied"),
    in_state(grant_already_exists, "grant_already_exists", ErrorClass::informational, "state_conflict"),
    in_state(deps_not_satisfied, "deps_not_satisfied", ErrorClass::informational, "state_conflict"),
    in_state(not_blocked_by_deps, "not_blocked_by_deps", ErrorClass::informational, "state_conflict"),
    in_state(execution_not_in_flow, "execution_not_in_flow", ErrorClass::terminal, "state_conflict"),
    in_state(flow_already_terminal, "flow_already_terminal", ErrorClass::terminal, "flow_already_terminal"),
    in_state(group_already_terminal, "group_already_terminal", ErrorClass::terminal,
             "group_already_terminal"),
    in_state(not_runnable, "not_runnable", ErrorClass::terminal, "not_runnable"),
    in_state(terminal, "terminal", ErrorClass::terminal, "terminal"),
    in_state(budget_exceeded, "budget_exceeded", ErrorClass::cooperative, "budget_exceeded"),
    in_state(budget_soft_exceeded, "budget_soft_exceeded", ErrorClass::informational, "budget_soft_exceeded"),
    in_state(attempt_not_started, "attempt_not_started", ErrorClass::terminal, "state_conflict"),
    in_state(execution_not_eligible_for_attempt, "execution_not_eligible_for_attempt", ErrorClass::terminal,
             "state_conflict"),
    in_state(max_retries_exhausted, "max_retries_exhausted", ErrorClass::terminal, "state_conflict"),
    in_state(max_reclaims_exceeded, "max_reclaims_exceeded", ErrorClass::terminal, "state_conflict"),
    in_state(lane_not_accepting, "lane_not_accepting", ErrorClass::terminal, "lane_not_accepting"),
    in_state(stream_disconnected, "stream_disconnected", ErrorClass::terminal, "state_conflict"),
    // bugs
    broken(attempt_not_in_created_state, "attempt_not_in_created_state", 500),
    broken(invariant_violation, "invariant_violation", 500),
    // the world around the engine
    broken(hmac_secret_not_initialized, "hmac_secret_not_initialized", 503),
    broken(invalid_secret, "invalid_secret", 500),
    {transport, "transport", ErrorKind::transport, ErrorClass::retryable, 500, "transport", true},
    {unavailable, "unavailable", ErrorKind::unavailable, ErrorClass::terminal, 503, "unavailable", false},
    {resource_exhausted, "resource_exhausted", ErrorKind::resource_exhausted, ErrorClass::retryable, 429,
     "resource_exhausted", true},
    {timeout, "timeout", ErrorKind::timeout, ErrorClass::terminal, 500, "", false},
});

constexpr bool rows_are_in_enum_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].code != static_cast<ErrorCode>(i)) return false;
  }
  return true;
}
static_assert(rows_are_in_enum_order());
static_assert(kTable.back().code == timeout, "the last code of the enum closes the table");

std::string describe(const NotActiveDetails& details) {
  return fmt::format(" [terminal_outcome={}, lease_epoch={}, lifecycle_phase={}, attempt_id={}]",
                     enum_name(details.terminal_outcome), details.lease_epoch,
                     enum_name(details.lifecycle_phase), details.attempt_id);
}

}  // namespace

const ErrorInfo& error_info(ErrorCode code) {
  return kTable[static_cast<std::size_t>(code)];
}

std::string_view error_name(ErrorCode code) {
  return error_info(code).name;
}

std::optional<ErrorCode> error_from_name(std::string_view name) {
  const auto row = std::ranges::find(kTable, name, &ErrorInfo::name);
  if (row == kTable.end()) return std::nullopt;
  return row->code;
}

std::string Error::to_string() const {
  std::string text{error_name(code)};
  if (!detail.empty()) text += ": " + detail;
  if (!advice.empty()) text += (detail.empty() ? ": " : " — ") + advice;
  if (not_active) text += describe(*not_active);
  return text;
}

}  // namespace flowfabric
