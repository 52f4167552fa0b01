// Attempt timeout, execution deadline and lease expiry: what each does, and which goes first (02 §9.2, §10).
#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using Outcomes = std::vector<TerminalOutcome>;

class Expire : public EngineTest {
 protected:
  static CreateExecution with_deadline(std::int64_t after_ms, ExecutionPolicy policy = {}) {
    return {.policy = std::move(policy), .execution_deadline_at = kStart + after_ms};
  }

  void expect_expired(const ExecutionId& id, const std::string& reason,
                      AttemptState attempt = AttemptState::attempt_terminal) {
    const auto seen = describe(id);
    EXPECT_EQ(seen.state, expected::expired(attempt));
    EXPECT_EQ(seen.failure_reason, reason);
    EXPECT_EQ(seen.completed_at, now());
    EXPECT_EQ(outcomes(id), Outcomes{TerminalOutcome::expired});
    EXPECT_EQ(count(), (StateCounts{{PublicState::expired, 1}}));
    advance(20 * kHour);
    EXPECT_EQ(describe(id), seen) << "nothing is due any more";
    EXPECT_TRUE(claim().empty());
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Expire, kStores, store_name);

// ---- deadline, from each state ----

TEST_P(Expire, DeadlineFromWaiting) {
  const auto id = create(with_deadline(100));
  advance(99);
  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
  advance(1);

  expect_expired(id, "execution_deadline", AttemptState::pending_first_attempt);
  EXPECT_EQ(attempt_log(id), Log{});
  EXPECT_EQ(lease_log(id), Log{});
}

TEST_P(Expire, DeadlineFromDelayed) {
  const auto id = create({.delay_until = kStart + kHour, .execution_deadline_at = kStart + 100});
  advance(100);

  expect_expired(id, "execution_deadline", AttemptState::pending_first_attempt);
}

TEST_P(Expire, DeadlineFromActive) {
  const auto task = running(with_deadline(100));
  advance(99);
  EXPECT_EQ(state(task.execution_id), expected::running());
  advance(1);

  expect_expired(task.execution_id, "execution_deadline");
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure execution_deadline"});
  EXPECT_EQ(lease_log(task.execution_id),
            (Log{"1 acquired", "1 expired execution_deadline", "1 released expired:execution_deadline"}));
}

TEST_P(Expire, DeadlineFromLost) {
  const auto task = lost(with_deadline(kLeaseTtl + 100));
  advance(100);

  expect_expired(task.execution_id, "execution_deadline");
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure execution_deadline"});
}

TEST_P(Expire, DeadlineFromRetryBackoff) {
  const auto task = running(with_deadline(100, retries(1, FixedBackoff{200})));
  fail(task, "no luck");
  advance(100);

  expect_expired(task.execution_id, "execution_deadline");
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure no luck"});
}

TEST_P(Expire, DeadlineFromPaused) {
  const auto task = running(with_deadline(100));
  delay(task, kStart + kHour);
  advance(100);

  expect_expired(task.execution_id, "execution_deadline");
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure execution_deadline"});
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 released worker_delay"}));
}

TEST_P(Expire, DeadlineIsNeverRetried) {
  const auto task = running(with_deadline(100, retries(5)));
  advance(100);

  expect_expired(task.execution_id, "execution_deadline");
}

TEST_P(Expire, DeadlineSurvivesRetriesAndPauses) {
  const auto first = running(with_deadline(5000, retries(5)));
  fail(first);
  advance(1000);
  delay(claim_one(), now() + 100);
  advance(100);
  const auto again = claim_one();
  EXPECT_EQ(again.deadline_at, kStart + 5000);
  advance(3900);

  expect_expired(first.execution_id, "execution_deadline");
}

TEST_P(Expire, DeadlineOfTheCompletedDoesNothing) {
  const auto task = running(with_deadline(100));
  complete(task);
  const auto before = story(task.execution_id);
  advance(100);

  EXPECT_EQ(story(task.execution_id), before);
}

TEST_P(Expire, RenewingDoesNotProlongTheDeadline) {
  const auto task = running(with_deadline(100));
  renew(task, kHour);
  advance(100);

  expect_expired(task.execution_id, "execution_deadline");
}

TEST_P(Expire, DeadlinesOfManyFireInOneRun) {
  for (int i = 0; i < 300; ++i) create(with_deadline(100));
  advance(100);

  EXPECT_EQ(count(), (StateCounts{{PublicState::expired, 300}}));
}

// ---- attempt timeout ----

TEST_P(Expire, AttemptTimeoutWithoutARetryExpires) {
  const auto task = running(attempt_timeout(100));
  advance(99);
  EXPECT_EQ(state(task.execution_id), expected::running());
  advance(1);

  expect_expired(task.execution_id, "attempt_timeout");
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure attempt_timeout"});
  EXPECT_EQ(attempts(task.execution_id).at(0).failure_category, "timeout");
  EXPECT_EQ(lease_log(task.execution_id),
            (Log{"1 acquired", "1 expired attempt_timeout", "1 released expired:attempt_timeout"}));
}

TEST_P(Expire, AttemptTimeoutWithARetryIsRetried) {
  const auto task = running(attempt_timeout(100, retries(1, FixedBackoff{700})));
  advance(100);

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::retrying());
  EXPECT_EQ(seen.delay_until, kStart + 800);
  EXPECT_EQ(seen.retry_count, 1u);
  EXPECT_EQ(seen.attempt_id, std::nullopt);
  EXPECT_EQ(attempt_log(id), Log{"0 initial ended_failure attempt_timeout"});
  EXPECT_EQ(attempts(id).at(0).failure_category, "timeout");
  EXPECT_EQ(lease_log(id),
            (Log{"1 acquired", "1 expired attempt_timeout", "1 released expired:attempt_timeout"}));
  EXPECT_EQ(outcomes(id), Outcomes{});
  advance(700);
  EXPECT_EQ(claim_one().attempt_type, AttemptType::retry);
}

TEST_P(Expire, AttemptTimeoutIsArmedAnewForTheRetry) {
  running(attempt_timeout(100, retries(1, FixedBackoff{700})));
  advance(100);
  advance(700);
  const auto second = claim_one();
  EXPECT_EQ(second.attempt_timeout_at, now() + 100);
  advance(100);

  expect_expired(second.execution_id, "attempt_timeout");
}

TEST_P(Expire, AttemptTimeoutFollowsTheRetryableCategories) {
  const auto listed = running(attempt_timeout(100, retries(1, FixedBackoff{500}, {"timeout"}))).execution_id;
  const auto not_listed =
      running(attempt_timeout(100, retries(1, FixedBackoff{500}, {"transient"}))).execution_id;
  advance(100);

  EXPECT_EQ(state(listed), expected::retrying());
  EXPECT_EQ(state(not_listed), expected::expired());
}

TEST_P(Expire, RenewingDoesNotProlongTheAttempt) {
  const auto task = running(attempt_timeout(100));
  tick(50);
  renew(task, kHour);
  advance(50);

  expect_expired(task.execution_id, "attempt_timeout");
}

TEST_P(Expire, AttemptTimeoutDoesNotRunBeforeTheClaim) {
  const auto id = create(attempt_timeout(100));
  advance(kHour);

  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(Expire, AttemptTimeoutOfAnAttemptThatEndedDoesNothing) {
  const auto task = running(attempt_timeout(100, retries(1, FixedBackoff{5000})));
  fail(task);
  advance(4999);

  EXPECT_EQ(state(task.execution_id), expected::retrying());
}

TEST_P(Expire, TheWorkerOfATimedOutAttemptIsRefused) {
  const auto task = running(attempt_timeout(100, retries(1)));
  advance(100);

  const auto error = expect_refused(completion(task), ErrorCode::execution_not_active);
  EXPECT_EQ(error.not_active, (NotActiveDetails{LifecyclePhase::runnable, TerminalOutcome::none, 1, ""}));
}

TEST_P(Expire, AFailureReportedAfterTheTimeoutIsNotMistakenForARepetition) {
  const auto task = running(attempt_timeout(100, retries(1)));
  advance(100);

  expect_refused(failure(task), ErrorCode::execution_not_active);
}

// ---- precedence ----

TEST_P(Expire, DeadlineGoesBeforeTheAttemptTimeout) {
  const auto task = running(with_deadline(100, attempt_timeout(100, retries(1))));
  advance(100);

  expect_expired(task.execution_id, "execution_deadline");
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure execution_deadline"});
}

TEST_P(Expire, DeadlineGoesBeforeTheLease) {
  const auto task = running(with_deadline(kLeaseTtl));
  advance(kLeaseTtl);

  expect_expired(task.execution_id, "execution_deadline");
}

TEST_P(Expire, DeadlineGoesFirstEvenWhenTheOthersWereDueEarlier) {
  const auto task = running(with_deadline(kLeaseTtl + 100, attempt_timeout(100, retries(1))));
  advance(kLeaseTtl + 100);

  expect_expired(task.execution_id, "execution_deadline");
  EXPECT_EQ(lease_log(task.execution_id),
            (Log{"1 acquired", "1 expired execution_deadline", "1 released expired:execution_deadline"}));
}

TEST_P(Expire, AttemptTimeoutGoesBeforeTheLease) {
  const auto task = running(attempt_timeout(kLeaseTtl));
  advance(kLeaseTtl);

  expect_expired(task.execution_id, "attempt_timeout");
}

TEST_P(Expire, AttemptTimeoutGoesBeforeALeaseThatWasDueEarlier) {
  const auto task = running(attempt_timeout(kLeaseTtl + 100, retries(1)));
  advance(kLeaseTtl + 100);

  EXPECT_EQ(state(task.execution_id), expected::retrying());
}

TEST_P(Expire, DeadlineGoesBeforeTheEndOfADelay) {
  const auto id = create({.delay_until = kStart + 100, .execution_deadline_at = kStart + 100});
  advance(100);

  expect_expired(id, "execution_deadline", AttemptState::pending_first_attempt);
}

TEST_P(Expire, TheLeaseExpiresAtItsInstant) {
  const auto task = running();
  advance(kLeaseTtl - 1);
  EXPECT_EQ(state(task.execution_id), expected::running());
  advance(1);

  EXPECT_EQ(state(task.execution_id), expected::lost());
}

TEST_P(Expire, ARenewedLeaseExpiresAtItsNewInstant) {
  const auto task = running();
  advance(kLeaseTtl - 1);
  renew(task);
  advance(kLeaseTtl - 1);
  EXPECT_EQ(state(task.execution_id), expected::running());
  advance(1);

  EXPECT_EQ(state(task.execution_id), expected::lost());
}

TEST_P(Expire, AShorterRenewalExpiresEarlier) {
  const auto task = running();
  renew(task, 1000);
  advance(1000);

  EXPECT_EQ(state(task.execution_id), expected::lost());
}

}  // namespace
}  // namespace flowfabric
