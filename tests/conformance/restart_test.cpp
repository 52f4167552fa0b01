// Changes by schedulers and operators survive a restart.
#include "support/reopen_fixture.h"
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;

class Restart : public SituationTests<ReopenTest> {};
INSTANTIATE_TEST_SUITE_P(DurableStores, Restart, kDurableStores, store_name);

TEST_P(Restart, EverySituationIsTheSameAfterwards) {
  in_all_but({}, [&](const Placed& placed) {
    must(SetTags{placed.id, {{"a.b", "c"}}});
    const auto before = story(placed.id);
    reopen();
    EXPECT_EQ(story(placed.id), before);
  });
}

TEST_P(Restart, AGrantIsStillAlive) {
  Situations granted = kEligible;
  granted.insert({Situation::lost, Situation::revoked});
  in_each(granted, [&](const Placed& placed) {
    const auto given = grant_any(placed.id);
    reopen();
    run_due();
    EXPECT_FALSE(is_offered(placed.lane));
    const auto task = must(ClaimGranted{placed.id, use_by(kWorker, given.grant_key)});
    EXPECT_EQ(task.execution_id, placed.id);
  });
}

TEST_P(Restart, AGrantStillRunsOut) {
  const auto placed = place(Situation::waiting);
  grant(placed.id);
  reopen();
  advance(kGrantTtl + 1);

  EXPECT_TRUE(is_offered(placed.lane));
}

TEST_P(Restart, TheNextTierAndItsReasonAreKept) {
  ExecutionPolicy policy;
  policy.fallback_policy = FallbackPolicy{{{.provider = "p", .model = "m", .timeout_ms = 500}}};
  const auto placed = place(Situation::running, policy);
  fail(placed.task, "overloaded");
  reopen();
  const auto task = take_next(placed.lane);

  EXPECT_EQ(task.fallback, (Fallback{0, "p", "m"}));
  EXPECT_EQ(task.attempt_timeout_at, now() + 500);
  EXPECT_EQ(attempts(placed.id).at(1).reason, "overloaded");
  complete(task);
  reopen();
  EXPECT_EQ(attempts(placed.id).at(1).fallback_tier, 0u);
}

TEST_P(Restart, WhoAskedForAReplayIsKept) {
  const auto placed = place(Situation::completed);
  must(ReplayExecution{placed.id, "bad input", "alice"});
  reopen();
  complete(take_next(placed.lane), "new");
  reopen();

  const auto history = attempts(placed.id);
  ASSERT_EQ(history.size(), 2u);
  EXPECT_EQ(history[0].result, "result");
  EXPECT_EQ(history[1].reason, "bad input");
  EXPECT_EQ(history[1].requested_by, "alice");
  EXPECT_EQ(operator_events(placed.id).size(), 1u);
}

TEST_P(Restart, ADelayUnderAHoldIsKept) {
  const auto placed = place(Situation::delayed);
  const auto before = describe(placed.id);
  hold(placed.id);
  reopen();
  must(ReleaseExecution{placed.id});

  EXPECT_EQ(describe(placed.id).state, before.state);
  EXPECT_EQ(describe(placed.id).delay_until, before.delay_until);
}

TEST_P(Restart, WhatWaitsForACapableWorkerIsStillLetGo) {
  const auto id = create(needs({"gpu"}));
  must(BlockExecution{id, BlockingReason::waiting_for_capable_worker, ""});
  reopen();
  must(RegisterWorker{.worker_id = "able", .worker_instance_id = "able", .capabilities = {"gpu"}});
  run_due();

  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
}

}  // namespace
}  // namespace flowfabric
