// Does every follower of an event log see every event once? Eight writers and four followers on two servers;
// one of the followers ends with its server every few seconds, and continues from its cursor with a new one.
//
//   followers URL [SECONDS]      e.g. followers postgres://postgres@/postgres 60
#include <map>
#include <thread>

#include "store/postgres/scratch.h"
#include "support/bench.h"

namespace {

using namespace flowfabric;
using bench::must;
using bench::require;

constexpr int kWriters = 8;
constexpr auto kRestart = std::chrono::seconds(3);

struct Run {
  std::string url;
  std::atomic<bool> writing{true};
  std::atomic<int> writers{kWriters};
  std::atomic<std::int64_t> completed{0};
};

struct Leaving {
  Run& run;
  ~Leaving() { --run.writers; }
};

void write(Run& run, Engine& server, int number) {
  const Leaving leaving{run};
  const auto lane = "lane-" + std::to_string(number);
  while (run.writing) {
    must(server.call(CreateExecution{.lane_id = lane, .execution_kind = "k"}));
    for (const auto& task :
         must(server.call(ClaimTasks{.worker_id = "w", .lanes = {lane}, .max_tasks = 4}))) {
      must(server.call(RenewLease{.execution_id = task.execution_id,
                                  .fence = task.fence,
                                  .attempt_index = 0,
                                  .lease_ttl_ms = 30'000}));
      must(server.call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}));
      ++run.completed;
    }
  }
}

struct Follower {
  std::string cursor = first_cursor();
  std::vector<EventView> seen;
  int restarts{0};

  // Until `until`, or until nothing is written any more and all is read.
  void follow(Run& run, Engine& server, std::optional<bench::SteadyClock::time_point> until) {
    while (!until || bench::SteadyClock::now() < *until) {
      const bool over = run.writers == 0;
      auto batch = must(server.call(FollowEvents{.family = EventFamily::lease_history,
                                                 .cursor = cursor,
                                                 .filter = {},
                                                 .limit = 200,
                                                 .wait_ms = 100}));
      cursor = batch.cursor;
      if (over && batch.events.empty()) return;
      std::ranges::move(batch.events, std::back_inserter(seen));
    }
  }
  void follow_with_restarts(Run& run) {
    while (run.writers > 0) {
      auto server = must(Engine::open(run.url));
      follow(run, server, bench::SteadyClock::now() + kRestart);
      ++restarts;
    }
    auto server = must(Engine::open(run.url));
    follow(run, server, std::nullopt);
  }
};

void check(const Run& run, const Follower& follower) {
  std::map<ExecutionId, std::string> lives;
  std::string last;
  for (const auto& event : follower.seen) {
    require(last < event.cursor, "an event came twice, or out of order");
    last = event.cursor;
    lives[*event.execution_id] += event.type + " ";
  }
  require(static_cast<std::int64_t>(lives.size()) == run.completed, "executions are missing");
  for (const auto& [id, life] : lives) {
    require(life == "acquired renewed released ", id.to_string() + ": " + life);
  }
}

void measure(const std::string& url, std::int64_t seconds) {
  const auto scratch = must(store::postgres::ScratchSchema::create(url));
  Run run{.url = scratch->url()};
  auto one = must(Engine::open(run.url));
  auto two = must(Engine::open(run.url));
  std::array<Follower, 4> followers;
  std::vector<std::exception_ptr> failures(kWriters + followers.size());
  std::vector<std::thread> threads;
  const auto start_thread = [&](auto body) {
    threads.emplace_back([&failures, body, place = threads.size()] {
      try {
        body();
      } catch (...) {
        failures[place] = std::current_exception();
      }
    });
  };
  const auto start = bench::SteadyClock::now();
  for (int i = 0; i < kWriters; ++i) start_thread([&, i] { write(run, i % 2 ? one : two, i); });
  start_thread([&] { followers[0].follow(run, one, std::nullopt); });
  start_thread([&] { followers[1].follow(run, one, std::nullopt); });
  start_thread([&] { followers[2].follow(run, two, std::nullopt); });
  start_thread([&] { followers[3].follow_with_restarts(run); });
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  run.writing = false;
  for (auto& thread : threads) thread.join();
  const auto took = bench::seconds_since(start);
  for (const auto& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
  for (const auto& follower : followers) check(run, follower);
  fmt::print(
      "{} executions, {} events seen by each of 4 ({:.0f} per second), {} restarts: each once, in order\n",
      run.completed.load(), followers[0].seen.size(), static_cast<double>(followers[0].seen.size()) / took,
      followers[3].restarts);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 3) {
    fmt::print(stderr, "usage: followers URL [SECONDS]\n");
    return 2;
  }
  return bench::run_and_report([&] { measure(argv[1], bench::number_argument(argc, argv, 2, 60)); });
}
