// What the benchmark scenarios share: latencies, the report, and a store of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/engine.h"
#include "store/postgres/scratch.h"

namespace flowfabric::cli {

// Waits until everything that was started has been answered.
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

struct Percentiles {
  double p50{};
  double p95{};
  double p99{};
};
// Of microseconds, in milliseconds. Sorts its argument.
Percentiles percentiles(std::vector<std::uint32_t>& microseconds);

// What a database was made to do, per task.
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

  double throughput() const { return static_cast<double>(tasks) / seconds; }
};
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
  // Since it was opened; absent where there is no database.
  std::optional<DatabaseCost> database_cost(std::int64_t tasks);

 private:
  BenchStore() = default;
  std::string path_;  // empty: no file to remove
  std::unique_ptr<store::postgres::ScratchSchema> scratch_;
  store::postgres::DatabaseFigures before_;
  std::unique_ptr<Engine> engine_;
};

struct LifecycleOptions {
  std::string store{"sqlite:flowfabric-bench.db"};
  std::int64_t tasks{50'000};
  int workers{16};
  int in_flight{32};
  int payload_bytes{256};
  bool json{false};
};
// Submit, claim and complete `tasks` tasks; afterwards every one must have been completed exactly once.
Result<BenchReport> bench_lifecycle(BenchStore& store, const LifecycleOptions& options);

}  // namespace flowfabric::cli
