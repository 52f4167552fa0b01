// When a failed attempt is tried again, and after how long (02 §8.1).
#include <limits>
#include <set>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class Retry : public EngineTest {
 protected:
  // Fails attempt after attempt; how long each retry had to wait.
  std::vector<std::int64_t> waits_of(const ExecutionPolicy& policy) {
    std::vector<std::int64_t> waits;
    create(policy);
    for (;;) {
      const auto answer = fail(claim_one());
      if (!answer.retry_scheduled) return waits;
      waits.push_back(answer.delay_until - now());
      advance(waits.back());
    }
  }
  using Waits = std::vector<std::int64_t>;

  bool is_retried(const ExecutionPolicy& policy, const std::string& category) {
    return fail(running(policy), "boom", category).retry_scheduled;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Retry, kStores, store_name);

// ---- how often ----

TEST_P(Retry, ThreeRetriesAreFourAttempts) {
  EXPECT_EQ(waits_of(retries(3)), (Waits{1000, 1000, 1000}));

  EXPECT_EQ(count(), (StateCounts{{PublicState::failed, 1}}));
}

TEST_P(Retry, EachAttemptIsInTheHistory) {
  const auto id = create(retries(2));
  for (const char* reason : {"one", "two", "three"}) {
    fail(claim_one(), reason);
    advance(1000);
  }

  EXPECT_EQ(attempt_log(id),
            (Log{"0 initial ended_failure one", "1 retry ended_failure two", "2 retry ended_failure three"}));
  EXPECT_EQ(describe(id).retry_count, 2u);
  EXPECT_EQ(describe(id).failure_reason, "three");
}

TEST_P(Retry, TheAnswerNamesTheNextAttempt) {
  create(retries(2));
  EXPECT_EQ(fail(claim_one()).next_attempt_index, 1u);
  advance(1000);
  EXPECT_EQ(fail(claim_one()).next_attempt_index, 2u);
  advance(1000);

  EXPECT_EQ(fail(claim_one()), Failed{});
}

TEST_P(Retry, NoRetriesAreNone) {
  EXPECT_EQ(waits_of(retries(0)), Waits{});
}

TEST_P(Retry, NoPolicyIsNoRetry) {
  EXPECT_EQ(waits_of({}), Waits{});
}

TEST_P(Retry, ASuccessEndsTheTrying) {
  fail(running(retries(3)));
  advance(1000);
  complete(claim_one());

  EXPECT_EQ(count(), (StateCounts{{PublicState::completed, 1}}));
}

TEST_P(Retry, AReclaimNeitherCountsNorResets) {
  const auto task = running(retries(1));
  fail(task);
  advance(1000);
  claim_one();
  advance(kLeaseTtl);
  const auto reclaimed = claim_one();
  EXPECT_EQ(describe(task.execution_id).retry_count, 1u);

  EXPECT_EQ(fail(reclaimed), Failed{});
}

TEST_P(Retry, APauseNeitherCountsNorResets) {
  const auto task = running(retries(1));
  delay(task, kStart);
  run_due();
  EXPECT_TRUE(fail(claim_one()).retry_scheduled);
  advance(1000);
  delay(claim_one(), kStart);
  run_due();
  EXPECT_EQ(describe(task.execution_id).retry_count, 1u);

  EXPECT_EQ(fail(claim_one()), Failed{});
}

TEST_P(Retry, ATimeoutCountsAsARetry) {
  running(attempt_timeout(100, retries(1)));
  advance(100);
  advance(1000);

  EXPECT_EQ(fail(claim_one()), Failed{});
}

// ---- which failures ----

TEST_P(Retry, PermanentAndCancelledAreNeverRetried) {
  EXPECT_FALSE(is_retried(retries(3), "permanent"));
  EXPECT_FALSE(is_retried(retries(3), "cancelled"));
}

TEST_P(Retry, PermanentAndCancelledAreNotRetriedEvenWhenListed) {
  const auto policy = retries(3, FixedBackoff{1}, {"permanent", "cancelled"});

  EXPECT_FALSE(is_retried(policy, "permanent"));
  EXPECT_FALSE(is_retried(policy, "cancelled"));
}

TEST_P(Retry, EveryOtherCategoryIsRetried) {
  for (const char* category : {"transient", "infra_crash", "timeout", "handler_error", "Permanent", ""}) {
    EXPECT_TRUE(is_retried(retries(3), category)) << category;
  }
}

TEST_P(Retry, AListRestrictsTheCategories) {
  const auto policy = retries(3, FixedBackoff{1}, {"rate_limited", "timeout"});

  EXPECT_TRUE(is_retried(policy, "rate_limited"));
  EXPECT_TRUE(is_retried(policy, "timeout"));
  EXPECT_FALSE(is_retried(policy, "transient"));
  EXPECT_FALSE(is_retried(policy, "rate"));
}

TEST_P(Retry, TheCategoryIsKeptAsGiven) {
  const auto task = running();
  fail(task, "boom", "Very Odd");

  EXPECT_EQ(attempts(task.execution_id).at(0).failure_category, "Very Odd");
}

// ---- how long ----

TEST_P(Retry, FixedBackoffIsTheSameEachTime) {
  EXPECT_EQ(waits_of(retries(3, FixedBackoff{250})), (Waits{250, 250, 250}));
}

TEST_P(Retry, ExponentialBackoffGrowsUpToItsCap) {
  const ExponentialBackoff backoff{.initial_delay_ms = 100, .max_delay_ms = 1000, .multiplier = 3};

  EXPECT_EQ(waits_of(retries(5, backoff)), (Waits{100, 300, 900, 1000, 1000}));
}

TEST_P(Retry, ExponentialBackoffIsCutToWholeMilliseconds) {
  const ExponentialBackoff backoff{.initial_delay_ms = 100, .max_delay_ms = 10'000, .multiplier = 1.5};

  EXPECT_EQ(waits_of(retries(5, backoff)), (Waits{100, 150, 225, 337, 506}));
}

TEST_P(Retry, ExponentialBackoffHasDefaults) {
  EXPECT_EQ(waits_of(retries(8, ExponentialBackoff{})),
            (Waits{1000, 2000, 4000, 8000, 16000, 32000, 60000, 60000}));
}

TEST_P(Retry, AnInitialDelayBeyondTheCapIsCapped) {
  EXPECT_EQ(waits_of(retries(1, ExponentialBackoff{.initial_delay_ms = 5000, .max_delay_ms = 70})),
            Waits{70});
}

TEST_P(Retry, AMultiplierBelowOneShrinksTheWait) {
  const ExponentialBackoff backoff{.initial_delay_ms = 1000, .multiplier = 0.5};

  EXPECT_EQ(waits_of(retries(3, backoff)), (Waits{1000, 500, 250}));
}

TEST_P(Retry, WithoutBackoffTheRetryIsDueAtOnce) {
  const auto task = running(retries(1, FixedBackoff{0}));
  EXPECT_EQ(fail(task).delay_until, kStart);
  run_due();

  EXPECT_EQ(claim_one().attempt_type, AttemptType::retry);
}

TEST_P(Retry, ABackoffBeyondAllTimeIsNoMistake) {
  const auto task = running(retries(1, FixedBackoff{std::numeric_limits<std::uint64_t>::max()}));
  EXPECT_GT(fail(task).delay_until, kStart);
  advance(1000 * kHour);

  EXPECT_EQ(state(task.execution_id), expected::retrying());
}

TEST_P(Retry, JitterStaysBetweenHalfAndAll) {
  const ExponentialBackoff backoff{.initial_delay_ms = 1000, .max_delay_ms = 60'000, .jitter = true};
  std::set<std::int64_t> waits;
  for (int i = 0; i < 60; ++i) {
    const auto answer = fail(running(retries(1, backoff)));
    waits.insert(answer.delay_until - now());
  }

  EXPECT_GE(*waits.begin(), 500);
  EXPECT_LE(*waits.rbegin(), 1000);
  EXPECT_GT(waits.size(), 1u) << "every wait was the same";
  EXPECT_LT(*waits.begin(), 750) << "60 times in the upper half";
  EXPECT_GT(*waits.rbegin(), 750) << "60 times in the lower half";
}

TEST_P(Retry, JitterGrowsWithTheBackoff) {
  const ExponentialBackoff backoff{
      .initial_delay_ms = 1000, .max_delay_ms = 3000, .multiplier = 2, .jitter = true};
  const auto waits = waits_of(retries(3, backoff));

  ASSERT_EQ(waits.size(), 3u);
  EXPECT_TRUE(waits[1] >= 1000 && waits[1] <= 2000) << waits[1];
  EXPECT_TRUE(waits[2] >= 1500 && waits[2] <= 3000) << waits[2];
}

// ---- the reason ----

TEST_P(Retry, AReasonOf4096BytesIsKept) {
  const std::string reason(4096, 'x');
  const auto task = running();
  fail(task, reason);

  EXPECT_EQ(describe(task.execution_id).failure_reason, reason);
}

TEST_P(Retry, ALongerReasonIsCut) {
  const auto task = running(retries(1));
  fail(task, std::string(5000, 'x'), std::string(5000, 'c'));

  const auto first = attempts(task.execution_id).at(0);
  EXPECT_EQ(first.failure_reason, std::string(4096, 'x'));
  EXPECT_EQ(first.failure_category, std::string(4096, 'c'));
  EXPECT_EQ(describe(task.execution_id).failure_reason, std::string(4096, 'x'));
  advance(1000);
  claim_one();
  EXPECT_EQ(attempts(task.execution_id).at(1).reason, std::string(4096, 'x'));
}

TEST_P(Retry, NoCharacterIsCutInTwo) {
  const auto task = running();
  fail(task, std::string(4095, 'x') + "é and more");

  EXPECT_EQ(describe(task.execution_id).failure_reason, std::string(4095, 'x'));
}

TEST_P(Retry, NulBytesAreRefused) {
  const auto task = running(retries(1));

  expect_refused(failure(task, "a\0b"s), ErrorCode::invalid_input);
  expect_refused(failure(task, "boom", "a\0b"s), ErrorCode::invalid_input);
}

}  // namespace
}  // namespace flowfabric
