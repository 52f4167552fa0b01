#include "support/backlog.h"

#include <map>

#include "support/raw_lifecycle.h"

namespace flowfabric::bench {

namespace {

using store::postgres::Connection;
using store::postgres::Parameters;

constexpr std::int64_t kSpreadMs = 3'600'000;
constexpr std::int64_t kRowsPerStatement = 50'000;

// Column by column: what the copy has instead of what the original has.
using Changes = std::map<std::string, std::string, std::less<>>;

// "insert into ff_exec_core(a,b,…) select t.a,<b's change>,…"
template <class Record>
std::string insert_copies(const Changes& changes) {
  std::string values;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    const auto change = changes.find(name);
    if (!values.empty()) values += ',';
    values += change == changes.end() ? fmt::format("t.{}", name) : change->second;
  });
  return fmt::format("insert into {}({}) select {}", Record::table, store::column_list<Record>(), values);
}

// $1 and $2 are the numbers of the first and the last copy, $3 how many there will be, $4 and $5 the key of
// the original. The copy with number `n` of them is up to an hour older than the original, the last one as
// old.
std::string shifted(std::string_view column) {
  return fmt::format("t.{}+(n*{}/$3::int8-{})", column, kSpreadMs, kSpreadMs);
}

// A time-ordered UUID of the copy. The kind (8, 9, a or b) keeps ids of several kinds apart.
std::string id_of_copy(char kind) {
  return fmt::format(
      "(lpad(to_hex({}),12,'0')||'7'||lpad(to_hex(n&4095),3,'0')||'{}'||lpad(to_hex(n),15,'0'))::uuid",
      shifted("created_at_ms"), kind);
}

Changes changes_of(char kind) {
  Changes changes{{"execution_id", id_of_copy(kind)}};
  for (const char* time : {"created_at_ms", "last_transition_at_ms", "last_mutation_at_ms", "offer_order",
                           "attempt_started_at_ms", "started_at_ms", "terminal_at_ms", "purge_at_ms"}) {
    changes[time] = shifted(time);
  }
  return changes;
}

// The hot rows as `made`, then what was submitted with each.
std::string copy_executions(const Changes& changes) {
  const Changes key{{"partition_key", "made.partition_key"}, {"execution_id", "made.execution_id"}};
  return fmt::format(
      "with made as ({0} from ff_exec_core t,generate_series($1::int8,$2::int8) as n {2} returning *),"
      "submitted as ({1} from made,ff_exec_spec t {2})",
      insert_copies<Execution>(changes), insert_copies<ExecutionSpec>(key),
      "where t.partition_key=$4::int4 and t.execution_id=$5::uuid");
}

std::string copy_waiting() {
  return copy_executions(changes_of('8')) + " select count(*) from made";
}

std::string copy_terminal() {
  auto changes = changes_of('9');
  changes["attempt_id"] = changes["ended_attempt_id"] = id_of_copy('a');
  changes["ended_lease_id"] = id_of_copy('b');
  return copy_executions(changes) + " " +
         insert_copies<Attempt>({{"partition_key", "made.partition_key"},
                                 {"execution_id", "made.execution_id"},
                                 {"attempt_id", "made.attempt_id"},
                                 {"lease_id", "made.ended_lease_id"},
                                 {"started_at_ms", "made.started_at_ms"},
                                 {"terminal_at_ms", "made.terminal_at_ms"}}) +
         " from made,ff_attempt t where t.partition_key=$4::int4 and t.execution_id=$5::uuid";
}

void copy(Connection& connection, const std::string& sql, const ExecutionId& original, std::int64_t copies,
          PublicState state) {
  for (std::int64_t first = 1; first <= copies; first += kRowsPerStatement) {
    const auto last = std::min(first + kRowsPerStatement - 1, copies);
    connection.run(sql, Parameters().add(first).add(last).add(copies).add_fields(original));
  }
  connection.run(
      "insert into ff_lane_count(lane_id,public_state,writer,executions) "
      "values ($1::text,$2::text,0,$3::int8) on conflict (lane_id,public_state,writer) "
      "do update set executions=ff_lane_count.executions+excluded.executions",
      Parameters().add(std::string(kLane)).add(state).add(copies));
}

ExecutionId submit_one(const std::string& url) {
  auto engine = must(Engine::open(url));
  return must(engine.call(CreateExecution{
                  .lane_id = kLane, .execution_kind = "bench", .input = std::string(256, 'x')}))
      .execution_id;
}

}  // namespace

void fill(const std::string& url, const Backlog& backlog) {
  const auto terminal = run_one_lifecycle(url).done.key();
  const auto waiting = submit_one(url);
  auto connection = connect(url);
  copy(connection, copy_terminal(), terminal, backlog.terminal, PublicState::completed);
  copy(connection, copy_waiting(), waiting, backlog.waiting, PublicState::waiting);
  connection.run("vacuum (analyze) ff_exec_core");
  connection.run("vacuum (analyze) ff_exec_spec");
  connection.run("vacuum (analyze) ff_attempt");
  write_out(connection);
}

}  // namespace flowfabric::bench
