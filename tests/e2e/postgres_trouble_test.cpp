// Trouble with a PostgreSQL store, and its errors: a code, and a sentence of advice.
#include <gtest/gtest.h>

#include "flowfabric/engine.h"
#include "support/postgres_server.h"

namespace flowfabric::e2e {
namespace {

using tests::PostgresConnection;
using tests::PostgresServer;

class PostgresTrouble : public testing::Test {
 protected:
  using Words = std::vector<std::string>;

  // An empty database.
  std::string create(const std::string& name) const {
    server_.query("create database " + name);
    return server_.url(name);
  }
  std::string create_migrated(const std::string& name) const {
    const auto url = create(name);
    const auto migrated = migrate(url);
    EXPECT_TRUE(migrated) << migrated.error().to_string();
    return url;
  }
  // As another user than the superuser.
  std::string as(const std::string& role, const std::string& database) const {
    const auto url = server_.url(database);
    const std::string superuser = "postgres@";
    return std::string(url).replace(url.find(superuser), superuser.size(), role + "@");
  }

  template <class T>
  static void expect_refused(const Result<T>& result, ErrorCode code, const Words& words) {
    ASSERT_FALSE(result);
    const auto& error = result.error();
    EXPECT_EQ(error.code, code) << error.to_string();
    EXPECT_TRUE(error.advice.ends_with('.')) << "no sentence: " << error.to_string();
    for (const auto& word : words) {
      EXPECT_NE(error.to_string().find(word), std::string::npos) << word << " in " << error.to_string();
    }
  }

  PostgresServer server_;
};

TEST_F(PostgresTrouble, UnknownUser) {
  for (const std::string role : {"nobody", "database_user"}) {
    const auto url = as(role, "postgres");
    expect_refused(Engine::open(url), ErrorCode::invalid_input, {role, "user", "pg_hba.conf"});
    expect_refused(migrate(url), ErrorCode::invalid_input, {role, "user", "pg_hba.conf"});
  }
}

TEST_F(PostgresTrouble, MissingDatabase) {
  const auto url = server_.url("nowhere");
  expect_refused(Engine::open(url), ErrorCode::invalid_input, {"nowhere", "createdb"});
  expect_refused(migrate(url), ErrorCode::invalid_input, {"nowhere", "createdb"});
  expect_refused(plan_migration(url), ErrorCode::invalid_input, {"nowhere", "createdb"});
}

TEST_F(PostgresTrouble, MissingSchema) {
  const auto url = create("bare");
  expect_refused(Engine::open(url), ErrorCode::invalid_input, {"missing", "flowfabric migrate --store"});
  EXPECT_TRUE(server_.query("select from pg_class where relname like 'ff\\_%'", "bare").empty())
      << "opening makes no tables";
}

TEST_F(PostgresTrouble, NewerSchema) {
  const auto url = create_migrated("newer");
  server_.query("insert into ff_migration_annotation values (999, 'the future', 0, false)", "newer");
  expect_refused(Engine::open(url), ErrorCode::invalid_input, {"999", "newer flowfabric"});
  expect_refused(migrate(url), ErrorCode::invalid_input, {"999", "newer flowfabric"});
  expect_refused(plan_migration(url), ErrorCode::invalid_input, {"999", "newer flowfabric"});
}

TEST_F(PostgresTrouble, OtherPartitionCounts) {
  const auto url = create_migrated("partitions");
  EngineOptions other;
  other.flow_partitions = 64;
  const Words words{"256/32/32", "64/32/32", "cannot be changed"};
  expect_refused(Engine::open(url, other), ErrorCode::invalid_input, words);
  expect_refused(migrate(url, other), ErrorCode::invalid_input, words);
  EXPECT_TRUE(Engine::open(url)) << "with those it was made with";
}

TEST_F(PostgresTrouble, TooFewConnections) {
  const auto url = create_migrated("crowded");
  server_.query("alter system set max_connections=5");
  server_.restart();
  const Words words{"max_connections", "committers=", "readers="};
  expect_refused(Engine::open(url + "&committers=8"), ErrorCode::unavailable, words);
  EXPECT_TRUE(Engine::open(url + "&committers=1"));

  server_.query("create role limited login connection limit 2");
  server_.query("grant select, insert, update, delete on all tables in schema public to limited", "crowded");
  expect_refused(Engine::open(as("limited", "crowded")), ErrorCode::unavailable, words);
}

TEST_F(PostgresTrouble, ReadOnlyDatabase) {
  const auto url = create_migrated("frozen");
  server_.query("alter database frozen set default_transaction_read_only=on");
  const Words words{"read-only", "primary", "target_session_attrs=read-write"};
  expect_refused(Engine::open(url), ErrorCode::invalid_input, words);

  const auto bare = create("frozen_and_bare");
  server_.query("alter database frozen_and_bare set default_transaction_read_only=on");
  const auto migrated = migrate(bare);
  ASSERT_FALSE(migrated);
  EXPECT_NE(migrated.error().to_string().find("read-only"), std::string::npos)
      << migrated.error().to_string();
}

TEST_F(PostgresTrouble, NoRights) {
  create_migrated("guarded");
  server_.query("create role visitor login");
  const auto url = as("visitor", "guarded");
  expect_refused(Engine::open(url), ErrorCode::invalid_input, {"permission denied", "grant"});
  create("locked");
  expect_refused(migrate(as("visitor", "locked")), ErrorCode::invalid_input, {"permission denied", "grant"});
}

TEST_F(PostgresTrouble, StatementTimeout) {
  const auto url = create_migrated("hasty");
  server_.query("alter database hasty set statement_timeout='50ms'");
  auto engine = Engine::open(url);
  ASSERT_TRUE(engine) << engine.error().to_string();
  ASSERT_TRUE(engine->call(CreateExecution{}));
  const auto task = engine->call(ClaimTasks{.worker_id = "w"}).value().at(0);
  const CompleteExecution report{.execution_id = task.execution_id, .fence = task.fence, .result = "done"};
  {
    PostgresConnection somebody(url);
    somebody.query("begin");
    somebody.query("select from ff_exec_core for update");
    expect_refused(engine->call(report), ErrorCode::timeout,
                   {"statement_timeout", "locks", "Nothing was changed"});
    // Its session continues.
    EXPECT_TRUE(engine->call(CreateExecution{.execution_kind = "another"}));
    EXPECT_EQ(engine->call(ReadState{.execution_id = task.execution_id}).value(), PublicState::active);
  }
  const auto done = engine->call(report);
  EXPECT_TRUE(done) << done.error().to_string();
}

// The remedy for a lock that is held for long: PostgreSQL gives up on it, and the batch is run again.
TEST_F(PostgresTrouble, LockTimeout) {
  const auto url = create_migrated("locked_out");
  server_.query("alter database locked_out set lock_timeout='20ms'");
  auto engine = Engine::open(url);
  ASSERT_TRUE(engine) << engine.error().to_string();
  ASSERT_TRUE(engine->call(CreateExecution{}));
  const auto task = engine->call(ClaimTasks{.worker_id = "w"}).value().at(0);
  PostgresConnection somebody(url);
  somebody.query("begin");
  somebody.query("select from ff_exec_core for update");
  auto report = engine->submit(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  somebody.query("commit");
  const auto done = report.get();
  EXPECT_TRUE(done) << done.error().to_string();
}

TEST(PostgresUrl, SaysWhatIsWrongWithAParameter) {
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"committers=0", "committers"}, {"committers=many", "committers"}, {"readers=100000", "readers"},
      {"notify=maybe", "notify"},     {"outage=never", "outage"},        {"pooler=session", "pooler"},
      {"sslmode=perhaps", "sslmode"}, {"commiters=2", "commiters"},
  };
  for (const auto& [parameter, words] : wrong) {
    const auto opened = Engine::open("postgres://postgres@127.0.0.1:1/jobs?" + parameter);
    ASSERT_FALSE(opened) << parameter;
    EXPECT_EQ(opened.error().code, ErrorCode::invalid_input) << opened.error().to_string();
    EXPECT_NE(opened.error().to_string().find(words), std::string::npos) << opened.error().to_string();
    EXPECT_TRUE(opened.error().advice.ends_with('.')) << opened.error().to_string();
  }
}

}  // namespace
}  // namespace flowfabric::e2e
