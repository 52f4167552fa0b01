// Trouble under load: whatever happens to PostgreSQL, its connections, the workers or the process, the
// engine recovers by itself, and nothing is lost or done twice.
#include <gtest/gtest.h>

#include "e2e/kill_rounds.h"
#include "e2e/load.h"
#include "e2e/postgres_checks.h"
#include "e2e/waiting.h"

namespace flowfabric::e2e {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using tests::PostgresConnection;
using tests::PostgresServer;

constexpr const char* kTerminate =
    "select pg_terminate_backend(pid) from pg_stat_activity where application_name='flowfabric'";

class PostgresChaos : public testing::Test {
 protected:
  void SetUp() override {
    const auto migrated = migrate(server_.url());
    ASSERT_TRUE(migrated) << migrated.error().to_string();
  }

  void finish_and_check(Load& load) {
    EXPECT_TRUE(load.finish()) << "some executions cannot be brought to an end";
    EXPECT_EQ(load.complaints(), std::vector<std::string>());
    check_all_ended_once(server_, load.ledger());
  }

  void restart_under_load(PostgresServer::Stop how) {
    Load load(server_.url());
    for (int i = 0; i < 2; ++i) {
      ASSERT_TRUE(load.goes_on()) << "before restart " << i;
      server_.restart(how);
    }
    ASSERT_TRUE(load.goes_on()) << "after the restarts";
    finish_and_check(load);
  }

  PostgresServer server_{PostgresServer::Disk::durable};
};

TEST_F(PostgresChaos, PostgresIsRestarted) {
  restart_under_load(PostgresServer::Stop::fast);
}

// Acknowledged operations are on disk, even if the database's default is not to wait for the disk.
TEST_F(PostgresChaos, PostgresCrashes) {
  server_.query("alter database postgres set synchronous_commit=off");
  restart_under_load(PostgresServer::Stop::immediate);
}

TEST_F(PostgresChaos, ConnectionsAreCut) {
  Load load(server_.url());
  ASSERT_TRUE(load.goes_on());
  std::size_t cut = 0;
  for (int i = 0; i < 30; ++i) {
    cut += server_.query(kTerminate).size();
    std::this_thread::sleep_for(milliseconds(i * 5));
  }
  EXPECT_GT(cut, 50u);
  ASSERT_TRUE(load.goes_on());
  finish_and_check(load);
}

// Every connection that PostgreSQL allows, those of the engine included, until they are let go.
class AllConnections {
 public:
  explicit AllConnections(const std::string& url) : url_(url) {
    held_.push_back(std::make_unique<PostgresConnection>(url_));
    while (!all_are_held()) {
      held_.front()->query(kTerminate);
      while (take_one()) continue;
    }
  }

 private:
  std::int64_t others() {
    return std::stoll(held_.front()
                          ->query("select count(*) from pg_stat_activity where application_name='flowfabric'")
                          .at(0)
                          .at(0));
  }
  // A connection that was just cut may be neither visible any more nor free yet.
  bool all_are_held() { return others() == 0 && !take_one() && others() == 0; }
  bool take_one() {
    try {
      held_.push_back(std::make_unique<PostgresConnection>(url_));
      return true;
    } catch (const std::exception&) {
      return false;
    }
  }

  const std::string url_;
  std::vector<std::unique_ptr<PostgresConnection>> held_;
};

TEST_F(PostgresChaos, NoConnectionIsLeft) {
  server_.query("alter system set max_connections=20");
  server_.restart();
  auto impatient = Engine::open(server_.url() + "&outage=fail&committers=1");
  ASSERT_TRUE(impatient) << impatient.error().to_string();
  Load load(server_.url());
  ASSERT_TRUE(load.goes_on());
  {
    const AllConnections all(server_.url());
    const auto refused = Engine::open(server_.url());
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_NE(refused.error().to_string().find("max_connections"), std::string::npos);
    const auto unread = impatient->call(CountLane{.lane_id = "left"});
    ASSERT_FALSE(unread);
    EXPECT_EQ(unread.error().code, ErrorCode::unavailable);
    EXPECT_NE(unread.error().to_string().find("max_connections"), std::string::npos);
    const auto unwritten = impatient->call(CreateExecution{.lane_id = "left"});
    ASSERT_FALSE(unwritten);
    EXPECT_EQ(unwritten.error().code, ErrorCode::unavailable);
    std::this_thread::sleep_for(seconds(2));
  }
  ASSERT_TRUE(load.goes_on());
  EXPECT_TRUE(impatient->call(CountLane{.lane_id = "left"}));
  finish_and_check(load);
}

// The worker that crashed is on one server, the one that takes over on another.
TEST_F(PostgresChaos, AWorkerCrashes) {
  auto one = Engine::open(server_.url());
  auto other = Engine::open(server_.url());
  ASSERT_TRUE(one && other);
  const auto id = one->call(CreateExecution{.lane_id = "left"}).value().execution_id;
  const ClaimTasks claim{.worker_id = "crashed", .lanes = {"left"}, .lease_ttl_ms = 1000, .wait_ms = 5000};
  const auto lost = one->call(claim).value().at(0);
  const auto renewed = one->call(RenewLease{.execution_id = id, .fence = lost.fence, .lease_ttl_ms = 1000});
  ASSERT_TRUE(renewed) << renewed.error().to_string();

  auto next_claim = claim;
  next_claim.worker_id = "next";
  const auto taken = other->call(next_claim);
  ASSERT_TRUE(taken) << taken.error().to_string();
  ASSERT_EQ(taken->size(), 1u);
  const auto& task = taken->front();
  EXPECT_EQ(task.execution_id, id);
  EXPECT_EQ(task.claim, ClaimKind::reclaimed);
  EXPECT_GT(*task.fence.lease_epoch, *lost.fence.lease_epoch);

  const auto late = one->call(CompleteExecution{.execution_id = id, .fence = lost.fence, .result = "late"});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::stale_lease);
  ASSERT_TRUE(other->call(CompleteExecution{.execution_id = id, .fence = task.fence, .result = "in time"}));
  EXPECT_EQ(one->call(ReadResult{.execution_id = id}).value(), "in time");
  Ledger ledger;
  ledger.executions[id.to_string()].leases = {*lost.fence.lease_epoch, *task.fence.lease_epoch};
  ledger.completions = 1;
  check_all_ended_once(server_, ledger);
}

TEST_F(PostgresChaos, TheProcessIsKilledAgainAndAgain) {
  kill_again_and_again(
      {.url = server_.url(), .number = number_on(server_), .settle = [this] { wait_for_silence(server_); }},
      5);
}

}  // namespace
}  // namespace flowfabric::e2e
