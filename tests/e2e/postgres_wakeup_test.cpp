// Work that one server offers reaches a worker who waits at another, and waiting costs next to nothing.
#include <gtest/gtest.h>

#include <algorithm>

#include "e2e/waiting.h"
#include "flowfabric/engine.h"
#include "support/postgres_server.h"

namespace flowfabric::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::PostgresServer;

class PostgresWakeup : public testing::Test {
 protected:
  void SetUp() override {
    server_.query("create database jobs");
    const auto migrated = migrate(server_.url("jobs"));
    ASSERT_TRUE(migrated) << migrated.error().to_string();
  }

  Engine open(const std::string& parameters) const {
    auto engine = Engine::open(server_.url("jobs") + parameters);
    if (!engine) throw std::runtime_error(engine.error().to_string());
    return *std::move(engine);
  }

  // From the submission at one server to the answer at the other.
  static milliseconds serve_once(Engine& waiting, Engine& submitting) {
    auto claim = waiting.submit(ClaimTasks{.worker_id = "w", .wait_ms = 10'000});
    std::this_thread::sleep_for(milliseconds(150));
    EXPECT_EQ(claim.wait_for(milliseconds(0)), std::future_status::timeout) << "it does not wait";
    const Stopwatch watch;
    const auto created = submitting.call(CreateExecution{});
    EXPECT_TRUE(created) << created.error().to_string();
    const auto tasks = claim.get();
    const auto took = watch.elapsed();
    EXPECT_TRUE(tasks && tasks->size() == 1 && tasks->front().execution_id == created->execution_id);
    return took;
  }
  static std::vector<milliseconds> serve(Engine& waiting, Engine& submitting, int times) {
    std::vector<milliseconds> took;
    for (int i = 0; i < times; ++i) took.push_back(serve_once(waiting, submitting));
    std::ranges::sort(took);
    return took;
  }

  PostgresServer server_;
};

TEST_F(PostgresWakeup, ReachesTheOtherServerAtOnce) {
  auto waiting = open("");
  auto submitting = open("");
  const auto took = serve(waiting, submitting, 10);
  // The slowest may have met a busy machine. Polling alone is not that quick nine times.
  EXPECT_LT(took[8], milliseconds(300));
  EXPECT_LT(took[9], seconds(2));
}

TEST_F(PostgresWakeup, ReachesItSoonWithoutNotifications) {
  auto waiting = open("&notify=off");
  auto submitting = open("&notify=off");
  EXPECT_LT(serve(waiting, submitting, 5).back(), seconds(2));
}

TEST_F(PostgresWakeup, ReachesItAgainAfterTheListenerWasCutOff) {
  auto waiting = open("");
  auto submitting = open("");
  serve_once(waiting, submitting);
  server_.query("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen%'");
  std::this_thread::sleep_for(seconds(1));
  const auto took = serve(waiting, submitting, 5);
  EXPECT_LT(took[3], milliseconds(300));
}

// One execution wakes one of those who wait, wherever they do; none is woken in vain for good.
TEST_F(PostgresWakeup, ServesAllWhoWait) {
  auto one = open("");
  auto other = open("");
  auto submitting = open("");
  std::vector<std::future<Result<std::vector<ClaimedTask>>>> claims;
  for (int i = 0; i < 10; ++i) {
    for (auto* engine : {&one, &other}) {
      claims.push_back(engine->submit(ClaimTasks{.worker_id = "w", .wait_ms = 10'000}));
    }
  }
  std::this_thread::sleep_for(milliseconds(200));
  const Stopwatch watch;
  CreateExecutions all;
  all.executions.resize(claims.size());
  ASSERT_TRUE(submitting.call(all));
  std::set<ExecutionId> taken;
  for (auto& claim : claims) {
    const auto tasks = claim.get();
    ASSERT_TRUE(tasks) << tasks.error().to_string();
    for (const auto& task : *tasks) taken.insert(task.execution_id);
  }
  EXPECT_EQ(taken.size(), claims.size());
  EXPECT_LT(watch.elapsed(), seconds(3));
}

class PostgresIdle : public PostgresWakeup {
 protected:
  void SetUp() override {
    server_.query("alter system set shared_preload_libraries='pg_stat_statements'");
    server_.restart();
    server_.query("create extension pg_stat_statements");
    PostgresWakeup::SetUp();
  }

  std::int64_t statements_while_idle(const std::string& parameters, seconds time) const {
    auto engine = open(parameters);
    std::vector<std::future<Result<std::vector<ClaimedTask>>>> claims;
    for (const std::string lane : {"left", "right", "left", "middle"}) {
      claims.push_back(engine.submit(ClaimTasks{.worker_id = "w", .lanes = {lane}, .wait_ms = 30'000}));
    }
    std::this_thread::sleep_for(seconds(1));
    server_.query("select pg_stat_statements_reset()");
    std::this_thread::sleep_for(time);
    const auto calls = server_.query(
        "select coalesce(sum(calls), 0) from pg_stat_statements "
        "where dbid=(select oid from pg_database where datname='jobs')");
    for (auto& claim : claims) EXPECT_EQ(claim.wait_for(milliseconds(0)), std::future_status::timeout);
    return std::stoll(calls.at(0).at(0));
  }
};

TEST_F(PostgresIdle, WaitingCostsAtMostTwoStatementsPerSecond) {
  for (const auto* parameters : {"", "&notify=off"}) {
    const auto statements = statements_while_idle(parameters, seconds(5));
    EXPECT_LE(statements, 10) << parameters;
    EXPECT_GT(statements, 0) << "nobody looks at the clock: " << parameters;
    std::printf("%lld statements in 5 s %s\n", static_cast<long long>(statements), parameters);
  }
}

}  // namespace
}  // namespace flowfabric::e2e
