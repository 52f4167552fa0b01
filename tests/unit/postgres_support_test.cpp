// The tests rely on these: a server that can be crashed, and databases that are empty.
#include <gtest/gtest.h>

#include "support/postgres_database.h"
#include "support/postgres_server.h"

namespace flowfabric::tests {
namespace {

using Rows = PostgresConnection::Rows;

constexpr const char* kAddLanes =
    "insert into ff_lane_registry select 'lane-' || n, n, repeat('x', 500), 'active' from generate_series(1, "
    "4000) n;"
    "select nextval('ff_event_id_seq') from generate_series(1, 10)";
constexpr const char* kCountLanes = "select count(*) from ff_lane_registry";

TEST(PostgresDatabasePool, TwoAtATimeAreDifferent) {
  const PostgresDatabase one;
  const PostgresDatabase other;
  one.query(kAddLanes);

  EXPECT_NE(one.url(), other.url());
  EXPECT_EQ(one.query(kCountLanes), (Rows{{"4000"}}));
  EXPECT_EQ(other.query(kCountLanes), (Rows{{"0"}}));
}

TEST(PostgresDatabasePool, OneThatWasUsedIsEmptyForTheNext) {
  for (const std::string use :
       {kAddLanes, "delete from ff_lane_registry where registered_at_ms > 5", kAddLanes}) {
    const PostgresDatabase database;
    EXPECT_EQ(database.query(kCountLanes), (Rows{{"0"}}));
    EXPECT_EQ(database.query("select nextval('ff_event_id_seq')"), (Rows{{"1"}}));
    EXPECT_EQ(database.query("select count(*) from ff_partition_config"), (Rows{{"1"}}));
    database.query(use);
  }
}

TEST(PostgresDatabasePool, OneThatCannotBeEmptiedIsMadeAnew) {
  PostgresDatabase().query("drop table ff_lane_registry; drop sequence ff_event_id_seq cascade");
  const PostgresDatabase database;
  EXPECT_EQ(database.query(kCountLanes), (Rows{{"0"}}));
}

TEST(PostgresDatabasePool, WhatWasLeftBehindIsDisconnected) {
  const auto url = PostgresDatabase().url();
  PostgresConnection left_behind(url);
  left_behind.query("begin; lock table ff_lane_registry");
  const PostgresDatabase database;
  EXPECT_EQ(database.query(kCountLanes), (Rows{{"0"}}));
}

TEST(PostgresOwnServer, KeepsItsPortAndItsDataWhenItCrashes) {
  PostgresServer server;
  const auto port = server.port();
  server.query("create table kept (number int); insert into kept values (7)");
  server.restart(PostgresServer::Stop::immediate);

  EXPECT_EQ(server.port(), port);
  EXPECT_EQ(server.query("select number from kept"), (Rows{{"7"}}));
}

TEST(PostgresOwnServer, IsGoneWhileItIsStopped) {
  PostgresServer server(PostgresServer::Disk::durable);
  EXPECT_EQ(server.query("show fsync"), (Rows{{"on"}}));
  server.stop();
  EXPECT_THROW(server.query("select 1"), std::runtime_error);
  server.start();
  EXPECT_EQ(server.query("show fsync"), (Rows{{"on"}}));
}

}  // namespace
}  // namespace flowfabric::tests
