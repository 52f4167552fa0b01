// Policies and requests may hold any number: times at the end of time must be harmless.
#include <gtest/gtest.h>

#include <limits>

#include "flowfabric/engine.h"
#include "store/store.h"

namespace flowfabric {
namespace {

using namespace std::chrono_literals;

constexpr auto kEndOfTime = std::numeric_limits<std::int64_t>::max();
constexpr auto kLongest = std::numeric_limits<std::uint64_t>::max();
constexpr std::int64_t kYear9999 = 253'402'300'799'000;

class Extremes : public testing::Test {
 protected:
  Engine open(std::chrono::milliseconds clock_interval = 0ms) {
    return *Engine::open("memory:", {.clock_interval = clock_interval, .now_ms = [this] { return now_; }});
  }
  std::int64_t now_{1'700'000'000'000};
};

// The time that is left of an attempt is kept while it is paused, and counted from the new start.
TEST_F(Extremes, AnEndlessAttemptTimeoutSurvivesAPause) {
  auto engine = open();
  ASSERT_TRUE(engine.call(CreateExecution{
      .execution_kind = "k", .policy = {.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = kLongest}}}));
  const auto first = engine.call(ClaimTasks{.worker_id = "w"})->at(0);
  EXPECT_EQ(first.attempt_timeout_at, kEndOfTime);
  ASSERT_TRUE(engine.call(
      DelayExecution{.execution_id = first.execution_id, .fence = first.fence, .delay_until = now_ + 1000}));
  now_ += 5000;
  ASSERT_TRUE(engine.run_due());
  const auto second = engine.call(ClaimTasks{.worker_id = "w"})->at(0);
  EXPECT_EQ(second.attempt_timeout_at, kEndOfTime);
  ASSERT_TRUE(engine.run_due());
  EXPECT_EQ(engine.call(DescribeExecution{first.execution_id})->state.public_state, PublicState::active);
}

TEST_F(Extremes, EndlessWindowsDeadlinesAndBackoffsNeverComeDue) {
  auto engine = open();
  const auto created = engine.call(CreateExecution{
      .execution_kind = "k",
      .idempotency_key = "key",
      .policy = {.retry_policy = RetryPolicy{.max_retries = 3, .backoff = FixedBackoff{kLongest}},
                 .timeout_policy = TimeoutPolicy{.execution_deadline_ms = kLongest},
                 .dedup_window_ms = kLongest}});
  ASSERT_TRUE(created) << created.error().to_string();
  const auto held = engine.call(ClaimTasks{.worker_id = "w"})->at(0);
  EXPECT_EQ(held.deadline_at, kEndOfTime);
  const auto failed = engine.call(FailExecution{.execution_id = held.execution_id, .fence = held.fence});
  ASSERT_TRUE(failed) << failed.error().to_string();
  EXPECT_EQ(failed->delay_until, kEndOfTime);
  now_ = kEndOfTime - 1;
  EXPECT_EQ(engine.run_due(), 2u) << "looks at its route and its group, and nothing else";
}

// The engine's own clock counts in nanoseconds, which end in the year 2262.
TEST_F(Extremes, FarTimesDoNotDisturbTheEnginesClock) {
  auto engine = *Engine::open("memory:");
  for (const auto far : {kYear9999, kEndOfTime}) {
    ASSERT_TRUE(engine.call(CreateExecution{.execution_kind = "k", .execution_deadline_at = far}));
    ASSERT_TRUE(engine.call(CreateExecution{.lane_id = "far", .execution_kind = "k", .delay_until = far}));
  }
  ASSERT_TRUE(engine.call(
      CreateExecution{.lane_id = "near", .execution_kind = "k", .delay_until = store::system_now_ms() + 50}));
  const auto tasks = engine.call(ClaimTasks{.worker_id = "w", .lanes = {"near", "far"}, .wait_ms = 10'000});
  ASSERT_TRUE(tasks && tasks->size() == 1);
  EXPECT_EQ(tasks->front().lane_id, "near");
}

}  // namespace
}  // namespace flowfabric
