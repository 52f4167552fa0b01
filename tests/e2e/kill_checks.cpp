#include "e2e/kill_checks.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/invariants.h"
#include "e2e/kill_child.h"
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
  if (said.completed_epoch > 0) {
    EXPECT_EQ(execution.state.public_state, PublicState::completed) << id;
    EXPECT_EQ(execution.lease_epoch, said.completed_epoch) << id << ": leased again after its completion";
    const auto* attempt = attempt_of_lease(attempts, said.completed_epoch);
    ASSERT_NE(attempt, nullptr) << id << ": the completed attempt has no row";
    EXPECT_EQ(attempt->attempt_state, AttemptLifecycle::ended_success) << id;
    EXPECT_EQ(attempt->result.data, result_of(id, said.completed_epoch)) << id;
  }
  for (const auto& [epoch, retry] : said.failures) {
    const auto* attempt = attempt_of_lease(attempts, epoch);
    ASSERT_NE(attempt, nullptr) << id << ": the failed attempt has no row";
    EXPECT_EQ(attempt->attempt_state, AttemptLifecycle::ended_failure) << id;
    EXPECT_EQ(attempt->failure_reason, "on purpose") << id;
    EXPECT_TRUE(retry || execution.state.public_state == PublicState::failed) << id;
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
  if (!(words >> epoch)) return "no epoch: " + line;
  if (kind == 'T') {
    if (!said.leases.insert(epoch).second) return "a lease was handed out twice: " + line;
    const bool after_its_end = said.completed_epoch > 0 && epoch > said.completed_epoch;
    return after_its_end ? "handed out after its completion: " + line : "";
  }
  said.ended_epoch = std::max(said.ended_epoch, epoch);
  if (kind == 'D') {
    if (said.completed_epoch > 0) return "completed twice: " + line;
    said.completed_epoch = epoch;
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
  connection.run(
      "create temp table ended as select partition_key, execution_id, outcome, count(*) n from "
      "ff_completion_event group by 1, 2");
  expect_none("ended executions without exactly one completion of that outcome",
              "select partition_key, execution_id, terminal_outcome, 1 from ff_exec_core where "
              "lifecycle_phase='terminal' except select * from ended");
  EXPECT_EQ(connection.number("select count(*) from ended"),
            connection.number("select count(*) from ff_exec_core where lifecycle_phase='terminal'"));
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

void check_invariants(store::Session& session, const std::string& database) {
  Connection connection(database, Access::read_only, Durability::full);
  auto ids = connection.prepare("select partition_key, execution_id from ff_exec_core");
  core::Unit unit(session);
  session.begin(unit);
  while (ids.step()) {
    ExecutionId id{.partition = static_cast<std::uint16_t>(sqlite3_column_int(ids.get(), 0)), .uuid = {}};
    std::memcpy(id.uuid.bytes.data(), sqlite3_column_blob(ids.get(), 1), 16);
    const auto* execution = unit.find<Execution>(id);
    ASSERT_NE(execution, nullptr);
    const auto broken = core::broken_invariants(nullptr, *execution);
    EXPECT_TRUE(broken.empty()) << id.to_string() << ": " << broken.front();
  }
  session.rollback();
}

}  // namespace flowfabric::e2e
