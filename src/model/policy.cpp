#include "flowfabric/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/text.h"

namespace flowfabric {
namespace {

constexpr std::array<std::string_view, 6> kTimeoutBehaviors = {
    "fail", "cancel", "expire", "auto_resume_with_timeout_signal", "auto_resume", "escalate"};
constexpr std::array<std::string_view, 2> kDurabilityModes = {"buffered", "durable"};

std::unexpected<Error> malformed(std::string advice) {
  return fail_with(ErrorCode::invalid_policy_json, "malformed", std::move(advice));
}

Result<void> check_policy_text(std::string_view key, std::string_view text) {
  if (check_text(key, text)) return {};
  return malformed(
      fmt::format("`{}` must be valid UTF-8 without NUL bytes, up to {} bytes long.", key, kMaxTextBytes));
}

Result<void> check_count(std::string_view key, std::size_t count) {
  if (count <= kMaxPolicyEntries) return {};
  return malformed(fmt::format("`{}` may have up to {} entries.", key, kMaxPolicyEntries));
}

template <std::size_t Count>
Result<void> check_word(std::string_view key, std::string_view word,
                        const std::array<std::string_view, Count>& legal) {
  if (std::ranges::find(legal, word) != legal.end()) return {};
  return malformed(fmt::format("`{}` must be one of: {}.", key, fmt::join(legal, ", ")));
}

Result<void> check(const RetryPolicy& retry) {
  const auto* exponential = std::get_if<ExponentialBackoff>(&retry.backoff);
  if (exponential != nullptr && !(std::isfinite(exponential->multiplier) && exponential->multiplier > 0)) {
    return malformed("`retry_policy.backoff.multiplier` must be a finite number above 0.");
  }
  if (auto few = check_count("retry_policy.retryable_categories", retry.retryable_categories.size()); !few) {
    return few;
  }
  for (const std::string& category : retry.retryable_categories) {
    if (auto checked = check_policy_text("retry_policy.retryable_categories", category); !checked) {
      return checked;
    }
  }
  return {};
}

Result<void> check(const SuspensionPolicy& suspension) {
  return check_word("suspension_policy.timeout_behavior", suspension.timeout_behavior, kTimeoutBehaviors);
}

Result<void> check(const FallbackPolicy& fallback) {
  if (auto few = check_count("fallback_policy.tiers", fallback.tiers.size()); !few) return few;
  for (const FallbackTier& tier : fallback.tiers) {
    if (auto checked = check_policy_text("fallback_policy.tiers.provider", tier.provider); !checked) {
      return checked;
    }
    if (auto checked = check_policy_text("fallback_policy.tiers.model", tier.model); !checked) return checked;
  }
  return {};
}

Result<void> check(const RoutingRequirements& routing) {
  if (auto tokens = normalize_capabilities("required", routing.required_capabilities); !tokens) {
    return std::unexpected(std::move(tokens.error()));
  }
  if (auto checked = check_policy_text("routing_requirements.preferred_locality", routing.preferred_locality);
      !checked) {
    return checked;
  }
  return check_policy_text("routing_requirements.isolation_level", routing.isolation_level);
}

Result<void> check(const StreamPolicy& stream) {
  return check_word("stream_policy.durability_mode", stream.durability_mode, kDurabilityModes);
}

template <class Part>
Result<void> check(const std::optional<Part>& part) {
  if (!part) return {};
  return check(*part);
}

}  // namespace

std::uint32_t ExecutionPolicy::reclaim_cap() const {
  if (max_reclaim_count) return *max_reclaim_count;
  if (timeout_policy && timeout_policy->max_reclaim_count) return *timeout_policy->max_reclaim_count;
  return kDefaultMaxReclaimCount;
}

Result<void> validate(const ExecutionPolicy& policy) {
  if (auto few = check_count("budget_ids", policy.budget_ids.size()); !few) return few;
  if (auto checked = check(policy.retry_policy); !checked) return checked;
  if (auto checked = check(policy.suspension_policy); !checked) return checked;
  if (auto checked = check(policy.fallback_policy); !checked) return checked;
  if (auto checked = check(policy.routing_requirements); !checked) return checked;
  return check(policy.stream_policy);
}

}  // namespace flowfabric
