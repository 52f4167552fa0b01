// Shared parts of the benchmark scenarios: latencies, the report, and a private store.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/engine.h"
#include "store/postgres/scratch.h"

namespace flowfabric::cli {

// Waits until every started operation has been answered.
class Gate {
 public:
  void start(int count) { open_ += count; }
  void done() {
    if (--open_ == 0) open_.notify_all();
  }
  void wait() {
    for (int open = open_; open != 0; open = open_) open_.wait(open);
  }

 private:
  std::atomic<int> open_{0};
};

using SteadyClock = std::chrono::steady_clock;

inline double seconds_since(SteadyClock::time_point start) {
  return std::chrono::duration<double>(SteadyClock::now() - start).count();
}
inline std::int64_t micros_since(SteadyClock::time_point start) {
  return std::chrono::duration_cast<std::chrono::microseconds>(SteadyClock::now() - start).count();
}
inline std::uint32_t latency_since(SteadyClock::time_point start) {
  return static_cast<std::uint32_t>(micros_since(start));
}

struct Percentiles {
  double p50{};
  double p95{};
  double p99{};
};
// Percentiles of microseconds, in milliseconds. Sorts its argument.
Percentiles percentiles(std::vector<std::uint32_t>& microseconds);

// The work of a database per task.
struct DatabaseCost {
  double round_trips{};
  double commits{};
  double wal_bytes{};
  double dead_tuples{};
};

struct BenchReport {
  std::string scenario;
  std::string store;
  std::int64_t tasks{};
  int workers{};
  int in_flight{};
  int payload_bytes{};
  double seconds{};
  Percentiles submit;
  Percentiles start;
  Percentiles complete;
  double mean_batch{};
  std::uint64_t largest_batch{};
  std::optional<DatabaseCost> database{};
  std::vector<std::pair<std::string, double>> figures{};  // further figures of the scenario

  double throughput() const { return static_cast<double>(tasks) / seconds; }
};
// Adds three figures: `name`_ms_p50 and so on.
void add_figures(BenchReport& report, const std::string& name, const Percentiles& latency);
std::string to_json(const BenchReport& report);
std::string to_table(const BenchReport& report);

// A benchmark's store, removed when the benchmark is over: a file that must not exist yet, or a schema of its
// own in a database.
class BenchStore {
 public:
  static Result<BenchStore> open(const std::string& url);
  BenchStore(BenchStore&&) noexcept = default;
  ~BenchStore();

  Engine& engine() { return *engine_; }
  // The cost since the store was opened; absent without a database.
  std::optional<DatabaseCost> database_cost(std::int64_t tasks);

 private:
  BenchStore() = default;
  std::string path_;  // empty: no file to remove
  std::unique_ptr<store::postgres::ScratchSchema> scratch_;
  store::postgres::DatabaseFigures before_;
  std::unique_ptr<Engine> engine_;
};

// The options of every scenario except the lifecycle, which has more.
struct BenchOptions {
  std::string store{"sqlite:flowfabric-bench.db"};
  bool json{false};
  int workers{16};
  int in_flight{32};
};
// A report without latencies and figures of its own.
BenchReport report_of(BenchStore& store, const BenchOptions& options, const std::string& scenario,
                      std::int64_t tasks, double seconds);
// The error of a benchmark that found a wrong result.
std::unexpected<Error> wrong(const std::string& what);
Result<void> expect_count(Engine& engine, const std::string& lane, PublicState state, std::int64_t count);

struct LifecycleOptions {
  std::string store{"sqlite:flowfabric-bench.db"};
  std::int64_t tasks{50'000};
  int workers{16};
  int in_flight{32};
  bool limited{false};
  int payload_bytes{256};
  bool json{false};
};
// Submit, claim and complete `tasks` tasks; afterwards every one must have been completed exactly once.
Result<BenchReport> bench_lifecycle(BenchStore& store, const LifecycleOptions& options);
// The same through a server, whose URL is `options.store`; in a lane of its own, and nothing is removed.
Result<BenchReport> bench_lifecycle_over_http(const LifecycleOptions& options);

struct FlowBenchOptions : BenchOptions {
  int nodes{10};                   // flow-chain
  std::int64_t flows{1000};        // flow-chain
  std::int64_t upstreams{10'000};  // fan-in
  std::int64_t siblings{1000};     // quorum-cancel
  int rounds{20};                  // quorum-cancel
};
// Flows whose nodes follow one after the other, each claimed and completed by a worker.
Result<BenchReport> bench_flow_chain(BenchStore& store, const FlowBenchOptions& options);
// Many upstreams of one join: does a completion cost more as more have ended?
Result<BenchReport> bench_fan_in(BenchStore& store, const FlowBenchOptions& options);
// One of many running siblings wins: when are all the others cancelled?
Result<BenchReport> bench_quorum_cancel(BenchStore& store, const FlowBenchOptions& options);

struct SuspendBenchOptions : BenchOptions {
  std::int64_t idle_cycles{500};
  std::int64_t cycles{20'000};
};
// A worker suspends, a caller signals, and a worker with a parked claim resumes: first one at a time on an
// idle engine, then many at once.
Result<BenchReport> bench_suspend_resume(BenchStore& store, const SuspendBenchOptions& options);

struct StreamBenchOptions : BenchOptions {
  std::int64_t frames{100'000};
  std::int64_t tailed{500};
  std::int64_t idle_tailers{1000};
  int payload_bytes{128};
};
// Workers append frames as fast as they can; one waits for each frame of another stream; many only wait.
Result<BenchReport> bench_stream(BenchStore& store, const StreamBenchOptions& options);

}  // namespace flowfabric::cli
