// Answers to callers while PostgreSQL is away.
#include <gtest/gtest.h>

#include "e2e/postgres_checks.h"
#include "e2e/waiting.h"
#include "flowfabric/engine.h"

namespace flowfabric::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::PostgresServer;

class PostgresOutage : public testing::Test {
 protected:
  void SetUp() override {
    const auto migrated = migrate(server_.url());
    ASSERT_TRUE(migrated) << migrated.error().to_string();
  }

  Engine open(const std::string& parameters, EngineOptions options = {}) const {
    auto engine = Engine::open(server_.url() + parameters, std::move(options));
    if (!engine) throw std::runtime_error(engine.error().to_string());
    // So that a reader is connected when the server goes.
    EXPECT_TRUE(engine->call(CountLane{}));
    return *std::move(engine);
  }

  // Calls enough for every committer and for every reader that is idle.
  static void expect_all_works(Engine& engine) {
    for (int i = 0; i < 20; ++i) {
      const auto written = engine.call(CreateExecution{});
      EXPECT_TRUE(written) << written.error().to_string();
      const auto read = engine.call(CountLane{});
      EXPECT_TRUE(read) << read.error().to_string();
    }
  }

  PostgresServer server_;
};

TEST_F(PostgresOutage, FailsAtOnceIfItIsToldTo) {
  auto engine = open("&outage=fail");
  server_.stop();
  for (int i = 0; i < 3; ++i) {
    const Stopwatch watch;
    const auto written = engine.call(CreateExecution{});
    ASSERT_FALSE(written);
    EXPECT_EQ(written.error().code, ErrorCode::unavailable) << written.error().to_string();
    EXPECT_NE(written.error().to_string().find("Repeat the call"), std::string::npos)
        << written.error().to_string();
    const auto read = engine.call(CountLane{});
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().code, ErrorCode::unavailable) << read.error().to_string();
    EXPECT_LT(watch.elapsed(), seconds(1));
  }
  const auto opened = Engine::open(server_.url());
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, ErrorCode::unavailable) << opened.error().to_string();

  server_.start();
  expect_all_works(engine);
}

// Idle connections may break: the next call opens a new one instead of failing.
TEST_F(PostgresOutage, IsNotSeenByCallersWhenItIsOver) {
  auto engine = open("&outage=fail");
  expect_all_works(engine);
  server_.restart(PostgresServer::Stop::immediate);
  expect_all_works(engine);
}

TEST_F(PostgresOutage, WaitsUntilPostgresIsBack) {
  auto engine = open("");
  server_.stop(PostgresServer::Stop::immediate);
  auto created = engine.submit(CreateExecution{.execution_kind = "patient"});
  auto read = std::async(std::launch::async, [&] { return engine.call(ListLanes{}); });
  std::this_thread::sleep_for(seconds(1));
  EXPECT_EQ(created.wait_for(milliseconds(0)), std::future_status::timeout);
  EXPECT_EQ(read.wait_for(milliseconds(0)), std::future_status::timeout);

  server_.start();
  // Longer than the longest pause between two attempts to connect.
  ASSERT_EQ(created.wait_for(seconds(5)), std::future_status::ready);
  ASSERT_EQ(read.wait_for(seconds(5)), std::future_status::ready);
  const auto creation = created.get();
  ASSERT_TRUE(creation) << creation.error().to_string();
  EXPECT_TRUE(read.get());
  EXPECT_EQ(engine.call(CountLane{}).value(), (std::map{std::pair{PublicState::waiting, std::int64_t{1}}}));
}

// A claim that waits outlives the outage, too.
TEST_F(PostgresOutage, WaitingClaimsAreServedAfterwards) {
  auto engine = open("");
  auto other = open("");
  auto claim = engine.submit(ClaimTasks{.worker_id = "w", .wait_ms = 20'000});
  std::this_thread::sleep_for(milliseconds(300));
  server_.restart(PostgresServer::Stop::immediate);
  const auto created = other.call(CreateExecution{});
  ASSERT_TRUE(created) << created.error().to_string();
  ASSERT_EQ(claim.wait_for(seconds(10)), std::future_status::ready);
  const auto tasks = claim.get();
  ASSERT_TRUE(tasks) << tasks.error().to_string();
  ASSERT_EQ(tasks->size(), 1u);
  EXPECT_EQ(tasks->front().execution_id, created->execution_id);
}

TEST_F(PostgresOutage, WaitsNoLongerThanTheDeadline) {
  EngineOptions options;
  options.operation_deadline = milliseconds(700);
  auto engine = open("", options);
  server_.stop();
  const Stopwatch watch;
  // The second one waits behind the first.
  auto first = engine.submit(CreateExecution{.execution_kind = "a"});
  std::this_thread::sleep_for(milliseconds(50));
  auto second = engine.submit(CreateExecution{.execution_kind = "b"});
  for (auto* answer : {&first, &second}) {
    const auto created = answer->get();
    ASSERT_FALSE(created);
    EXPECT_EQ(created.error().code, ErrorCode::timeout) << created.error().to_string();
    EXPECT_NE(created.error().to_string().find("has changed nothing"), std::string::npos);
  }
  EXPECT_GE(watch.elapsed(), milliseconds(600));
  EXPECT_LT(watch.elapsed(), seconds(4));
  const Stopwatch read_watch;
  const auto read = engine.call(CountLane{});
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::unavailable) << read.error().to_string();
  EXPECT_GE(read_watch.elapsed(), milliseconds(600));
  EXPECT_LT(read_watch.elapsed(), seconds(3));

  server_.start();
  EXPECT_TRUE(wait_until([&] { return engine.call(CountLane{}).has_value(); }, seconds(5)));
  EXPECT_TRUE(engine.call(CountLane{}).value().empty()) << "what was answered timeout has changed nothing";
}

}  // namespace
}  // namespace flowfabric::e2e
