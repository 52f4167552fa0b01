// Does a long queue make claims slower? Two stores, one with a short and one with a long backlog of waiting
// executions, are claimed from in turn, so that both meet the same noise.
//
//   claim_backlog FOLDER SHORT LONG CLAIMS [normal]      e.g. claim_backlog /tmp/bench 1000 1000000 500
//
// `normal` does not wait for the disk (synchronous=normal), so that little but the search itself is compared.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <semaphore>

#include "flowfabric/flowfabric.h"

namespace {

using namespace flowfabric;
using Clock = std::chrono::steady_clock;

void fill(Engine& engine, std::int64_t count) {
  constexpr std::ptrdiff_t window = 4096;
  std::counting_semaphore<window> room(window);
  for (std::int64_t i = 0; i < count; ++i) {
    room.acquire();
    engine.post(CreateExecution{.execution_kind = "bench", .input = std::string(256, 'x')},
                [&room](const Result<Creation>& created) {
                  if (!created) std::abort();
                  room.release();
                });
  }
  for (std::ptrdiff_t i = 0; i < window; ++i) room.acquire();
}

// Microseconds of one claim of a single task.
double claim_once(Engine& engine) {
  const auto start = Clock::now();
  const auto tasks = engine.call(ClaimTasks{.worker_id = "bench"});
  const auto taken = std::chrono::duration<double, std::micro>(Clock::now() - start).count();
  if (!tasks || tasks->size() != 1) std::abort();
  return taken;
}

double median(std::vector<double>& values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5 && argc != 6) {
    fmt::print(stderr, "usage: claim_backlog FOLDER SHORT LONG CLAIMS [normal]   (CLAIMS at most SHORT)\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/claim_backlog";
  const std::int64_t shorter = std::strtoll(argv[2], nullptr, 10);
  const std::int64_t longer = std::strtoll(argv[3], nullptr, 10);
  const std::int64_t claims = std::strtoll(argv[4], nullptr, 10);
  std::filesystem::create_directories(folder);
  {
    const std::string durability = std::string("?synchronous=") + (argc == 6 ? argv[5] : "full");
    auto small = Engine::open("sqlite:" + folder + "/small.db" + durability);
    auto large = Engine::open("sqlite:" + folder + "/large.db" + durability);
    if (!small || !large) return 1;
    fill(*small, shorter);
    fill(*large, longer);
    std::vector<double> with_short;
    std::vector<double> with_long;
    for (std::int64_t i = 0; i < claims; ++i) {
      with_short.push_back(claim_once(*small));
      with_long.push_back(claim_once(*large));
    }
    const double short_us = median(with_short);
    const double long_us = median(with_long);
    fmt::print(
        "claim of one task, median: {:.0f} us with {} waiting, {:.0f} us with {} waiting, ratio {:.2f}\n",
        short_us, shorter, long_us, longer, long_us / short_us);
  }
  std::filesystem::remove_all(folder);
  return 0;
}
