// Several servers on one PostgreSQL database.
#include <gtest/gtest.h>

#include <cstdio>

#include "e2e/child_process.h"
#include "e2e/postgres_checks.h"
#include "e2e/server_child.h"
#include "e2e/waiting.h"
#include "flowfabric/engine.h"

namespace flowfabric::e2e {
namespace {

using std::chrono::seconds;
using tests::PostgresServer;

constexpr int kExecutions = 20'000;

class PostgresServers : public testing::Test {
 protected:
  void SetUp() override {
    const auto migrated = migrate(server_.url());
    ASSERT_TRUE(migrated) << migrated.error().to_string();
  }

  static std::vector<std::string> server_arguments(const std::string& url, const std::string& name) {
    return {kServerArgument, url, name, std::to_string(kExecutions)};
  }
  void note(ChildProcess& process) { note_lines(process.take_lines(), ledger_); }
  bool wait_for_completions(std::size_t count, ChildProcess& one, ChildProcess& other) {
    return wait_until(
        [&] {
          note(one);
          note(other);
          return ledger_.completions >= count || HasFailure();
        },
        seconds(60), std::chrono::milliseconds(20));
  }
  std::int64_t ended() const {
    return number_on(server_)("select count(*) from ff_exec_core where lifecycle_phase='terminal'");
  }

  PostgresServer server_{PostgresServer::Disk::durable};
  Ledger ledger_;
};

// Both submit everything, one of them from the other end, so that the survivor completes the set.
TEST_F(PostgresServers, LoseAndRepeatNothingWhenOneIsKilledAndTheDatabaseCrashes) {
  const Stopwatch watch;
  ChildProcess killed(server_arguments(server_.url(), "up"));
  ChildProcess survivor(server_arguments(server_.url(), "down"));
  ASSERT_TRUE(wait_for_completions(kExecutions / 4, killed, survivor));
  server_.restart(PostgresServer::Stop::immediate);
  ASSERT_TRUE(wait_for_completions(kExecutions / 2, killed, survivor));
  ASSERT_LT(ended(), kExecutions) << "there is nothing left to take over";
  killed.kill();
  EXPECT_TRUE(killed.was_killed());
  ASSERT_TRUE(wait_until([&] { return note(survivor), ended() >= kExecutions; }, seconds(60),
                         std::chrono::milliseconds(200)));
  survivor.terminate();
  EXPECT_TRUE(survivor.ended_well());
  note(killed);
  note(survivor);
  const auto loaded = watch.elapsed();

  const auto number = number_on(server_);
  EXPECT_EQ(number("select count(distinct idempotency_key) from ff_exec_spec"), kExecutions);
  EXPECT_GT(
      number("select count(*) from ff_lease_event where event_type='reclaimed' and worker_id like 'down%'"),
      0);
  for (const auto* name : {"up", "down"}) {
    EXPECT_GT(
        number("select count(*) from ff_attempt where attempt_state='ended_success' and worker_id like '" +
               std::string(name) + ".%'"),
        kExecutions / 100)
        << name << " has hardly worked";
  }
  check_all_ended_once(server_, ledger_);
  std::printf("%zu acknowledged operations on %zu executions in %.1f s, checked in %.1f s\n", ledger_.lines,
              ledger_.executions.size(), static_cast<double>(loaded.count()) / 1000,
              static_cast<double>((watch.elapsed() - loaded).count()) / 1000);
}

// A session that holds an execution's row until it goes.
class RowHolder {
 public:
  RowHolder(const std::string& url, const ExecutionId& id) : connection_(url) {
    connection_.query("begin");
    connection_.query("select from ff_exec_core where execution_id='" + id.uuid.to_string() + "' for update");
  }

 private:
  tests::PostgresConnection connection_;
};

// A batch that has looked at the clock has to wait for a row, and then takes what another server has
// submitted meanwhile.
TEST_F(PostgresServers, NothingStartsBeforeItWasSubmitted) {
  auto slow = Engine::open(server_.url() + "&committers=1");
  auto other = Engine::open(server_.url());
  ASSERT_TRUE(slow && other);
  const auto first = other->call(CreateExecution{.lane_id = "elsewhere"}).value().execution_id;
  const auto second =
      other->call(CreateExecution{.lane_id = "elsewhere", .idempotency_key = "k"}).value().execution_id;
  // The lane offers something already, so that the batch looks at its route.
  ASSERT_TRUE(other->call(CreateExecution{.lane_id = "fresh"}));

  auto holds_first = std::make_unique<RowHolder>(server_.url(), first);
  auto holds_second = std::make_unique<RowHolder>(server_.url(), second);
  const auto pause = [] { std::this_thread::sleep_for(std::chrono::milliseconds(200)); };
  auto cancelled = slow->submit(CancelExecution{.execution_id = first});
  pause();
  // Both wait behind it, and so become one batch.
  auto repeated = slow->submit(CreateExecution{.lane_id = "elsewhere", .idempotency_key = "k"});
  auto claim = slow->submit(ClaimTasks{.worker_id = "w", .lanes = {"fresh"}, .max_tasks = 2});
  holds_first.reset();
  pause();
  const auto created = other->call(CreateExecution{.lane_id = "fresh"});
  ASSERT_TRUE(created) << created.error().to_string();
  pause();
  holds_second.reset();

  EXPECT_TRUE(cancelled.get());
  EXPECT_TRUE(repeated.get().value().duplicate);
  const auto tasks = claim.get();
  ASSERT_TRUE(tasks) << tasks.error().to_string();
  ASSERT_EQ(tasks->size(), 2u);
  const auto taken = other->call(DescribeExecution{.execution_id = created->execution_id});
  ASSERT_TRUE(taken) << taken.error().to_string();
  EXPECT_GE(taken->started_at.value(), taken->created_at);
  EXPECT_GE(taken->last_mutation_at, taken->created_at);
}

}  // namespace
}  // namespace flowfabric::e2e
