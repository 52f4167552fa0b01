// An execution that waits for a capable worker is released when there is one: one live worker of its
// namespace that serves its lane and covers the whole requirement (README, 02 §5.6).
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;

class Unblock : public SituationTest {
 protected:
  static constexpr std::int64_t kInterval = 5000;

  ExecutionId blocked(CreateExecution request = {}) {
    if (request.namespace_.empty()) request.namespace_ = "acme";
    if (!request.policy.routing_requirements) {
      request.policy.routing_requirements = RoutingRequirements{.required_capabilities = {"cuda", "gpu"}};
    }
    const auto id = create(std::move(request));
    block(id);
    return id;
  }
  void block(const ExecutionId& id) {
    must(BlockExecution{id, BlockingReason::waiting_for_capable_worker, "nobody can"});
  }
  static RegisterWorker worker(const std::string& name,
                               std::vector<std::string> capabilities = {"cuda", "gpu", "more"}) {
    return {.worker_id = name,
            .worker_instance_id = name,
            .namespace_ = "acme",
            .capabilities = std::move(capabilities)};
  }
  bool is_blocked(const ExecutionId& id) {
    return state(id).eligibility_state == EligibilityState::blocked_by_route;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Unblock, kStores, store_name);

TEST_P(Unblock, TheRegistrationOfACapableWorkerLetsItGoAtOnce) {
  const auto id = blocked();
  must(worker("able"));
  run_due();

  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(describe(id).blocking_detail, "");
  EXPECT_EQ(claim_one({.capabilities = {"cuda", "gpu"}}).execution_id, id);
}

TEST_P(Unblock, AllThatWaitAreLetGo) {
  std::vector<ExecutionId> all;
  for (int i = 0; i < 250; ++i) all.push_back(blocked());
  must(worker("able"));
  run_due();

  for (const auto& id : all) EXPECT_FALSE(is_blocked(id));
}

TEST_P(Unblock, AWorkerThatIsThereAlreadyIsFoundSoon) {
  must(worker("able"));
  const auto id = blocked();
  run_due();
  advance(kInterval);

  EXPECT_FALSE(is_blocked(id));
}

TEST_P(Unblock, NobodyElseWillDo) {
  const auto id = blocked();
  auto elsewhere = worker("elsewhere");
  elsewhere.lanes = {"other"};
  auto foreign = worker("foreign");
  foreign.namespace_ = "globex";
  for (const auto& unfit : {elsewhere, foreign, worker("half", {"gpu"}), worker("other-half", {"cuda"})}) {
    must(unfit);
    advance(kInterval);
    EXPECT_TRUE(is_blocked(id)) << unfit.worker_id;
  }
  must(worker("able"));
  run_due();

  EXPECT_FALSE(is_blocked(id));
}

TEST_P(Unblock, TheDeadDoNotCount) {
  auto mortal = worker("mortal");
  mortal.liveness_ttl_ms = 1000;
  must(mortal);
  must(worker("marked"));
  must(MarkWorkerDead{.worker_instance_id = "marked", .namespace_ = "acme"});
  tick(1000);
  const auto id = blocked();
  advance(kInterval);
  EXPECT_TRUE(is_blocked(id));
  must(mortal);
  run_due();

  EXPECT_FALSE(is_blocked(id));
}

TEST_P(Unblock, ANewRegistrationMayBringTheCapability) {
  must(worker("learning", {"gpu"}));
  const auto id = blocked();
  advance(kInterval);
  EXPECT_TRUE(is_blocked(id));
  must(worker("learning"));
  run_due();

  EXPECT_FALSE(is_blocked(id));
}

TEST_P(Unblock, WhatNeedsNothingNeedsAWorkerAllTheSame) {
  const auto id = create({.namespace_ = "acme"});
  block(id);
  advance(kInterval);
  EXPECT_TRUE(is_blocked(id));
  must(worker("able", {}));
  run_due();

  EXPECT_FALSE(is_blocked(id));
}

TEST_P(Unblock, ADelayThatHasNotEndedGoesOn) {
  const auto id = blocked({.delay_until = kStart + kHour});
  must(worker("able"));
  run_due();

  EXPECT_EQ(state(id),
            expected::delayed(BlockingReason::waiting_for_delay, AttemptState::pending_first_attempt));
  EXPECT_EQ(describe(id).delay_until, kStart + kHour);
}

TEST_P(Unblock, WhatIsHeldBackForAnotherReasonStays) {
  const auto held = create({.namespace_ = "acme", .policy = needs({"gpu"})});
  hold(held);
  const auto paused = create({.namespace_ = "acme", .policy = needs({"gpu"})});
  must(BlockExecution{paused, BlockingReason::paused_by_policy, ""});
  const auto taken_over = blocked();
  hold(taken_over);
  must(worker("able"));
  advance(kInterval);

  EXPECT_EQ(state(held), expected::held());
  EXPECT_EQ(state(taken_over), expected::held());
  EXPECT_EQ(state(paused).blocking_reason, BlockingReason::paused_by_policy);
}

TEST_P(Unblock, AWaitingWorkerIsWoken) {
  const auto id = blocked();
  auto waiting =
      engine().submit(ClaimTasks{.worker_id = "able", .capabilities = {"cuda", "gpu"}, .wait_ms = 8000});
  must(worker("able"));
  run_due();

  ASSERT_EQ(waiting.wait_for(std::chrono::milliseconds(4000)), std::future_status::ready);
  const auto tasks = waiting.get();
  ASSERT_TRUE(tasks && tasks->size() == 1);
  EXPECT_EQ(tasks->front().execution_id, id);
}

}  // namespace
}  // namespace flowfabric
