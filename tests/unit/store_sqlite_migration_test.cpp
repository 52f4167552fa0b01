// A file of an earlier schema is brought up to date with what it holds.
#include <gtest/gtest.h>

#include "flowfabric/engine.h"
#include "store/sqlite/schema.h"
#include "support/temporary_folder.h"

namespace flowfabric::store::sqlite {
namespace {

constexpr std::int64_t kNow = 1'750'000'000'000;
constexpr std::int64_t kHour = 3'600'000;

// Rows of the first schema: one execution that waits and two that have ended, one of them with its own
// retention.
constexpr const char* kFirstSchemaRows = R"sql(
insert into ff_partition_config values (1, 256, 32, 32, '0.1.0');
insert into ff_lane_registry values ('default', 1749999990000, 'create_execution');
insert into ff_route values (7, 'default', null, null);
insert into ff_lane_count values ('default', 'waiting', 1), ('default', 'cancelled', 2);
insert into ff_exec_spec (partition_key, execution_id, execution_kind, policy) values
  (86, x'00000000000000000000000000000001', 'resize', null),
  (86, x'00000000000000000000000000000002', 'resize', null),
  (86, x'00000000000000000000000000000003', 'mail', '{"stream_policy":{"retention_ttl_ms":1000}}');
insert into ff_exec_core (partition_key, execution_id, lane_id, route_id, created_at_ms, max_reclaim_count,
    lifecycle_phase, ownership_state, eligibility_state, blocking_reason, terminal_outcome, attempt_state,
    public_state, priority, offer_order, attempt_index, attempt_type, total_attempt_count, retry_count,
    replay_count, lease_reclaim_count, lease_epoch, ended_by, ended_lease_epoch, last_transition_at_ms,
    last_mutation_at_ms, terminal_at_ms, tags) values
  (86, x'00000000000000000000000000000001', 'default', 7, 1749999990001, 100, 'runnable', 'unowned',
   'eligible_now', 'waiting_for_worker', 'none', 'pending_first_attempt', 'waiting', 0,
   (9000 << 49) + 1749999990001, 0, 'initial', 0, 0, 0, 0, 0, 'none', 0, 1749999990001, 1749999990001, null,
   '{"a.b":"c"}'),
  (86, x'00000000000000000000000000000002', 'default', 7, 1749999990002, 100, 'terminal', 'unowned',
   'not_applicable', 'none', 'cancelled', 'pending_first_attempt', 'cancelled', 0, null, 0, 'initial', 0, 0, 0,
   0, 0, 'none', 0, 1749999990002, 1749999990002, 1749999990002, null),
  (86, x'00000000000000000000000000000003', 'default', 7, 1749999990003, 100, 'terminal', 'unowned',
   'not_applicable', 'none', 'cancelled', 'pending_first_attempt', 'cancelled', 0, null, 0, 'initial', 0, 0, 0,
   0, 0, 'none', 0, 1749999990003, 1749999990003, 1749999990003, null);
)sql";

void make_file(const std::string& path, int version, const std::string& rows) {
  Connection connection(path, Access::read_write);
  connection.run("pragma application_id=1179009346");
  for (const auto& migration : migrations()) {
    if (migration.version <= version) connection.run(migration.sql);
  }
  connection.run("pragma user_version=" + std::to_string(version));
  connection.run(rows);
}

TEST(SqliteMigration, WhatTheFirstSchemaHeldLivesOn) {
  const tests::TemporaryFolder folder;
  const auto path = folder.file("old.db");
  make_file(path, 1, kFirstSchemaRows);
  std::atomic<std::int64_t> now{kNow};
  EngineOptions options;
  options.clock_interval = std::chrono::milliseconds(0);
  options.now_ms = [&] { return now.load(); };
  auto engine = Engine::open("sqlite:" + path, std::move(options));
  ASSERT_TRUE(engine) << engine.error().to_string();

  const auto report = engine->call(CheckStore{});
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->executions, 3u);
  EXPECT_EQ(report->found, 0u) << (report->violations.empty() ? "" : report->violations[0].what);

  const auto resizes = engine->call(ListExecutions{.filter = {.execution_kind = "resize"}});
  ASSERT_TRUE(resizes);
  EXPECT_EQ(resizes->executions.size(), 2u);
  const auto tagged = engine->call(ListExecutions{.filter = {.tags = {{"a.b", "c"}}}});
  ASSERT_TRUE(tagged);
  ASSERT_EQ(tagged->executions.size(), 1u);

  ASSERT_TRUE(engine->run_due());
  EXPECT_EQ(engine->call(CountLane{})->at(PublicState::cancelled), 1) << "the policy's own retention is over";
  now += 25 * kHour;
  ASSERT_TRUE(engine->run_due());
  EXPECT_FALSE(engine->call(CountLane{})->contains(PublicState::cancelled)) << "and so is the default's";

  const auto tasks = engine->call(ClaimTasks{.worker_id = "w"});
  ASSERT_TRUE(tasks) << tasks.error().to_string();
  ASSERT_EQ(tasks->size(), 1u);
  EXPECT_EQ(tasks->front().execution_id, tagged->executions.front().execution_id);
}

TEST(SqliteMigration, TablesThatAreLaidAnewKeepTheirRows) {
  const tests::TemporaryFolder folder;
  const auto path = folder.file("old.db");
  const std::string one = "x'00000000000000000000000000000001'";
  const std::string two = "x'00000000000000000000000000000002'";
  const std::string key = "86, " + one + ", ";
  const auto row = [&](const std::string& table, const std::string& columns, const std::string& values) {
    return "insert into " + table + " (" + columns + ") values (" + key + values + ");";
  };
  const std::string execution = "partition_key, execution_id, ";
  const std::string flow = "partition_key, flow_id, ";
  make_file(path, 8,
            "insert into ff_partition_config values (1, 256, 32, 32, '0.1.0');" +
                row("ff_exec_spec", execution + "trace_context", "'trace'") +
                row("ff_attempt", execution + "attempt_index, result", "3, 'done'") +
                row("ff_edge", flow + "edge_id, upstream_eid, resolved_at_ms", two + ", " + one + ", 4") +
                row("ff_edge_group", flow + "downstream_eid, cancel_siblings_reason", two + ", 'why'"));
  ASSERT_TRUE(migrate_store("sqlite:" + path, {}));
  Connection connection(path, Access::read_only);
  for (const auto& [table, what] : std::vector<std::pair<std::string, std::string>>{
           {"ff_exec_spec", "trace_context='trace'"},
           {"ff_attempt", "attempt_index=3 and result='done'"},
           {"ff_edge", "edge_id=" + two + " and upstream_eid=" + one + " and resolved_at_ms=4"},
           {"ff_edge_group", "downstream_eid=" + two + " and cancel_siblings_reason='why'"}}) {
    EXPECT_EQ(connection.number("select count(*) from " + table), 1) << table;
    EXPECT_EQ(connection.number("select count(*) from " + table + " where partition_key=86 and " + what), 1)
        << table;
  }
}

}  // namespace
}  // namespace flowfabric::store::sqlite
