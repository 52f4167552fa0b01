// The benchmark of output streams.
#include <mutex>
#include <thread>

#include "cli/bench.h"

namespace flowfabric::cli {

namespace {

// Long enough for the tailer to be waiting again.
constexpr std::chrono::microseconds kRest{2000};
constexpr int kWarmUp = 20;
constexpr const char* kLane = "streams";

Result<ClaimedTask> start_task(Engine& engine) {
  if (auto made = engine.call(CreateExecution{.lane_id = kLane, .execution_kind = "stream"}); !made) {
    return std::unexpected(made.error());
  }
  auto tasks = engine.call(ClaimTasks{.worker_id = "writer", .lanes = {kLane}, .lease_ttl_ms = 3'600'000});
  if (!tasks) return std::unexpected(tasks.error());
  if (tasks->empty()) return wrong("there is nothing to claim");
  return tasks->front();
}

AppendFrame frame_of(const ClaimedTask& task, std::string payload) {
  AppendFrame request{.execution_id = task.execution_id, .attempt_index = task.attempt_index};
  request.fence = task.fence;
  request.payload = std::move(payload);
  return request;
}

// Appends one frame at a time, to a waiting tailer.
Result<Percentiles> measure_tail(Engine& engine, std::int64_t frames) {
  const auto task = start_task(engine);
  if (!task) return std::unexpected(task.error());
  const auto start = SteadyClock::now();
  std::vector<std::uint32_t> latencies;
  std::string after = "0-0";
  for (std::int64_t i = 0; i < frames + kWarmUp; ++i) {
    std::atomic<std::int64_t> seen_at{0};
    std::optional<Result<StreamPage>> page;
    Gate gate;
    gate.start(1);
    engine.post(TailStream{task->execution_id, task->attempt_index, after, 10'000}, [&](auto answer) {
      seen_at = micros_since(start);
      page = std::move(answer);
      gate.done();
    });
    std::this_thread::sleep_for(kRest);
    const auto sent_at = micros_since(start);
    auto appended = engine.call(frame_of(*task, std::to_string(i)));
    if (!appended) return std::unexpected(appended.error());
    gate.wait();
    if (!*page) return std::unexpected(page->error());
    const bool right = (*page)->frames.size() == 1 && (*page)->frames[0].id == appended->stream_id;
    if (!right) return wrong("a tailer was given something else than the frame it waited for");
    if (i >= kWarmUp) latencies.push_back(static_cast<std::uint32_t>(seen_at - sent_at));
    after = appended->stream_id;
  }
  return percentiles(latencies);
}

// As fast as it goes, by several workers, each to a stream of its own.
struct Written {
  double seconds{};
  Percentiles append;
};
Result<Written> measure_appends(Engine& engine, const StreamBenchOptions& options) {
  std::vector<ClaimedTask> tasks;
  for (int i = 0; i < options.workers; ++i) {
    auto task = start_task(engine);
    if (!task) return std::unexpected(task.error());
    tasks.push_back(*std::move(task));
  }
  std::mutex mutex;
  std::optional<Error> failure;
  std::vector<std::uint32_t> latencies;
  const auto start = SteadyClock::now();
  std::vector<std::thread> threads;
  for (const auto& task : tasks) {
    threads.emplace_back([&] {
      std::vector<std::uint32_t> own;
      const auto each = options.frames / options.workers;
      for (std::int64_t sent = 0; sent < each; sent += options.in_flight) {
        const auto began = SteadyClock::now();
        Gate gate;
        gate.start(options.in_flight);
        for (int i = 0; i < options.in_flight; ++i) {
          engine.post(frame_of(task, std::string(static_cast<std::size_t>(options.payload_bytes), 'f')),
                      [&](auto answer) {
                        if (!answer) {
                          std::lock_guard lock(mutex);
                          failure = answer.error();
                        }
                        gate.done();
                      });
        }
        gate.wait();
        own.push_back(latency_since(began));
      }
      std::lock_guard lock(mutex);
      latencies.insert(latencies.end(), own.begin(), own.end());
    });
  }
  for (auto& thread : threads) thread.join();
  const auto seconds = seconds_since(start);
  if (failure) return std::unexpected(*failure);
  std::uint64_t counted = 0;
  for (const auto& task : tasks) {
    const auto streams = engine.call(ListStreams{task.execution_id});
    if (!streams) return std::unexpected(streams.error());
    for (const auto& stream : *streams) counted += stream.frame_count;
  }
  const auto rounds = (options.frames / options.workers + options.in_flight - 1) / options.in_flight;
  const auto expected = static_cast<std::uint64_t>(rounds * options.in_flight * options.workers);
  if (counted != expected) return wrong("frames were lost");
  return Written{seconds, percentiles(latencies)};
}

// The processor time of many idle tailers.
Result<double> measure_idle(Engine& engine, std::int64_t tailers) {
  const auto task = start_task(engine);
  if (!task) return std::unexpected(task.error());
  Gate gate;
  gate.start(static_cast<int>(tailers));
  constexpr std::int64_t wait_ms = 3000;
  for (std::int64_t i = 0; i < tailers; ++i) {
    engine.post(TailStream{task->execution_id, task->attempt_index, "0-0", wait_ms},
                [&](const auto&) { gate.done(); });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  const auto before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(2000));
  const auto used = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  gate.wait();
  return used / 2;
}

}  // namespace

Result<BenchReport> bench_stream(BenchStore& store, const StreamBenchOptions& options) {
  auto& engine = store.engine();
  const auto tail = measure_tail(engine, options.tailed);
  if (!tail) return std::unexpected(tail.error());
  const auto idle = measure_idle(engine, options.idle_tailers);
  if (!idle) return std::unexpected(idle.error());
  const auto written = measure_appends(engine, options);
  if (!written) return std::unexpected(written.error());
  auto report = report_of(store, options, "stream", options.frames, written->seconds);
  report.payload_bytes = options.payload_bytes;
  add_figures(report, "append_to_tailer", *tail);
  add_figures(report, "append_round", written->append);
  report.figures.emplace_back("idle_tailers", static_cast<double>(options.idle_tailers));
  report.figures.emplace_back("cpu_of_idle_tailers", *idle);
  return report;
}

}  // namespace flowfabric::cli
