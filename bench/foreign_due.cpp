// How late is the work of a server that keeps to one namespace, while others' due work lies about? Delays of
// its own are timed from their end until a worker has the task.
//
//   foreign_due URL FOREIGN OWN      e.g. foreign_due sqlite:jobs/foreign.db?synchronous=normal 20000
//   20
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "flowfabric/flowfabric.h"

namespace {

using namespace flowfabric;
using namespace std::chrono_literals;

std::int64_t now_ms() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Engine opened(const std::string& url, EngineOptions options) {
  auto engine = Engine::open(url, std::move(options));
  if (engine) return *std::move(engine);
  fmt::print(stderr, "{}\n", engine.error().to_string());
  std::exit(1);
}

void fill(const std::string& url, std::int64_t count) {
  auto engine = opened(url, {.clock_interval = 0ms});
  const auto due_at = now_ms() + 10'000;
  CreateExecutions many;
  for (std::int64_t i = 0; i < count; ++i) {
    many.executions.push_back(
        {.namespace_ = "other", .lane_id = "other", .execution_kind = "k", .delay_until = due_at});
    if (many.executions.size() < 1000 && i + 1 < count) continue;
    if (!engine.call(std::exchange(many, {}))) std::exit(1);
  }
  while (now_ms() <= due_at) std::this_thread::sleep_for(10ms);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: foreign_due URL FOREIGN OWN\n");
    return 2;
  }
  const std::string url = argv[1];
  const auto foreign = std::strtoll(argv[2], nullptr, 10);
  const auto own = std::strtoll(argv[3], nullptr, 10);
  if (url.starts_with("postgres") && !migrate(url)) return 1;
  fill(url, foreign);
  auto engine = opened(url, {.scanner_filter = {.namespace_ = "mine"}});
  std::vector<double> late;
  for (std::int64_t i = 0; i < own; ++i) {
    const auto until = now_ms() + 300;
    if (!engine.call(CreateExecution{.namespace_ = "mine", .execution_kind = "k", .delay_until = until}))
      return 1;
    const auto tasks = engine.call(ClaimTasks{.worker_id = "w", .wait_ms = 30'000});
    if (!tasks || tasks->empty()) return 1;
    late.push_back(static_cast<double>(now_ms() - until));
  }
  const auto worst = *std::ranges::max_element(late);
  const auto first = late.front();
  std::ranges::sort(late);
  const auto stats = engine.stats();
  fmt::print(
      "{} due rows of others: own work {:.0f} ms late at first, median {:.0f} ms, worst {:.0f} ms; "
      "{} records looked at\n",
      foreign, first, late[late.size() / 2], worst, stats.clock_operations);
}
