#include "core/retry.h"

#include <algorithm>
#include <cmath>

namespace flowfabric::core {

namespace {

bool may_retry(const RetryPolicy& policy, const std::string& category) {
  if (category == "permanent" || category == "cancelled") return false;
  const auto& listed = policy.retryable_categories;
  return listed.empty() || std::find(listed.begin(), listed.end(), category) != listed.end();
}

std::uint64_t wait_ms(const FixedBackoff& backoff, std::uint32_t, Random&) {
  return backoff.delay_ms;
}

std::uint64_t wait_ms(const ExponentialBackoff& backoff, std::uint32_t retries_so_far, Random& random) {
  const double grown = static_cast<double>(backoff.initial_delay_ms) *
                       std::pow(backoff.multiplier, static_cast<double>(retries_so_far));
  const bool capped = !(grown < static_cast<double>(backoff.max_delay_ms));
  const std::uint64_t wait = capped ? backoff.max_delay_ms : static_cast<std::uint64_t>(grown);
  return backoff.jitter ? random.between(wait / 2, wait) : wait;
}

}  // namespace

std::optional<std::uint64_t> retry_after_ms(const std::optional<RetryPolicy>& policy,
                                            std::uint32_t retries_so_far, const std::string& category,
                                            Random& random) {
  if (!policy || retries_so_far >= policy->max_retries || !may_retry(*policy, category)) return std::nullopt;
  return std::visit([&](const auto& backoff) { return wait_ms(backoff, retries_so_far, random); },
                    policy->backoff);
}

}  // namespace flowfabric::core
