// Followers and tailers outlive the connections that they need (06 §16, 55 and 56).
#include <gtest/gtest.h>

#include "e2e/waiting.h"
#include "flowfabric/engine.h"
#include "support/postgres_server.h"

namespace flowfabric::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::PostgresServer;

class PostgresFollow : public testing::Test {
 protected:
  void SetUp() override {
    const auto migrated = migrate(server_.url());
    ASSERT_TRUE(migrated) << migrated.error().to_string();
  }
  Engine open(const std::string& parameters = "") const {
    auto engine = Engine::open(server_.url() + parameters);
    if (!engine) throw std::runtime_error(engine.error().to_string());
    return *std::move(engine);
  }
  static ClaimedTask start_one(Engine& engine) {
    EXPECT_TRUE(engine.call(CreateExecution{}));
    return engine.call(ClaimTasks{.worker_id = "w"}).value().at(0);
  }
  static void complete(Engine& engine, const ClaimedTask& task) {
    const auto done = engine.call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence});
    ASSERT_TRUE(done) << done.error().to_string();
  }
  static std::future<Result<EventBatch>> follow(Engine& engine, const std::string& cursor) {
    return engine.submit(FollowEvents{
        .family = EventFamily::completion, .cursor = cursor, .filter = {}, .limit = 256, .wait_ms = 30'000});
  }
  static std::string now(Engine& engine) {
    return engine.call(FollowEvents{.family = EventFamily::completion}).value().cursor;
  }

  PostgresServer server_;
};

// Told that the store is away, it goes on with its cursor, and has lost nothing.
TEST_F(PostgresFollow, GoesOnAfterAnOutage) {
  auto engine = open("&outage=fail");
  const auto cursor = now(engine);
  complete(engine, start_one(engine));
  server_.stop(PostgresServer::Stop::immediate);
  const auto away = engine.call(FollowEvents{.family = EventFamily::completion, .cursor = cursor});
  ASSERT_FALSE(away);
  EXPECT_EQ(away.error().code, ErrorCode::unavailable);
  server_.start();
  complete(engine, start_one(engine));
  const auto seen = engine.call(FollowEvents{.family = EventFamily::completion, .cursor = cursor});
  ASSERT_TRUE(seen) << seen.error().to_string();
  EXPECT_EQ(seen->events.size(), 2u);
}

TEST_F(PostgresFollow, WaitsThroughAnOutage) {
  auto engine = open();
  auto waiting = follow(engine, now(engine));
  std::this_thread::sleep_for(milliseconds(100));
  server_.restart(PostgresServer::Stop::immediate);
  const auto task = start_one(engine);
  complete(engine, task);
  ASSERT_EQ(waiting.wait_for(seconds(15)), std::future_status::ready);
  const auto seen = waiting.get();
  ASSERT_TRUE(seen) << seen.error().to_string();
  EXPECT_EQ(seen->events.at(0).execution_id, task.execution_id);
}

// The bell is not heard: what happened is found by a look.
TEST_F(PostgresFollow, FindsWhatNobodyHasTold) {
  auto engine = open();
  auto other = open();
  const auto task = start_one(other);
  auto waiting = follow(engine, now(engine));
  auto tail = engine.submit(TailStream{.execution_id = task.execution_id, .block_ms = 30'000});
  std::this_thread::sleep_for(milliseconds(100));
  // Written by somebody who rings no bell.
  server_.query(
      "insert into ff_completion_event(partition_key, execution_id, outcome, occurred_at_ms) "
      "values (0, gen_random_uuid(), 'success', 1)");
  server_.query(
      "insert into ff_stream_meta select partition_key, execution_id, 0, 1, 10, 1, 0, 1, 1, 1, 1, null, "
      "true, 0, "
      "null, 0, null, null from ff_exec_core");
  server_.query(
      "insert into ff_stream_frame select partition_key, execution_id, 0, 1, 0, 'log', 1, 'worker', "
      "'durable', "
      "null, null, null, 'x' from ff_exec_core");
  const Stopwatch watch;
  ASSERT_EQ(waiting.wait_for(seconds(8)), std::future_status::ready);
  EXPECT_EQ(waiting.get().value().events.size(), 1u);
  ASSERT_EQ(tail.wait_for(seconds(8)), std::future_status::ready);
  EXPECT_EQ(tail.get().value().frames.size(), 1u);
  EXPECT_LT(watch.elapsed(), seconds(7));
}

}  // namespace
}  // namespace flowfabric::e2e
