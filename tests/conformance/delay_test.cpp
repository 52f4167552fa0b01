// A worker gives its lease back for a while, and the same attempt continues later (02 §8, §10).
#include <limits>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class Delay : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Delay, kStores, store_name);

TEST_P(Delay, TheSameAttemptGoesOnUnderANewLease) {
  const auto first = running();
  delay(first, kStart + 10);
  advance(10);
  const auto second = claim_one({.worker_id = "other"});

  EXPECT_EQ(second.execution_id, first.execution_id);
  EXPECT_EQ(second.claim, ClaimKind::resumed);
  EXPECT_EQ(second.fence.attempt_id, first.fence.attempt_id);
  EXPECT_EQ(second.attempt_index, first.attempt_index);
  EXPECT_EQ(second.attempt_type, AttemptType::initial);
  EXPECT_EQ(second.fence.lease_epoch, 2);
  EXPECT_NE(second.fence.lease_id, first.fence.lease_id);
  EXPECT_EQ(second.lease_expires_at, now() + kLeaseTtl);
}

TEST_P(Delay, ARetryThatPausesStaysARetry) {
  fail(running(retries(1)));
  advance(1000);
  delay(claim_one(), now());
  run_due();
  const auto resumed = claim_one();

  EXPECT_EQ(resumed.claim, ClaimKind::resumed);
  EXPECT_EQ(resumed.attempt_type, AttemptType::retry);
  EXPECT_EQ(resumed.attempt_index, 1u);
}

TEST_P(Delay, TheAttemptIsOneRowHoweverOftenItPauses) {
  const auto id = create();
  for (int i = 0; i < 5; ++i) {
    delay(claim_one(), now() + 10);
    advance(10);
  }
  complete(claim_one());

  EXPECT_EQ(attempt_log(id), Log{"0 initial ended_success"});
  EXPECT_EQ(attempts(id).at(0).lease_epoch, 6);
  EXPECT_EQ(attempts(id).at(0).started_at, kStart);
  EXPECT_EQ(attempts(id).at(0).ended_at, kStart + 50);
}

TEST_P(Delay, WhilePausedNobodyHoldsALease) {
  const auto task = running();
  delay(task, kStart + kHour);
  advance(2 * kLeaseTtl);

  EXPECT_EQ(describe(task.execution_id).lease, std::nullopt);
  EXPECT_EQ(state(task.execution_id), expected::paused()) << "no lease is left that could expire";
  EXPECT_TRUE(claim().empty());
}

TEST_P(Delay, TheDetailSaysUntilWhen) {
  const auto task = running();
  delay(task, kStart + 500);

  EXPECT_EQ(describe(task.execution_id).blocking_detail, "delayed until 2025-06-15T15:06:40.500Z");
}

TEST_P(Delay, ADelayIntoThePastIsOverAtOnce) {
  const auto task = running();
  EXPECT_EQ(delay(task, 0), Delayed{0});
  run_due();

  EXPECT_EQ(state(task.execution_id), expected::waiting(AttemptState::attempt_interrupted));
  EXPECT_EQ(claim_one().claim, ClaimKind::resumed);
}

TEST_P(Delay, ADelayUntilNowIsOverAtOnce) {
  const auto task = running();
  delay(task, kStart);
  run_due();

  EXPECT_EQ(claim_one().execution_id, task.execution_id);
}

TEST_P(Delay, ANegativeTimeIsRefused) {
  expect_refused(postponement(running(), -1), ErrorCode::invalid_input);
}

TEST_P(Delay, TheDeadlineIsKept) {
  const auto task = running({.execution_deadline_at = kStart + kHour});
  delay(task, kStart + 10);

  EXPECT_EQ(describe(task.execution_id).deadline_at, kStart + kHour);
}

TEST_P(Delay, ThePausedAttemptStillSaysWhoRanIt) {
  create();
  const auto task = claim_one({.worker_id = "pool", .worker_instance_id = "pool-7"});
  delay(task, kStart + kHour);

  EXPECT_EQ(attempts(task.execution_id).at(0).worker_instance_id, "pool-7");
}

TEST_P(Delay, MayBeGivenFromNowOn) {
  const auto task = running();
  tick(7);
  DelayExecution request{.execution_id = task.execution_id, .fence = task.fence, .delay_ms = 100};
  EXPECT_EQ(must(request).delay_until, now() + 100);
  tick(50);
  EXPECT_EQ(must(request).delay_until, kStart + 107);  // repeated: the first answer
  advance(49);
  EXPECT_EQ(state(task.execution_id), expected::paused());
  advance(1);
  EXPECT_EQ(claim_one().execution_id, task.execution_id);
}

TEST_P(Delay, ForLongerThanForEverIsForEver) {
  const auto task = running();
  constexpr auto longest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(must(DelayExecution{.execution_id = task.execution_id, .fence = task.fence, .delay_ms = longest})
                .delay_until,
            longest);
}

TEST_P(Delay, ForLessThanNothingIsRefused) {
  const auto task = running();
  expect_error(DelayExecution{.execution_id = task.execution_id, .fence = task.fence, .delay_ms = -1},
               ErrorCode::invalid_input);
  complete(task);
}

TEST_P(Delay, ByTheOperatorNeedsNoFence) {
  const auto task = running();
  must(DelayExecution{
      .execution_id = task.execution_id, .delay_until = kStart + 10, .source = kOperatorOverride});
  EXPECT_EQ(state(task.execution_id), expected::paused());

  expect_error(completion(task), ErrorCode::execution_not_active);
}

TEST_P(Delay, ResumedWorkKeepsItsPlaceInTheOrder) {
  const auto older = running();
  tick(1);
  const auto newer = create();
  delay(older, now());
  run_due();

  EXPECT_EQ(claim_all(), (std::vector{older.execution_id, newer}));
}

TEST_P(Delay, AResumedLeaseMayBeLostLikeAnyOther) {
  const auto task = running();
  delay(task, kStart);
  run_due();
  claim_one();
  advance(kLeaseTtl);
  EXPECT_EQ(state(task.execution_id), expected::lost());
  claim_one();

  EXPECT_EQ(attempt_log(task.execution_id),
            (Log{"0 initial interrupted_reclaimed lease_expired", "1 reclaim started"}));
}

// ---- the attempt's timer ----

TEST_P(Delay, TheTimerOfTheAttemptPauses) {
  const auto task = running(attempt_timeout(10'000));
  tick(4000);
  delay(task, now() + kHour);
  advance(kHour - 1);

  EXPECT_EQ(state(task.execution_id), expected::paused());
}

TEST_P(Delay, TheTimerGoesOnWithWhatWasLeft) {
  const auto task = running(attempt_timeout(10'000));
  tick(4000);
  delay(task, now() + kHour);
  advance(kHour);
  tick(77);  // waiting for a worker costs no time either
  EXPECT_EQ(claim_one().attempt_timeout_at, now() + 6000);
  advance(5999);
  EXPECT_EQ(state(task.execution_id), expected::running());
  advance(1);

  EXPECT_EQ(state(task.execution_id), expected::expired());
  EXPECT_EQ(describe(task.execution_id).failure_reason, "attempt_timeout");
}

TEST_P(Delay, TheTimerAddsUpOverSeveralPauses) {
  auto task = running(attempt_timeout(10'000));
  for (int i = 0; i < 3; ++i) {
    tick(3000);
    delay(task, now() + 500);
    advance(500);
    task = claim_one();
  }

  EXPECT_EQ(task.attempt_timeout_at, now() + 1000);
}

TEST_P(Delay, WithoutATimerNoneIsArmedOnResume) {
  delay(running(), kStart);
  run_due();

  EXPECT_EQ(claim_one().attempt_timeout_at, std::nullopt);
}

TEST_P(Delay, AReclaimArmsTheTimerAnew) {
  running(attempt_timeout(kLeaseTtl + 5000));
  advance(kLeaseTtl);
  tick(1000);

  EXPECT_EQ(claim_one().attempt_timeout_at, now() + kLeaseTtl + 5000);
}

TEST_P(Delay, AReclaimAfterAPauseArmsTheWholeTimer) {
  const auto task = running(attempt_timeout(60'000));
  tick(20'000);
  delay(task, now());
  run_due();
  claim_one();
  advance(kLeaseTtl);

  EXPECT_EQ(claim_one().attempt_timeout_at, now() + 60'000);
}

TEST_P(Delay, ATimerBeyondAllTimeSurvivesAPause) {
  const auto task = running(attempt_timeout(std::numeric_limits<std::uint64_t>::max()));
  delay(task, now() + kHour);
  advance(kHour);
  const auto resumed = claim_one();
  EXPECT_GT(resumed.attempt_timeout_at, now());
  advance(1);

  EXPECT_EQ(state(task.execution_id), expected::running());
}

}  // namespace
}  // namespace flowfabric
