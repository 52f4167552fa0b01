// Errors are values. An Error carries the specification's code, the exact detail the specification asks for
// (if any) and a sentence that tells its reader what to do. How a code is classified and shown over HTTP is
// data: one row per code in src/model/error.cpp.
#pragma once

#include <boost/describe.hpp>
#include <expected>
#include <optional>
#include <string>
#include <string_view>

#include "flowfabric/state.h"

namespace flowfabric {

// The kind of failure.
enum class ErrorKind {
  not_found,
  validation,
  contention,
  conflict,
  state,
  bug,
  transport,
  unavailable,
  resource_exhausted,
  timeout
};
BOOST_DESCRIBE_ENUM(ErrorKind, not_found, validation, contention, conflict, state, bug, transport,
                    unavailable, resource_exhausted, timeout)

// The client's reaction: stop, back off and repeat, finish up and stop, log and carry on, alert.
enum class ErrorClass { terminal, retryable, cooperative, informational, bug };
BOOST_DESCRIBE_ENUM(ErrorClass, terminal, retryable, cooperative, informational, bug)

enum class ErrorCode {
  // not found
  execution_not_found,
  flow_not_found,
  attempt_not_found,
  budget_not_found,
  quota_policy_not_found,
  stream_not_found,
  suspension_not_found,
  worker_not_found,
  operation_not_found,
  edge_not_found,
  unknown_waitpoint,  // told to an operator; a worker gets `waitpoint_not_found`
  // validation
  invalid_input,
  capability_mismatch,
  invalid_capabilities,
  invalid_policy_json,
  payload_too_large,
  signal_limit_exceeded,
  invalid_waitpoint_key,
  invalid_token,
  token_expired,
  missing_token,
  waitpoint_not_token_bound,
  retention_limit_exceeded,
  invalid_lease_for_suspend,
  invalid_dependency,
  invalid_waitpoint_for_execution,
  invalid_blocking_reason,
  invalid_offset,
  unauthorized,
  invalid_budget_scope,
  budget_override_not_allowed,
  invalid_quota_spec,
  invalid_kid,
  invalid_secret_hex,
  invalid_grace_ms,
  invalid_tag_key,
  invalid_frame_type,
  fence_required,
  partial_fence_triple,
  corruption,
  handle_from_other_backend,
  // contention
  use_claim_resumed_execution,
  not_a_resumed_execution,
  execution_not_leaseable,
  lease_conflict,
  invalid_claim_grant,
  claim_grant_expired,
  no_eligible_execution,
  waitpoint_not_found,
  waitpoint_pending_use_buffer_script,
  stale_graph_revision,
  execution_not_active,
  execution_not_eligible,
  execution_not_in_eligible_set,
  execution_not_reclaimable,
  no_active_lease,
  rate_limit_exceeded,
  concurrency_limit_exceeded,
  retry_exhausted,
  // conflict
  dependency_already_exists,
  cycle_detected,
  self_referencing_edge,
  execution_already_in_flow,
  waitpoint_already_exists,
  budget_attach_conflict,
  quota_attach_conflict,
  rotation_conflict,
  active_attempt_exists,
  // state
  stale_lease,
  lease_expired,
  lease_revoked,
  execution_not_suspended,
  already_suspended,
  already_satisfied,
  waitpoint_closed,
  waitpoint_not_pending,
  pending_waitpoint_expired,
  waitpoint_not_open,
  duplicate_signal,
  target_not_signalable,
  resume_condition_not_met,
  execution_not_terminal,
  max_replays_exhausted,
  replay_not_allowed,
  stream_closed,
  stale_owner_cannot_append,
  stream_already_closed,
  ok_already_applied,
  attempt_already_terminal,
  grant_already_exists,
  deps_not_satisfied,
  not_blocked_by_deps,
  execution_not_in_flow,
  flow_already_terminal,
  group_already_terminal,
  not_runnable,
  terminal,
  budget_exceeded,
  budget_soft_exceeded,
  attempt_not_started,
  execution_not_eligible_for_attempt,
  max_retries_exhausted,
  max_reclaims_exceeded,
  lane_not_accepting,
  stream_disconnected,
  // bugs
  attempt_not_in_created_state,
  invariant_violation,
  // the environment of the engine
  hmac_secret_not_initialized,
  invalid_secret,
  transport,
  unavailable,
  resource_exhausted,
  timeout
};
// More values than BOOST_DESCRIBE_ENUM takes: the names are in the table, see error_name.

struct ErrorInfo {
  ErrorCode code;
  std::string_view name;
  ErrorKind kind;
  ErrorClass error_class;
  int http_status;
  // `kind` and `retryable` of the HTTP error body; empty or absent where the body has none.
  std::string_view http_kind;
  std::optional<bool> http_retryable;
};
const ErrorInfo& error_info(ErrorCode code);
std::string_view error_name(ErrorCode code);
std::optional<ErrorCode> error_from_name(std::string_view name);

// The details of `execution_not_active`, by which a caller can tell a lost answer from a real refusal.
struct NotActiveDetails {
  LifecyclePhase lifecycle_phase{};
  TerminalOutcome terminal_outcome{};
  std::int64_t lease_epoch{};
  std::string attempt_id;

  bool operator==(const NotActiveDetails&) const = default;
};

struct Error {
  ErrorCode code{};
  std::string detail;  // exact words of the specification where it gives them
  std::string advice;  // a sentence: what is wrong and what to do
  std::optional<NotActiveDetails> not_active{};

  // "stale_lease: …" for logs and terminals.
  std::string to_string() const;
  bool operator==(const Error&) const = default;
};

template <class T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail_with(ErrorCode code, std::string detail, std::string advice) {
  return std::unexpected(Error{code, std::move(detail), std::move(advice)});
}

}  // namespace flowfabric
