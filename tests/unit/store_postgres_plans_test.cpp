// A statement's plan is made when it is first run, maybe on empty tables, and kept. It must go by keys all
// the same: the tables grow long before the database looks at them again.
#include <gtest/gtest.h>

#include <thread>

#include "flowfabric/engine.h"
#include "support/postgres_database.h"

namespace flowfabric::tests {
namespace {

constexpr std::int64_t kOthers = 3000;
constexpr int kChains = 20;

SubmitFlow chain() {
  return {.flow_kind = "chain",
          .nodes = {{.name = "a", .execution = {.lane_id = "chains"}, .join = {}},
                    {.name = "b", .execution = {.lane_id = "chains"}, .join = {}}},
          .edges = {{"a", "b"}}};
}

SubmitFlow many() {
  SubmitFlow flow{.flow_kind = "many", .nodes = {}, .edges = {}};
  for (std::int64_t i = 0; i < kOthers; ++i) {
    flow.nodes.push_back({.name = std::to_string(i), .execution = {.lane_id = "others"}, .join = {}});
  }
  return flow;
}

void run_chain(Engine& engine) {
  ASSERT_TRUE(engine.call(chain()));
  for (int node = 0; node < 2; ++node) {
    const auto tasks = engine.call(ClaimTasks{.worker_id = "w", .lanes = {"chains"}, .wait_ms = 10'000});
    ASSERT_TRUE(tasks);
    ASSERT_EQ(tasks->size(), 1u);
    ASSERT_TRUE(engine.call(
        CompleteExecution{.execution_id = tasks->front().execution_id, .fence = tasks->front().fence}));
  }
}

// Index entries read so far, of the table that has grown.
std::int64_t index_entries_read(const PostgresDatabase& database) {
  const auto rows = database.query(
      "select coalesce(sum(idx_tup_read), 0) from pg_stat_user_indexes where relname = 'ff_exec_core'");
  return std::stoll(rows.at(0).at(0));
}

void expect_keys_are_used_when_it_has_grown(Engine& engine, const PostgresDatabase& database) {
  for (int i = 0; i < kChains; ++i) run_chain(engine);
  ASSERT_TRUE(engine.call(many()));
  const auto before = index_entries_read(database);
  for (int i = 0; i < kChains; ++i) run_chain(engine);
  // A session tells what it did once a second, after a transaction.
  std::int64_t read = 0;
  for (int i = 0; i < 100 && read <= kChains; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    run_chain(engine);
    read = index_entries_read(database) - before;
  }
  EXPECT_GT(read, kChains) << "nothing was counted";
  EXPECT_LT(read, 10 * kOthers) << "the whole table was walked through again and again";
}

// Rows and index entries of the executions that were looked at.
std::int64_t looked_at(const PostgresDatabase& database) {
  const auto rows = database.query(
      "select seq_tup_read + coalesce((select sum(idx_tup_read) from pg_stat_user_indexes i where "
      "i.relid = t.relid), 0) from pg_stat_user_tables t where relname = 'ff_exec_core'");
  return std::stoll(rows.at(0).at(0));
}

void claim_all(Engine& engine, std::int64_t count, const std::string& worker) {
  for (std::int64_t claimed = 0; claimed < count;) {
    const auto tasks = engine.call(
        ClaimTasks{.worker_id = worker, .lanes = {"others"}, .max_tasks = 256, .lease_ttl_ms = 3'600'000});
    ASSERT_TRUE(tasks) << tasks.error().to_string();
    ASSERT_FALSE(tasks->empty());
    claimed += static_cast<std::int64_t>(tasks->size());
  }
}

TEST(PostgresPlans, ADeadWorkerCostsWhatItHolds) {
  const PostgresDatabase database;
  auto engine = Engine::open(database.url(), {.clock_interval = std::chrono::milliseconds(0)});
  ASSERT_TRUE(engine) << engine.error().to_string();
  ASSERT_TRUE(engine->call(many()));
  ASSERT_NO_FATAL_FAILURE(claim_all(*engine, kOthers, "busy"));
  std::int64_t before = 0;
  // Until the sessions have told what they did so far.
  for (auto now = looked_at(database); now != before || now == 0; now = looked_at(database)) {
    before = now;
    std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    ASSERT_TRUE(engine->call(RegisterWorker{.worker_id = "w", .worker_instance_id = "w"}));
  }
  for (int i = 0; i < 10; ++i) {
    const auto instance = "gone-" + std::to_string(i);
    ASSERT_TRUE(engine->call(RegisterWorker{.worker_id = "w", .worker_instance_id = instance}));
    ASSERT_TRUE(engine->call(ListWorkers{.limit = 1}));
    ASSERT_TRUE(engine->call(MarkWorkerDead{.worker_instance_id = instance}));
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));
  ASSERT_TRUE(engine->call(ListWorkers{.limit = 1}));
  ASSERT_TRUE(engine->call(MarkWorkerDead{.worker_instance_id = "nobody"}));
  EXPECT_LT(looked_at(database) - before, kOthers) << "what others run was walked through";
}

TEST(PostgresPlans, MadeOnEmptyTablesGoByKeys) {
  const PostgresDatabase database;
  auto engine = Engine::open(database.url());
  ASSERT_TRUE(engine) << engine.error().to_string();
  expect_keys_are_used_when_it_has_grown(*engine, database);
}

TEST(PostgresPlans, MadeOnTablesKnownToBeSmallGoByKeys) {
  const PostgresDatabase database;
  auto engine = Engine::open(database.url());
  ASSERT_TRUE(engine) << engine.error().to_string();
  run_chain(*engine);
  database.query("vacuum analyze");
  expect_keys_are_used_when_it_has_grown(*engine, database);
}

}  // namespace
}  // namespace flowfabric::tests
