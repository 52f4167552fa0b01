// The target vectors of the specification's transition table (01 §2.4), spelled out: all seven values, so
// that nothing of the engine's own derivation is taken for granted.
#pragma once

#include "flowfabric/state.h"

namespace flowfabric::expected {

inline StateVector waiting(AttemptState attempt) {
  return {LifecyclePhase::runnable,
          OwnershipState::unowned,
          EligibilityState::eligible_now,
          BlockingReason::waiting_for_worker,
          TerminalOutcome::none,
          attempt,
          PublicState::waiting};
}

inline StateVector delayed(BlockingReason reason, AttemptState attempt) {
  return {LifecyclePhase::runnable,
          OwnershipState::unowned,
          EligibilityState::not_eligible_until_time,
          reason,
          TerminalOutcome::none,
          attempt,
          PublicState::delayed};
}
inline StateVector retrying() {
  return delayed(BlockingReason::waiting_for_retry_backoff, AttemptState::pending_retry_attempt);
}
inline StateVector paused() {
  return delayed(BlockingReason::waiting_for_delay, AttemptState::attempt_interrupted);
}

inline StateVector running() {
  return {LifecyclePhase::active, OwnershipState::leased, EligibilityState::not_applicable,
          BlockingReason::none,   TerminalOutcome::none,  AttemptState::running_attempt,
          PublicState::active};
}

inline StateVector lost() {
  return {LifecyclePhase::active,
          OwnershipState::lease_expired_reclaimable,
          EligibilityState::not_applicable,
          BlockingReason::waiting_for_worker,
          TerminalOutcome::none,
          AttemptState::attempt_interrupted,
          PublicState::active};
}

inline StateVector ended(TerminalOutcome outcome, PublicState shown,
                         AttemptState attempt = AttemptState::attempt_terminal) {
  return {LifecyclePhase::terminal,
          OwnershipState::unowned,
          EligibilityState::not_applicable,
          BlockingReason::none,
          outcome,
          attempt,
          shown};
}
inline StateVector completed() {
  return ended(TerminalOutcome::success, PublicState::completed);
}
inline StateVector failed() {
  return ended(TerminalOutcome::failed, PublicState::failed);
}
inline StateVector cancelled(AttemptState attempt = AttemptState::attempt_terminal) {
  return ended(TerminalOutcome::cancelled, PublicState::cancelled, attempt);
}
inline StateVector expired(AttemptState attempt = AttemptState::attempt_terminal) {
  return ended(TerminalOutcome::expired, PublicState::expired, attempt);
}

}  // namespace flowfabric::expected
