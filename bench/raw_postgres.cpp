// How much of what the database can do does the engine get out of it? The baseline writes the same rows into
// the same tables, set by set, on connections that do nothing else: no rules, no callers, no answers.
//
//   raw_postgres URL [TASKS] [CONNECTIONS]      e.g. raw_postgres postgres://postgres@/postgres 50000 2
//
// The URL is that of a database; schemas are made in it and dropped again. Each run has a schema of its own,
// and afterwards the engine's own check looks at what the baseline has written.
#include <atomic>
#include <thread>

#include "cli/bench.h"
#include "support/raw_lifecycle.h"

namespace {

using namespace flowfabric;
using bench::must;
using bench::require;
using store::postgres::ScratchSchema;

constexpr int kWorkers = 16;

using MakeWriter = std::unique_ptr<bench::RawWriter> (*)(const std::string&, const bench::LifecycleRows&,
                                                         std::int32_t);
struct Style {
  const char* name;
  MakeWriter make;
};
constexpr Style kReadThenWrite{"reading, then writing", bench::read_then_write};
constexpr Style kSingleStatements{"single statements", bench::single_statements};

enum class Commit {
  all_kinds,  // creates, claims and completes share it, as many of each
  one_kind,   // first all creates, then all claims, then all completes: what callers in step would give
};

struct RawRun {
  Style style;
  Commit commit;
  std::size_t batch;
};

std::string name_of(const RawRun& run) {
  return fmt::format("{}, {} {} per commit", run.style.name, run.batch,
                     run.commit == Commit::all_kinds ? "of each kind" : "of one kind");
}

class Load {
 public:
  Load(const RawRun& run, std::int64_t tasks) : run_(run), left_(tasks) {}

  // On one connection, until nothing is left for it to do.
  void work(bench::RawWriter& writer) {
    if (run_.commit == Commit::all_kinds)
      mixed(writer);
    else
      in_turn(writer);
  }

 private:
  std::size_t next_creates() {
    const auto batch = static_cast<std::int64_t>(run_.batch);
    const auto left = left_.fetch_sub(batch);
    return static_cast<std::size_t>(std::clamp<std::int64_t>(left, 0, batch));
  }
  // Tasks that one batch creates are claimed in the next and completed in the one after it.
  void mixed(bench::RawWriter& writer) {
    std::vector<bench::Claimed> held;
    for (bool busy = true; busy;) {
      const bench::RawBatch batch{next_creates(), run_.batch, std::move(held)};
      held = writer.run(batch);
      busy = batch.creates > 0 || !batch.completes.empty() || !held.empty();
    }
  }
  void in_turn(bench::RawWriter& writer) {
    for (bool busy = true; busy;) {
      const auto creates = next_creates();
      if (creates > 0) writer.run({.creates = creates});
      const auto held = writer.run({.claims = run_.batch});
      if (!held.empty()) writer.run({.completes = held});
      busy = creates > 0 || !held.empty();
    }
  }

  const RawRun run_;
  std::atomic<std::int64_t> left_;
};

// How many kinds of rows a table holds, by which columns have a value.
template <class Record>
std::int64_t kinds_of_rows(store::postgres::Connection& connection) {
  std::string columns;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    columns += fmt::format("{}{} is null", columns.empty() ? "" : ",", name);
  });
  std::int64_t kinds = 0;
  connection.run(fmt::format("select count(distinct row({})) from {}", columns, Record::table), {},
                 [&](const store::postgres::Rows& rows) { rows.read(0, 0, kinds); });
  return kinds;
}

// The baseline must write the same rows as the engine; one lifecycle there is the engine's own.
void check(const std::string& url, std::int64_t tasks) {
  auto connection = bench::connect(url);
  const bool alike =
      kinds_of_rows<Execution>(connection) == 1 && kinds_of_rows<ExecutionSpec>(connection) == 1 &&
      kinds_of_rows<Attempt>(connection) == 1 && kinds_of_rows<CompletionEvent>(connection) == 1 &&
      kinds_of_rows<LeaseEvent>(connection) == 2;  // acquired and released
  require(alike, "the baseline's rows have other columns than the engine's");
  auto engine = must(Engine::open(url));
  const auto counts = must(engine.call(CountLane{bench::kLane}));
  require(counts == std::map<PublicState, std::int64_t>{{PublicState::completed, tasks}},
          "the baseline lost or repeated work");
  const auto report = must(engine.call(CheckStore{}));
  require(report.found == 0, report.violations.empty() ? "" : report.violations.front().what);
}

// Lifecycles per second.
double measure_raw(const std::string& url, const RawRun& run, std::int64_t tasks, int connections) {
  const auto scratch = must(ScratchSchema::create(url));
  const auto rows = bench::run_one_lifecycle(scratch->url());
  std::vector<std::unique_ptr<bench::RawWriter>> writers;
  for (int i = 0; i < connections; ++i) writers.push_back(run.style.make(scratch->url(), rows, i));
  auto connection = bench::connect(url);
  bench::write_out(connection);
  Load load(run, tasks);
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  const auto start = bench::SteadyClock::now();
  for (auto& writer : writers) {
    threads.emplace_back([&] { failed += bench::run_and_report([&] { load.work(*writer); }); });
  }
  for (auto& thread : threads) thread.join();
  const auto seconds = bench::seconds_since(start);
  require(failed == 0, "the baseline failed");
  check(scratch->url(), tasks + 1);
  return static_cast<double>(tasks) / seconds;
}

struct EngineRun {
  double per_second{};
  std::size_t lifecycles_per_commit{};
};

EngineRun measure_engine(const std::string& url, std::int64_t tasks, int in_flight) {
  auto store = must(cli::BenchStore::open(url));
  auto connection = bench::connect(url);
  bench::write_out(connection);
  const cli::LifecycleOptions options{
      .store = url, .tasks = tasks, .workers = kWorkers, .in_flight = in_flight, .payload_bytes = 256};
  const auto report = must(cli::bench_lifecycle(store, options));
  fmt::print("{}", cli::to_table(report));
  const auto batches = static_cast<std::int64_t>(store.engine().stats().batches);
  return {report.throughput(),
          static_cast<std::size_t>(std::max<std::int64_t>((tasks + batches / 2) / batches, 1))};
}

// The engine runs before and after the baselines, so that all meet about the same noise.
void compare(const std::string& url, std::int64_t tasks, int connections, int in_flight) {
  const auto before = measure_engine(url, tasks, in_flight);
  const auto batch = static_cast<std::size_t>(kWorkers * in_flight);
  // As many tasks at a time as the engine's callers have, or as the engine commits together, or more.
  const auto share = std::max<std::size_t>(batch / static_cast<std::size_t>(connections), 1);
  const std::vector<RawRun> runs{{kReadThenWrite, Commit::one_kind, share},
                                 {kReadThenWrite, Commit::all_kinds, before.lifecycles_per_commit},
                                 {kReadThenWrite, Commit::all_kinds, batch},
                                 {kReadThenWrite, Commit::one_kind, batch},
                                 {kSingleStatements, Commit::all_kinds, batch},
                                 {kSingleStatements, Commit::one_kind, batch}};
  std::vector<double> raw;
  for (const auto& run : runs) raw.push_back(measure_raw(url, run, tasks, connections));
  const auto after = measure_engine(url, tasks, in_flight);
  const auto engine = (before.per_second + after.per_second) / 2;
  fmt::print("engine, mean of both: {:.0f} per second, {} lifecycles per commit\n", engine,
             before.lifecycles_per_commit);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    fmt::print("raw, {:<52} {:>8.0f} per second, engine/raw {:.2f}\n", name_of(runs[i]), raw[i],
               engine / raw[i]);
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: raw_postgres URL [TASKS] [CONNECTIONS]\n");
    return 2;
  }
  return bench::run_and_report([&] {
    const std::string url = argv[1];
    const auto tasks = bench::number_argument(argc, argv, 2, 50'000);
    const auto connections = static_cast<int>(bench::number_argument(argc, argv, 3, 2));
    require(tasks >= 4 && connections >= 1, "TASKS must be at least 4, CONNECTIONS at least 1");
    fmt::print("{} raw connections\n", connections);
    compare(url, tasks, connections, 32);
    // Small batches take long.
    compare(url, tasks / 4, connections, 1);
  });
}
