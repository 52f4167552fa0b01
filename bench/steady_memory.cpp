// Does memory stay flat? Lifecycles run in rounds, and the process's resident memory is printed after each.
//
//   steady_memory PATH TASKS ROUNDS      e.g. steady_memory /tmp/steady.db 1000000 10
#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/bench.h"

namespace {

using namespace flowfabric;

double resident_mib() {
  std::ifstream statm("/proc/self/statm");
  long total = 0;
  long resident = 0;
  statm >> total >> resident;
  return static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

void run_round(Engine& engine, std::int64_t tasks) {
  constexpr int window = 256;
  for (std::int64_t done = 0; done < tasks; done += window) {
    cli::Gate gate;
    gate.start(window);
    for (int i = 0; i < window; ++i) {
      engine.post(CreateExecution{.execution_kind = "bench", .input = std::string(256, 'x')},
                  [&gate](const auto& answer) {
                    if (!answer) std::abort();
                    gate.done();
                  });
    }
    gate.wait();
    const auto claimed = engine.call(ClaimTasks{.worker_id = "bench", .max_tasks = window});
    if (!claimed || claimed->size() != window) std::abort();
    gate.start(window);
    for (const auto& task : *claimed) {
      engine.post(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence},
                  [&gate](const auto& answer) {
                    if (!answer) std::abort();
                    gate.done();
                  });
    }
    gate.wait();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: steady_memory PATH TASKS ROUNDS\n");
    return 2;
  }
  const std::string path = argv[1];
  const std::int64_t tasks = std::strtoll(argv[2], nullptr, 10);
  const int rounds = static_cast<int>(std::strtol(argv[3], nullptr, 10));
  auto store = cli::BenchStore::open("sqlite:" + path);
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().to_string());
    return 1;
  }
  for (int round = 1; round <= rounds; ++round) {
    run_round(store->engine(), tasks / rounds);
    const auto log = path + "-wal";
    fmt::print("{:>9} lifecycles: {:.0f} MiB resident, log {} MiB\n", tasks / rounds * round, resident_mib(),
               std::filesystem::file_size(log) >> 20);
  }
  return 0;
}
