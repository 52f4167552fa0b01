// Are listings right, and how long does a page take, when nearly every execution is in a group (lane,
// namespace, capabilities, kind) of its own? Every listing is read from end to end and compared with what was
// made; then single pages are timed.
//
//   many_groups URL [GROUPS] [ROUNDS]      e.g. many_groups sqlite:/tmp/groups.db?synchronous=normal 100000
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "cli/bench.h"
#include "support/bench.h"

namespace {

using namespace flowfabric;
using bench::must;
using bench::require;

constexpr std::int64_t kPerCall = 1000;
constexpr std::int64_t kFarAway = std::int64_t{1} << 50;
constexpr std::int64_t kLanes = 8;
constexpr std::int64_t kNamespaces = 5;
constexpr std::uint32_t kLongestPage = 1000;

// A created execution, and its outcome.
struct Made {
  std::int64_t number;
  PublicState state;
};
using World = std::map<ExecutionId, Made>;

std::string lane_of(std::int64_t number) {
  return fmt::format("lane-{}", number % kLanes);
}
std::string namespace_of(std::int64_t number) {
  return fmt::format("namespace-{}", number % kNamespaces);
}
std::string kind_of(std::int64_t number) {
  return fmt::format("kind-{}", number);
}

CreateExecution request(std::int64_t number) {
  CreateExecution request{.namespace_ = namespace_of(number),
                          .lane_id = lane_of(number),
                          .execution_kind = kind_of(number),
                          .input = std::string(100, 'x')};
  if (number % 10 == 3) request.delay_until = kFarAway;
  return request;
}

// A tenth is delayed, a hundredth cancelled; every third group has another execution, which is cancelled.
World make(Engine& engine, std::int64_t groups) {
  World world;
  const auto total = groups + groups / 3;
  for (std::int64_t first = 0; first < total; first += kPerCall) {
    CreateExecutions many;
    std::vector<Made> made;
    for (std::int64_t i = first; i < std::min(first + kPerCall, total); ++i) {
      const auto number = i < groups ? i : 3 * (i - groups);
      const bool is_cancelled = i >= groups || i % 100 == 7;
      const auto otherwise = number % 10 == 3 ? PublicState::delayed : PublicState::waiting;
      many.executions.push_back(request(number));
      made.push_back({number, is_cancelled ? PublicState::cancelled : otherwise});
    }
    const auto answers = must(engine.call(std::move(many)));
    for (std::size_t i = 0; i < answers.size(); ++i) {
      const auto id = must(answers[i]).execution_id;
      world[id] = made[i];
      if (made[i].state != PublicState::cancelled) continue;
      must(engine.call(CancelExecution{.execution_id = id, .reason = "enough"}));
    }
  }
  return world;
}

struct Listing {
  const char* name;
  ExecutionFilter filter;
};

bool matches(const ExecutionFilter& filter, const Made& made) {
  const auto is = [](const std::optional<std::string>& wanted, const std::string& value) {
    return !wanted || *wanted == value;
  };
  const bool in_state = filter.states.empty() || std::ranges::count(filter.states, made.state) > 0;
  return in_state && is(filter.lane_id, lane_of(made.number)) &&
         is(filter.namespace_, namespace_of(made.number)) && is(filter.execution_kind, kind_of(made.number));
}

// Each that matches once, by age, and no page is empty before the last. Gives the cursor of about the middle.
std::string check(Engine& engine, const World& world, const Listing& listing, ListOrder order) {
  std::set<ExecutionId> expected;
  for (const auto& [id, made] : world) {
    if (matches(listing.filter, made)) expected.insert(id);
  }
  const auto total = expected.size();
  ListExecutions page{.filter = listing.filter, .order = order, .limit = kLongestPage};
  std::optional<std::int64_t> last;
  std::string middle;
  for (bool more = true; more;) {
    const auto found = must(engine.call(page));
    more = found.next_cursor.has_value();
    require(!more || !found.executions.empty(), std::string(listing.name) + ": an empty page with a cursor");
    for (const auto& each : found.executions) {
      const auto made = world.find(each.execution_id);
      require(made != world.end() && expected.erase(each.execution_id) == 1,
              std::string(listing.name) + ": one that does not belong here, or twice");
      require(each.execution_kind == kind_of(made->second.number), "the kind of another");
      const bool in_order = order == ListOrder::oldest ? each.created_at >= last.value_or(each.created_at)
                                                       : each.created_at <= last.value_or(each.created_at);
      require(in_order, std::string(listing.name) + ": not by age");
      last = each.created_at;
    }
    page.cursor = found.next_cursor.value_or("");
    if (more && expected.size() >= total / 2) middle = page.cursor;
  }
  require(expected.empty(), fmt::format("{}: {} are missing", listing.name, expected.size()));
  return middle;
}

void measure(Engine& engine, const Listing& listing, const std::string& cursor, std::int64_t rounds) {
  for (const std::uint32_t limit : {50u, kLongestPage}) {
    std::vector<std::uint32_t> micros;
    std::size_t entries = 0;
    for (std::int64_t round = 0; round < rounds; ++round) {
      const auto start = cli::SteadyClock::now();
      entries = must(engine.call(ListExecutions{.filter = listing.filter, .limit = limit, .cursor = cursor}))
                    .executions.size();
      micros.push_back(cli::latency_since(start));
    }
    const auto latency = cli::percentiles(micros);  // sorts
    fmt::print("{:<28} {:>6} {:>6} {:>8} {:>9.1f} {:>9.1f}\n", listing.name,
               cursor.empty() ? "first" : "deep", limit, entries, latency.p50, micros.back() / 1000.0);
  }
}

void run(const std::string& url, std::int64_t groups, std::int64_t rounds) {
  auto store = must(cli::BenchStore::open(url));
  auto& engine = store.engine();
  const auto start = cli::SteadyClock::now();
  const auto world = make(engine, groups);
  fmt::print("{} executions in {} groups made in {:.1f} s\n\n", world.size(), groups,
             cli::seconds_since(start));
  using F = ExecutionFilter;
  const std::vector<Listing> listings{
      {"everything", F{}},
      {"state: waiting", F{.states = {PublicState::waiting}}},
      {"state: delayed (a tenth)", F{.states = {PublicState::delayed}}},
      {"state: cancelled", F{.states = {PublicState::cancelled}}},
      {"state: failed (none)", F{.states = {PublicState::failed}}},
      {"lane", F{.lane_id = lane_of(1)}},
      {"lane and state", F{.lane_id = lane_of(1), .states = {PublicState::cancelled}}},
      {"namespace", F{.namespace_ = namespace_of(1)}},
      {"kind", F{.execution_kind = kind_of(3)}},
  };
  fmt::print("{:<28} {:>6} {:>6} {:>8} {:>9} {:>9}\n", "listing (ms)", "page", "limit", "entries", "p50",
             "max");
  for (const auto& listing : listings) {
    check(engine, world, listing, ListOrder::oldest);
    const auto middle = check(engine, world, listing, ListOrder::newest);
    measure(engine, listing, "", rounds);
    if (!middle.empty()) measure(engine, listing, middle, rounds);
  }
  fmt::print("\nevery listing, read from end to end in both orders, was right\n");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2 || argc > 4) {
    fmt::print(stderr, "usage: many_groups URL [GROUPS] [ROUNDS]\n");
    return 2;
  }
  return bench::run_and_report([&] {
    run(argv[1], bench::number_argument(argc, argv, 2, 100'000), bench::number_argument(argc, argv, 3, 10));
  });
}
