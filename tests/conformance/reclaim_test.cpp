// Work whose lease was lost is offered again, up to a cap (02 §6, README "Lost lease").
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using Outcomes = std::vector<TerminalOutcome>;

class Reclaim : public EngineTest {
 protected:
  ClaimedTask reclaim(const std::string& worker = kWorker) { return claim_one({.worker_id = worker}); }
  void lose() { advance(kLeaseTtl); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Reclaim, kStores, store_name);

TEST_P(Reclaim, IsNotOfferedWhileTheLeaseHolds) {
  running();
  advance(kLeaseTtl - 1);

  EXPECT_TRUE(claim().empty());
}

TEST_P(Reclaim, AWorkerMayReclaimItsOwn) {
  const auto first = lost();
  const auto second = reclaim();

  EXPECT_EQ(second.execution_id, first.execution_id);
  EXPECT_NE(second.fence, first.fence);
  complete(second);
}

TEST_P(Reclaim, CountsEachTime) {
  const auto first = lost();
  reclaim();
  lose();
  reclaim();

  const auto seen = describe(first.execution_id);
  EXPECT_EQ(seen.lease_reclaim_count, 2u);
  EXPECT_EQ(seen.lease_epoch, 3);
  EXPECT_EQ(seen.total_attempt_count, 3u);
  EXPECT_EQ(attempt_log(first.execution_id),
            (Log{"0 initial interrupted_reclaimed lease_expired",
                 "1 reclaim interrupted_reclaimed lease_expired", "2 reclaim started"}));
}

TEST_P(Reclaim, TheOldAttemptKeepsItsOwnFacts) {
  const auto first = lost();
  reclaim("second");

  const auto old = attempts(first.execution_id).at(0);
  EXPECT_EQ(old.attempt_id, first.fence.attempt_id);
  EXPECT_EQ(old.lease_epoch, 1);
  EXPECT_EQ(old.worker_id, kWorker);
  EXPECT_EQ(old.started_at, kStart);
  EXPECT_EQ(old.ended_at, kStart + kLeaseTtl);
}

TEST_P(Reclaim, TheEventNamesTheNewLease) {
  const auto first = lost();
  const auto second = reclaim("second");

  const auto event = lease_events(first.execution_id).back();
  EXPECT_EQ(event.type, LeaseEventType::reclaimed);
  EXPECT_EQ(event.lease_id, second.fence.lease_id);
  EXPECT_EQ(event.lease_epoch, 2);
  EXPECT_EQ(event.attempt_id, second.fence.attempt_id);
  EXPECT_EQ(event.attempt_index, 1u);
  EXPECT_EQ(event.worker_id, "second");
}

TEST_P(Reclaim, TheStartStays) {
  const auto first = lost();
  reclaim();

  EXPECT_EQ(describe(first.execution_id).started_at, kStart);
}

TEST_P(Reclaim, ARetryMayBeReclaimed) {
  const auto first = running(retries(1));
  fail(first);
  advance(1000);
  claim_one();
  lose();
  const auto third = reclaim();

  EXPECT_EQ(third.attempt_type, AttemptType::reclaim);
  EXPECT_EQ(third.attempt_index, 2u);
  EXPECT_EQ(attempts(first.execution_id).at(2).previous_attempt_index, 1u);
}

// ---- the cap ----

TEST_P(Reclaim, BeyondTheCapTheExecutionFails) {
  const auto first = lost(reclaim_cap(2));
  reclaim();
  lose();
  const auto last = reclaim();
  lose();

  const auto seen = describe(first.execution_id);
  EXPECT_EQ(seen.state, expected::failed());
  EXPECT_EQ(seen.failure_reason, "max_reclaims_exceeded");
  EXPECT_EQ(seen.lease_reclaim_count, 2u);
  EXPECT_EQ(seen.completed_at, now());
  EXPECT_EQ(seen.attempt_id, last.fence.attempt_id);
  EXPECT_EQ(outcomes(first.execution_id), Outcomes{TerminalOutcome::failed});
  EXPECT_EQ(lease_log(first.execution_id).back(), "3 revoked max_reclaims_exceeded");
  EXPECT_EQ(attempts(first.execution_id).back().attempt_state, AttemptLifecycle::interrupted_reclaimed);
  EXPECT_TRUE(claim().empty());
}

TEST_P(Reclaim, BeyondTheCapNoRetryIsMade) {
  auto policy = retries(5);
  policy.max_reclaim_count = 0;
  const auto task = lost(policy);

  EXPECT_EQ(state(task.execution_id), expected::failed());
}

TEST_P(Reclaim, TheCapMayStandInTheTimeoutPolicy) {
  ExecutionPolicy policy;
  policy.timeout_policy = TimeoutPolicy{.max_reclaim_count = 0};

  EXPECT_EQ(state(lost(policy).execution_id), expected::failed());
}

TEST_P(Reclaim, TheTopLevelCapWins) {
  ExecutionPolicy policy = reclaim_cap(1);
  policy.timeout_policy = TimeoutPolicy{.max_reclaim_count = 0};
  const auto task = lost(policy);
  EXPECT_EQ(state(task.execution_id), expected::lost());
  reclaim();
  lose();

  EXPECT_EQ(state(task.execution_id), expected::failed());
}

TEST_P(Reclaim, ByDefaultTheCapIsAHundred) {
  const auto task = lost();
  for (int i = 0; i < 100; ++i) {
    reclaim();
    lose();
  }

  EXPECT_EQ(describe(task.execution_id).lease_reclaim_count, 100u);
  EXPECT_EQ(state(task.execution_id), expected::failed());
}

TEST_P(Reclaim, AtTheCapACallMarksAndTheClockEndsIt) {
  const auto task = running(reclaim_cap(0));
  tick(kLeaseTtl);
  expect_error(completion(task), ErrorCode::lease_expired);
  EXPECT_EQ(state(task.execution_id), expected::lost());
  EXPECT_TRUE(claim().empty()) << "not offered beyond the cap";
  run_due();

  EXPECT_EQ(state(task.execution_id), expected::failed());
}

// ---- the old worker ----

TEST_P(Reclaim, ALateCallIsExpiredBeforeAndStaleAfter) {
  const auto old = lost();
  expect_refused(RenewLease{old.execution_id, old.fence, 0}, ErrorCode::lease_expired);
  expect_refused(completion(old), ErrorCode::lease_expired);
  reclaim("second");

  expect_refused(RenewLease{old.execution_id, old.fence, 0}, ErrorCode::stale_lease);
  expect_refused(completion(old), ErrorCode::stale_lease);
  expect_refused(failure(old), ErrorCode::stale_lease);
  expect_refused(postponement(old, kStart), ErrorCode::stale_lease);
}

TEST_P(Reclaim, ALateCallDoesNotHarmTheNewWorker) {
  const auto old = lost();
  const auto current = reclaim("second");
  expect_error(completion(old, "late"), ErrorCode::stale_lease);
  complete(current, "in time");

  EXPECT_EQ(result(old.execution_id), "in time");
}

TEST_P(Reclaim, ARenewalDoesNotReviveALostLease) {
  const auto task = lost();
  expect_error(RenewLease{task.execution_id, task.fence, 0}, ErrorCode::lease_expired);

  EXPECT_EQ(state(task.execution_id), expected::lost());
  EXPECT_EQ(reclaim().execution_id, task.execution_id);
}

TEST_P(Reclaim, WhatACallFoundExpiredIsOfferedToo) {
  const auto task = running();
  tick(kLeaseTtl);
  expect_error(completion(task), ErrorCode::lease_expired);

  EXPECT_EQ(reclaim().claim, ClaimKind::reclaimed);
}

TEST_P(Reclaim, ManyLostAtOnceAreAllOffered) {
  for (int i = 0; i < 300; ++i) create();
  for (auto tasks = claim({.max_tasks = 50}); !tasks.empty(); tasks = claim({.max_tasks = 50})) continue;
  lose();
  std::size_t reclaimed = 0;
  for (auto tasks = claim({.max_tasks = 50}); !tasks.empty(); tasks = claim({.max_tasks = 50})) {
    reclaimed += tasks.size();
  }

  EXPECT_EQ(reclaimed, 300u);
}

// ---- a grace before others are offered it ----

class ReclaimGrace : public ReopenTest {
 protected:
  void SetUp() override { reopen({.reclaim_grace = std::chrono::milliseconds(kGrace)}); }
  static ExecutionPolicy never_reclaimed() {
    ExecutionPolicy policy;
    policy.max_reclaim_count = 0;
    return policy;
  }
  static constexpr std::int64_t kGrace = 10'000;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ReclaimGrace, kStores, store_name);

TEST_P(ReclaimGrace, ALostLeaseIsOfferedWhenItIsOver) {
  const auto task = running();
  advance(kLeaseTtl);
  EXPECT_EQ(state(task.execution_id), expected::lost());
  EXPECT_EQ(describe(task.execution_id).delay_until, now() + kGrace);
  EXPECT_TRUE(claim().empty());
  const auto reasons = must(ExplainWaiting{task.execution_id}).reasons;
  ASSERT_FALSE(reasons.empty());
  EXPECT_EQ(reasons[0].waiting_for, WaitingFor::delay);
  EXPECT_EQ(reasons[0].until, now() + kGrace);
  advance(kGrace - 1);
  EXPECT_TRUE(claim().empty());
  advance(1);
  const auto again = claim_one();
  EXPECT_EQ(again.execution_id, task.execution_id);
  EXPECT_EQ(describe(task.execution_id).delay_until, std::nullopt);
  complete(again);
}

TEST_P(ReclaimGrace, ARevokedLeaseToo) {
  const auto task = running();
  must(RevokeLease{.execution_id = task.execution_id});
  EXPECT_TRUE(claim().empty());
  advance(kGrace);
  complete(claim_one());
}

TEST_P(ReclaimGrace, WhatWasLostTooOftenIsGivenUpWhenItIsOver) {
  const auto task = running(never_reclaimed());
  advance(kLeaseTtl);
  EXPECT_EQ(state(task.execution_id).public_state, PublicState::active);
  advance(kGrace - 1);
  EXPECT_EQ(state(task.execution_id).public_state, PublicState::active);
  advance(1);
  EXPECT_EQ(state(task.execution_id).public_state, PublicState::failed);
  EXPECT_EQ(outcomes(task.execution_id), Outcomes{TerminalOutcome::failed});
}

TEST_P(ReclaimGrace, WhoIsGivenItNeedNotWait) {
  const auto task = running();
  advance(kLeaseTtl);
  EXPECT_EQ(must(IssueReclaimGrant{task.execution_id, {.worker_id = kWorker}}).status,
            ReclaimStatus::granted);
  const auto taken = must(ReclaimExecution{.execution_id = task.execution_id, .use = {.worker_id = kWorker}});
  EXPECT_EQ(taken.status, ReclaimStatus::claimed);
  EXPECT_EQ(describe(task.execution_id).delay_until, std::nullopt);
  advance(kGrace);
  EXPECT_TRUE(claim().empty()) << "it runs";
  complete(*taken.task);
}

}  // namespace
}  // namespace flowfabric
