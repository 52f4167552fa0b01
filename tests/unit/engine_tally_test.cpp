// Every committed operation is counted once, and nothing else.
#include <gtest/gtest.h>

#include "engine/tally.h"
#include "flowfabric/engine.h"

namespace flowfabric::engine {
namespace {

BatchEffects one_attempt_on(const std::string& lane) {
  BatchEffects effects;
  effects.notes.push_back({core::Noted::attempt_ok, lane, 0});
  return effects;
}

TEST(Tallies, KnowOnlySoManyLanes) {
  Tally tally;
  for (int i = 0; i < 300; ++i) tally.add(one_attempt_on("lane-" + std::to_string(i)));
  for (int i = 0; i < 300; ++i) tally.add(one_attempt_on("lane-" + std::to_string(i)));
  EngineStats stats;
  tally.add_to(stats);
  EXPECT_EQ(stats.lanes.size(), Tally::kMaxLabels + 1);
  EXPECT_EQ(stats.lanes.at("lane-0").attempts.at("ok"), 2u);
  EXPECT_EQ(stats.lanes.at("other").attempts.at("ok"), 200u) << "a hundred lanes, twice";
}

TEST(Tallies, AddUpABatchOfSeveralLanes) {
  Tally tally;
  BatchEffects effects;
  for (const auto* lane : {"a", "b", "a", "a"}) {
    effects.notes.push_back({core::Noted::attempt_ok, lane, 0});
    effects.notes.push_back({core::Noted::execution_success, lane, 2000});
  }
  effects.notes.push_back({core::Noted::frame, "durable", 7});
  effects.notes.push_back({core::Noted::attempt_error, "b", 0});
  tally.add(effects);
  EngineStats stats;
  tally.add_to(stats);
  EXPECT_EQ(stats.lanes.at("a").attempts, (Counts{{"ok", 3}}));
  EXPECT_EQ(stats.lanes.at("b").attempts, (Counts{{"ok", 1}, {"error", 1}}));
  EXPECT_EQ(stats.lanes.at("a").seconds.at("success").count(), 3u);
  EXPECT_EQ(stats.lanes.at("a").seconds.at("success").sum, 6.0);
  EXPECT_EQ(stats.frames, (Counts{{"durable", 1}}));
  EXPECT_EQ(stats.frame_bytes, 7u);
}

// Where records are loaded in rounds, operations run more than once.
TEST(Tallies, CountWhatRanAgainOnce) {
  auto engine = Engine::open("memory:?load=deferred");
  ASSERT_TRUE(engine);
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(engine->call(CreateExecution{.execution_kind = "k"}));
    const auto tasks = engine->call(ClaimTasks{.worker_id = "w"});
    ASSERT_EQ(tasks->size(), 1u);
    ASSERT_TRUE(engine->call(
        FailExecution{.execution_id = tasks->front().execution_id, .fence = tasks->front().fence}));
  }
  const auto stats = engine->stats();
  EXPECT_EQ(stats.lanes.at("default").attempts, (Counts{{"error", 10}}));
  EXPECT_EQ(stats.lanes.at("default").seconds.at("failed").count(), 10u);
  EXPECT_EQ(stats.lease_events.at("acquired"), 10u);
  EXPECT_EQ(stats.lease_events.at("released"), 10u);
}

TEST(Tallies, TellOfEndedAttempts) {
  std::mutex mutex;
  std::vector<EndedAttempt> told;
  auto engine = Engine::open("memory:", {.attempts_ended = [&](std::vector<EndedAttempt> ended) {
                               std::lock_guard lock(mutex);
                               told.insert(told.end(), ended.begin(), ended.end());
                             }});
  ASSERT_TRUE(engine);
  ASSERT_TRUE(engine->call(CreateExecution{.execution_kind = "k"}));
  const auto tasks = engine->call(ClaimTasks{.worker_id = "w"});
  ASSERT_EQ(tasks->size(), 1u);
  EXPECT_TRUE(told.empty());
  const auto& task = tasks->front();
  ASSERT_TRUE(engine->call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}));
  engine->stop();
  ASSERT_EQ(told.size(), 1u);
  EXPECT_EQ(told[0].execution_id, task.execution_id);
  EXPECT_EQ(told[0].attempt_id, *task.fence.attempt_id);
  EXPECT_EQ(told[0].how, AttemptLifecycle::ended_success);
  EXPECT_EQ(told[0].worker_id, "w");
  EXPECT_LE(told[0].started_at, told[0].ended_at);
}

TEST(Distributions, CountWhatLiesBetweenTheirBounds) {
  Distribution sizes{kSizeBounds};
  for (const double size : {1.0, 2.0, 3.0, 1024.0, 5000.0}) sizes.observe(size);
  EXPECT_EQ(sizes.count(), 5u);
  EXPECT_EQ(sizes.sum, 6030.0);
  EXPECT_EQ(sizes.counts.front(), 1u);
  EXPECT_EQ(sizes.counts[1], 1u);
  EXPECT_EQ(sizes.counts[2], 1u) << "3 is between 2 and 4";
  EXPECT_EQ(sizes.counts.back(), 1u) << "above all";
  Distribution more{kSizeBounds};
  more.observe(1.0);
  sizes.add(more);
  EXPECT_EQ(sizes.counts.front(), 2u);
}

}  // namespace
}  // namespace flowfabric::engine
