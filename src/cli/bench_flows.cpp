// Benchmarks of flows: long ones, wide ones, and races.
#include <algorithm>
#include <mutex>
#include <thread>

#include "cli/bench.h"

namespace flowfabric::cli {

namespace {

constexpr const char* kLane = "bench";
constexpr std::uint32_t kMostClaimed = 256;
constexpr std::int64_t kMostSubmittedUpstreams = 9'999;

FlowNode node(const std::string& name) {
  return {.name = name, .execution = {.lane_id = kLane, .execution_kind = name}, .join = {}};
}

SubmitFlow chain(int nodes) {
  SubmitFlow flow{.flow_kind = "chain", .nodes = {}, .edges = {}};
  for (int i = 0; i < nodes; ++i) {
    flow.nodes.push_back(node("n" + std::to_string(i)));
    if (i > 0) flow.edges.push_back({"n" + std::to_string(i - 1), "n" + std::to_string(i)});
  }
  return flow;
}

SubmitFlow fan_in(std::int64_t upstreams, JoinPolicy join) {
  SubmitFlow flow{.flow_kind = "fan-in", .nodes = {node("join")}, .edges = {}};
  flow.nodes[0].execution.lane_id = "joined";
  flow.nodes[0].join = join;
  for (std::int64_t i = 0; i < upstreams; ++i) {
    const auto name = "u" + std::to_string(i);
    flow.nodes.push_back(node(name));
    flow.nodes.back().execution.execution_kind = "upstream";
    flow.edges.push_back({name, "join"});
  }
  return flow;
}

ClaimTasks claim_of(const std::string& worker, std::uint32_t most, const std::string& lane = kLane) {
  return {.worker_id = worker, .lanes = {lane}, .max_tasks = most, .lease_ttl_ms = 600'000, .wait_ms = 100};
}

Result<std::vector<ClaimedTask>> claim(Engine& engine, const std::string& worker, std::uint32_t most,
                                       const std::string& lane = kLane) {
  return engine.call(claim_of(worker, most, lane));
}

// Workers that submit chains, and claim and complete any task. Like any worker with several slots, they claim
// more work while they report.
class Chains {
 public:
  Chains(Engine& engine, const FlowBenchOptions& options) : engine_(engine), options_(options) {}

  // The time until the last node was completed; absent if an operation was refused.
  std::optional<double> run() {
    const auto start = SteadyClock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < options_.workers; ++i) threads.emplace_back([this, i] { work(i); });
    for (auto& thread : threads) thread.join();
    if (refused_ > 0) return std::nullopt;
    return std::chrono::duration<double>(ended_ - start).count();
  }

  std::vector<std::uint32_t> submit;
  std::vector<std::uint32_t> complete;

 private:
  void work(int number) {
    const auto last = "n" + std::to_string(options_.nodes - 1);
    const auto request =
        claim_of("worker-" + std::to_string(number), static_cast<std::uint32_t>(options_.in_flight));
    post_all({}, options_.in_flight);
    auto claimed = engine_.submit(request);
    while (finished_ < options_.flows && refused_ == 0) {
      const auto tasks = claimed.get();
      if (!tasks) {
        ++refused_;
        return;
      }
      claimed = engine_.submit(request);
      const auto ended = std::ranges::count(*tasks, last, &ClaimedTask::execution_kind);
      post_all(*tasks, ended);
      finish(ended);
    }
  }

  void finish(std::int64_t flows) {
    std::lock_guard lock(mutex_);
    finished_ += flows;
    if (finished_ == options_.flows) ended_ = SteadyClock::now();
  }

  template <class Request>
  void post(Request request, std::uint32_t& latency, Gate& gate) {
    const auto began = SteadyClock::now();
    engine_.post(std::move(request), [this, &latency, &gate, began](const auto& answer) {
      latency = latency_since(began);
      if (!answer) ++refused_;
      gate.done();
    });
  }

  // Completes the tasks, and submits up to `chains` further chains.
  void post_all(const std::vector<ClaimedTask>& tasks, std::int64_t chains) {
    const auto left = options_.flows - next_.fetch_add(chains);
    std::vector<std::uint32_t> completed(tasks.size());
    std::vector<std::uint32_t> submitted(static_cast<std::size_t>(std::clamp<std::int64_t>(left, 0, chains)));
    Gate gate;
    gate.start(static_cast<int>(completed.size() + submitted.size()));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      post(
          CompleteExecution{.execution_id = tasks[i].execution_id, .fence = tasks[i].fence, .result = "done"},
          completed[i], gate);
    }
    for (auto& latency : submitted) post(chain(options_.nodes), latency, gate);
    gate.wait();
    std::lock_guard lock(mutex_);
    submit.insert(submit.end(), submitted.begin(), submitted.end());
    complete.insert(complete.end(), completed.begin(), completed.end());
  }

  Engine& engine_;
  const FlowBenchOptions& options_;
  std::atomic<std::int64_t> next_{0};
  std::atomic<std::int64_t> finished_{0};
  std::atomic<std::int64_t> refused_{0};
  std::mutex mutex_;
  SteadyClock::time_point ended_;
};

// Completes the tasks in windows, and records when each window was answered.
Result<void> complete_in_windows(Engine& engine, std::int64_t tasks, std::uint32_t window,
                                 std::vector<double>& answered_at) {
  const auto start = SteadyClock::now();
  for (std::int64_t done = 0; done < tasks;) {
    const auto claimed = claim(engine, "worker", window);
    if (!claimed) return std::unexpected(claimed.error());
    std::atomic<int> refused{0};
    Gate gate;
    gate.start(static_cast<int>(claimed->size()));
    for (const auto& task : *claimed) {
      engine.post(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence},
                  [&](const auto& answer) {
                    if (!answer) ++refused;
                    gate.done();
                  });
    }
    gate.wait();
    if (refused > 0) return wrong("a completion was refused");
    done += static_cast<std::int64_t>(claimed->size());
    answered_at.insert(answered_at.end(), claimed->size(), seconds_since(start));
  }
  return {};
}

// One more upstream of the join than a flow may be submitted with.
Result<void> add_upstream(Engine& engine, const FlowSubmission& flow, std::int64_t number) {
  const auto snapshot = engine.call(DescribeFlow{flow.flow_id});
  if (!snapshot) return std::unexpected(snapshot.error());
  Uuid uuid = flow.flow_id.uuid;
  for (std::size_t i = 0; i < 8; ++i) uuid.bytes[8 + i] = static_cast<std::uint8_t>(number >> (56 - 8 * i));
  const auto id = execution_id_for(flow.flow_id, uuid);
  const auto created =
      engine.call(CreateExecution{.execution_id = id, .lane_id = "late", .execution_kind = "upstream"});
  if (!created) return std::unexpected(created.error());
  const auto added = engine.call(AddFlowMember{flow.flow_id, id});
  if (!added) return std::unexpected(added.error());
  const auto& join = flow.executions.at("join");
  const auto staged = engine.call(StageEdge{.flow_id = flow.flow_id,
                                            .upstream_execution_id = id,
                                            .downstream_execution_id = join,
                                            .expected_graph_revision = snapshot->graph_revision + 1});
  if (!staged) return std::unexpected(staged.error());
  const auto applied = engine.call(ApplyEdge{flow.flow_id, staged->edge_id, id, join});
  if (!applied) return std::unexpected(applied.error());
  return {};
}

// Waits until that many cancels are in the log after `after`, and moves `after` behind them.
Result<void> await_cancels(Engine& engine, std::int64_t& after, std::int64_t count) {
  const auto until = SteadyClock::now() + std::chrono::seconds(60);
  for (std::int64_t seen = 0; seen < count;) {
    const auto events = engine.call(ReadCompletions{.after = after, .limit = 1000});
    if (!events) return std::unexpected(events.error());
    for (const auto& event : *events) {
      seen += event.outcome == TerminalOutcome::cancelled ? 1 : 0;
      after = event.event_id;
    }
    if (SteadyClock::now() > until) return wrong("siblings were not cancelled");
    if (events->empty()) std::this_thread::sleep_for(std::chrono::microseconds(500));
  }
  return {};
}

}  // namespace

Result<BenchReport> bench_flow_chain(BenchStore& store, const FlowBenchOptions& options) {
  Chains chains(store.engine(), options);
  const auto seconds = chains.run();
  if (!seconds) return wrong("operations were refused");
  auto report = report_of(store, options, "flow-chain", options.flows, *seconds);
  if (auto ok = expect_count(store.engine(), kLane, PublicState::completed, options.flows * options.nodes);
      !ok) {
    return std::unexpected(ok.error());
  }
  report.submit = percentiles(chains.submit);
  report.complete = percentiles(chains.complete);
  report.figures = {{"nodes_per_flow", options.nodes},
                    {"nodes_per_second", static_cast<double>(options.flows * options.nodes) / *seconds}};
  return report;
}

Result<BenchReport> bench_fan_in(BenchStore& store, const FlowBenchOptions& options) {
  auto& engine = store.engine();
  const auto submitted = std::min(options.upstreams, kMostSubmittedUpstreams);
  const auto flow = engine.call(fan_in(submitted, {}));
  if (!flow) return std::unexpected(flow.error());
  for (auto i = submitted; i < options.upstreams; ++i) {
    if (auto ok = add_upstream(engine, *flow, i); !ok) return std::unexpected(ok.error());
  }
  std::vector<double> answered;
  const auto start = SteadyClock::now();
  if (auto ok =
          complete_in_windows(engine, submitted, static_cast<std::uint32_t>(options.in_flight), answered);
      !ok) {
    return std::unexpected(ok.error());
  }
  for (auto left = options.upstreams - submitted; left > 0;) {
    const auto late = claim(engine, "worker", kMostClaimed, "late");
    if (!late) return std::unexpected(late.error());
    for (const auto& task : *late) {
      const auto done =
          engine.call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence});
      if (!done) return std::unexpected(done.error());
      --left;
    }
  }
  const auto seconds = seconds_since(start);
  const auto joined = claim(engine, "joiner", 1, "joined");
  if (!joined) return std::unexpected(joined.error());
  if (joined->size() != 1) return wrong("the join was not let go");
  auto report = report_of(store, options, "fan-in", options.upstreams, seconds);
  const auto part = std::min<std::size_t>(1000, answered.size() / 2);
  const auto first = answered[part - 1];
  const auto last = answered.back() - answered[answered.size() - 1 - part];
  report.figures = {{"first_us_per_completion", first * 1e6 / static_cast<double>(part)},
                    {"last_us_per_completion", last * 1e6 / static_cast<double>(part)},
                    {"last_to_first", last / first}};
  return report;
}

Result<BenchReport> bench_quorum_cancel(BenchStore& store, const FlowBenchOptions& options) {
  auto& engine = store.engine();
  std::vector<std::uint32_t> latencies;
  std::int64_t after = 0;
  const auto start = SteadyClock::now();
  for (int round = 0; round < options.rounds; ++round) {
    const auto flow =
        engine.call(fan_in(options.siblings, {JoinKind::any_of, 0, OnSatisfied::cancel_remaining}));
    if (!flow) return std::unexpected(flow.error());
    std::vector<ClaimedTask> running;
    while (static_cast<std::int64_t>(running.size()) < options.siblings) {
      const auto claimed = claim(engine, "worker", kMostClaimed);
      if (!claimed) return std::unexpected(claimed.error());
      running.insert(running.end(), claimed->begin(), claimed->end());
    }
    const auto fired = SteadyClock::now();
    const auto won = engine.call(CompleteExecution{
        .execution_id = running[0].execution_id, .fence = running[0].fence, .result = "first"});
    if (!won) return std::unexpected(won.error());
    if (auto ok = await_cancels(engine, after, options.siblings - 1); !ok) return std::unexpected(ok.error());
    latencies.push_back(latency_since(fired));
  }
  const auto seconds = seconds_since(start);
  if (auto ok = expect_count(engine, kLane, PublicState::cancelled, options.rounds * (options.siblings - 1));
      !ok) {
    return std::unexpected(ok.error());
  }
  auto report = report_of(store, options, "quorum-cancel", options.rounds, seconds);
  report.figures = {{"siblings", static_cast<double>(options.siblings)}};
  add_figures(report, "all_cancelled", percentiles(latencies));
  return report;
}

}  // namespace flowfabric::cli
