// The results of a claim: the lease, the attempt, and both of them in the snapshot (01 §3, §4; 02 §5.5).
#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class ClaimLease : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, ClaimLease, kStores, store_name);

TEST_P(ClaimLease, TheLeaseRunsForItsTimeToLive) {
  create();
  tick(3);
  const auto task = claim_one({.lease_ttl_ms = 5000});

  EXPECT_EQ(task.lease_expires_at, kStart + 5003);
  EXPECT_EQ(task.fence.lease_epoch, 1);
  EXPECT_TRUE(task.fence.lease_id);
  EXPECT_TRUE(task.fence.attempt_id);
}

TEST_P(ClaimLease, TheSnapshotShowsTheLease) {
  create();
  const auto task = claim_one({.worker_id = "pool", .worker_instance_id = "pool-7"});

  const LeaseSnapshot lease{.lease_id = *task.fence.lease_id,
                            .lease_epoch = 1,
                            .worker_id = "pool",
                            .worker_instance_id = "pool-7",
                            .expires_at = kStart + kLeaseTtl,
                            .attempt_index = 0};
  EXPECT_EQ(describe(task.execution_id).lease, lease);
}

TEST_P(ClaimLease, TheInstanceIsTheWorkerWhenNotNamed) {
  create();
  const auto task = claim_one({.worker_id = "pool"});

  EXPECT_EQ(describe(task.execution_id).lease->worker_instance_id, "pool");
}

TEST_P(ClaimLease, TheSnapshotShowsTheAttempt) {
  const auto task = running();

  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.attempt_id, task.fence.attempt_id);
  EXPECT_EQ(seen.current_attempt_index, 0u);
  EXPECT_EQ(seen.total_attempt_count, 1u);
  EXPECT_EQ(seen.blocking_detail, "");
}

TEST_P(ClaimLease, TheHistoryShowsTheRunningAttempt) {
  create();
  tick(3);
  const auto task = claim_one({.worker_id = "pool", .worker_instance_id = "pool-7"});

  const AttemptSnapshot running{.attempt_index = 0,
                                .attempt_id = *task.fence.attempt_id,
                                .attempt_type = AttemptType::initial,
                                .attempt_state = AttemptLifecycle::started,
                                .worker_id = "pool",
                                .worker_instance_id = "pool-7",
                                .lease_epoch = 1,
                                .started_at = kStart + 3};
  EXPECT_EQ(attempts(task.execution_id), std::vector{running});
}

TEST_P(ClaimLease, EachTaskOfAClaimHasALeaseOfItsOwn) {
  create();
  create();

  const auto tasks = claim({.max_tasks = 2});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_NE(tasks[0].fence.lease_id, tasks[1].fence.lease_id);
  EXPECT_NE(tasks[0].fence.attempt_id, tasks[1].fence.attempt_id);
}

TEST_P(ClaimLease, TheFirstAttemptIsInitial) {
  const auto task = running();

  EXPECT_EQ(task.claim, ClaimKind::fresh);
  EXPECT_EQ(task.attempt_type, AttemptType::initial);
  EXPECT_EQ(task.attempt_index, 0u);
}

TEST_P(ClaimLease, TheAttemptAfterAFailureIsARetry) {
  const auto first = running(retries(1));
  fail(first, "no luck");
  advance(1000);
  const auto second = claim_one();

  EXPECT_EQ(second.claim, ClaimKind::fresh);
  EXPECT_EQ(second.attempt_type, AttemptType::retry);
  EXPECT_EQ(second.attempt_index, 1u);
  EXPECT_EQ(second.fence.lease_epoch, 2);
  EXPECT_NE(second.fence.attempt_id, first.fence.attempt_id);
  const auto shown = attempts(second.execution_id).at(1);
  EXPECT_EQ(shown.previous_attempt_index, 0u);
  EXPECT_EQ(shown.reason, "no luck");
}

TEST_P(ClaimLease, TheAttemptAfterALostLeaseIsAReclaim) {
  const auto first = lost();
  const auto second = claim_one();

  EXPECT_EQ(second.claim, ClaimKind::reclaimed);
  EXPECT_EQ(second.attempt_type, AttemptType::reclaim);
  EXPECT_EQ(second.attempt_index, 1u);
  EXPECT_EQ(second.fence.lease_epoch, 2);
  EXPECT_NE(second.fence.attempt_id, first.fence.attempt_id);
  const auto shown = attempts(second.execution_id).at(1);
  EXPECT_EQ(shown.previous_attempt_index, 0u);
  EXPECT_EQ(shown.reason, "lease_expired");
}

TEST_P(ClaimLease, ARetryAfterAReclaimIsARetry) {
  const auto first = lost(retries(1));
  fail(claim_one(), "second try");
  advance(1000);
  const auto third = claim_one();

  EXPECT_EQ(third.attempt_type, AttemptType::retry);
  EXPECT_EQ(third.attempt_index, 2u);
  EXPECT_EQ(attempts(first.execution_id).at(2).previous_attempt_index, 1u);
}

TEST_P(ClaimLease, TheStartIsNotedOnlyOnce) {
  create(retries(1));
  tick(7);
  const auto first = claim_one();
  fail(first);
  advance(1000);
  claim_one();

  EXPECT_EQ(describe(first.execution_id).started_at, kStart + 7);
  EXPECT_EQ(attempts(first.execution_id).at(1).started_at, kStart + 1007);
}

TEST_P(ClaimLease, TheInputIsTheSameOnEveryAttempt) {
  running({.input = "work", .policy = retries(1)});
  advance(kLeaseTtl);
  const auto reclaimed = claim_one();
  EXPECT_EQ(reclaimed.input, "work");
  delay(reclaimed, now());
  run_due();
  const auto resumed = claim_one();
  EXPECT_EQ(resumed.input, "work");
  fail(resumed);
  advance(1000);

  EXPECT_EQ(claim_one().input, "work");
}

TEST_P(ClaimLease, TheAttemptTimeoutIsArmed) {
  create(attempt_timeout(4000));
  tick(5);

  EXPECT_EQ(claim_one().attempt_timeout_at, kStart + 4005);
}

TEST_P(ClaimLease, WithoutATimeoutNoneIsArmed) {
  const auto task = running();

  EXPECT_EQ(task.attempt_timeout_at, std::nullopt);
  EXPECT_EQ(task.deadline_at, std::nullopt);
}

// ---- claims that come too late ----

TEST_P(ClaimLease, PastItsDeadlineAnExecutionExpiresInsteadOfStarting) {
  const auto id = create({.execution_deadline_at = kStart + 10});
  tick(10);

  EXPECT_TRUE(claim().empty());
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::expired(AttemptState::pending_first_attempt));
  EXPECT_EQ(seen.failure_reason, "execution_deadline");
  EXPECT_EQ(seen.completed_at, kStart + 10);
  EXPECT_EQ(outcomes(id), std::vector{TerminalOutcome::expired});
  EXPECT_EQ(lease_log(id), Log{});
}

TEST_P(ClaimLease, AMomentBeforeItsDeadlineItStillStarts) {
  create({.execution_deadline_at = kStart + 10});
  tick(9);

  EXPECT_EQ(claim().size(), 1u);
}

TEST_P(ClaimLease, WhatExpiresOnTheWayDoesNotCostTheWorkerItsTask) {
  create({.priority = 2, .execution_deadline_at = kStart + 10});
  create({.priority = 2, .execution_deadline_at = kStart + 10});
  const auto good = create({.priority = 1});
  tick(10);

  EXPECT_EQ(claim_one().execution_id, good);
  EXPECT_EQ(count(), (StateCounts{{PublicState::expired, 2}, {PublicState::active, 1}}));
}

TEST_P(ClaimLease, LostWorkPastItsDeadlineExpiresInsteadOfBeingReclaimed) {
  const auto task = lost({.execution_deadline_at = kStart + 2 * kLeaseTtl});
  tick(kLeaseTtl);

  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(state(task.execution_id), expected::expired());
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure execution_deadline"});
}

TEST_P(ClaimLease, DelayedWorkIsNotOffered) {
  const auto id = create({.delay_until = kStart + 10});
  tick(9);
  run_due();
  EXPECT_TRUE(claim().empty());
  advance(1);

  EXPECT_EQ(claim_one().execution_id, id);
}

TEST_P(ClaimLease, ARunningTaskIsNotOffered) {
  running();

  EXPECT_TRUE(claim().empty());
}

TEST_P(ClaimLease, WhatHasEndedIsNotOffered) {
  complete(running());
  cancel(create());
  fail(running());

  EXPECT_TRUE(claim().empty());
}

}  // namespace
}  // namespace flowfabric
