#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/context.h"
#include "core/execution/retry.h"

namespace flowfabric::core {
namespace {

constexpr auto kMost = std::numeric_limits<std::uint64_t>::max();

std::optional<std::uint64_t> wait(const RetryPolicy& policy, std::uint32_t retries,
                                  const std::string& category = "transient", std::uint64_t seed = 1) {
  Random random(seed);
  const auto next = next_try({.retry_policy = policy}, retries, std::nullopt, category, random);
  if (!next) return std::nullopt;
  EXPECT_EQ(next->fallback_tier, std::nullopt);
  return next->wait_ms;
}

RetryPolicy exponential(ExponentialBackoff backoff, std::uint32_t max_retries = 1000) {
  return {.max_retries = max_retries, .backoff = backoff, .retryable_categories = {}};
}

TEST(Retry, WithoutAPolicyThereIsNone) {
  Random random(1);
  EXPECT_EQ(next_try({}, 0, std::nullopt, "transient", random), std::nullopt);
}

TEST(Retry, FallbackTiersFollowOneAnother) {
  Random random(1);
  ExecutionPolicy policy;
  policy.fallback_policy = FallbackPolicy{.tiers = {{"a", "m", std::nullopt}, {"b", "m", std::nullopt}}};
  EXPECT_EQ(next_try(policy, 0, std::nullopt, "transient", random), (NextTry{std::nullopt, 0}));
  EXPECT_EQ(next_try(policy, 0, 0, "transient", random), (NextTry{std::nullopt, 1}));
  EXPECT_EQ(next_try(policy, 0, 1, "transient", random), std::nullopt);
  EXPECT_EQ(next_try(policy, 0, std::nullopt, "permanent", random), std::nullopt);
}

TEST(Retry, TheRetryPolicyGivesFallbackTiersTheirWaitAndTheirCategories) {
  Random random(1);
  ExecutionPolicy policy;
  policy.fallback_policy = FallbackPolicy{.tiers = {{"a", "m", std::nullopt}, {"b", "m", std::nullopt}}};
  policy.retry_policy = RetryPolicy{.max_retries = 0, .retryable_categories = {"timeout"}};
  EXPECT_EQ(next_try(policy, 0, std::nullopt, "timeout", random), (NextTry{1000, 0}));
  EXPECT_EQ(next_try(policy, 0, 0, "timeout", random), (NextTry{2000, 1}));
  EXPECT_EQ(next_try(policy, 0, std::nullopt, "transient", random), std::nullopt);
}

TEST(Retry, TheFirstAttemptIsNotCounted) {
  const RetryPolicy policy{.max_retries = 3, .backoff = FixedBackoff{10}};
  for (const std::uint32_t retries : {0u, 1u, 2u}) EXPECT_EQ(wait(policy, retries), 10u) << retries;
  EXPECT_EQ(wait(policy, 3), std::nullopt);
  EXPECT_EQ(wait(policy, 4), std::nullopt);
  EXPECT_EQ(wait({.max_retries = 0, .backoff = FixedBackoff{10}}, 0), std::nullopt);
}

TEST(Retry, ExponentialBackoffFollowsTheTable) {
  struct Row {
    ExponentialBackoff backoff;
    std::uint32_t retries;
    std::uint64_t expected;
  };
  const std::vector<Row> rows{
      {{}, 0, 1000},  // the first retry waits for the initial delay
      {{}, 1, 2000},
      {{}, 2, 4000},
      {{}, 5, 32'000},
      {{}, 6, 60'000},  // 64 000 is beyond the maximum
      {{}, 100, 60'000},
      {{.initial_delay_ms = 100, .max_delay_ms = 10'000, .multiplier = 1.5}, 1, 150},
      {{.initial_delay_ms = 100, .max_delay_ms = 10'000, .multiplier = 1.5}, 3, 337},  // 337.5, rounded down
      {{.initial_delay_ms = 100, .max_delay_ms = 10'000, .multiplier = 1.0}, 50, 100},
      {{.initial_delay_ms = 1000, .max_delay_ms = 10'000, .multiplier = 0.5}, 2, 250},
      {{.initial_delay_ms = 0, .max_delay_ms = 10'000, .multiplier = 2.0}, 9, 0},
      {{.initial_delay_ms = 5000, .max_delay_ms = 100, .multiplier = 2.0}, 0, 100},
      {{.initial_delay_ms = 5000, .max_delay_ms = 0, .multiplier = 2.0}, 3, 0},
  };
  for (const auto& [backoff, retries, expected] : rows) {
    EXPECT_EQ(wait(exponential(backoff), retries), expected)
        << backoff.initial_delay_ms << " × " << backoff.multiplier << "^" << retries << " up to "
        << backoff.max_delay_ms;
  }
}

TEST(Retry, HugeNumbersDoNotOverflow) {
  EXPECT_EQ(wait(exponential({.initial_delay_ms = kMost, .max_delay_ms = kMost}), 0), kMost);
  EXPECT_EQ(wait(exponential({.initial_delay_ms = kMost, .max_delay_ms = kMost}), 900), kMost);
  EXPECT_EQ(wait(exponential({.initial_delay_ms = kMost, .max_delay_ms = 7}), 0), 7u);
  EXPECT_EQ(wait(exponential({.initial_delay_ms = 1, .max_delay_ms = kMost, .multiplier = 1e300}), 2), kMost);
  EXPECT_EQ(wait({.max_retries = 1, .backoff = FixedBackoff{kMost}}, 0), kMost);
  EXPECT_EQ(wait(exponential({}, std::numeric_limits<std::uint32_t>::max()),
                 std::numeric_limits<std::uint32_t>::max() - 1),
            60'000u);
  // 0 × ∞ is no number, and must not become a large one.
  EXPECT_LE(*wait(exponential({.initial_delay_ms = 0, .max_delay_ms = 9, .multiplier = 1e300}), 100), 9u);
}

TEST(Retry, SumsStayWithinTime) {
  constexpr auto end = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(saturating_add(1000, 5), 1005);
  EXPECT_EQ(saturating_add(1000, kMost), end);
  EXPECT_EQ(saturating_add(end - 5, 4), end - 1);
  EXPECT_EQ(saturating_add(end - 5, 5), end);
  EXPECT_EQ(saturating_add(end - 5, 6), end);
  EXPECT_EQ(saturating_add(end, 0), end);
}

TEST(Retry, JitterStaysBetweenHalfAndAll) {
  const auto policy = exponential({.initial_delay_ms = 1001, .max_delay_ms = 60'000, .jitter = true});
  std::uint64_t least = kMost;
  std::uint64_t most = 0;
  double sum = 0;
  constexpr int kDraws = 20'000;
  for (int seed = 0; seed < kDraws; ++seed) {
    const auto drawn = *wait(policy, 0, "transient", static_cast<std::uint64_t>(seed));
    least = std::min(least, drawn);
    most = std::max(most, drawn);
    sum += static_cast<double>(drawn);
  }
  EXPECT_EQ(least, 500u) << "1001 / 2, rounded down";
  EXPECT_EQ(most, 1001u);
  EXPECT_NEAR(sum / kDraws, 750.5, 5.0) << "uniform";
}

TEST(Retry, JitterIsReproducibleAndCopesWithAnything) {
  const auto policy = exponential({.initial_delay_ms = kMost, .max_delay_ms = kMost, .jitter = true});
  const auto drawn = wait(policy, 0, "transient", 7);
  EXPECT_GE(*drawn, kMost / 2);
  EXPECT_EQ(drawn, wait(policy, 0, "transient", 7));
  EXPECT_NE(drawn, wait(policy, 0, "transient", 8));
  EXPECT_EQ(wait(exponential({.initial_delay_ms = 0, .max_delay_ms = 5, .jitter = true}), 0), 0u);
  EXPECT_LE(*wait(exponential({.initial_delay_ms = 1, .max_delay_ms = 5, .jitter = true}), 0), 1u);
}

TEST(Retry, SomeCategoriesNeverAre) {
  const RetryPolicy any{.max_retries = 3, .backoff = FixedBackoff{10}};
  for (const auto* category :
       {"transient", "timeout", "infra_crash", "handler_error", "budget_exceeded", ""}) {
    EXPECT_EQ(wait(any, 0, category), 10u) << category;
  }
  EXPECT_EQ(wait(any, 0, "permanent"), std::nullopt);
  EXPECT_EQ(wait(any, 0, "cancelled"), std::nullopt);
}

TEST(Retry, AListOfCategoriesIsExhaustive) {
  const RetryPolicy some{
      .max_retries = 3, .backoff = FixedBackoff{10}, .retryable_categories = {"timeout", "permanent"}};
  EXPECT_EQ(wait(some, 0, "timeout"), 10u);
  EXPECT_EQ(wait(some, 0, "transient"), std::nullopt);
  EXPECT_EQ(wait(some, 0, "Timeout"), std::nullopt);
  EXPECT_EQ(wait(some, 0, "permanent"), std::nullopt) << "never, whatever the list says";
}

}  // namespace
}  // namespace flowfabric::core
