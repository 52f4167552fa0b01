// How long does a read take while the engine is as busy as it can be? One caller describes an execution every
// few milliseconds, first on an idle engine, then while workers run lifecycles.
//
//   read_under_load STORE TASKS      e.g. read_under_load sqlite:/tmp/reads.db 100000
#include <fmt/core.h>

#include <atomic>
#include <cstdlib>
#include <thread>

#include "cli/bench.h"

namespace {

using namespace flowfabric;

std::vector<std::uint32_t> read_until(Engine& engine, const ExecutionId& id,
                                      const std::atomic<bool>& is_over) {
  std::vector<std::uint32_t> taken;
  while (!is_over) {
    const auto began = cli::SteadyClock::now();
    if (!engine.call(DescribeExecution{id})) std::abort();
    taken.push_back(cli::latency_since(began));
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return taken;
}

void print(const char* when, std::vector<std::uint32_t> taken) {
  const auto latency = cli::percentiles(taken);
  fmt::print("{}: {} reads, p50 {:.2f} ms, p95 {:.2f} ms, p99 {:.2f} ms\n", when, taken.size(), latency.p50,
             latency.p95, latency.p99);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: read_under_load STORE TASKS\n");
    return 2;
  }
  auto store = cli::BenchStore::open(argv[1]);
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().to_string());
    return 1;
  }
  auto& engine = store->engine();
  const auto created = engine.call(CreateExecution{.lane_id = "read", .execution_kind = "bench"});
  if (!created) {
    fmt::print(stderr, "{}\n", created.error().to_string());
    return 1;
  }
  std::vector<std::uint32_t> taken;
  std::atomic<bool> is_over{false};
  const auto read = [&] { taken = read_until(engine, created->execution_id, is_over); };
  std::thread idle(read);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  is_over = true;
  idle.join();
  print("idle", taken);

  is_over = false;
  std::thread reader(read);
  const auto report = cli::bench_lifecycle(*store, {.tasks = std::strtol(argv[2], nullptr, 10)});
  is_over = true;
  reader.join();
  if (!report) {
    fmt::print(stderr, "{}\n", report.error().to_string());
    return 1;
  }
  print(fmt::format("at {:.0f} lifecycles per second", report->throughput()).c_str(), taken);
  return 0;
}
