#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "api/json.h"
#include "cli/bench.h"

namespace flowfabric::cli {

namespace {

void write(api::JsonWriter& out, const char* name, const Percentiles& latency) {
  out.key(name).object().field("p50", latency.p50).field("p95", latency.p95).field("p99", latency.p99).end();
}

}  // namespace

Percentiles percentiles(std::vector<std::uint32_t>& microseconds) {
  if (microseconds.empty()) return {};
  std::sort(microseconds.begin(), microseconds.end());
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(share * static_cast<double>(microseconds.size() - 1));
    return static_cast<double>(microseconds[index]) / 1000.0;
  };
  return {at(0.50), at(0.95), at(0.99)};
}

void add_figures(BenchReport& report, const std::string& name, const Percentiles& latency) {
  report.figures.emplace_back(name + "_ms_p50", latency.p50);
  report.figures.emplace_back(name + "_ms_p95", latency.p95);
  report.figures.emplace_back(name + "_ms_p99", latency.p99);
}

BenchReport report_of(BenchStore& store, const BenchOptions& options, const std::string& scenario,
                      std::int64_t tasks, double seconds) {
  const auto stats = store.engine().stats();
  return {.scenario = scenario,
          .store = store::redacted_url(options.store),
          .tasks = tasks,
          .workers = options.workers,
          .in_flight = options.in_flight,
          .payload_bytes = 0,
          .seconds = seconds,
          .submit = {},
          .start = {},
          .complete = {},
          .mean_batch = static_cast<double>(stats.operations) /
                        static_cast<double>(std::max<std::uint64_t>(stats.batches, 1)),
          .largest_batch = stats.largest_batch,
          .database = store.database_cost(tasks),
          .figures = {}};
}

std::unexpected<Error> wrong(const std::string& what) {
  return fail_with(ErrorCode::invariant_violation, what,
                   "The engine lost or repeated work. Please report this.");
}

Result<void> expect_count(Engine& engine, const std::string& lane, PublicState state, std::int64_t count) {
  const auto counts = engine.call(CountLane{.lane_id = lane});
  if (!counts) return std::unexpected(counts.error());
  const auto it = counts->find(state);
  if (it != counts->end() && it->second == count) return {};
  return wrong("not as many executions as expected are " +
               std::string(state == PublicState::completed ? "completed" : "cancelled"));
}

std::string to_json(const BenchReport& report) {
  api::JsonWriter out;
  out.object()
      .field("scenario", report.scenario)
      .field("store", report.store)
      .field("tasks", report.tasks)
      .field("workers", report.workers)
      .field("in_flight", report.in_flight)
      .field("payload_bytes", report.payload_bytes)
      .field("seconds", report.seconds)
      .field("throughput_per_second", report.throughput());
  out.key("latency_ms").object();
  write(out, "submit", report.submit);
  write(out, "start", report.start);
  write(out, "complete", report.complete);
  out.end();
  out.key("batch").object().field("mean", report.mean_batch).field("max", report.largest_batch).end();
  out.field("cores", std::thread::hardware_concurrency());
  if (report.database) {
    out.key("database_per_task")
        .object()
        .field("round_trips", report.database->round_trips)
        .field("commits", report.database->commits)
        .field("wal_bytes", report.database->wal_bytes)
        .field("dead_tuples", report.database->dead_tuples)
        .end();
  }
  for (const auto& [name, value] : report.figures) out.field(name, value);
  return out.end().take();
}

std::string to_table(const BenchReport& report) {
  const auto row = [](const char* name, const Percentiles& latency) {
    if (latency.p99 == 0) return std::string();  // the scenario does not measure it
    return fmt::format("  {:<9} {:>9.3f} {:>9.3f} {:>9.3f}\n", name, latency.p50, latency.p95, latency.p99);
  };
  std::string figures;
  for (const auto& [name, value] : report.figures) figures += fmt::format("  {}: {:.6g}\n", name, value);
  return fmt::format("{} on {}: {} tasks, {} workers, {} in flight each, {} payload bytes, {} cores\n",
                     report.scenario, report.store, report.tasks, report.workers, report.in_flight,
                     report.payload_bytes, std::thread::hardware_concurrency()) +
         fmt::format("  {:.0f} per second ({:.2f} s), {:.1f} operations per batch (largest {})\n",
                     report.throughput(), report.seconds, report.mean_batch, report.largest_batch) +
         fmt::format("  {:<9} {:>9} {:>9} {:>9}\n", "ms", "p50", "p95", "p99") +
         row("submit", report.submit) + row("start", report.start) + row("complete", report.complete) +
         (report.database
              ? fmt::format("  per task: {:.3f} round trips, {:.3f} commits, {:.0f} bytes of WAL, "
                            "{:.2f} dead tuples\n",
                            report.database->round_trips, report.database->commits,
                            report.database->wal_bytes, report.database->dead_tuples)
              : "") +
         figures;
}

Result<BenchStore> BenchStore::open(const std::string& url) {
  BenchStore store;
  const std::string scheme = "sqlite:";
  if (url.starts_with(scheme)) {
    store.path_ = url.substr(scheme.size(), url.find('?') - scheme.size());
    if (std::filesystem::exists(store.path_)) {
      const auto path = std::exchange(store.path_, "");
      return fail_with(ErrorCode::invalid_input, path + ": exists",
                       "A benchmark makes a store of its own and removes it afterwards. Give another path.");
    }
  }
  auto own_url = url;
  if (store::is_postgres_url(url)) {
    auto scratch = store::postgres::ScratchSchema::create(url);
    if (!scratch) return std::unexpected(scratch.error());
    store.scratch_ = *std::move(scratch);
    own_url = store.scratch_->url();
    store.before_ = store.scratch_->figures();
  }
  auto engine = Engine::open(own_url);
  if (!engine) return std::unexpected(engine.error());
  store.engine_ = std::make_unique<Engine>(*std::move(engine));
  return store;
}

std::optional<DatabaseCost> BenchStore::database_cost(std::int64_t tasks) {
  if (!scratch_) return std::nullopt;
  const auto round_trips = engine_->stats().round_trips;
  const auto now = scratch_->figures();
  const auto per_task = [&](auto count) { return static_cast<double>(count) / static_cast<double>(tasks); };
  return DatabaseCost{.round_trips = per_task(round_trips),
                      .commits = per_task(now.commits - before_.commits),
                      .wal_bytes = per_task(now.wal_bytes - before_.wal_bytes),
                      .dead_tuples = per_task(now.dead_tuples)};
}

BenchStore::~BenchStore() {
  engine_.reset();
  if (path_.empty()) return;
  for (const char* suffix : {"", "-wal", "-shm", "-redo1", "-redo2", ".lock"}) {
    std::error_code ignored;
    std::filesystem::remove(path_ + suffix, ignored);
  }
}

}  // namespace flowfabric::cli
