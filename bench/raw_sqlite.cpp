// The baseline of the lifecycle benchmark: the same rows, written by prepared statements in batches of the
// same size, by one thread that does nothing else. No engine, no rules, no callers.
//
//   raw_sqlite PATH TASKS BATCH        BATCH tasks are created, then claimed, then completed, per transaction
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>

#include "core/offer.h"
#include "core/transition.h"
#include "store/sqlite/mapping.h"
#include "store/sqlite/schema.h"

namespace {

using namespace flowfabric;
using store::sqlite::Access;
using store::sqlite::Connection;
using store::sqlite::Statement;

std::int64_t now_ms() {
  return store::system_now_ms();
}

// The three states of a hot row that a plain lifecycle writes.
struct Rows {
  Execution waiting;
  Execution running;
  Execution done;
  ExecutionSpec spec;
  Attempt attempt;
  LeaseEvent acquired;
  LeaseEvent released;
  CompletionEvent completion;
};

Rows make_rows(std::uint64_t number) {
  Random random(number);
  const auto now = now_ms();
  Rows rows;
  auto& e = rows.waiting;
  e.partition_key = 86;
  e.execution_id = mint_uuid(now, random);
  e.lane_id = "bench";
  e.route_id = 1;
  e.created_at_ms = e.last_transition_at_ms = e.last_mutation_at_ms = now;
  e.state = core::vectors::waiting(AttemptState::pending_first_attempt);
  e.offer_order = core::offer_order(e);

  rows.running = e;
  auto& r = rows.running;
  r.state = core::vectors::running();
  r.state.public_state = PublicState::active;
  r.offer_order.reset();
  r.attempt.attempt_id = AttemptId{mint_uuid(now, random)};
  r.attempt.attempt_started_at_ms = r.started_at_ms = now;
  r.total_attempt_count = 1;
  r.lease_epoch = 1;
  r.lease = Lease{.lease_id = LeaseId{mint_uuid(now, random)},
                  .worker_id = "worker-1",
                  .worker_instance_id = "worker-1",
                  .lease_acquired_at_ms = now,
                  .lease_expires_at_ms = now + 30'000,
                  .lease_renewal_deadline_ms = now + 20'000};
  r.next_due_at_ms = now + 30'000;

  rows.done = r;
  auto& d = rows.done;
  d.state = core::vectors::terminal(TerminalOutcome::success, AttemptState::attempt_terminal);
  d.state.public_state = PublicState::completed;
  d.last_end = core::lease_end(r, LeaseEnd::complete);
  d.lease = Lease{.worker_id = r.lease.worker_id, .worker_instance_id = r.lease.worker_instance_id};
  d.next_due_at_ms.reset();
  d.terminal_at_ms = now;

  rows.spec = ExecutionSpec{.partition_key = e.partition_key,
                            .execution_id = e.execution_id,
                            .execution_kind = "bench",
                            .payload = Bytes{std::string(256, 'x')}};
  rows.attempt = Attempt{.partition_key = e.partition_key,
                         .execution_id = e.execution_id,
                         .attempt_id = *r.attempt.attempt_id,
                         .attempt_state = AttemptLifecycle::ended_success,
                         .lease_id = r.lease.lease_id,
                         .lease_epoch = 1,
                         .worker_id = "worker-1",
                         .worker_instance_id = "worker-1",
                         .started_at_ms = now,
                         .terminal_at_ms = now,
                         .result = Bytes{"done"}};
  rows.acquired = LeaseEvent{.event_id = 1,
                             .partition_key = e.partition_key,
                             .execution_id = e.execution_id,
                             .event_type = LeaseEventType::acquired,
                             .lease_id = *r.lease.lease_id,
                             .lease_epoch = 1,
                             .attempt_id = *r.attempt.attempt_id,
                             .worker_id = "worker-1",
                             .worker_instance_id = "worker-1",
                             .occurred_at_ms = now};
  rows.released = rows.acquired;
  rows.released.event_type = LeaseEventType::released;
  rows.released.reason = "completed";
  rows.completion = CompletionEvent{.event_id = 1,
                                    .partition_key = e.partition_key,
                                    .execution_id = e.execution_id,
                                    .outcome = TerminalOutcome::success,
                                    .occurred_at_ms = now};
  return rows;
}

class Baseline {
 public:
  explicit Baseline(Connection& connection)
      : connection_(connection),
        insert_execution_(connection, sample().waiting),
        insert_spec_(connection, sample().spec),
        insert_attempt_(connection, sample().attempt),
        insert_acquired_(connection, sample().acquired),
        insert_released_(connection, sample().released),
        insert_completion_(connection, sample().completion),
        claim_(connection, sample().waiting, sample().running),
        complete_(connection, sample().running, sample().done),
        select_offers_(connection.prepare("select partition_key,execution_id from ff_exec_core"
                                          " where route_id=1 and offer_order is not null"
                                          " order by offer_order,partition_key,execution_id limit ?1")),
        begin_(connection.prepare("begin immediate")),
        commit_(connection.prepare("commit")) {}

  // Tasks that one batch creates are claimed in it and completed in the next, as under load.
  void run_batch(std::vector<Rows>& batch, std::vector<Rows>& before) {
    begin_.run();
    for (const auto& rows : batch) {
      insert_execution_.run(rows.waiting);
      insert_spec_.run(rows.spec);
    }
    store::sqlite::bind(select_offers_.get(), 1, static_cast<std::int64_t>(batch.size()));
    while (select_offers_.step()) store::sqlite::read_all<ExecutionId>(select_offers_.get());
    select_offers_.reset();
    for (auto& rows : batch) {
      claim_.run(rows.running);
      insert_acquired_.run(rows.acquired, ++lease_events_);
    }
    for (auto& rows : before) {
      complete_.run(rows.done);
      insert_attempt_.run(rows.attempt);
      insert_released_.run(rows.released, ++lease_events_);
      insert_completion_.run(rows.completion, ++completions_);
    }
    commit_.run();
    if (connection_.wal_pages() >= 8000) connection_.checkpoint(Connection::Checkpoint::beside);
  }

 private:
  static const Rows& sample() {
    static const Rows rows = make_rows(0);
    return rows;
  }

  // An insert of the columns that the sample has a value for.
  template <class Record>
  class Insert {
   public:
    Insert(Connection& connection, const Record& example)
        : columns_(columns_with_value(type(), &example)),
          statement_(connection.prepare(store::sqlite::insert_statement(type(), columns_))) {}
    void run(const Record& record) {
      store::sqlite::bind_columns(statement_.get(), 1, type(), &record, columns_);
      statement_.run();
    }
    void run(const Record& event, std::int64_t id) {
      store::sqlite::bind_columns(statement_.get(), 1, type(), &event, columns_);
      store::sqlite::bind(statement_.get(), 1, id);
      statement_.run();
    }

   private:
    static const TableType& type() {
      if constexpr (place_of<Record> < kRecordTypes)
        return record_type<Record>();
      else
        return event_type<Record>();
    }
    ColumnMask columns_;
    Statement statement_;
  };

  // An update of the columns that differ between two states.
  class Update {
   public:
    Update(Connection& connection, const Execution& from, const Execution& to)
        : columns_(changed_columns(record_type<Execution>(), &from, &to)),
          statement_(
              connection.prepare(store::sqlite::update_statement(record_type<Execution>(), columns_))) {}
    void run(const Execution& row) {
      const auto key = row.key();
      store::sqlite::bind_columns(statement_.get(), store::sqlite::bind_all(statement_.get(), 1, key),
                                  record_type<Execution>(), &row, columns_);
      statement_.run();
    }

   private:
    ColumnMask columns_;
    Statement statement_;
  };

  Connection& connection_;
  Insert<Execution> insert_execution_;
  Insert<ExecutionSpec> insert_spec_;
  Insert<Attempt> insert_attempt_;
  Insert<LeaseEvent> insert_acquired_;
  Insert<LeaseEvent> insert_released_;
  Insert<CompletionEvent> insert_completion_;
  Update claim_;
  Update complete_;
  Statement select_offers_;
  Statement begin_;
  Statement commit_;
  std::int64_t lease_events_{0};
  std::int64_t completions_{0};
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: raw_sqlite PATH TASKS BATCH\n");
    return 2;
  }
  const std::string path = argv[1];
  const auto tasks = std::strtoull(argv[2], nullptr, 10);
  const auto batch_size = std::strtoull(argv[3], nullptr, 10);
  if (std::filesystem::exists(path)) {
    fmt::print(stderr, "{} exists; give the path of a file that does not\n", path);
    return 2;
  }
  {
    Connection connection(path, Access::read_write);
    connection.sync_commits(true);
    store::sqlite::migrate(connection, {.partitions = {}, .now_ms = now_ms});
    Baseline baseline(connection);
    const auto start = std::chrono::steady_clock::now();
    std::vector<Rows> before;
    for (std::uint64_t number = 0; number < tasks || !before.empty();) {
      std::vector<Rows> batch;
      while (batch.size() < batch_size && number < tasks) batch.push_back(make_rows(++number));
      baseline.run_batch(batch, before);
      before = std::move(batch);
    }
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    fmt::print("raw SQLite: {} lifecycles in {:.2f} s, {:.0f} per second, {} per batch\n", tasks, seconds,
               static_cast<double>(tasks) / seconds, batch_size);
  }
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  return 0;
}
