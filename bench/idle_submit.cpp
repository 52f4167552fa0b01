// How long does a single caller wait for its submit on an idle engine? Each submit is followed by a bare
// write and fdatasync of the same size on the same disk, so that both meet the same noise.
//
//   idle_submit FOLDER SUBMITS      e.g. idle_submit /tmp 1000
#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>

#include "cli/bench.h"

namespace {

using namespace flowfabric;
using Clock = std::chrono::steady_clock;

template <class F>
std::uint32_t micros_of(F&& f) {
  const auto start = Clock::now();
  f();
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    fmt::print(stderr, "usage: idle_submit FOLDER SUBMITS\n");
    return 2;
  }
  const std::string folder = argv[1];
  const int submits = static_cast<int>(std::strtol(argv[2], nullptr, 10));
  auto store = cli::BenchStore::open("sqlite:" + folder + "/idle_submit.db");
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().to_string());
    return 1;
  }
  const std::string bare = folder + "/idle_submit.bare";
  const int file = open(bare.c_str(), O_RDWR | O_CREAT | O_TRUNC, 0644);
  // A lone submit logs about eight pages.
  const std::string pages(8 * 4096, 'x');
  std::vector<std::uint32_t> submit;
  std::vector<std::uint32_t> sync;
  for (int i = 0; i < submits; ++i) {
    submit.push_back(micros_of([&] {
      if (!store->engine().call(CreateExecution{.execution_kind = "bench", .input = std::string(256, 'x')})) {
        std::abort();
      }
    }));
    sync.push_back(micros_of([&] {
      if (write(file, pages.data(), pages.size()) < 0 || fdatasync(file) != 0) std::abort();
    }));
  }
  close(file);
  unlink(bare.c_str());
  const auto engine = cli::percentiles(submit);
  const auto disk = cli::percentiles(sync);
  fmt::print(
      "idle submit: p50 {:.3f} ms, p95 {:.3f} ms; bare write and fdatasync: p50 {:.3f} ms, p95 {:.3f} ms; "
      "difference of medians {:.3f} ms\n",
      engine.p50, engine.p95, disk.p50, disk.p95, engine.p50 - disk.p50);
  return 0;
}
