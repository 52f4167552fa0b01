// The state of an execution: six stored dimensions and the public state derived from them.
//
// Every change of state writes the whole vector in one step (src/core/transition.h), and the values here are
// the only spellings that are ever stored or shown.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace flowfabric {

enum class LifecyclePhase : std::uint8_t { submitted, runnable, active, suspended, terminal };
BOOST_DESCRIBE_ENUM(LifecyclePhase, submitted, runnable, active, suspended, terminal)

enum class OwnershipState : std::uint8_t { unowned, leased, lease_expired_reclaimable, lease_revoked };
BOOST_DESCRIBE_ENUM(OwnershipState, unowned, leased, lease_expired_reclaimable, lease_revoked)

enum class EligibilityState : std::uint8_t {
  eligible_now,
  not_eligible_until_time,
  blocked_by_dependencies,
  blocked_by_budget,
  blocked_by_quota,
  blocked_by_route,
  blocked_by_lane_state,
  blocked_by_operator,
  not_applicable
};
BOOST_DESCRIBE_ENUM(EligibilityState, eligible_now, not_eligible_until_time, blocked_by_dependencies,
                    blocked_by_budget, blocked_by_quota, blocked_by_route, blocked_by_lane_state,
                    blocked_by_operator, not_applicable)

enum class BlockingReason : std::uint8_t {
  none,
  waiting_for_worker,
  waiting_for_retry_backoff,
  waiting_for_resume_delay,
  waiting_for_delay,
  waiting_for_signal,
  waiting_for_approval,
  waiting_for_callback,
  waiting_for_tool_result,
  waiting_for_children,
  waiting_for_budget,
  waiting_for_quota,
  waiting_for_capable_worker,
  waiting_for_locality_match,
  paused_by_operator,
  paused_by_policy,
  paused_by_flow_cancel
};
BOOST_DESCRIBE_ENUM(BlockingReason, none, waiting_for_worker, waiting_for_retry_backoff,
                    waiting_for_resume_delay, waiting_for_delay, waiting_for_signal, waiting_for_approval,
                    waiting_for_callback, waiting_for_tool_result, waiting_for_children, waiting_for_budget,
                    waiting_for_quota, waiting_for_capable_worker, waiting_for_locality_match,
                    paused_by_operator, paused_by_policy, paused_by_flow_cancel)

enum class TerminalOutcome : std::uint8_t { none, success, failed, cancelled, expired, skipped };
BOOST_DESCRIBE_ENUM(TerminalOutcome, none, success, failed, cancelled, expired, skipped)

enum class AttemptState : std::uint8_t {
  none,
  pending_first_attempt,
  running_attempt,
  attempt_interrupted,
  pending_retry_attempt,
  pending_replay_attempt,
  attempt_terminal
};
BOOST_DESCRIBE_ENUM(AttemptState, none, pending_first_attempt, running_attempt, attempt_interrupted,
                    pending_retry_attempt, pending_replay_attempt, attempt_terminal)

// `resumable` is accepted on input and never produced.
enum class PublicState : std::uint8_t {
  waiting,
  delayed,
  rate_limited,
  waiting_children,
  active,
  suspended,
  resumable,
  completed,
  failed,
  cancelled,
  expired,
  skipped
};
BOOST_DESCRIBE_ENUM(PublicState, waiting, delayed, rate_limited, waiting_children, active, suspended,
                    resumable, completed, failed, cancelled, expired, skipped)

struct StateVector {
  LifecyclePhase lifecycle_phase{LifecyclePhase::submitted};
  OwnershipState ownership_state{OwnershipState::unowned};
  EligibilityState eligibility_state{EligibilityState::not_applicable};
  BlockingReason blocking_reason{BlockingReason::none};
  TerminalOutcome terminal_outcome{TerminalOutcome::none};
  AttemptState attempt_state{AttemptState::none};
  PublicState public_state{PublicState::waiting};

  auto operator<=>(const StateVector&) const = default;
};
BOOST_DESCRIBE_STRUCT(StateVector, (),
                      (lifecycle_phase, ownership_state, eligibility_state, blocking_reason, terminal_outcome,
                       attempt_state, public_state))

// A total function: every combination has a public state, so that a corrupt row is shown and not hidden.
PublicState derive_public_state(const StateVector& state);

enum class AttemptType : std::uint8_t { initial, retry, reclaim, replay, fallback };
BOOST_DESCRIBE_ENUM(AttemptType, initial, retry, reclaim, replay, fallback)

// The state of one attempt, as its history shows it.
enum class AttemptLifecycle : std::uint8_t {
  created,
  started,
  suspended,
  ended_success,
  ended_failure,
  ended_cancelled,
  interrupted_reclaimed
};
BOOST_DESCRIBE_ENUM(AttemptLifecycle, created, started, suspended, ended_success, ended_failure,
                    ended_cancelled, interrupted_reclaimed)

}  // namespace flowfabric
