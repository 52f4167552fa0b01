// Fallback tiers (02 §16.3): each retryable failure moves on to the next tier, until there is none.
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;

class FallbackTiers : public SituationTest {
 protected:
  // Tier n is provider "pn" with model "mn".
  static ExecutionPolicy tiers(std::uint32_t count, ExecutionPolicy policy = {}) {
    policy.fallback_policy = FallbackPolicy{};
    for (std::uint32_t i = 0; i < count; ++i) {
      const auto name = std::to_string(i);
      policy.fallback_policy->tiers.push_back(
          {.provider = "p" + name, .model = "m" + name, .timeout_ms = {}});
    }
    return policy;
  }
  static Fallback tier(std::uint32_t index) {
    const auto name = std::to_string(index);
    return {index, "p" + name, "m" + name};
  }
  std::vector<std::optional<std::uint32_t>> tiers_used(const ExecutionId& id) {
    std::vector<std::optional<std::uint32_t>> used;
    for (const auto& attempt : attempts(id)) used.push_back(attempt.fallback_tier);
    return used;
  }
  using Used = std::vector<std::optional<std::uint32_t>>;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FallbackTiers, kStores, store_name);

TEST_P(FallbackTiers, TheFirstAttemptRunsAsSubmitted) {
  const auto task = running(tiers(2));

  EXPECT_EQ(task.fallback, std::nullopt);
  EXPECT_EQ(task.attempt_type, AttemptType::initial);
  EXPECT_EQ(tiers_used(task.execution_id), Used{std::nullopt});
  complete(task);
}

TEST_P(FallbackTiers, EachFailureMovesOnToTheNextTier) {
  auto task = running(tiers(2));
  const auto id = task.execution_id;
  for (std::uint32_t i = 0; i < 2; ++i) {
    tick(5);
    EXPECT_EQ(fail(task, "no"), (Failed{true, now(), i + 1}));
    EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_retry_attempt)) << "at once";
    EXPECT_EQ(describe(id).retry_count, 0u);
    EXPECT_EQ(describe(id).failure_reason, "no");
    EXPECT_EQ(lease_log(id).back(), std::to_string(i + 1) + " released failed_retry_scheduled");
    EXPECT_EQ(grant(id).kind, GrantKind::claim);
    task = must(ClaimGranted{id, use_by()});
    EXPECT_EQ(task.attempt_type, AttemptType::fallback);
    EXPECT_EQ(task.fallback, tier(i));
    EXPECT_EQ(task.claim, ClaimKind::fresh);
    EXPECT_EQ(attempts(id).back().previous_attempt_index, i);
    EXPECT_EQ(attempts(id).back().reason, "no");
  }
  EXPECT_EQ(fail(task, "no"), Failed{});

  EXPECT_EQ(state(id), expected::failed());
  EXPECT_EQ(attempt_log(id), (Log{"0 initial ended_failure no", "1 fallback ended_failure no",
                                  "2 fallback ended_failure no"}));
  EXPECT_EQ(tiers_used(id), (Used{std::nullopt, 0, 1}));
}

TEST_P(FallbackTiers, ASuccessOnATierIsASuccess) {
  const auto task = running(tiers(2));
  fail(task);
  complete(claim_one(), "second best");

  EXPECT_EQ(result(task.execution_id), "second best");
  EXPECT_EQ(tiers_used(task.execution_id), (Used{std::nullopt, 0}));
}

TEST_P(FallbackTiers, ThePauseOfATierKeepsIt) {
  fail(running(tiers(2)));
  delay(claim_one(), now() + 10);
  advance(10);
  const auto resumed = claim_one();

  EXPECT_EQ(resumed.claim, ClaimKind::resumed);
  EXPECT_EQ(resumed.fallback, tier(0));
}

TEST_P(FallbackTiers, ALostAttemptIsReclaimedOnItsTier) {
  const auto task = running(tiers(2));
  fail(task);
  claim_one();
  advance(kLeaseTtl);
  const auto reclaimed = claim_one();

  EXPECT_EQ(reclaimed.attempt_type, AttemptType::reclaim);
  EXPECT_EQ(reclaimed.fallback, tier(0));
  EXPECT_TRUE(fail(reclaimed).retry_scheduled);
  EXPECT_EQ(claim_one().fallback, tier(1));
  EXPECT_EQ(tiers_used(task.execution_id), (Used{std::nullopt, 0, 0, 1}));
}

TEST_P(FallbackTiers, ALostFirstAttemptIsReclaimedAsSubmitted) {
  lost(tiers(1));
  const auto reclaimed = claim_one();
  EXPECT_EQ(reclaimed.fallback, std::nullopt);
  fail(reclaimed);

  EXPECT_EQ(claim_one().fallback, tier(0));
}

TEST_P(FallbackTiers, AReplayBeginsWithoutATier) {
  const auto task = running(tiers(1));
  fail(task);
  fail(claim_one());
  replay(task.execution_id);
  const auto again = claim_one();
  EXPECT_EQ(again.attempt_type, AttemptType::replay);
  EXPECT_EQ(again.fallback, std::nullopt);
  EXPECT_TRUE(fail(again).retry_scheduled);

  EXPECT_EQ(claim_one().fallback, tier(0));
  EXPECT_EQ(tiers_used(task.execution_id), (Used{std::nullopt, 0, std::nullopt, 0}));
}

TEST_P(FallbackTiers, ARepeatedReportGetsItsAnswerAgain) {
  const auto task = running(tiers(1));
  tick(5);
  const auto answer = fail(task, "no");
  tick(5);

  EXPECT_EQ(fail(task, "no"), answer);
  EXPECT_EQ(claim_one().fallback, tier(0));
}

TEST_P(FallbackTiers, NoTiersAreNoFallback) {
  const auto plain = running(tiers(0));
  EXPECT_EQ(fail(plain), Failed{});
  const auto retried = running(tiers(0, retries(1)));
  fail(retried);

  EXPECT_EQ(state(retried.execution_id), expected::retrying());
  EXPECT_EQ(describe(retried.execution_id).retry_count, 1u);
}

// ---- which failures ----

TEST_P(FallbackTiers, OnlyFailuresThatMayBeRetriedMoveOn) {
  const auto listed = tiers(1, retries(3, FixedBackoff{0}, {"rate_limited"}));
  const std::vector<std::tuple<ExecutionPolicy, std::string, bool>> cases = {
      {tiers(1), "permanent", false}, {tiers(1), "cancelled", false}, {tiers(1), "transient", true},
      {tiers(1), "timeout", true},    {tiers(1), "odd", true},        {listed, "transient", false},
      {listed, "rate_limited", true},
  };
  for (const auto& [policy, category, moves_on] : cases) {
    const auto placed = place(Situation::running, policy);
    EXPECT_EQ(fail(placed.task, "no", category).retry_scheduled, moves_on) << category;
    EXPECT_EQ(describe(placed.id).state.lifecycle_phase == LifecyclePhase::terminal, !moves_on) << category;
  }
}

TEST_P(FallbackTiers, TheNumberOfRetriesDoesNotCount) {
  const auto none = running(tiers(2, retries(0, FixedBackoff{0})));
  for (std::uint32_t i = 0; i < 2; ++i) {
    EXPECT_EQ(fail(i == 0 ? none : claim_one()).next_attempt_index, i + 1);
    run_due();
  }
  EXPECT_EQ(fail(claim_one()), Failed{});

  const auto many = running(tiers(1, retries(9, FixedBackoff{0})));
  EXPECT_TRUE(fail(many).retry_scheduled);
  run_due();
  EXPECT_EQ(fail(claim_one()), Failed{});
  EXPECT_EQ(describe(many.execution_id).retry_count, 0u);
}

// ---- how long ----

TEST_P(FallbackTiers, TheBackoffOfTheRetryPolicyIsWaitedFor) {
  const ExponentialBackoff backoff{.initial_delay_ms = 100, .max_delay_ms = 1000, .multiplier = 3};
  const auto id = create(tiers(4, retries(1, backoff)));
  std::uint32_t index = 0;
  for (const std::int64_t wait : {100, 300, 900, 1000}) {
    EXPECT_EQ(fail(claim_one()), (Failed{true, now() + wait, ++index}));
    EXPECT_EQ(state(id), expected::retrying());
    advance(wait - 1);
    EXPECT_TRUE(claim().empty());
    advance(1);
  }

  EXPECT_EQ(claim_one().fallback, tier(3));
}

TEST_P(FallbackTiers, ATiersTimeoutReplacesThatOfTheAttempts) {
  auto policy = tiers(2, attempt_timeout(1000));
  policy.fallback_policy->tiers[0].timeout_ms = 70;
  const auto task = running(policy);
  EXPECT_EQ(task.attempt_timeout_at, now() + 1000);
  fail(task);
  const auto on_tier = claim_one();
  EXPECT_EQ(on_tier.attempt_timeout_at, now() + 70);
  tick(50);
  fail(on_tier);

  EXPECT_EQ(claim_one().attempt_timeout_at, now() + 1000) << "this tier has none of its own";
}

TEST_P(FallbackTiers, AReclaimOnATierHasAllOfItsTime) {
  auto policy = tiers(1);
  policy.fallback_policy->tiers[0].timeout_ms = 2 * kLeaseTtl;
  fail(running(policy));
  claim_one();
  advance(kLeaseTtl);

  EXPECT_EQ(claim_one().attempt_timeout_at, now() + 2 * kLeaseTtl);
}

TEST_P(FallbackTiers, ATimeoutMovesOnToo) {
  const auto task = running(tiers(1, attempt_timeout(100)));
  advance(100);
  EXPECT_EQ(state(task.execution_id), expected::waiting(AttemptState::pending_retry_attempt));
  EXPECT_EQ(claim_one().fallback, tier(0));
  EXPECT_EQ(attempts(task.execution_id).at(0).failure_category, "timeout");
  advance(100);

  EXPECT_EQ(state(task.execution_id), expected::expired()) << "there is no tier left";
  EXPECT_EQ(describe(task.execution_id).failure_reason, "attempt_timeout");
}

TEST_P(FallbackTiers, ATimeoutMovesOnOnlyIfItMayBeRetried) {
  const auto task = running(tiers(1, attempt_timeout(100, retries(3, FixedBackoff{0}, {"transient"}))));
  advance(100);

  EXPECT_EQ(state(task.execution_id), expected::expired());
}

TEST_P(FallbackTiers, TheDeadlineEndsItOnAnyTier) {
  auto policy = tiers(3);
  policy.timeout_policy = TimeoutPolicy{.execution_deadline_ms = 100};
  const auto task = running(policy);
  fail(task);
  claim_one();
  advance(100);

  EXPECT_EQ(state(task.execution_id), expected::expired());
}

}  // namespace
}  // namespace flowfabric
