// Do many executions make claims slower? Two schemas, one full of ended and waiting executions and one with
// only what will be claimed, are worked on in turn, so that both meet the same noise: 16 workers claim 32
// tasks at a time and complete them.
//
//   postgres_backlog URL [TERMINAL] [WAITING] [CLAIMS]
//   e.g. postgres_backlog postgres://postgres@/postgres 2000000 500000 50000
//
// A small backlog is also checked by the engine, to see that its rows are right.
#include <atomic>
#include <thread>

#include "cli/bench.h"
#include "support/backlog.h"
#include "support/raw_lifecycle.h"

namespace {

using namespace flowfabric;
using bench::must;
using bench::require;
using store::postgres::ScratchSchema;

constexpr int kWorkers = 16;
constexpr std::int64_t kAtOnce = 32;
constexpr int kRounds = 5;
constexpr std::int64_t kMostToCheck = 200'000;

// A schema with its engine, and what was measured on it.
class Site {
 public:
  Site(const std::string& url, const bench::Backlog& backlog)
      : scratch_(must(ScratchSchema::create(url))), engine_(filled(scratch_->url(), backlog)) {}

  // Claims and completes this many tasks, and returns the rate per second.
  double work(std::int64_t tasks) {
    left_ = tasks;
    std::vector<std::thread> threads;
    const auto start = bench::SteadyClock::now();
    for (int i = 0; i < kWorkers; ++i) {
      threads.emplace_back([this, i] { failed_ += bench::run_and_report([this, i] { run_worker(i); }); });
    }
    for (auto& thread : threads) thread.join();
    const auto seconds = bench::seconds_since(start);
    require(failed_ == 0, "work was refused");
    tasks_ += tasks;
    seconds_ += seconds;
    return static_cast<double>(tasks) / seconds;
  }

  double per_second() const { return static_cast<double>(tasks_) / seconds_; }
  cli::Percentiles claim_latency() { return cli::percentiles(claim_micros_); }

 private:
  static Engine filled(const std::string& url, const bench::Backlog& backlog) {
    const auto start = bench::SteadyClock::now();
    bench::fill(url, backlog);
    fmt::print("filled with {} ended and {} waiting executions in {:.1f} s\n", backlog.terminal,
               backlog.waiting, bench::seconds_since(start));
    std::fflush(stdout);
    auto engine = must(Engine::open(url));
    if (backlog.terminal + backlog.waiting <= kMostToCheck) {
      const auto report = must(engine.call(CheckStore{}));
      require(report.found == 0, report.violations.empty() ? "" : report.violations.front().what);
    }
    return engine;
  }

  void run_worker(int number) {
    const auto name = "worker-" + std::to_string(number);
    std::vector<std::uint32_t> latency;
    while (failed_ == 0) {
      const auto before = left_.fetch_sub(kAtOnce);
      const auto wanted = std::min(before, kAtOnce);
      if (before < kAtOnce) left_ += kAtOnce - std::max<std::int64_t>(before, 0);
      if (wanted <= 0) break;
      const auto got = claim_and_complete(name, wanted, latency);
      left_ += wanted - got;
    }
    std::lock_guard lock(mutex_);
    claim_micros_.insert(claim_micros_.end(), latency.begin(), latency.end());
  }

  std::int64_t claim_and_complete(const std::string& worker, std::int64_t wanted,
                                  std::vector<std::uint32_t>& latency) {
    const auto start = bench::SteadyClock::now();
    const auto tasks = must(engine_.call(ClaimTasks{.worker_id = worker,
                                                    .lanes = {bench::kLane},
                                                    .max_tasks = static_cast<std::uint32_t>(wanted),
                                                    .wait_ms = 100}));
    latency.push_back(bench::micros_between(start, bench::SteadyClock::now()));
    cli::Gate gate;
    std::atomic<int> refused{0};
    gate.start(static_cast<int>(tasks.size()));
    for (const auto& task : tasks) {
      engine_.post(
          CompleteExecution{.execution_id = task.execution_id, .fence = task.fence, .result = "done"},
          [&](const Result<Completed>& answer) {
            if (!answer) ++refused;
            gate.done();
          });
    }
    gate.wait();
    require(refused == 0, "a complete was refused");
    return static_cast<std::int64_t>(tasks.size());
  }

  const std::unique_ptr<ScratchSchema> scratch_;
  Engine engine_;
  std::atomic<std::int64_t> left_{0};
  std::atomic<int> failed_{0};
  std::int64_t tasks_{0};
  double seconds_{0};
  std::mutex mutex_;
  std::vector<std::uint32_t> claim_micros_;
};

void print(const char* name, Site& site) {
  const auto latency = site.claim_latency();
  fmt::print(
      "{:<8} {:>7.0f} claimed and completed per second; a claim takes {:.1f} ms (p50), {:.1f} ms (p99)\n",
      name, site.per_second(), latency.p50, latency.p99);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 5) {
    fmt::print(stderr,
               "usage: postgres_backlog URL [TERMINAL] [WAITING] [CLAIMS]   (CLAIMS at most WAITING)\n");
    return 2;
  }
  return bench::run_and_report([&] {
    const auto terminal = bench::number_argument(argc, argv, 2, 2'000'000);
    const auto waiting = bench::number_argument(argc, argv, 3, 500'000);
    const auto claims = bench::number_argument(argc, argv, 4, std::min<std::int64_t>(waiting, 50'000));
    require(claims >= kRounds && claims <= waiting, "CLAIMS must be 5 to WAITING");
    Site full(argv[1], {terminal, waiting});
    Site empty(argv[1], {0, claims});
    for (int round = 0; round < kRounds; ++round) {
      const auto with = full.work(claims / kRounds);
      const auto without = empty.work(claims / kRounds);
      fmt::print("round {}: full {:.0f}, empty {:.0f} per second, ratio {:.2f}\n", round + 1, with, without,
                 with / without);
      std::fflush(stdout);
    }
    print("full", full);
    print("empty", empty);
    fmt::print("ratio {:.2f}\n", full.per_second() / empty.per_second());
  });
}
