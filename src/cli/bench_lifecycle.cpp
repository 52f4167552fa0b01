#include <chrono>
#include <thread>

#include "cli/bench.h"
#include "model/partition.h"

namespace flowfabric::cli {

namespace {

constexpr const char* kLane = "bench";

// The task's number is its id's low bits, so that a claimed task says which one it is.
ExecutionId id_of(std::int64_t task) {
  const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(
                       std::chrono::system_clock::now().time_since_epoch())
                       .count();
  return {partition_of_lane(kLane, EngineOptions{}.flow_partitions),
          uuid_v7(now, 0, static_cast<std::uint64_t>(task) << 2)};
}

std::int64_t task_of(const ExecutionId& id) {
  std::int64_t task = 0;
  for (std::size_t i = 10; i < 16; ++i) task = (task << 8) | id.uuid.bytes[i];
  return task;
}

// Limits that are checked and counted, and never reached.
const BudgetId kBudget{uuid_v7(1, 0, 1)};
const QuotaPolicyId kQuota{uuid_v7(2, 0, 2)};

Result<void> make_limits(Engine& engine) {
  const auto budget = engine.call(CreateBudget{.budget_id = kBudget,
                                               .scope_type = "tenant",
                                               .scope_id = "bench",
                                               .dimensions = {"tokens"},
                                               .hard_limits = {1'000'000'000},
                                               .soft_limits = {0}});
  if (!budget) return std::unexpected(budget.error());
  const auto quota = engine.call(CreateQuotaPolicy{.quota_policy_id = kQuota,
                                                   .window_seconds = 1,
                                                   .max_requests_per_window = 1'000'000'000,
                                                   .max_concurrent = 1'000'000});
  if (!quota) return std::unexpected(quota.error());
  return {};
}

ExecutionPolicy policy_for(const LifecycleOptions& options) {
  if (!options.limited) return {};
  return {.budget_ids = {kBudget}, .quota_policy_id = kQuota};
}

struct Shared {
  Engine& engine;
  const LifecycleOptions& options;
  SteadyClock::time_point start{SteadyClock::now()};
  std::vector<std::int64_t> submitted_at;  // by task, microseconds since start
  std::atomic<std::int64_t> next_task{0};
  std::atomic<std::int64_t> completed{0};
  std::atomic<std::int64_t> refused{0};
};

// One worker: submits a window of tasks, claims what is there, completes it, and so on.
class Worker {
 public:
  Worker(Shared& shared, int number)
      : shared_(shared), name_("worker-" + std::to_string(number)), payload_(payload(shared.options)) {}

  void run() {
    while (shared_.completed < shared_.options.tasks && shared_.refused == 0) {
      submit_window();
      complete_all(claim_window());
    }
  }

  std::vector<std::uint32_t> submit_latency;
  std::vector<std::uint32_t> start_latency;
  std::vector<std::uint32_t> complete_latency;

 private:
  static std::string payload(const LifecycleOptions& options) {
    return std::string(static_cast<std::size_t>(options.payload_bytes), 'x');
  }

  // Starts an operation; its latency is written down when it is answered.
  template <class Request>
  void post(Request request, std::uint32_t& latency) {
    const auto began = SteadyClock::now();
    shared_.engine.post(std::move(request), [this, &latency, began](const auto& answer) {
      latency = latency_since(began);
      if (!answer) ++shared_.refused;
      gate_.done();
    });
  }

  void submit_window() {
    std::vector<std::int64_t> window;
    while (static_cast<int>(window.size()) < shared_.options.in_flight) {
      const auto task = shared_.next_task++;
      if (task >= shared_.options.tasks) break;
      window.push_back(task);
    }
    std::vector<std::uint32_t> latency(window.size());
    gate_.start(static_cast<int>(window.size()));
    for (std::size_t i = 0; i < window.size(); ++i) {
      shared_.submitted_at[static_cast<std::size_t>(window[i])] = micros_since(shared_.start);
      post(CreateExecution{.execution_id = id_of(window[i]),
                           .lane_id = kLane,
                           .execution_kind = "bench",
                           .input = payload_,
                           .policy = policy_for(shared_.options)},
           latency[i]);
    }
    gate_.wait();
    submit_latency.insert(submit_latency.end(), latency.begin(), latency.end());
  }

  std::vector<ClaimedTask> claim_window() {
    auto tasks =
        shared_.engine.call(ClaimTasks{.worker_id = name_,
                                       .lanes = {kLane},
                                       .max_tasks = static_cast<std::uint32_t>(shared_.options.in_flight),
                                       .wait_ms = 100});
    if (!tasks) {
      ++shared_.refused;
      return {};
    }
    const auto now = micros_since(shared_.start);
    for (const auto& task : *tasks) {
      const auto number = static_cast<std::size_t>(task_of(task.execution_id));
      start_latency.push_back(static_cast<std::uint32_t>(now - shared_.submitted_at[number]));
    }
    return *std::move(tasks);
  }

  void complete_all(const std::vector<ClaimedTask>& tasks) {
    std::vector<std::uint32_t> latency(tasks.size());
    gate_.start(static_cast<int>(tasks.size()));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      post(
          CompleteExecution{.execution_id = tasks[i].execution_id, .fence = tasks[i].fence, .result = "done"},
          latency[i]);
    }
    gate_.wait();
    shared_.completed += static_cast<std::int64_t>(tasks.size());
    complete_latency.insert(complete_latency.end(), latency.begin(), latency.end());
  }

  Shared& shared_;
  const std::string name_;
  const std::string payload_;
  Gate gate_;
};

// Every task has exactly one completion, a success, and the lane holds nothing else.
Result<void> verify(Engine& engine, std::int64_t tasks) {
  std::vector<bool> seen(static_cast<std::size_t>(tasks), false);
  std::int64_t total = 0;
  for (std::int64_t after = 0;;) {
    const auto page = engine.call(ReadCompletions{.after = after, .limit = 1000});
    if (!page) return std::unexpected(page.error());
    if (page->empty()) break;
    for (const auto& event : *page) {
      const auto task = static_cast<std::size_t>(task_of(event.execution_id));
      if (task >= seen.size() || seen[task] || event.outcome != TerminalOutcome::success) {
        return wrong(event.execution_id.to_string() + ": completed twice, or not by success");
      }
      seen[task] = true;
      ++total;
    }
    after = page->back().event_id;
  }
  if (total != tasks)
    return wrong(std::to_string(total) + " completions of " + std::to_string(tasks) + " tasks");
  const auto counts = engine.call(CountLane{.lane_id = kLane});
  if (!counts) return std::unexpected(counts.error());
  if (*counts != std::map<PublicState, std::int64_t>{{PublicState::completed, tasks}}) {
    return wrong("the lane's counts do not say that everything is completed");
  }
  return {};
}

}  // namespace

Result<BenchReport> bench_lifecycle(BenchStore& store, const LifecycleOptions& options) {
  auto& engine = store.engine();
  if (options.limited) {
    if (auto ok = make_limits(engine); !ok) return std::unexpected(ok.error());
  }
  Shared shared{.engine = engine, .options = options};
  shared.submitted_at.resize(static_cast<std::size_t>(options.tasks));
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < options.workers; ++i) workers.push_back(std::make_unique<Worker>(shared, i));
  std::vector<std::thread> threads;
  for (auto& worker : workers) threads.emplace_back([&worker] { worker->run(); });
  for (auto& thread : threads) thread.join();
  const double seconds = seconds_since(shared.start);
  if (shared.refused > 0) {
    return fail_with(ErrorCode::unavailable, std::to_string(shared.refused) + " operations were refused",
                     "The engine refused work during the benchmark; its figures would mean nothing.");
  }
  const auto stats = engine.stats();
  const auto database = store.database_cost(options.tasks);
  if (auto ok = verify(engine, options.tasks); !ok) return std::unexpected(ok.error());

  std::vector<std::uint32_t> submit;
  std::vector<std::uint32_t> start;
  std::vector<std::uint32_t> complete;
  for (const auto& worker : workers) {
    submit.insert(submit.end(), worker->submit_latency.begin(), worker->submit_latency.end());
    start.insert(start.end(), worker->start_latency.begin(), worker->start_latency.end());
    complete.insert(complete.end(), worker->complete_latency.begin(), worker->complete_latency.end());
  }
  return BenchReport{.scenario = options.limited ? "lifecycle with limits" : "lifecycle",
                     .store = store::redacted_url(options.store),
                     .tasks = options.tasks,
                     .workers = options.workers,
                     .in_flight = options.in_flight,
                     .payload_bytes = options.payload_bytes,
                     .seconds = seconds,
                     .submit = percentiles(submit),
                     .start = percentiles(start),
                     .complete = percentiles(complete),
                     .mean_batch = static_cast<double>(stats.operations) / static_cast<double>(stats.batches),
                     .largest_batch = stats.largest_batch,
                     .database = database};
}

}  // namespace flowfabric::cli
