#include "core/execution/retry.h"

#include <algorithm>
#include <cmath>

namespace flowfabric::core {

namespace {

bool may_retry(const std::optional<RetryPolicy>& policy, const std::string& category) {
  if (category == "permanent" || category == "cancelled") return false;
  if (!policy) return true;
  const auto& listed = policy->retryable_categories;
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

std::uint64_t backoff_ms(const RetryPolicy& policy, std::uint32_t retries_so_far, Random& random) {
  return std::visit([&](const auto& backoff) { return wait_ms(backoff, retries_so_far, random); },
                    policy.backoff);
}

}  // namespace

std::optional<NextTry> next_try(const ExecutionPolicy& policy, std::uint32_t retries_so_far,
                                const std::optional<std::uint32_t>& tier, const std::string& category,
                                Random& random) {
  const auto& retries = policy.retry_policy;
  if (!may_retry(retries, category)) return std::nullopt;
  if (policy.fallback_policy && !policy.fallback_policy->tiers.empty()) {
    const std::uint32_t next = tier ? *tier + 1 : 0;
    if (next >= policy.fallback_policy->tiers.size()) return std::nullopt;
    if (!retries) return NextTry{std::nullopt, next};
    return NextTry{backoff_ms(*retries, next, random), next};
  }
  if (!retries || retries_so_far >= retries->max_retries) return std::nullopt;
  return NextTry{backoff_ms(*retries, retries_so_far, random), std::nullopt};
}

}  // namespace flowfabric::core
