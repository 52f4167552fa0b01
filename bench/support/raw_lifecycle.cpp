#include "support/raw_lifecycle.h"

#include <thread>

#include "model/random.h"
#include "support/raw_statements.h"

namespace flowfabric::bench {

namespace {

using store::postgres::Connection;
using store::postgres::Parameters;
using store::postgres::Rows;
using store::postgres::RowTypes;

// ---- a lifecycle by the engine ----

template <class Record>
std::vector<Record> all_of(Connection& connection, const char* order = "") {
  std::vector<Record> found;
  connection.run("select " + store::column_list<Record>() + " from " + Record::table + order, {},
                 [&](const Rows& rows) { found = rows.all<Record>(); });
  return found;
}
template <class Record>
Record only(Connection& connection) {
  auto found = all_of<Record>(connection);
  require(found.size() == 1, std::string(Record::table) + " was to have one row");
  return std::move(found.front());
}

// Two steps in the same millisecond would look as if the second had left the times alone.
void let_time_pass() {
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
}

}  // namespace

LifecycleRows run_one_lifecycle(const std::string& url) {
  auto engine = must(Engine::open(url));
  auto connection = connect(url);
  LifecycleRows rows;
  must(engine.call(
      CreateExecution{.lane_id = kLane, .execution_kind = "bench", .input = std::string(256, 'x')}));
  rows.waiting = only<Execution>(connection);
  let_time_pass();
  const auto tasks = must(engine.call(ClaimTasks{.worker_id = "worker-1", .lanes = {kLane}}));
  require(tasks.size() == 1, "the first task was not handed out");
  rows.running = only<Execution>(connection);
  let_time_pass();
  must(engine.call(CompleteExecution{
      .execution_id = tasks.front().execution_id, .fence = tasks.front().fence, .result = "done"}));
  rows.done = only<Execution>(connection);
  rows.spec = only<ExecutionSpec>(connection);
  rows.attempt = only<Attempt>(connection);
  rows.completion = only<CompletionEvent>(connection);
  const auto events = all_of<LeaseEvent>(connection, " order by event_id");
  require(events.size() == 2, "a lifecycle was to have two lease events");
  rows.acquired = events.front();
  rows.released = events.back();
  return rows;
}

// ---- rows of other lifecycles, made after its example ----

namespace {

constexpr std::int64_t kLeaseMs = 30'000;

class RowMaker {
 public:
  RowMaker(const LifecycleRows& example, std::uint64_t seed) : example_(example), random_(seed) {}

  std::vector<Execution> waiting(std::size_t count, std::int64_t now) {
    std::vector<Execution> rows(count, example_.waiting);
    for (auto& row : rows) {
      row.execution_id = mint_uuid(now, random_);
      row.offer_order = *row.offer_order - row.created_at_ms + now;
      row.created_at_ms = row.last_transition_at_ms = row.last_mutation_at_ms = now;
    }
    return rows;
  }
  std::vector<ExecutionSpec> specs(const std::vector<Execution>& executions) const {
    std::vector<ExecutionSpec> rows(executions.size(), example_.spec);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i].execution_id = executions[i].execution_id;
    return rows;
  }

  void start(std::vector<Claimed>& tasks, std::int64_t now) {
    for (auto& task : tasks) {
      task.lease_id = LeaseId{mint_uuid(now, random_)};
      task.attempt_id = AttemptId{mint_uuid(now, random_)};
      task.started_at_ms = now;
    }
  }
  Execution running(const Claimed& task) const {
    auto row = example_.running;
    row.execution_id = task.id.uuid;
    row.attempt.attempt_id = task.attempt_id;
    row.lease.lease_id = task.lease_id;
    row.attempt.attempt_started_at_ms = row.started_at_ms = task.started_at_ms;
    row.lease.lease_acquired_at_ms = row.last_transition_at_ms = row.last_mutation_at_ms = task.started_at_ms;
    row.lease.lease_expires_at_ms = row.next_due_at_ms = task.started_at_ms + kLeaseMs;
    row.lease.lease_renewal_deadline_ms = task.started_at_ms + kLeaseMs * 2 / 3;
    return row;
  }
  Execution done(const Claimed& task, std::int64_t now) const {
    auto row = example_.done;
    row.execution_id = task.id.uuid;
    row.last_end.ended_lease_id = task.lease_id;
    row.last_end.ended_attempt_id = task.attempt_id;
    row.purge_at_ms = *row.purge_at_ms - *row.terminal_at_ms + now;
    row.terminal_at_ms = row.last_transition_at_ms = row.last_mutation_at_ms = now;
    return row;
  }
  Attempt attempt(const Claimed& task, std::int64_t now) const {
    auto row = example_.attempt;
    row.execution_id = task.id.uuid;
    row.attempt_id = task.attempt_id;
    row.lease_id = task.lease_id;
    row.started_at_ms = task.started_at_ms;
    row.terminal_at_ms = now;
    return row;
  }
  static LeaseEvent lease_event(LeaseEvent event, const Claimed& task, std::int64_t now) {
    event.execution_id = task.id.uuid;
    event.lease_id = task.lease_id;
    event.attempt_id = task.attempt_id;
    event.occurred_at_ms = now;
    return event;
  }
  CompletionEvent completion(const Claimed& task, std::int64_t now) const {
    auto event = example_.completion;
    event.execution_id = task.id.uuid;
    event.occurred_at_ms = now;
    return event;
  }

 private:
  const LifecycleRows& example_;
  Random random_;
};

template <class F>
auto rows_for(const std::vector<Claimed>& tasks, F make) {
  std::vector<decltype(make(tasks.front()))> rows;
  rows.reserve(tasks.size());
  for (const auto& task : tasks) rows.push_back(make(task));
  return rows;
}

// ---- reading, then writing ----

class ReadThenWrite final : public RawWriter {
 public:
  ReadThenWrite(const std::string& url, const LifecycleRows& rows, std::int32_t writer)
      : connection_(connect(url)),
        types_(connection_),
        rows_(rows),
        maker_(rows, static_cast<std::uint64_t>(writer)),
        counts_(writer),
        claim_(update(rows.waiting, rows.running)),
        complete_(update(rows.running, rows.done)) {}

  std::vector<Claimed> run(const RawBatch& batch) override {
    connection_.post("begin");
    auto taken = read(batch);
    const auto now = store::system_now_ms();
    create(batch.creates, now);
    claim(taken, now);
    complete(batch.completes, now);
    counts_.post(connection_, batch.creates, taken.size(), batch.completes.size());
    connection_.post("commit");
    connection_.flush();
    return taken;
  }

 private:
  // Under locks: what is offered, and what is to be completed, whose lease must still be the same.
  std::vector<Claimed> read(const RawBatch& batch) {
    std::vector<Claimed> taken;
    std::size_t held = 0;
    if (batch.claims > 0) {
      connection_.post(kSelectOffers,
                       Parameters().add(rows_.waiting.route_id).add(static_cast<std::int64_t>(batch.claims)),
                       [&](const Rows& found) {
                         for (int row = 0; row < found.size(); ++row) {
                           taken.push_back({.id = found.get_struct<ExecutionId>(row)});
                         }
                       });
    }
    if (!batch.completes.empty()) {
      connection_.post(kSelectHeld, fence_parameters(batch.completes),
                       [&](const Rows& found) { held = static_cast<std::size_t>(found.size()); });
    }
    if (batch.claims > 0 || !batch.completes.empty()) connection_.flush();
    require(held == batch.completes.size(), "a lease was lost");
    return taken;
  }

  template <class Record>
  void post(const RowStatement<Record>& statement, const std::vector<Record>& rows) {
    statement.post(connection_, types_, rows);
  }
  void create(std::size_t count, std::int64_t now) {
    const auto executions = maker_.waiting(count, now);
    post(create_, executions);
    post(submit_, maker_.specs(executions));
  }
  void claim(std::vector<Claimed>& tasks, std::int64_t now) {
    maker_.start(tasks, now);
    post(claim_, rows_for(tasks, [&](const auto& task) { return maker_.running(task); }));
    post(log_lease_,
         rows_for(tasks, [&](const auto& task) { return RowMaker::lease_event(rows_.acquired, task, now); }));
  }
  void complete(const std::vector<Claimed>& tasks, std::int64_t now) {
    post(complete_, rows_for(tasks, [&](const auto& task) { return maker_.done(task, now); }));
    post(end_attempt_, rows_for(tasks, [&](const auto& task) { return maker_.attempt(task, now); }));
    post(log_lease_,
         rows_for(tasks, [&](const auto& task) { return RowMaker::lease_event(rows_.released, task, now); }));
    post(log_completion_, rows_for(tasks, [&](const auto& task) { return maker_.completion(task, now); }));
  }

  Connection connection_;
  const RowTypes types_;
  const LifecycleRows& rows_;
  RowMaker maker_;
  const Counts counts_;
  const RowStatement<Execution> create_{insert<Execution>()};
  const RowStatement<ExecutionSpec> submit_{insert<ExecutionSpec>()};
  const RowStatement<Execution> claim_;
  const RowStatement<Execution> complete_;
  const RowStatement<Attempt> end_attempt_{insert<Attempt>()};
  const RowStatement<LeaseEvent> log_lease_{insert<LeaseEvent>()};
  const RowStatement<CompletionEvent> log_completion_{insert<CompletionEvent>()};
};

// ---- single statements ----

class SingleStatements final : public RawWriter {
 public:
  SingleStatements(const std::string& url, const LifecycleRows& rows, std::int32_t writer)
      : connection_(connect(url)),
        types_(connection_),
        rows_(rows),
        writer_(writer),
        maker_(rows, static_cast<std::uint64_t>(writer)),
        counts_(writer) {}

  // Statements that are sent together are one transaction.
  std::vector<Claimed> run(const RawBatch& batch) override {
    std::vector<Claimed> taken;
    const auto now = store::system_now_ms();
    if (batch.claims > 0) {
      connection_.post(kClaim,
                       Parameters()
                           .add(rows_.waiting.route_id)
                           .add(static_cast<std::int64_t>(batch.claims))
                           .add(now)
                           .add(rows_.running.lease.worker_id)
                           .add(writer_),
                       [&](const Rows& found) { taken = claimed(found, now); });
    }
    std::size_t completed = 0;
    if (!batch.completes.empty()) {
      connection_.post(kComplete,
                       fence_parameters(batch.completes).add(rows_.attempt.result).add(now).add(writer_),
                       [&](const Rows& rows) { completed = static_cast<std::size_t>(rows.affected()); });
    }
    const auto executions = maker_.waiting(batch.creates, now);
    create_.post(connection_, types_, executions);
    submit_.post(connection_, types_, maker_.specs(executions));
    counts_.post(connection_, batch.creates, 0, 0);
    connection_.flush();
    require(completed == batch.completes.size(), "a lease was lost");
    return taken;
  }

 private:
  static std::vector<Claimed> claimed(const Rows& found, std::int64_t now) {
    std::vector<Claimed> tasks;
    for (int row = 0; row < found.size(); ++row) {
      tasks.push_back({.id = found.get_struct<ExecutionId>(row),
                       .lease_id = found.get<LeaseId>(row, 2),
                       .attempt_id = found.get<AttemptId>(row, 3),
                       .started_at_ms = now});
    }
    return tasks;
  }

  Connection connection_;
  const RowTypes types_;
  const LifecycleRows& rows_;
  const std::int32_t writer_;
  RowMaker maker_;
  const Counts counts_;
  const RowStatement<Execution> create_{insert<Execution>()};
  const RowStatement<ExecutionSpec> submit_{insert<ExecutionSpec>()};
};

}  // namespace

std::unique_ptr<RawWriter> read_then_write(const std::string& url, const LifecycleRows& rows,
                                           std::int32_t writer) {
  return std::make_unique<ReadThenWrite>(url, rows, writer);
}

std::unique_ptr<RawWriter> single_statements(const std::string& url, const LifecycleRows& rows,
                                             std::int32_t writer) {
  return std::make_unique<SingleStatements>(url, rows, writer);
}

}  // namespace flowfabric::bench
