// Followers see everything once, whoever writes and whatever is restarted, and outlive the connections that
// they need (06 §16, 49, 55 and 56). `bench/followers` is the first of them for a minute.
#include <gtest/gtest.h>

#include <map>

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

// The events that one follower saw, by cursor.
struct Seen {
  std::string cursor = first_cursor();
  std::vector<EventView> events;

  // Reads for a while, or until the writers are done and all is read.
  void follow(Engine& server, const std::atomic<int>& writers, seconds patience) {
    const Stopwatch watch;
    while (watch.elapsed() < patience) {
      const bool over = writers == 0;
      const auto batch = server.call(FollowEvents{
          .family = EventFamily::lease_history, .cursor = cursor, .filter = {}, .limit = 50, .wait_ms = 50});
      ASSERT_TRUE(batch) << batch.error().to_string();
      cursor = batch->cursor;
      events.insert(events.end(), batch->events.begin(), batch->events.end());
      if (over && batch->events.empty()) return;
    }
  }
  // Each event once, and the life of each execution in its order.
  void check(std::size_t executions) const {
    std::map<ExecutionId, std::string> lives;
    std::string last;
    for (const auto& event : events) {
      EXPECT_LT(last, event.cursor) << "twice, or out of order";
      last = event.cursor;
      lives[*event.execution_id] += event.type + " ";
    }
    EXPECT_EQ(lives.size(), executions);
    for (const auto& [id, life] : lives) EXPECT_EQ(life, "acquired renewed released ") << id.to_string();
  }
};

TEST_F(PostgresFollow, SeesEachEventOnceWhateverIsRestarted) {
  constexpr int kWriters = 8;
  constexpr int kEach = 60;
  auto one = open();
  auto two = open();
  std::atomic<int> writers{kWriters};
  std::vector<std::thread> threads;
  for (int i = 0; i < kWriters; ++i) {
    threads.emplace_back([&, i] {
      auto& server = i % 2 ? one : two;
      const auto lane = "lane-" + std::to_string(i);
      for (int n = 0; n < kEach; ++n) {
        EXPECT_TRUE(server.call(CreateExecution{.lane_id = lane}));
        const auto task = server.call(ClaimTasks{.worker_id = "w", .lanes = {lane}}).value().at(0);
        EXPECT_TRUE(server.call(RenewLease{task.execution_id, task.fence, 0, 30'000}));
        complete(server, task);
        std::this_thread::sleep_for(milliseconds(20));
      }
      --writers;
    });
  }
  std::array<Seen, 4> seen;
  int restarts = 0;
  constexpr auto kPatience = seconds(120);
  threads.emplace_back([&] { seen[0].follow(one, writers, kPatience); });
  threads.emplace_back([&] { seen[1].follow(one, writers, kPatience); });
  threads.emplace_back([&] { seen[2].follow(two, writers, kPatience); });
  threads.emplace_back([&] {
    for (; writers > 0; ++restarts) {
      auto server = open();
      seen[3].follow(server, writers, seconds(1));
    }
    auto server = open();
    seen[3].follow(server, writers, kPatience);
  });
  for (auto& thread : threads) thread.join();
  EXPECT_GE(restarts, 1);
  for (const auto& each : seen) each.check(kWriters * kEach);
  EXPECT_EQ(seen[3].events, seen[0].events) << "in the same order";
}

// After the answer that the store is away, the follower continues from its cursor and has lost nothing.
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
