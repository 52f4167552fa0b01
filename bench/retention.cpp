// Does removing what has ended hold up the work? A store is filled with ended executions that are all kept
// for a day; the same load runs first on that day and then on the next, while they are removed.
//
//   retention FOLDER [EXECUTIONS] [SECONDS]      e.g. retention /tmp/bench 1000000 20
#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <thread>

#include "cli/bench.h"

namespace {

using namespace flowfabric;
using Clock = std::chrono::steady_clock;
using Seconds = std::chrono::duration<double>;

constexpr std::int64_t kDay = 86'400'000;
constexpr const char* kOldLane = "old";
constexpr const char* kLoadLane = "load";

template <class T>
T must(Result<T> answer) {
  if (!answer) {
    fmt::print(stderr, "{}\n", answer.error().to_string());
    std::abort();
  }
  return *std::move(answer);
}

// Lifecycles of a few workers: submit, claim and complete, a window at a time.
class Load {
 public:
  Load(Engine& engine, std::string lane, std::int64_t kept_for_ms) : engine_(engine), lane_(std::move(lane)) {
    policy_.stream_policy = StreamPolicy{.retention_ttl_ms = static_cast<std::uint64_t>(kept_for_ms)};
  }
  ~Load() { stop(); }

  // Goes on until `most` are done, or until it is stopped.
  void start(std::int64_t most) {
    left_ = most;
    for (int i = 0; i < kWorkers; ++i) {
      threads_.emplace_back([this, i] {
        while (!stopped_ && left_.fetch_sub(kWindow) > 0) run_window("worker-" + std::to_string(i));
      });
    }
  }
  void wait() {
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }
  void stop() {
    stopped_ = true;
    wait();
  }
  std::int64_t done() const { return done_; }

 private:
  static constexpr int kWorkers = 8;
  static constexpr int kWindow = 64;

  template <class Request>
  void post(Request request, cli::Gate& gate) {
    engine_.post(std::move(request), [&gate](auto answer) {
      must(std::move(answer));
      gate.done();
    });
  }
  void run_window(const std::string& worker) {
    cli::Gate gate;
    gate.start(kWindow);
    for (int i = 0; i < kWindow; ++i) {
      post(
          CreateExecution{
              .lane_id = lane_, .execution_kind = "bench", .input = std::string(256, 'x'), .policy = policy_},
          gate);
    }
    gate.wait();
    for (int taken = 0; taken < kWindow;) {
      const auto most = static_cast<std::uint32_t>(kWindow - taken);
      const auto tasks = must(
          engine_.call(ClaimTasks{.worker_id = worker, .lanes = {lane_}, .max_tasks = most, .wait_ms = 100}));
      taken += static_cast<int>(tasks.size());
      gate.start(static_cast<int>(tasks.size()));
      for (const auto& task : tasks) {
        post(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence, .result = "done"},
             gate);
      }
      gate.wait();
      done_ += static_cast<std::int64_t>(tasks.size());
    }
  }

  Engine& engine_;
  const std::string lane_;
  ExecutionPolicy policy_;
  std::vector<std::thread> threads_;
  std::atomic<std::int64_t> left_{0};
  std::atomic<std::int64_t> done_{0};
  std::atomic<bool> stopped_{false};
};

std::int64_t completed_in(Engine& engine, const std::string& lane) {
  const auto counts = must(engine.call(CountLane{lane}));
  const auto found = counts.find(PublicState::completed);
  return found == counts.end() ? 0 : found->second;
}

// Measures how late the clock is: a short delay after the other, and when its end is noticed.
class Probe {
 public:
  Probe(Engine& engine, std::function<std::int64_t()> now_ms)
      : engine_(engine), now_ms_(std::move(now_ms)), thread_([this] {
          while (!stopped_) look();
        }) {}
  ~Probe() { stop(); }
  void stop() {
    stopped_ = true;
    if (thread_.joinable()) thread_.join();
  }
  // Milliseconds; sorted once it is stopped.
  std::vector<std::int64_t> lateness;

 private:
  static constexpr const char* kLane = "probe";

  void look() {
    const auto due = now_ms_() + 100;
    must(engine_.call(CreateExecution{.lane_id = kLane, .execution_kind = "probe", .delay_until = due}));
    while (true) {
      const auto tasks =
          must(engine_.call(ClaimTasks{.worker_id = "probe", .lanes = {kLane}, .wait_ms = 500}));
      if (tasks.empty() && !stopped_) continue;
      lateness.push_back(now_ms_() - due);  // at least, when it has to stop
      for (const auto& task : tasks) {
        must(engine_.call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}));
      }
      return;
    }
  }

  Engine& engine_;
  std::function<std::int64_t()> now_ms_;
  std::atomic<bool> stopped_{false};
  std::thread thread_;
};

struct Phase {
  double seconds{};
  double per_second{};
  std::int64_t median_lateness_ms{};
  std::int64_t worst_lateness_ms{};
};

// Runs the load until `is_over(seconds)`, and prints once a second how it goes.
template <class IsOver>
Phase run_phase(Engine& engine, const std::function<std::int64_t()>& now_ms, const std::string& path,
                const char* name, IsOver is_over) {
  const auto mib = [](const std::string& file) {
    std::error_code missing;
    const auto bytes = std::filesystem::file_size(file, missing);
    return missing ? 0.0 : static_cast<double>(bytes) / (1 << 20);
  };
  Load load(engine, kLoadLane, 30 * kDay);
  Probe probe(engine, now_ms);
  const auto start = Clock::now();
  load.start(INT64_MAX / 2);
  std::int64_t before = 0;
  for (double seconds = 0; !is_over(seconds);) {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    seconds = Seconds(Clock::now() - start).count();
    const auto done = load.done();
    fmt::print("{:<16} {:>6.1f} {:>12} {:>12} {:>10.1f} {:>8.1f}\n", name, seconds, done - before,
               completed_in(engine, kOldLane), mib(path), mib(path + "-wal"));
    std::fflush(stdout);
    before = done;
  }
  const auto seconds = Seconds(Clock::now() - start).count();
  const auto done = load.done();
  probe.stop();
  auto& late = probe.lateness;
  std::sort(late.begin(), late.end());
  return {seconds, static_cast<double>(done) / seconds, late[late.size() / 2], late.back()};
}

void run(const std::string& path, std::int64_t count, double least_seconds) {
  // The day that has passed when the second phase begins.
  std::atomic<std::int64_t> ahead{0};
  const auto now_ms = [&ahead] {
    using namespace std::chrono;
    return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count() + ahead.load();
  };
  EngineOptions options;
  options.now_ms = now_ms;
  auto engine = must(Engine::open("sqlite:" + path, std::move(options)));
  {
    const auto start = Clock::now();
    Load old(engine, kOldLane, kDay);
    old.start(count);
    old.wait();
    fmt::print("{} executions ended in {:.1f} s\n\n", completed_in(engine, kOldLane),
               Seconds(Clock::now() - start).count());
  }
  const auto ended = completed_in(engine, kOldLane);
  fmt::print("{:<16} {:>6} {:>12} {:>12} {:>10} {:>8}\n", "", "s", "lifecycles/s", "old left", "file MiB",
             "log MiB");
  const auto held =
      run_phase(engine, now_ms, path, "purge held back", [&](double s) { return s >= least_seconds; });
  ahead = kDay;
  const auto purging = run_phase(engine, now_ms, path, "purge running",
                                 [&](double) { return completed_in(engine, kOldLane) == 0; });
  const auto say = [](const char* name, const Phase& phase) {
    fmt::print("{}: {:.0f} lifecycles per second; a delay ended {} ms late (median), {} ms at worst\n", name,
               phase.per_second, phase.median_lateness_ms, phase.worst_lateness_ms);
  };
  fmt::print("\n");
  say("purge held back", held);
  say("purge running", purging);
  fmt::print("ratio {:.2f}; {:.0f} executions purged per second\n", purging.per_second / held.per_second,
             static_cast<double>(ended) / purging.seconds);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: retention FOLDER [EXECUTIONS] [SECONDS]\n");
    return 2;
  }
  const std::string folder = std::string(argv[1]) + "/retention";
  const std::int64_t count = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 1'000'000;
  const double seconds = argc > 3 ? std::strtod(argv[3], nullptr) : 20;
  std::filesystem::create_directories(folder);
  run(folder + "/retention.db", count, seconds);
  std::filesystem::remove_all(folder);
  return 0;
}
