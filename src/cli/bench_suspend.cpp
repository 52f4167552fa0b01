// The benchmark of suspensions.
#include <charconv>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "cli/bench.h"

namespace flowfabric::cli {

namespace {

using std::chrono::microseconds;

// A worker asks again after this long; also how long it takes to notice that all is done.
constexpr std::int64_t kWaitMs = 500;
// Long enough for the worker to be waiting again, and for what follows a commit to be over.
constexpr microseconds kRest{3000};
// The first cycles find cold caches and are not counted.
constexpr std::int64_t kWarmUp = 20;

struct Latencies {
  std::vector<std::uint32_t> signal_to_resumed;
  std::vector<std::uint32_t> cycle;
  std::vector<std::uint32_t> commit;
};

struct Load {
  std::string lane;
  int workers{};
  int in_flight{};
  std::int64_t cycles{};
  std::int64_t warm_up{};
  microseconds rest{};

  std::int64_t executions() const { return std::int64_t{workers} * in_flight; }
};

struct Shared {
  Engine& engine;
  const Load load;
  SteadyClock::time_point start{SteadyClock::now()};
  std::atomic<std::int64_t> started{0};
  std::atomic<std::int64_t> resumed{0};
  std::atomic<std::int64_t> completed{0};
  std::atomic<std::int64_t> over_after{0};  // microseconds until the last was resumed
  std::atomic<bool> failed{false};
  std::mutex mutex;
  std::optional<Error> failure;  // the first

  bool is_over() const { return failed || completed == load.executions(); }
  void fail(Error error) {
    std::lock_guard lock(mutex);
    if (!failed.exchange(true)) failure = std::move(error);
  }
};

// The payload of a signal: the times at which its cycle began and the signal was sent, in microseconds since
// the start.
struct Times {
  std::int64_t began{};
  std::int64_t signalled{};
};
std::string to_text(const Times& times) {
  return std::to_string(times.began) + " " + std::to_string(times.signalled);
}
std::optional<Times> times_of(const ClaimedTask& task) {
  const bool is_ours = task.claim == ClaimKind::resumed && task.attempt_index == 0 &&
                       task.resume_signals.size() == 1 && task.resume_signals[0].payload &&
                       task.resume_signals[0].source_identity == task.execution_id.to_string();
  if (!is_ours) return std::nullopt;
  const auto& text = *task.resume_signals[0].payload;
  const auto* end = text.data() + text.size();
  Times times;
  const auto first = std::from_chars(text.data(), end, times.began);
  if (first.ptr == end) return std::nullopt;
  const auto second = std::from_chars(first.ptr + 1, end, times.signalled);
  return second.ptr == end ? std::optional(times) : std::nullopt;
}

// A worker like real ones: one thread waits in claims, the other runs the tasks. Here a task means to
// suspend, and to send the signal from outside.
class Worker {
 public:
  Worker(Shared& shared, int number)
      : shared_(shared),
        name_("worker-" + std::to_string(number)),
        runner_([this] { run(); }),
        claimer_([this] { claim(); }) {}
  ~Worker() { join(); }

  void join() {
    if (claimer_.joinable()) claimer_.join();
    if (runner_.joinable()) runner_.join();
  }

  Latencies latencies;  // to be read when it has been joined

 private:
  // ---- the thread that claims ----

  void claim() {
    while (!shared_.is_over()) {
      auto tasks =
          shared_.engine.call(ClaimTasks{.worker_id = name_,
                                         .lanes = {shared_.load.lane},
                                         .max_tasks = static_cast<std::uint32_t>(shared_.load.in_flight),
                                         .lease_ttl_ms = 600'000,
                                         .wait_ms = kWaitMs});
      const auto now = micros_since(shared_.start);
      if (!tasks) shared_.fail(tasks.error());
      if (!tasks || tasks->empty()) continue;
      for (const auto& task : *tasks) note(task, now);
      hand_over(*std::move(tasks));
    }
    hand_over({});
  }

  void note(const ClaimedTask& task, std::int64_t now) {
    if (task.claim == ClaimKind::fresh) return;
    const auto times = times_of(task);
    if (!times) return shared_.fail(wrong("a resumed task is not what was suspended").error());
    const auto number = ++shared_.resumed;
    if (number == shared_.load.cycles) shared_.over_after = now;
    if (number <= shared_.load.warm_up) return;
    latencies.signal_to_resumed.push_back(static_cast<std::uint32_t>(now - times->signalled));
    latencies.cycle.push_back(static_cast<std::uint32_t>(now - times->began));
  }

  // An empty list is the end.
  void hand_over(std::vector<ClaimedTask> tasks) {
    std::lock_guard lock(mutex_);
    is_closed_ = tasks.empty();
    claimed_.insert(claimed_.end(), std::make_move_iterator(tasks.begin()),
                    std::make_move_iterator(tasks.end()));
    changed_.notify_one();
  }

  // ---- the thread that runs ----

  std::vector<ClaimedTask> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_closed_ || !claimed_.empty(); });
    return std::exchange(claimed_, {});
  }

  void run() {
    for (auto tasks = take(); !tasks.empty(); tasks = take()) {
      if (shared_.load.rest.count() > 0) {
        std::this_thread::sleep_for(shared_.load.rest);
        commit_alone(tasks.front());
      }
      // As many as there are cycles left; the others have been through enough.
      const auto count = static_cast<std::int64_t>(tasks.size());
      const auto left = shared_.load.cycles - shared_.started.fetch_add(count);
      const auto ended = tasks.begin() + std::clamp(left, std::int64_t{0}, count);
      suspend_and_signal({tasks.begin(), ended});
      complete({ended, tasks.end()});
    }
  }

  // One small durable change, for comparison.
  void commit_alone(const ClaimedTask& task) {
    const auto began = SteadyClock::now();
    const auto answer = shared_.engine.call(
        UpdateProgress{.execution_id = task.execution_id, .fence = task.fence, .message = "running"});
    latencies.commit.push_back(latency_since(began));
    if (!answer) shared_.fail(answer.error());
    std::this_thread::sleep_for(shared_.load.rest);
  }

  template <class Request>
  void post(Request request, Gate& gate, std::function<void(typename Request::Answer)> then) {
    shared_.engine.post(std::move(request), [this, &gate, then = std::move(then)](auto answer) {
      if (answer)
        then(*std::move(answer));
      else
        shared_.fail(answer.error());
      gate.done();
    });
  }

  void suspend_and_signal(const std::vector<ClaimedTask>& tasks) {
    std::vector<std::int64_t> began(tasks.size());
    std::vector<Suspended> suspended(tasks.size());
    Gate gate;
    gate.start(static_cast<int>(tasks.size()));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      SuspendExecution request{.execution_id = tasks[i].execution_id, .fence = tasks[i].fence};
      request.resume_condition = {SingleSignal{"answer", {"answered"}}};
      began[i] = micros_since(shared_.start);
      post(std::move(request), gate, [&suspended, i](Suspended answer) { suspended[i] = std::move(answer); });
    }
    gate.wait();
    if (shared_.failed) return;
    gate.start(static_cast<int>(tasks.size()));
    for (std::size_t i = 0; i < tasks.size(); ++i) {
      const auto& waitpoint = suspended[i].waitpoints.front();
      DeliverSignal request{.execution_id = tasks[i].execution_id,
                            .waitpoint_id = waitpoint.waitpoint_id,
                            .waitpoint_token = waitpoint.waitpoint_token,
                            .signal_name = "answered"};
      request.source_identity = tasks[i].execution_id.to_string();
      request.payload = to_text({began[i], micros_since(shared_.start)});
      post(std::move(request), gate, [this](const SignalDelivered& answer) {
        if (answer.effect == SignalEffect::resume_condition_satisfied) return;
        shared_.fail(wrong("the signal was not enough").error());
      });
    }
    gate.wait();
  }

  void complete(const std::vector<ClaimedTask>& tasks) {
    Gate gate;
    gate.start(static_cast<int>(tasks.size()));
    for (const auto& task : tasks) {
      post(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}, gate,
           [this](const Completed&) { ++shared_.completed; });
    }
    gate.wait();
  }

  Shared& shared_;
  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<ClaimedTask> claimed_;
  bool is_closed_{false};
  std::thread runner_;
  std::thread claimer_;
};

Result<void> create_all(Engine& engine, const Load& load) {
  CreateExecution execution{.lane_id = load.lane, .execution_kind = "bench"};
  execution.policy.max_signals_per_execution = 0;
  const std::vector window(static_cast<std::size_t>(load.in_flight), execution);
  for (int i = 0; i < load.workers; ++i) {
    const auto created = engine.call(CreateExecutions{window});
    if (!created) return std::unexpected(created.error());
    for (const auto& each : *created) {
      if (!each) return std::unexpected(each.error());
    }
  }
  return {};
}

struct Measured {
  Latencies latencies;
  double seconds{};
};

// The same executions go through all cycles, and are completed then.
Result<Measured> measure(Engine& engine, const Load& load) {
  if (auto ok = create_all(engine, load); !ok) return std::unexpected(ok.error());
  Shared shared{.engine = engine, .load = load};
  std::vector<std::unique_ptr<Worker>> workers;
  for (int i = 0; i < load.workers; ++i) workers.push_back(std::make_unique<Worker>(shared, i));
  Latencies all;
  const auto add = [&](std::vector<std::uint32_t> Latencies::*kind, const Latencies& more) {
    (all.*kind).insert((all.*kind).end(), (more.*kind).begin(), (more.*kind).end());
  };
  for (auto& worker : workers) {
    worker->join();
    for (const auto kind : {&Latencies::signal_to_resumed, &Latencies::cycle, &Latencies::commit}) {
      add(kind, worker->latencies);
    }
  }
  if (shared.failure) return std::unexpected(*shared.failure);
  if (shared.resumed != load.cycles) return wrong("not as many executions were resumed as were suspended");
  if (auto ok = expect_count(engine, load.lane, PublicState::completed, load.executions()); !ok) {
    return std::unexpected(ok.error());
  }
  return Measured{std::move(all), static_cast<double>(shared.over_after) / 1e6};
}

}  // namespace

Result<BenchReport> bench_suspend_resume(BenchStore& store, const SuspendBenchOptions& options) {
  auto idle = measure(store.engine(), {.lane = "idle",
                                       .workers = 1,
                                       .in_flight = 1,
                                       .cycles = kWarmUp + options.idle_cycles,
                                       .warm_up = kWarmUp,
                                       .rest = kRest});
  if (!idle) return std::unexpected(idle.error());
  const auto before = store.engine().stats();
  auto busy = measure(store.engine(), {.lane = "busy",
                                       .workers = options.workers,
                                       .in_flight = options.in_flight,
                                       .cycles = options.cycles,
                                       .warm_up = 0,
                                       .rest = microseconds(0)});
  if (!busy) return std::unexpected(busy.error());
  auto report = report_of(store, options, "suspend-resume", options.cycles, busy->seconds);
  const auto after = store.engine().stats();
  report.mean_batch = static_cast<double>(after.operations - before.operations) /
                      static_cast<double>(after.batches - before.batches);
  report.database = store.database_cost(options.cycles + options.idle_cycles);
  report.figures = {{"idle_cycles", static_cast<double>(options.idle_cycles)}};
  add_figures(report, "idle_signal_to_resumed", percentiles(idle->latencies.signal_to_resumed));
  add_figures(report, "idle_cycle", percentiles(idle->latencies.cycle));
  add_figures(report, "idle_commit", percentiles(idle->latencies.commit));
  add_figures(report, "busy_signal_to_resumed", percentiles(busy->latencies.signal_to_resumed));
  add_figures(report, "busy_cycle", percentiles(busy->latencies.cycle));
  return report;
}

}  // namespace flowfabric::cli
