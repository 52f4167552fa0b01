#include "e2e/flow_child.h"

#include <unistd.h>

#include <chrono>
#include <thread>

#include "flowfabric/flowfabric.h"

namespace flowfabric::e2e {

namespace {

SubmitFlow race() {
  SubmitFlow flow{.flow_kind = "race", .nodes = {}, .edges = {}};
  flow.nodes.push_back({.name = "join",
                        .execution = {.lane_id = "joined"},
                        .join = {JoinKind::any_of, 0, OnSatisfied::cancel_remaining}});
  for (int i = 0; i < kSiblings; ++i) {
    const auto name = "s" + std::to_string(i);
    flow.nodes.push_back({.name = name, .execution = {.lane_id = "racing"}});
    flow.edges.push_back({name, "join"});
  }
  return flow;
}

SubmitFlow wide() {
  SubmitFlow flow{.flow_kind = "wide", .nodes = {}, .edges = {}};
  flow.nodes.push_back({.name = "root", .execution = {.lane_id = "root"}});
  for (int i = 0; i < kDependents; ++i) {
    const auto name = "d" + std::to_string(i);
    flow.nodes.push_back({.name = name, .execution = {.lane_id = "wide"}});
    flow.edges.push_back({"root", name});
  }
  return flow;
}

void say(int pipe, const std::string& line) {
  const auto text = line + "\n";
  static_cast<void>(!write(pipe, text.data(), text.size()));
}

// The first one claimed on the lane; all of them are.
ClaimedTask take_all(Engine& engine, const std::string& lane, std::size_t count) {
  std::vector<ClaimedTask> taken;
  while (taken.size() < count) {
    const auto tasks = engine.call(ClaimTasks{
        .worker_id = "racer", .lanes = {lane}, .max_tasks = 256, .lease_ttl_ms = 3'600'000, .wait_ms = 1000});
    taken.insert(taken.end(), tasks.value().begin(), tasks.value().end());
  }
  return taken.front();
}

}  // namespace

int run_flows(const std::string& url, int pipe) {
  auto engine = Engine::open(url);
  const auto racing = engine.value().call(race()).value();
  const auto widening = engine->call(wide()).value();
  const auto winner = take_all(*engine, "racing", kSiblings);
  const auto root = take_all(*engine, "root", 1);
  say(pipe, "race " + racing.flow_id.to_string());
  say(pipe, "wide " + widening.flow_id.to_string());
  engine->call(CompleteExecution{.execution_id = root.execution_id, .fence = root.fence}).value();
  say(pipe, "widened");
  engine->call(CompleteExecution{.execution_id = winner.execution_id, .fence = winner.fence}).value();
  say(pipe, "won");
  std::this_thread::sleep_for(std::chrono::minutes(10));
  return 1;
}

}  // namespace flowfabric::e2e
