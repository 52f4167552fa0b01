// What the benchmark scenarios share: latencies, the report, and a store of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

#include "flowfabric/engine.h"

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

  double throughput() const { return static_cast<double>(tasks) / seconds; }
};
std::string to_json(const BenchReport& report);
std::string to_table(const BenchReport& report);

// A benchmark's store: refused when it exists already, removed when the benchmark is over.
class BenchStore {
 public:
  static Result<BenchStore> open(const std::string& url);
  BenchStore(BenchStore&&) noexcept = default;
  ~BenchStore();

  Engine& engine() { return *engine_; }

 private:
  BenchStore() = default;
  std::string path_;  // empty: nothing to remove
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
Result<BenchReport> bench_lifecycle(Engine& engine, const LifecycleOptions& options);

}  // namespace flowfabric::cli
