#include "e2e/kill_checks.h"

#include <gtest/gtest.h>

#include <sstream>

#include "e2e/kill_child.h"
#include "flowfabric/engine.h"

namespace flowfabric::e2e {

namespace {

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
  EXPECT_GE(execution.lease_epoch, said.shown_epoch) << id << ": what was shown is gone";
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
  if (kind == 'V') {
    said.shown_epoch = std::max(said.shown_epoch, epoch);
    return "";
  }
  if (kind == 'T') {
    if (!said.leases.insert(epoch).second) return "a lease was handed out twice: " + line;
    const bool after_its_end = !said.completed.empty() && epoch > *said.completed.begin();
    return after_its_end && !said.may_run_again ? "handed out after its completion: " + line : "";
  }
  said.ended_epoch = std::max(said.ended_epoch, epoch);
  if (kind == 'D') {
    if (!said.completed.empty() && !said.may_run_again) return "completed twice: " + line;
    said.completed.insert(epoch);
    ++completions;
  }
  if (kind == 'F') {
    words >> retry;
    said.failures[epoch] = retry == 1;
  }
  return "";
}

void note_lines(const std::string& lines, Ledger& ledger) {
  std::istringstream all(lines);
  for (std::string line; std::getline(all, line);) EXPECT_EQ(ledger.note(line), "");
}

namespace {

// The records to check, loaded in one round trip per kind.
constexpr std::size_t kTogether = 1000;

using Said = std::map<std::string, Acknowledged>::const_iterator;

std::vector<Attempt> attempts_of(core::Unit& unit, const Execution& execution) {
  std::vector<Attempt> attempts;
  for (std::uint32_t index = 0; index < execution.total_attempt_count; ++index) {
    const auto* attempt = unit.find<Attempt>({execution.partition_key, execution.execution_id, index});
    if (attempt) attempts.push_back(*attempt);
  }
  return attempts;
}

void want_attempts(core::Unit& unit, const ExecutionId& id) {
  const auto* execution = unit.find<Execution>(id);
  if (!execution) return;
  for (std::uint32_t index = 0; index < execution->total_attempt_count; ++index) {
    unit.want<Attempt>({id.partition, id.uuid, index});
  }
}

void check_some(store::Session& session, Said first, Said end) {
  core::Unit unit(session);
  for (auto it = first; it != end; ++it) {
    unit.want<Execution>(*ExecutionId::parse(it->first));
    unit.want<ExecutionSpec>(*ExecutionId::parse(it->first));
  }
  session.begin(unit);
  for (auto it = first; it != end; ++it) want_attempts(unit, *ExecutionId::parse(it->first));
  session.load(unit);
  for (auto it = first; it != end; ++it) {
    const auto id = *ExecutionId::parse(it->first);
    const auto* execution = unit.find<Execution>(id);
    ASSERT_NE(execution, nullptr) << it->first << ": acknowledged, and not there";
    ASSERT_NE(unit.find<ExecutionSpec>(id), nullptr) << it->first << ": has no spec";
    check_one(*execution, attempts_of(unit, *execution), it->second, it->first);
  }
  session.rollback();
}

}  // namespace

void check_acknowledged(const std::string& url, const Ledger& ledger) {
  auto store = store::open_store(url, {});
  ASSERT_TRUE(store) << store.error().to_string();
  const auto session = (*store)->open_reader();
  for (auto first = ledger.executions.begin(); first != ledger.executions.end();) {
    auto end = first;
    for (std::size_t i = 0; i < kTogether && end != ledger.executions.end(); ++i) ++end;
    ASSERT_NO_FATAL_FAILURE(check_some(*session, first, end));
    first = end;
  }
}

void expect_none(const Number& number, const char* what, const std::string& query) {
  EXPECT_EQ(number("select count(*) from (" + query + ") as found"), 0) << what;
}

void check_nothing_is_half_there(const Number& number) {
  const auto none = [&](const char* what, const std::string& query) { expect_none(number, what, query); };
  none("executions without a spec",
       "select 1 from ff_exec_core e where not exists (select 1 from ff_exec_spec s where "
       "s.partition_key=e.partition_key and s.execution_id=e.execution_id)");
  EXPECT_EQ(number("select count(*) from ff_exec_spec"), number("select count(*) from ff_exec_core"));
  none("executions whose ended attempts are not all there",
       "select 1 from ff_exec_core e where total_attempt_count - (case when attempt_state in "
       "('running_attempt','attempt_interrupted') then 1 else 0 end) <> (select count(*) from ff_attempt a "
       "where a.partition_key=e.partition_key and a.execution_id=e.execution_id)");
  none("attempts beyond the count",
       "select 1 from ff_attempt a join ff_exec_core e using (partition_key, execution_id) where "
       "a.attempt_index >= e.total_attempt_count");
  // A store may keep a count in several parts.
  const std::string counted = "select lane_id, public_state, count(*) from ff_exec_core group by 1, 2";
  const std::string kept =
      "select lane_id, public_state, sum(executions) from ff_lane_count group by 1, 2 having "
      "sum(executions)<>0";
  none("lane counts that are not the real ones", counted + " except " + kept);
  none("lane counts of nothing", kept + " except " + counted);
  // An execution ends once, and once more after each replay.
  const std::string ends = "replay_count + (case when lifecycle_phase='terminal' then 1 else 0 end)";
  const std::string completions =
      "select partition_key, execution_id, count(*) from ff_completion_event group by 1, 2";
  none("ends without their completion", "select partition_key, execution_id, " + ends +
                                            " from ff_exec_core where " + ends + ">0 except " + completions);
  EXPECT_EQ(number("select count(*) from ff_completion_event"),
            number("select coalesce(sum(" + ends + "), 0) from ff_exec_core"));
  none("ended executions whose last completion says something else",
       "select partition_key, execution_id, terminal_outcome from ff_exec_core where "
       "lifecycle_phase='terminal' except select partition_key, execution_id, outcome from "
       "ff_completion_event where event_id in (select max(event_id) from ff_completion_event group by "
       "partition_key, execution_id)");
  none("leases without their event",
       "select partition_key, execution_id, lease_epoch from ff_exec_core where lease_epoch>0 except "
       "select partition_key, execution_id, count(*) from ff_lease_event where event_type in "
       "('acquired','reclaimed') group by 1, 2");
  none("idempotency keys of nothing",
       "select 1 from ff_create_dedup d where not exists (select 1 from ff_exec_core e where "
       "e.partition_key=d.partition_key and e.execution_id=d.execution_id)");
}

void check_store(const std::string& url) {
  EngineOptions options;
  options.clock_interval = std::chrono::milliseconds(0);
  auto engine = Engine::open(url, std::move(options));
  ASSERT_TRUE(engine) << engine.error().to_string();
  const auto report = engine->call(CheckStore{});
  ASSERT_TRUE(report) << report.error().to_string();
  EXPECT_EQ(report->found, 0u) << report->violations.front().where << ": " << report->violations.front().what;
}

}  // namespace flowfabric::e2e
