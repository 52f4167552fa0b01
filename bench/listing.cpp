// How long does a page of each listing take on a large store? Executions of several lanes, namespaces, kinds,
// tags and states are made, and then pages are asked for one after the other.
//
//   listing PATH [EXECUTIONS] [ROUNDS]      e.g. listing /tmp/listing.db 1000000 100
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <semaphore>

#include "cli/bench.h"
#include "model/partition.h"

namespace {

using namespace flowfabric;
using Clock = std::chrono::steady_clock;

constexpr std::int64_t kPerCall = 1000;
constexpr std::int64_t kFarAway = std::int64_t{1} << 50;
constexpr int kLanes = 8;
constexpr int kNamespaces = 5;
constexpr int kKinds = 6;
constexpr int kTeams = 10;

std::string named(const char* what, std::int64_t number) {
  return fmt::format("{}-{}", what, number);
}

template <class T>
T must(Result<T> answer) {
  if (!answer) {
    fmt::print(stderr, "{}\n", answer.error().to_string());
    std::abort();
  }
  return *std::move(answer);
}

// ---- filling ----

// Numbers that have nothing to do with each other, so that every combination comes up everywhere.
CreateExecution execution(std::int64_t i) {
  const auto mixed = static_cast<std::int64_t>(static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15ULL >> 40);
  CreateExecution request{.namespace_ = named("namespace", mixed / 7 % kNamespaces),
                          .lane_id = named("lane", mixed % kLanes),
                          .execution_kind = named("kind", mixed / 41 % kKinds),
                          .input = std::string(100, 'x')};
  if (i % 2 == 0) request.tags["team.name"] = named("team", mixed / 11 % kTeams);
  if (i % 10'000 == 0) request.tags["app.rare"] = "yes";
  if (i % 10 == 0) request.delay_until = kFarAway;
  return request;
}

// Keeps a number of calls in flight; waits for all of them in the end.
class Pipeline {
 public:
  explicit Pipeline(Engine& engine) : engine_(engine) {}
  ~Pipeline() {
    for (std::ptrdiff_t i = 0; i < kInFlight; ++i) room_.acquire();
  }
  template <class Request>
  void send(Request request) {
    room_.acquire();
    engine_.post(std::move(request), [this](auto answer) {
      must(std::move(answer));
      room_.release();
    });
  }

 private:
  static constexpr std::ptrdiff_t kInFlight = 512;
  Engine& engine_;
  std::counting_semaphore<kInFlight> room_{kInFlight};
};

// Completes, fails and cancels a tenth of the waiting executions each, and leaves a few of them active.
void move_some(Engine& engine, std::int64_t count) {
  for (int lane = 0; lane < kLanes; ++lane) {
    Pipeline pipeline(engine);
    for (std::int64_t moved = 0; moved < count * 3 / 10 / kLanes;) {
      const auto tasks = must(engine.call(ClaimTasks{.worker_id = "bench",
                                                     .lanes = {named("lane", lane)},
                                                     .max_tasks = 256,
                                                     .lease_ttl_ms = 3'600'000}));
      if (tasks.empty()) break;
      for (const auto& task : tasks) {
        const auto& id = task.execution_id;
        const auto kind = moved++ % 31;
        if (kind < 10) pipeline.send(CompleteExecution{.execution_id = id, .fence = task.fence});
        if (kind >= 10 && kind < 20) pipeline.send(FailExecution{.execution_id = id, .fence = task.fence});
        if (kind >= 20 && kind < 30) pipeline.send(CancelExecution{.execution_id = id});
      }
    }
  }
}

void create_all(Engine& engine, std::int64_t count) {
  constexpr std::ptrdiff_t in_flight = 8;
  std::counting_semaphore<in_flight> room(in_flight);
  for (std::int64_t first = 0; first < count; first += kPerCall) {
    CreateExecutions request;
    for (std::int64_t i = first; i < std::min(first + kPerCall, count); ++i) {
      request.executions.push_back(execution(i));
    }
    room.acquire();
    engine.post(std::move(request), [&room](auto answers) {
      for (auto& answer : must(std::move(answers))) must(std::move(answer));
      room.release();
    });
  }
  for (std::ptrdiff_t i = 0; i < in_flight; ++i) room.acquire();
}

// ---- measuring ----

struct Listing {
  const char* name;
  // Asks for one page; the number of its entries.
  std::function<std::size_t(int round, std::uint32_t limit)> ask;
};

std::size_t page_of(Engine& engine, ListExecutions request) {
  return must(engine.call(std::move(request))).executions.size();
}

// The cursor after about half of all executions.
std::string deep_cursor(Engine& engine, ExecutionFilter filter, std::int64_t depth) {
  ListExecutions request{.filter = std::move(filter), .limit = 1000};
  for (std::int64_t seen = 0; seen < depth;) {
    const auto page = must(engine.call(request));
    if (!page.next_cursor) break;
    seen += static_cast<std::int64_t>(page.executions.size());
    request.cursor = *page.next_cursor;
  }
  return request.cursor;
}

std::vector<Listing> listings(Engine& engine, std::int64_t count, std::int64_t began, std::int64_t ended) {
  const auto by = [&engine](std::function<ExecutionFilter(int)> filter, ListOrder order = ListOrder::newest,
                            std::string cursor = "") {
    return [&engine, filter = std::move(filter), order, cursor](int round, std::uint32_t limit) {
      return page_of(engine, {.filter = filter(round), .order = order, .limit = limit, .cursor = cursor});
    };
  };
  const auto lane = [](int i) { return named("lane", i % kLanes); };
  const auto name_space = [](int i) { return named("namespace", i % kNamespaces); };
  const auto kind = [](int i) { return named("kind", i % kKinds); };
  const auto team = [](int i) { return Tags{{"team.name", named("team", i % kTeams)}}; };
  const auto time = [=](int i) { return began + (ended - began) * (i % 97) / 97; };
  constexpr PublicState states[]{PublicState::waiting, PublicState::completed, PublicState::failed,
                                 PublicState::cancelled, PublicState::delayed};
  const auto state = [=](int i) { return std::vector{states[i % 5]}; };
  const auto deep = deep_cursor(engine, {}, count / 2);
  const auto deep_in_lane = deep_cursor(engine, {.lane_id = "lane-0"}, count / kLanes / 2);
  using F = ExecutionFilter;
  return {
      {"newest", by([](int) { return F{}; })},
      {"oldest", by([](int) { return F{}; }, ListOrder::oldest)},
      {"lane", by([=](int i) { return F{.lane_id = lane(i)}; })},
      {"state", by([=](int i) { return F{.states = state(i)}; })},
      {"active (few)", by([](int) { return F{.states = {PublicState::active}}; })},
      {"namespace", by([=](int i) { return F{.namespace_ = name_space(i)}; })},
      {"kind", by([=](int i) { return F{.execution_kind = kind(i)}; })},
      {"tag", by([=](int i) { return F{.tags = team(i)}; })},
      {"tag (few)", by([](int) {
         return F{.tags = {{"app.rare", "yes"}}};
       })},
      {"created after", by([=](int i) { return F{.created_after = time(i)}; }, ListOrder::oldest)},
      {"created before", by([=](int i) { return F{.created_before = time(i)}; })},
      {"lane and state", by([=](int i) { return F{.lane_id = lane(i), .states = state(i)}; })},
      {"lane, state, namespace, kind", by([=](int i) {
         return F{
             .lane_id = lane(i), .states = state(i), .namespace_ = name_space(i), .execution_kind = kind(i)};
       })},
      {"tag and state", by([=](int i) { return F{.states = state(i), .tags = team(i)}; })},
      {"tag, kind, lane",
       by([=](int i) { return F{.lane_id = lane(i), .execution_kind = kind(i), .tags = team(i)}; })},
      {"namespace before a time",
       by([=](int i) { return F{.namespace_ = name_space(i), .created_before = time(i)}; })},
      {"nothing matches",
       by([=](int i) { return F{.states = {PublicState::expired}, .namespace_ = name_space(i)}; })},
      {"newest, deep", by([](int) { return F{}; }, ListOrder::newest, deep)},
      {"lane, deep", by([](int) { return F{.lane_id = "lane-0"}; }, ListOrder::newest, deep_in_lane)},
      {"partition",
       [&engine](int i, std::uint32_t limit) {
         const auto partition = partition_of_lane(named("lane", i % kLanes), EngineOptions{}.flow_partitions);
         return must(engine.call(ListPartition{.partition = partition, .limit = limit})).executions.size();
       }},
      {"lanes",
       [&engine](int, std::uint32_t limit) {
         return must(engine.call(ListLanes{.limit = limit})).lanes.size();
       }},
      {"expired leases",
       [&engine](int, std::uint32_t limit) {
         return must(engine.call(ListExpiredLeases{.limit = limit})).leases.size();
       }},
  };
}

void measure(const Listing& listing, std::uint32_t limit, int rounds) {
  std::vector<std::uint32_t> micros;
  std::size_t entries = 0;
  for (int round = 0; round < rounds; ++round) {
    const auto start = Clock::now();
    entries += listing.ask(round, limit);
    micros.push_back(static_cast<std::uint32_t>(
        std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count()));
  }
  const auto latency = cli::percentiles(micros);  // sorts
  fmt::print("{:<30} {:>6} {:>8.1f} {:>9.3f} {:>9.3f} {:>9.3f}\n", listing.name, limit,
             static_cast<double>(entries) / rounds, latency.p50, latency.p95, micros.back() / 1000.0);
}

std::int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(system_clock::now().time_since_epoch()).count();
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: listing PATH [EXECUTIONS] [ROUNDS]\n");
    return 2;
  }
  const std::string path = argv[1];
  const std::int64_t count = argc > 2 ? std::strtoll(argv[2], nullptr, 10) : 1'000'000;
  const int rounds = argc > 3 ? static_cast<int>(std::strtol(argv[3], nullptr, 10)) : 100;
  if (count < 1 || rounds < 1) {
    fmt::print(stderr, "EXECUTIONS and ROUNDS are at least 1\n");
    return 2;
  }
  auto store = cli::BenchStore::open("sqlite:" + path + "?synchronous=normal");
  if (!store) {
    fmt::print(stderr, "{}\n", store.error().to_string());
    return 1;
  }
  auto& engine = store->engine();
  const auto began = now_ms();
  create_all(engine, count);
  const auto ended = now_ms();
  move_some(engine, count);
  fmt::print("{} executions created in {:.1f} s, a third of them moved on in {:.1f} s\n\n", count,
             static_cast<double>(ended - began) / 1000, static_cast<double>(now_ms() - ended) / 1000);
  fmt::print("{:<30} {:>6} {:>8} {:>9} {:>9} {:>9}\n", "listing (ms)", "limit", "entries", "p50", "p95",
             "max");
  for (const auto& listing : listings(engine, count, began, ended)) {
    for (const std::uint32_t limit : {50u, 1000u}) measure(listing, limit, rounds);
  }
  return 0;
}
