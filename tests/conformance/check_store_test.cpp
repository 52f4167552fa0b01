// The consistency check of a sound store: whatever happened to it, nothing is found, and nothing is changed.
#include <atomic>
#include <thread>

#include "support/bulk_fixture.h"
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class SoundStore : public Bulk<EngineTest> {
 protected:
  StoreReport expect_sound() {
    auto report = must(CheckStore{});
    EXPECT_EQ(report.found, 0u) << report;
    EXPECT_EQ(report.repaired, 0u);
    EXPECT_TRUE(report.violations.empty());
    return report;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, SoundStore, kStores, store_name);

TEST_P(SoundStore, AnEmptyOneHasNothingButItsSecret) {
  const StoreReport secret_and_its_name{.records = 2};
  EXPECT_EQ(must(CheckStore{}), secret_and_its_name);
  EXPECT_EQ(must(CheckStore{.repair = true}), secret_and_its_name);
}

TEST_P(SoundStore, ExecutionsAndRecordsAreCounted) {
  create_many(3);
  const auto report = expect_sound();

  EXPECT_EQ(report.executions, 3u);
  EXPECT_GE(report.records, 3u + 3u) << "an execution and its submission";
}

TEST_P(SoundStore, NothingIsFoundInAnyState) {
  const auto tagged = create({.tags = {{"a.b", "c"}, {"d.e", ""}}});
  create({.namespace_ = "n", .lane_id = "l", .idempotency_key = "key"});
  create(needs({"gpu"}));
  create({.delay_until = kStart + kHour, .execution_deadline_at = kStart + 2 * kHour});
  expect_sound();
  must(HoldExecution{.execution_id = tagged, .reason = "held"});
  expect_sound();
  must(ReleaseExecution{tagged});
  must(SetTags{tagged, {{"a.b", std::nullopt}, {"f.g", "h"}}});
  expect_sound();
  const auto task = claim_one();
  expect_sound();
  tick(kLeaseTtl);
  expect_sound();
  run_due();
  expect_sound();
  claim_one();
  expect_sound();
  must(RevokeLease{.execution_id = task.execution_id});
  expect_sound();
  complete(claim_one(), "result");
  expect_sound();
  must(ReplayExecution{.execution_id = task.execution_id});
  expect_sound();
  must(ChangePriority{task.execution_id, 9});
  expect_sound();
  const auto flaky = claim_one();
  delay(flaky, now() + 10);
  expect_sound();
  advance(10);
  fail(claim_one());
  expect_sound();
  fail(running({.priority = 9, .policy = retries(1)}));
  expect_sound();
  cancel(create());
  expect_sound();
  advance(3 * kHour);
  expect_sound();
}

TEST_P(SoundStore, NothingIsFoundAfterGrants) {
  const auto id = create();
  must(IssueClaimGrant{.execution_id = id, .terms = {.worker_id = kWorker, .grant_ttl_ms = 1000}});
  expect_sound();
  tick(1001);
  expect_sound();
  run_due();
  expect_sound();
  must(IssueClaimGrant{.execution_id = id, .terms = {.worker_id = kWorker, .grant_ttl_ms = 1000}});
  must(ClaimExecution{.execution_id = id, .use = {.worker_id = kWorker}});
  expect_sound();
}

TEST_P(SoundStore, NothingIsFoundInAnyLane) {
  create();
  for (const auto state : {LaneState::paused, LaneState::draining, LaneState::disabled, LaneState::active}) {
    must(SetLaneState{"default", state});
    must(SetLaneState{"unused", state});
    expect_sound();
  }
}

TEST_P(SoundStore, NothingIsFoundAfterWorkersAndBulkOperations) {
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i1", .liveness_ttl_ms = 1000});
  expect_sound();
  create_many(20);
  const auto operation = must(StartBulkOperation{
      .action = BulkAction::cancel, .filter = {.lane_id = "default"}, .rate_per_second = 5});
  for (int i = 0; i < 5; ++i) {
    advance(500);
    expect_sound();
  }
  must(CancelBulkOperation{operation.operation_id});
  expect_sound();
}

TEST_P(SoundStore, NothingIsFoundAfterThePurge) {
  const auto task = running({.idempotency_key = "key", .tags = {{"a.b", "c"}}});
  complete(task, "result");
  const auto before = expect_sound().records;
  for (int i = 0; i < 30; ++i) advance(24 * kHour);
  expect_error(DescribeExecution{task.execution_id}, ErrorCode::execution_not_found);
  forget(task.execution_id);

  const auto report = expect_sound();
  EXPECT_EQ(report.executions, 0u);
  EXPECT_LT(report.records, before) << "what belonged to it is gone, too";
}

TEST_P(SoundStore, ARepairChangesNothing) {
  const auto waiting = create({.tags = {{"a.b", "c"}}});
  const auto active = running({.priority = 9}).execution_id;
  const auto ended = running({.priority = 9});
  complete(ended);
  const std::vector before{story(waiting), story(active), story(ended.execution_id)};
  tick(5);
  EXPECT_EQ(must(CheckStore{.repair = true}).found, 0u);

  EXPECT_EQ((std::vector{story(waiting), story(active), story(ended.execution_id)}), before);
  EXPECT_EQ(claim_one().execution_id, waiting);
}

TEST_P(SoundStore, WorkThatGoesOnMeanwhileIsNotDamage) {
  std::atomic<bool> stop{false};
  std::thread others([&] {
    for (int i = 0; i < 300 && !stop; ++i) {
      const auto made = engine().call(CreateExecution{.execution_kind = "test", .tags = {{"a.b", "c"}}});
      if (!made) break;
      remember(made->execution_id);
      engine().call(ClaimTasks{.worker_id = kWorker});
      engine().call(CancelExecution{.execution_id = made->execution_id});
    }
  });
  for (int i = 0; i < 20; ++i) expect_sound();
  stop = true;
  others.join();
}

TEST_P(SoundStore, ThousandsAreLookedAt) {
  create_many(3000, {.execution_kind = "test", .tags = {{"a.b", "c"}}});

  EXPECT_EQ(expect_sound().executions, 3000u);
}

// ---- restarts ----

class SoundRestart : public Bulk<ReopenTest> {};
INSTANTIATE_TEST_SUITE_P(DurableStores, SoundRestart, kDurableStores, store_name);

// The retention is the engine's choice at every start; another choice is no damage to a store.
TEST_P(SoundRestart, AnotherRetentionIsNoDamage) {
  complete(running());
  ExecutionPolicy policy;
  policy.stream_policy = StreamPolicy{.retention_ttl_ms = 1000};
  complete(running(policy));
  for (const std::int64_t hours : {1, 0, 24, 0, 48}) {
    reopen({.retention = std::chrono::hours(hours)});
    const auto report = must(CheckStore{});
    EXPECT_EQ(report.found, 0u) << "after a restart with " << hours << " hours: " << report;
  }
}

}  // namespace
}  // namespace flowfabric
