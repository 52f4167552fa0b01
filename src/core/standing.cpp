#include "core/standing.h"

#include "core/index_rules.h"

namespace flowfabric::core {

bool is_lost(const StateVector& state) {
  return state.ownership_state == OwnershipState::lease_expired_reclaimable ||
         state.ownership_state == OwnershipState::lease_revoked;
}

bool is_lost(const Execution& execution) {
  return is_lost(execution.state);
}

bool is_lost_for_good(const Execution& execution) {
  return is_lost(execution) && execution.lease_reclaim_count >= execution.max_reclaim_count;
}

bool has_live_attempt(const Execution& execution) {
  return execution.state.attempt_state == AttemptState::running_attempt ||
         execution.state.attempt_state == AttemptState::attempt_interrupted;
}

bool is_blocked_by_limit(const StateVector& state) {
  return state.eligibility_state == EligibilityState::blocked_by_budget ||
         state.eligibility_state == EligibilityState::blocked_by_quota;
}

bool is_held_back(const Execution& execution) {
  return is_blocked_by_limit(execution.state) || (execution.blocked_on && is_lost(execution));
}

bool is_blocked_for_no_limit(const Execution& execution) {
  return is_blocked_by_limit(execution.state) && !execution.blocked_on;
}

bool is_stopped_by_budget(const Execution& execution) {
  return execution.blocked_on && is_held(execution);
}

std::optional<std::int64_t> own_timeout(const Execution& execution) {
  const auto& attempt = execution.attempt;
  if (!is_stopped_by_budget(execution)) return attempt.attempt_timeout_at_ms;
  if (!attempt.attempt_timeout_left_ms) return std::nullopt;
  return *attempt.attempt_timeout_at_ms + *attempt.attempt_timeout_left_ms;
}

}  // namespace flowfabric::core
