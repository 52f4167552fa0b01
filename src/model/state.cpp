#include "flowfabric/state.h"

namespace flowfabric {
namespace {

PublicState of_terminal(TerminalOutcome outcome) {
  switch (outcome) {
    case TerminalOutcome::success:
      return PublicState::completed;
    case TerminalOutcome::cancelled:
      return PublicState::cancelled;
    case TerminalOutcome::expired:
      return PublicState::expired;
    case TerminalOutcome::skipped:
      return PublicState::skipped;
    case TerminalOutcome::failed:
    case TerminalOutcome::none:
      break;
  }
  return PublicState::failed;
}

PublicState of_runnable(EligibilityState eligibility) {
  switch (eligibility) {
    case EligibilityState::not_eligible_until_time:
      return PublicState::delayed;
    case EligibilityState::blocked_by_dependencies:
      return PublicState::waiting_children;
    case EligibilityState::blocked_by_budget:
    case EligibilityState::blocked_by_quota:
      return PublicState::rate_limited;
    case EligibilityState::eligible_now:
    case EligibilityState::blocked_by_route:
    case EligibilityState::blocked_by_lane_state:
    case EligibilityState::blocked_by_operator:
    case EligibilityState::not_applicable:
      break;
  }
  return PublicState::waiting;
}

}  // namespace

PublicState derive_public_state(const StateVector& state) {
  switch (state.lifecycle_phase) {
    case LifecyclePhase::terminal:
      return of_terminal(state.terminal_outcome);
    case LifecyclePhase::suspended:
      return PublicState::suspended;
    case LifecyclePhase::active:
      return PublicState::active;
    case LifecyclePhase::runnable:
      return of_runnable(state.eligibility_state);
    case LifecyclePhase::submitted:
      break;
  }
  return PublicState::waiting;
}

}  // namespace flowfabric
