// Repeating a call that ended a lease, because its answer was lost: the original answer, as long as no later
// lease of the execution has ended (02 §8.2, README). Nothing happens twice.
#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class Repeat : public EngineTest {
 protected:
  // The same call again: the same answer, and no trace of it.
  template <class Request>
  void expect_repeated(const Request& request, const typename Request::Answer& original) {
    const auto before = story(request.execution_id);
    EXPECT_EQ(must(request), original);
    EXPECT_EQ(story(request.execution_id), before);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Repeat, kStores, store_name);

// ---- at once, and later ----

TEST_P(Repeat, CompleteAnswersAsBefore) {
  const auto task = running();
  complete(task, "first");
  tick(100);

  expect_repeated(completion(task, "second"), Completed{});
  EXPECT_EQ(result(task.execution_id), "first");
}

TEST_P(Repeat, CompleteAnswersAsBeforeLongAfterTheLeaseWouldHaveExpired) {
  const auto task = running();
  complete(task);
  advance(10 * kHour);

  expect_repeated(completion(task), Completed{});
}

TEST_P(Repeat, TerminalFailAnswersAsBefore) {
  const auto task = running();
  fail(task, "first");
  tick(100);

  expect_repeated(failure(task, "second"), Failed{});
  EXPECT_EQ(describe(task.execution_id).failure_reason, "first");
}

TEST_P(Repeat, FailWithARetryAnswersTheSameTime) {
  const auto task = running(retries(3));
  const auto original = fail(task);
  tick(100);

  expect_repeated(failure(task), original);
  EXPECT_EQ(describe(task.execution_id).retry_count, 1u);
}

TEST_P(Repeat, FailAnswersTheSameTimeThoughJitterIsRandom) {
  const auto task = running(retries(
      3, ExponentialBackoff{.initial_delay_ms = 1'000'000, .max_delay_ms = 1'000'000, .jitter = true}));
  const auto original = fail(task);

  expect_repeated(failure(task), original);
}

TEST_P(Repeat, DelayAnswersTheSameTime) {
  const auto task = running();
  const auto original = delay(task, kStart + 500);
  tick(100);

  expect_repeated(postponement(task, kStart + 900), original);
  EXPECT_EQ(describe(task.execution_id).delay_until, kStart + 500);
}

TEST_P(Repeat, CancelByTheHolderSucceedsAgain) {
  const auto task = running();
  const CancelExecution request{task.execution_id, "enough", kLeaseHolder, task.fence};
  const auto original = must(request);

  expect_repeated(request, original);
}

// ---- after the promotion ----

TEST_P(Repeat, FailAnswersTheSameAfterThePromotion) {
  const auto task = running(retries(3));
  const auto original = fail(task);
  advance(1000);

  expect_repeated(failure(task), original);
  EXPECT_EQ(state(task.execution_id), expected::waiting(AttemptState::pending_retry_attempt));
}

TEST_P(Repeat, DelayAnswersTheSameAfterThePromotion) {
  const auto task = running();
  const auto original = delay(task, kStart + 10);
  advance(10);

  expect_repeated(postponement(task, kStart + 10), original);
}

// ---- while a later lease runs ----

TEST_P(Repeat, FailAnswersTheSameWhileTheRetryRuns) {
  const auto task = running(retries(3));
  const auto original = fail(task);
  advance(1000);
  const auto second = claim_one();

  expect_repeated(failure(task), original);
  complete(second);
}

TEST_P(Repeat, DelayAnswersTheSameWhileTheAttemptGoesOn) {
  const auto task = running();
  const auto original = delay(task, kStart + 10);
  advance(10);
  const auto second = claim_one();

  expect_repeated(postponement(task, kStart + 10), original);
  complete(second);
}

// ---- after a later lease has ended ----

TEST_P(Repeat, FailIsStaleAfterTheRetryHasCompleted) {
  const auto task = running(retries(3));
  fail(task);
  advance(1000);
  complete(claim_one());

  expect_refused(failure(task), ErrorCode::stale_lease);
}

TEST_P(Repeat, FailIsStaleAfterTheRetryHasFailed) {
  const auto task = running(retries(3));
  fail(task);
  advance(1000);
  fail(claim_one());

  expect_refused(failure(task), ErrorCode::stale_lease);
}

TEST_P(Repeat, FailIsStaleAfterTheRetryWasReclaimed) {
  const auto task = running(retries(3));
  fail(task);
  advance(1000);
  claim_one();
  advance(kLeaseTtl);
  claim_one();

  expect_refused(failure(task), ErrorCode::stale_lease);
}

TEST_P(Repeat, DelayIsStaleAfterALaterLeaseHasEnded) {
  const auto task = running();
  delay(task, kStart);
  run_due();
  delay(claim_one(), kStart);

  expect_refused(postponement(task, kStart), ErrorCode::stale_lease);
}

TEST_P(Repeat, DelayIsStaleAfterTheExecutionHasCompleted) {
  const auto task = running();
  delay(task, kStart);
  run_due();
  complete(claim_one());

  expect_refused(postponement(task, kStart), ErrorCode::stale_lease);
}

// ---- another call with the same fence is no repetition ----

TEST_P(Repeat, CompleteAfterFailIsRefused) {
  const auto task = running();
  fail(task);

  expect_refused(completion(task), ErrorCode::execution_not_active);
}

TEST_P(Repeat, FailAfterCompleteIsRefused) {
  const auto task = running(retries(3));
  complete(task);

  expect_refused(failure(task), ErrorCode::execution_not_active);
}

TEST_P(Repeat, DelayAfterFailIsRefused) {
  const auto task = running(retries(3));
  fail(task);

  expect_refused(postponement(task, kStart), ErrorCode::execution_not_active);
}

TEST_P(Repeat, CompleteAfterDelayIsRefusedWhileTheAttemptGoesOn) {
  const auto task = running();
  delay(task, kStart);
  run_due();
  claim_one();

  expect_refused(completion(task), ErrorCode::stale_lease);
}

TEST_P(Repeat, CompleteAfterACancelIsRefused) {
  const auto task = running();
  cancel(task.execution_id);

  expect_refused(completion(task), ErrorCode::execution_not_active);
}

// ---- the same call with another fence is no repetition ----

TEST_P(Repeat, CompleteWithAnotherAttemptIsRefused) {
  const auto task = running();
  complete(task);
  auto other = completion(task);
  other.fence.attempt_id = AttemptId{};

  expect_refused(other, ErrorCode::execution_not_active);
}

TEST_P(Repeat, CompleteWithAnotherLeaseIsRefused) {
  const auto task = running();
  complete(task);
  auto other = completion(task);
  other.fence.lease_id = LeaseId{};

  expect_refused(other, ErrorCode::execution_not_active);
}

TEST_P(Repeat, CompleteOfTheWorkerThatLostItsLeaseIsRefused) {
  const auto old = lost();
  complete(claim_one(), "by the second");

  expect_error(completion(old, "by the first"), ErrorCode::stale_lease);
  EXPECT_EQ(result(old.execution_id), "by the second");
}

TEST_P(Repeat, CompleteOnceMoreByTheOperatorIsRefused) {
  const auto task = running();
  complete(task);

  expect_refused(CompleteExecution{.execution_id = task.execution_id, .source = kOperatorOverride},
                 ErrorCode::execution_not_active);
}

// ---- in one batch ----

TEST_P(Repeat, SentTwiceAtOnceCompletesOnce) {
  const auto task = running();
  auto first = engine().submit(completion(task, "same"));
  auto second = engine().submit(completion(task, "same"));

  EXPECT_TRUE(first.get());
  EXPECT_TRUE(second.get());
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_success"});
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 released completed"}));
}

TEST_P(Repeat, SentTwiceAtOnceFailsOnce) {
  const auto task = running(retries(3));
  auto first = engine().submit(failure(task));
  auto second = engine().submit(failure(task));

  EXPECT_EQ(first.get().value(), second.get().value());
  EXPECT_EQ(describe(task.execution_id).retry_count, 1u);
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure boom"});
}

}  // namespace
}  // namespace flowfabric
