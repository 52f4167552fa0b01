// The engine behind PgBouncer, which gives every transaction another connection.
#include <gtest/gtest.h>

#include "e2e/load.h"
#include "e2e/pgbouncer.h"
#include "e2e/postgres_checks.h"

namespace flowfabric::e2e {
namespace {

using tests::PostgresServer;

constexpr int kConnections = 3;

class PostgresPooler : public testing::Test {
 protected:
  void SetUp() override {
    const auto migrated = migrate(server_.url());
    ASSERT_TRUE(migrated) << migrated.error().to_string();
  }
  std::int64_t connections() const {
    return number_on(server_)(
        "select count(*) from pg_stat_activity where backend_type='client backend' and "
        "pid<>pg_backend_pid()");
  }

  PostgresServer server_{PostgresServer::Disk::durable};
  PgBouncer pooler_{server_, kConnections};
};

TEST_F(PostgresPooler, CompletesEverythingOverFewConnections) {
  std::optional<Ledger> ledger;
  {
    Load load(pooler_.url() + "&committers=6");
    EXPECT_TRUE(load.goes_on(200));
    // Asked once: the connection of the last query may still be visible.
    const auto open = connections();
    EXPECT_GT(open, 0);
    EXPECT_LE(open, kConnections);
    EXPECT_TRUE(load.goes_on(200));
    EXPECT_TRUE(load.finish());
    EXPECT_EQ(load.complaints(), std::vector<std::string>());
    ledger = load.ledger();
  }
  EXPECT_GE(ledger->executions.size(), 400u);
  check_all_ended_once(server_, *ledger);
}

TEST_F(PostgresPooler, ReadsThroughIt) {
  auto engine = Engine::open(pooler_.url());
  ASSERT_TRUE(engine) << engine.error().to_string();
  const auto created = engine->call(CreateExecution{.tags = {{"test.tag", "x"}}});
  ASSERT_TRUE(created) << created.error().to_string();
  const auto listed = engine->call(ListExecutions{.filter = {.lane_id = "default"}});
  ASSERT_TRUE(listed) << listed.error().to_string();
  EXPECT_EQ(listed->executions.size(), 1u);
  const auto report = engine->call(CheckStore{});
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->found, 0u);
  EXPECT_EQ(report->executions, 1u);
}

// The engine leaves no settings behind for the next user of the connection.
TEST_F(PostgresPooler, LeavesTheConnectionsAsTheyWere) {
  auto engine = Engine::open(pooler_.url());
  ASSERT_TRUE(engine) << engine.error().to_string();
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(engine->call(CreateExecution{}));
  const auto plain = pooler_.url().substr(0, pooler_.url().find("&pooler"));
  for (int i = 0; i < 2 * kConnections; ++i) {
    tests::PostgresConnection somebody(plain);
    EXPECT_EQ(somebody.query("show enable_seqscan").at(0).at(0), "on");
    EXPECT_EQ(somebody.query("select count(*) from pg_prepared_statements").at(0).at(0), "0");
  }
}

}  // namespace
}  // namespace flowfabric::e2e
