// Measures the cost of routes and groups that were registered once and offer nothing any more. Claims of one
// task, first with a single route in the lane, then with many that are dead; then pages of listings by state,
// with as many groups.
//
//   dead_routes URL ROUTES CLAIMS      e.g. dead_routes sqlite:jobs/routes.db?synchronous=normal 5000
//   500
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "flowfabric/flowfabric.h"

namespace {

using namespace flowfabric;
using SteadyClock = std::chrono::steady_clock;

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <class Request>
typename Request::Answer must(Engine& engine, Request request) {
  auto answer = engine.call(std::move(request));
  if (answer) return *std::move(answer);
  fmt::print(stderr, "{}\n", answer.error().to_string());
  std::exit(1);
}

CreateExecution request(const std::string& kind) {
  return {.execution_kind = kind};
}

// Each on a route and in a group of its own; then they are over.
void make_dead(Engine& engine, std::int64_t count) {
  CreateExecutions many;
  for (std::int64_t i = 0; i < count; ++i) {
    auto one = request("kind-" + std::to_string(i));
    one.policy.routing_requirements =
        RoutingRequirements{.required_capabilities = {"host-" + std::to_string(i)}};
    many.executions.push_back(std::move(one));
    if (many.executions.size() < 1000 && i + 1 < count) continue;
    for (const auto& made : must(engine, std::exchange(many, {}))) {
      must(engine, CancelExecution{.execution_id = made.value().execution_id, .reason = "dead"});
    }
  }
}

// Milliseconds.
template <class F>
double timed(F&& f) {
  const auto start = SteadyClock::now();
  f();
  return std::chrono::duration<double, std::milli>(SteadyClock::now() - start).count();
}

double claims(Engine& engine, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) must(engine, request("bench"));
  ClaimTasks claim{.worker_id = "bench", .capabilities = {}};
  // It could take what is dead, if there were anything.
  for (int i = 0; i < 20; ++i) claim.capabilities.push_back("host-" + std::to_string(i));
  std::vector<double> each;
  for (std::int64_t i = 0; i < count; ++i) {
    each.push_back(timed([&] {
      if (must(engine, claim).size() != 1) std::exit(1);
    }));
  }
  return median(each);
}

// A page that is wanted in full; how many were found.
std::pair<double, std::size_t> page(Engine& engine, PublicState state) {
  std::size_t found = 0;
  const auto ms = timed([&] {
    found = must(engine, ListExecutions{.filter = {.states = {state}}, .limit = 50}).executions.size();
  });
  return {ms, found};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: dead_routes URL ROUTES CLAIMS\n");
    return 2;
  }
  const auto routes = std::strtoll(argv[2], nullptr, 10);
  const auto count = std::strtoll(argv[3], nullptr, 10);
  const std::string url = argv[1];
  if (url.starts_with("postgres") && !migrate(url)) return 1;
  auto engine = Engine::open(url);
  if (!engine) {
    fmt::print(stderr, "{}\n", engine.error().to_string());
    return 1;
  }
  must(*engine, request("rare"));
  const auto task = must(*engine, ClaimTasks{.worker_id = "bench"}).at(0);
  must(*engine, FailExecution{task.execution_id, task.fence, "boom", "permanent"});
  const auto alone = claims(*engine, count);
  make_dead(*engine, routes);
  const auto among = claims(*engine, count);
  fmt::print(
      "claim of one task, median: {:.3f} ms with one route, {:.3f} ms with {} dead ones, ratio {:.2f}\n",
      alone, among, routes, among / alone);
  for (const auto state : {PublicState::failed, PublicState::cancelled, PublicState::active}) {
    const auto [ms, found] = page(*engine, state);
    fmt::print("a page of 50 by state, {} groups: {} found in {:.1f} ms\n", routes, found, ms);
  }
}
