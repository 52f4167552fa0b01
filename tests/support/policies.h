// Policies as tests write them: one line for the one rule that matters.
#pragma once

#include "flowfabric/policy.h"

namespace flowfabric::tests {

inline ExecutionPolicy retries(std::uint32_t max_retries, Backoff backoff = FixedBackoff{1000},
                               std::vector<std::string> categories = {}) {
  ExecutionPolicy policy;
  policy.retry_policy = RetryPolicy{max_retries, backoff, std::move(categories)};
  return policy;
}

inline ExecutionPolicy attempt_timeout(std::uint64_t ms, ExecutionPolicy policy = {}) {
  policy.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = ms};
  return policy;
}

inline ExecutionPolicy deadline_after(std::uint64_t ms) {
  ExecutionPolicy policy;
  policy.timeout_policy = TimeoutPolicy{.execution_deadline_ms = ms};
  return policy;
}

inline ExecutionPolicy reclaim_cap(std::uint32_t cap) {
  ExecutionPolicy policy;
  policy.max_reclaim_count = cap;
  return policy;
}

inline ExecutionPolicy needs(std::vector<std::string> capabilities) {
  ExecutionPolicy policy;
  policy.routing_requirements = RoutingRequirements{.required_capabilities = std::move(capabilities)};
  return policy;
}

inline ExecutionPolicy dedup_window(std::uint64_t ms) {
  ExecutionPolicy policy;
  policy.dedup_window_ms = ms;
  return policy;
}

}  // namespace flowfabric::tests
