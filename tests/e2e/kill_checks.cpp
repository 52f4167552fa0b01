#include "e2e/kill_checks.h"

#include <gtest/gtest.h>

#include <sstream>

#include "e2e/kill_child.h"
#include "flowfabric/engine.h"
#include "store/sqlite/database.h"

namespace flowfabric::e2e {

namespace {

using store::sqlite::Access;
using store::sqlite::Connection;
using store::sqlite::Durability;

const Attempt* attempt_of_lease(const std::vector<Attempt>& attempts, std::int64_t epoch) {
  for (const auto& attempt : attempts) {
    if (attempt.lease_epoch == epoch) return &attempt;
  }
  return nullptr;
}

void check_one(const Execution& execution, const std::vector<Attempt>& attempts, const Acknowledged& said,
               const std::string& id) {
  if (!said.leases.empty()) {
    EXPECT_GE(execution.lease_epoch, *said.leases.rbegin()) << id << ": an acknowledged claim is gone";
  }
  EXPECT_GE(execution.last_end.ended_lease_epoch, said.ended_epoch) << id << ": a report is gone";
  EXPECT_GE(execution.replay_count, said.replays) << id << ": a replay is gone";
  if (said.marked) {
    const auto mark = execution.tags.find(kMark);
    ASSERT_NE(mark, execution.tags.end()) << id << ": a tag is gone";
    EXPECT_EQ(mark->second, id);
  }
  for (const auto epoch : said.completed) {
    const auto* attempt = attempt_of_lease(attempts, epoch);
    ASSERT_NE(attempt, nullptr) << id << ": the completed attempt has no row";
    EXPECT_EQ(attempt->attempt_state, AttemptLifecycle::ended_success) << id;
    EXPECT_EQ(attempt->result.data, result_of(id, epoch)) << id;
    if (said.may_run_again) continue;
    EXPECT_EQ(execution.state.public_state, PublicState::completed) << id;
    EXPECT_EQ(execution.lease_epoch, epoch) << id << ": leased again after its completion";
  }
  for (const auto& [epoch, retry] : said.failures) {
    const auto* attempt = attempt_of_lease(attempts, epoch);
    ASSERT_NE(attempt, nullptr) << id << ": the failed attempt has no row";
    EXPECT_EQ(attempt->attempt_state, AttemptLifecycle::ended_failure) << id;
    EXPECT_EQ(attempt->failure_reason, "on purpose") << id;
    EXPECT_TRUE(retry || said.may_run_again || execution.state.public_state == PublicState::failed) << id;
  }
}

}  // namespace

std::string Ledger::note(const std::string& line) {
  std::istringstream words(line);
  char kind{};
  std::string id;
  std::int64_t epoch{};
  int retry{};
  words >> kind >> id;
  if (kind == '!') return line;
  if (!ExecutionId::parse(id)) return "not a line of the child: " + line;
  ++lines;
  auto& said = executions[id];
  if (kind == 'C') return "";
  if (kind == 'M' || kind == 'A' || kind == 'R') {
    if (kind == 'M') said.marked = true;
    if (kind == 'A') said.may_run_again = true;
    if (kind == 'R') ++said.replays;
    return "";
  }
  if (!(words >> epoch)) return "no epoch: " + line;
  if (kind == 'T') {
    if (!said.leases.insert(epoch).second) return "a lease was handed out twice: " + line;
    const bool after_its_end = !said.completed.empty() && epoch > *said.completed.begin();
    return after_its_end && !said.may_run_again ? "handed out after its completion: " + line : "";
  }
  said.ended_epoch = std::max(said.ended_epoch, epoch);
  if (kind == 'D') {
    if (!said.completed.empty() && !said.may_run_again) return "completed twice: " + line;
    said.completed.insert(epoch);
  }
  if (kind == 'F') {
    words >> retry;
    said.failures[epoch] = retry == 1;
  }
  return "";
}

void check_acknowledged(store::Session& session, const Ledger& ledger) {
  core::Unit unit(session);
  session.begin(unit);
  for (const auto& [text, said] : ledger.executions) {
    const auto id = *ExecutionId::parse(text);
    const auto* execution = unit.find<Execution>(id);
    ASSERT_NE(execution, nullptr) << text << ": acknowledged, and not there";
    ASSERT_NE(unit.find<ExecutionSpec>(id), nullptr) << text << ": has no spec";
    check_one(*execution, session.attempts_of(id), said, text);
  }
  session.rollback();
}

void check_nothing_is_half_there(const std::string& database) {
  Connection connection(database, Access::read_only, Durability::full);
  const auto expect_none = [&](const char* what, const std::string& query) {
    EXPECT_EQ(connection.number("select count(*) from (" + query + ")"), 0) << what;
  };
  expect_none("executions without a spec",
              "select 1 from ff_exec_core e where not exists (select 1 from ff_exec_spec s where "
              "s.partition_key=e.partition_key and s.execution_id=e.execution_id)");
  EXPECT_EQ(connection.number("select count(*) from ff_exec_spec"),
            connection.number("select count(*) from ff_exec_core"));
  expect_none("executions whose ended attempts are not all there",
              "select 1 from ff_exec_core e where total_attempt_count - (attempt_state in "
              "('running_attempt','attempt_interrupted')) <> (select count(*) from ff_attempt a where "
              "a.partition_key=e.partition_key and a.execution_id=e.execution_id)");
  expect_none("attempts beyond the count",
              "select 1 from ff_attempt a join ff_exec_core e using (partition_key, execution_id) where "
              "a.attempt_index >= e.total_attempt_count");
  expect_none("lane counts that are not the real ones",
              "select lane_id, public_state, count(*) n from ff_exec_core group by 1, 2 except select "
              "lane_id, public_state, executions from ff_lane_count");
  expect_none("lane counts of nothing",
              "select lane_id, public_state, executions from ff_lane_count where executions<>0 except "
              "select lane_id, public_state, count(*) from ff_exec_core group by 1, 2");
  // The outcome is that of the last one.
  connection.run(
      "create temp table ended as select partition_key, execution_id, outcome, count(*) n, max(event_id) "
      "from ff_completion_event group by 1, 2");
  expect_none("ends without their completion",
              "select partition_key, execution_id, replay_count + (lifecycle_phase='terminal') n from "
              "ff_exec_core where n>0 except select partition_key, execution_id, n from ended");
  expect_none("ended executions whose completion says something else",
              "select partition_key, execution_id, terminal_outcome from ff_exec_core where "
              "lifecycle_phase='terminal' except select partition_key, execution_id, outcome from ended");
  EXPECT_EQ(connection.number("select sum(n) from ended"),
            connection.number("select sum(replay_count + (lifecycle_phase='terminal')) from ff_exec_core"));
  connection.run(
      "create temp table grants as select partition_key, execution_id, count(*) n from "
      "ff_lease_event where event_type in ('acquired','reclaimed') group by 1, 2");
  expect_none("leases without their event",
              "select partition_key, execution_id, lease_epoch from ff_exec_core where lease_epoch>0 "
              "except select * from grants");
  expect_none("idempotency keys of nothing",
              "select 1 from ff_create_dedup d where not exists (select 1 from ff_exec_core e where "
              "e.partition_key=d.partition_key and e.execution_id=d.execution_id)");
}

void check_store(const std::string& database) {
  EngineOptions options;
  options.clock_interval = std::chrono::milliseconds(0);
  auto engine = Engine::open("sqlite:" + database, std::move(options));
  ASSERT_TRUE(engine) << engine.error().to_string();
  const auto report = engine->call(CheckStore{});
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->found, 0u) << report->violations.front().where << ": " << report->violations.front().what;
}

}  // namespace flowfabric::e2e
