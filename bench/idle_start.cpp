// How long does it take on an idle system until a task that is submitted has started? One worker waits in a
// claim, one caller submits a task, and the time until the claim is answered is measured; first with both on
// one engine, then on an engine each, where the one hears of the other's task through the database. Each
// task is followed by a bare durable commit of one row, so that both meet the same noise.
//
//   idle_start URL [TASKS] [PAUSE_MS]      e.g. idle_start postgres://postgres@/postgres 500 10
#include <semaphore>
#include <thread>

#include "cli/bench.h"
#include "model/random.h"
#include "support/bench.h"

namespace {

using namespace flowfabric;
using bench::must;
using bench::require;
using bench::SteadyClock;
using store::postgres::ScratchSchema;

constexpr std::int64_t kWaitMs = 30'000;
// The first ones find nothing prepared; they are not counted.
constexpr std::int64_t kWarmUp = 20;
// Longer than any task can take, so that a task that is lost does not hang the benchmark.
constexpr std::chrono::seconds kPatience{60};

// Waits in a claim, says when it was answered, completes the task, and waits again.
class Worker {
 public:
  Worker(Engine& engine, std::int64_t tasks)
      : engine_(engine), left_(tasks), thread_([this] {
          if (bench::run_and_report([this] { work(); }) == 0) return;
          failed_ = true;
          completed_.release();
        }) {}
  ~Worker() { thread_.join(); }

  // When the next task was started; called when it has been completed, too.
  SteadyClock::time_point next_start() {
    require(completed_.try_acquire_for(kPatience) && !failed_, "a task was not started");
    return started_;
  }

 private:
  void work() {
    while (left_ > 0) {
      const auto tasks = must(engine_.call(ClaimTasks{.worker_id = "worker", .wait_ms = kWaitMs}));
      const auto now = SteadyClock::now();
      if (tasks.empty()) return;  // nobody submits any more
      require(tasks.size() == 1, "more tasks than were submitted");
      must(engine_.call(CompleteExecution{.execution_id = tasks[0].execution_id, .fence = tasks[0].fence}));
      started_ = now;
      --left_;
      completed_.release();
    }
  }

  Engine& engine_;
  std::int64_t left_;
  SteadyClock::time_point started_;
  std::counting_semaphore<> completed_{0};
  std::atomic<bool> failed_{false};
  std::thread thread_;
};

struct Latencies {
  std::vector<std::uint32_t> submit;
  std::vector<std::uint32_t> start;
  std::vector<std::uint32_t> bare_commit;
};

// Long enough for the worker to be waiting again, and never in step with anything else.
void pause(std::int64_t pause_ms, Random& random) {
  const auto most = static_cast<std::uint64_t>(pause_ms) * 1000;
  std::this_thread::sleep_for(std::chrono::microseconds(most / 2 + random.between(0, most)));
}

Latencies measure(Engine& caller, Engine& starter, const std::string& url, std::int64_t tasks,
                  std::int64_t pause_ms) {
  auto connection = bench::connect(url);
  connection.run("create table if not exists bare(row text)");
  Latencies latencies;
  Random random(1);
  Worker worker(starter, kWarmUp + tasks);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  for (std::int64_t i = 0; i < kWarmUp + tasks; ++i) {
    if (i == kWarmUp) latencies = {};
    pause(pause_ms, random);
    const auto began = SteadyClock::now();
    must(caller.call(CreateExecution{.execution_kind = "bench", .input = std::string(256, 'x')}));
    latencies.submit.push_back(bench::micros_between(began, SteadyClock::now()));
    latencies.start.push_back(bench::micros_between(began, worker.next_start()));
    const auto bare = SteadyClock::now();
    connection.run("insert into bare values (repeat('x',256))");
    latencies.bare_commit.push_back(bench::micros_between(bare, SteadyClock::now()));
  }
  return latencies;
}

void print(const char* name, std::vector<std::uint32_t>& micros) {
  const auto [p50, p95, p99] = cli::percentiles(micros);
  fmt::print("  {:<28} p50 {:>7.3f} ms, p95 {:>7.3f} ms, p99 {:>7.3f} ms, worst {:>8.3f} ms\n", name, p50,
             p95, p99, static_cast<double>(micros.back()) / 1000.0);
}

void print(const std::string& title, Latencies latencies) {
  fmt::print("{}, {} tasks\n", title, latencies.start.size());
  print("submit to start", latencies.start);
  print("submit to its answer", latencies.submit);
  print("bare commit of one row", latencies.bare_commit);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: idle_start URL [TASKS] [PAUSE_MS]\n");
    return 2;
  }
  return bench::run_and_report([&] {
    const auto tasks = bench::number_argument(argc, argv, 2, 500);
    const auto pause_ms = bench::number_argument(argc, argv, 3, 10);
    const auto scratch = must(ScratchSchema::create(argv[1]));
    {
      auto engine = must(Engine::open(scratch->url()));
      print("one engine", measure(engine, engine, scratch->url(), tasks, pause_ms));
    }
    auto caller = must(Engine::open(scratch->url()));
    auto starter = must(Engine::open(scratch->url()));
    print("two engines", measure(caller, starter, scratch->url(), tasks, pause_ms));
  });
}
