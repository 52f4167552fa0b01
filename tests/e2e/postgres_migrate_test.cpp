// `migrate` on PostgreSQL: once, twice, at the same time, and on paper only.
#include <gtest/gtest.h>

#include <thread>

#include "e2e/program.h"
#include "flowfabric/engine.h"
#include "support/postgres_server.h"

namespace flowfabric::e2e {
namespace {

using tests::PostgresConnection;
using tests::PostgresServer;

// Tables, columns with their types and comments, indexes, and what the migrations wrote: everything but the
// time at which it was done.
constexpr const char* kSchema = R"sql(
select relname, attname, format_type(atttypid, atttypmod), attnotnull::text,
       pg_get_expr(adbin, adrelid), col_description(c.oid, attnum)
from pg_class c join pg_attribute a on attrelid = c.oid and attnum > 0
     left join pg_attrdef d on adrelid = c.oid and adnum = attnum
where relnamespace = 'public'::regnamespace
union all
select relname, 'itself', relkind::text, reloptions::text, pg_get_indexdef(c.oid),
       obj_description(c.oid, 'pg_class')
from pg_class c where relnamespace = 'public'::regnamespace and relkind <> 'i'
union all
select tablename, indexname, indexdef, null, null, null from pg_indexes where schemaname = 'public'
order by 1, 2, 3)sql";

class PostgresMigrate : public testing::Test {
 protected:
  std::string create(const std::string& name) const {
    server_.query("create database " + name);
    return server_.url(name);
  }
  PostgresConnection::Rows schema_of(const std::string& name) const { return server_.query(kSchema, name); }

  static void expect_works(const std::string& url) {
    auto engine = Engine::open(url);
    ASSERT_TRUE(engine) << engine.error().to_string();
    ASSERT_TRUE(engine->call(CreateExecution{.tags = {{"test.tag", "x"}}}));
    const auto task = engine->call(ClaimTasks{.worker_id = "w"}).value().at(0);
    EXPECT_TRUE(engine->call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}));
    EXPECT_EQ(engine->call(ReadCompletions{}).value().size(), 1u);
    EXPECT_EQ(engine->call(CheckStore{}).value().found, 0u);
  }

  PostgresServer server_;
};

TEST_F(PostgresMigrate, OnceIsEnough) {
  const auto url = create("jobs");
  const auto first = run_program("migrate --store '" + url + "'");
  EXPECT_EQ(first.code, 0) << first.said;
  EXPECT_NE(first.said.find("applied 1 foundations"), std::string::npos) << first.said;
  const auto made = schema_of("jobs");
  EXPECT_GT(made.size(), 100u);
  expect_works(url);

  const auto second = run_program("migrate --store '" + url + "'");
  EXPECT_EQ(second.code, 0) << second.said;
  EXPECT_NE(second.said.find("up to date"), std::string::npos) << second.said;
  EXPECT_EQ(schema_of("jobs"), made);
  EXPECT_EQ(server_.query("select count(*) from ff_exec_core", "jobs").at(0).at(0), "1");
}

TEST_F(PostgresMigrate, SeveralAtOnceDoItOnce) {
  const auto url = create("jobs");
  constexpr int kAtOnce = 6;
  std::vector<Result<std::string>> answers(kAtOnce);
  std::vector<std::thread> threads;
  for (auto& answer : answers) threads.emplace_back([&] { answer = migrate(url); });
  for (auto& thread : threads) thread.join();
  int applied = 0;
  for (const auto& answer : answers) {
    ASSERT_TRUE(answer) << answer.error().to_string();
    applied += answer->find("applied") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(applied, 1);
  EXPECT_EQ(server_.query("select version, name from ff_migration_annotation", "jobs"),
            (PostgresConnection::Rows{{"1", "foundations"},
                                      {"2", "flows"},
                                      {"3", "suspension"},
                                      {"4", "limits"},
                                      {"5", "streams"},
                                      {"6", "waitpoint ids"},
                                      {"7", "pauses"},
                                      {"8", "flow members"},
                                      {"9", "keys by id"},
                                      {"10", "leases by worker"},
                                      {"11", "upkeep"},
                                      {"12", "unused routes and groups"}}));
  expect_works(url);
}

TEST_F(PostgresMigrate, MembersOfFlowsAreFoundAsBefore) {
  const auto url = create("jobs");
  ASSERT_TRUE(migrate(url));
  const auto flow = Engine::open(url)->call(
      SubmitFlow{.flow_kind = "two", .nodes = {{.name = "a"}, {.name = "b"}}, .edges = {{"a", "b"}}});
  ASSERT_TRUE(flow) << flow.error().to_string();
  // As it was before members had a table of their own.
  server_.query(
      "drop table ff_flow_member; create index ff_exec_core_flow on ff_exec_core (flow_id);"
      "drop index ff_exec_core_leases; drop table ff_dead_worker;"
      "alter table ff_route drop column purge_at_ms;"
      "alter table ff_exec_group drop column route_id, drop column purge_at_ms;"
      "delete from ff_migration_annotation where version >= 8",
      "jobs");
  EXPECT_FALSE(Engine::open(url)) << "it has to be migrated first";
  const auto migrated = migrate(url);
  ASSERT_TRUE(migrated) << migrated.error().to_string();

  auto engine = Engine::open(url);
  ASSERT_TRUE(engine) << engine.error().to_string();
  const auto members = engine->call(ListExecutions{.filter = {.flow_id = flow->flow_id}});
  ASSERT_TRUE(members) << members.error().to_string();
  EXPECT_EQ(members->executions.size(), 2u);
  EXPECT_EQ(engine->call(CheckStore{}).value().found, 0u);
}

// A migration that fails half-way leaves nothing behind.
TEST_F(PostgresMigrate, AllOrNothing) {
  const auto url = create("jobs");
  server_.query("create table ff_worker_registry (somebody text)", "jobs");
  const auto refused = migrate(url);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().to_string().find("ff_worker_registry"), std::string::npos)
      << refused.error().to_string();
  EXPECT_EQ(server_.query("select relname from pg_class where relname like 'ff\\_%'", "jobs"),
            (PostgresConnection::Rows{{"ff_worker_registry"}}));
}

TEST_F(PostgresMigrate, OnPaperFirst) {
  const auto url = create("paper");
  const auto plan = run_program("migrate --dry-run --store '" + url + "'");
  ASSERT_EQ(plan.code, 0) << plan.said;
  EXPECT_NE(plan.said.find("create table ff_exec_core"), std::string::npos);
  EXPECT_TRUE(schema_of("paper").empty()) << "it changes nothing";
  EXPECT_EQ(run_program("migrate --dry-run --store '" + url + "'").said, plan.said);

  server_.query(plan.said, "paper");
  const auto migrated = migrate(create("done"));
  ASSERT_TRUE(migrated) << migrated.error().to_string();
  EXPECT_EQ(schema_of("paper"), schema_of("done"));
  for (const auto* rows : {"select version, name, backward_compatible from ff_migration_annotation",
                           "select * from ff_partition_config"}) {
    EXPECT_EQ(server_.query(rows, "paper"), server_.query(rows, "done"));
  }
  expect_works(url);
  const auto nothing = run_program("migrate --dry-run --store '" + url + "'");
  EXPECT_EQ(nothing.code, 0) << nothing.said;
  EXPECT_NE(nothing.said.find("up to date"), std::string::npos) << nothing.said;
  EXPECT_EQ(migrate(url).value(), "the schema is up to date");
}

TEST_F(PostgresMigrate, ExplainsEveryTableAndColumn) {
  const auto migrated = migrate(create("jobs"));
  ASSERT_TRUE(migrated) << migrated.error().to_string();
  const auto tables = server_.query(
      "select relname, coalesce(obj_description(oid, 'pg_class'), '') from pg_class "
      "where relname like 'ff\\_%' and relkind in ('r', 'p', 'S', 'v')",
      "jobs");
  EXPECT_GE(tables.size(), 15u);
  for (const auto& table : tables) EXPECT_NE(table[1], "") << table[0];
  const auto columns = server_.query(
      "select relname || '.' || attname, coalesce(col_description(c.oid, attnum), '') "
      "from pg_class c join pg_attribute on attrelid = c.oid and attnum > 0 and not attisdropped "
      "where relname like 'ff\\_%' and relkind in ('r', 'p', 'v')",
      "jobs");
  EXPECT_GE(columns.size(), 150u);
  for (const auto& column : columns) EXPECT_NE(column[1], "") << column[0];
}

}  // namespace
}  // namespace flowfabric::e2e
