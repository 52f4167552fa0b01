// A small story on the embedded store: work is submitted, a worker crashes, another takes over, a failure is
// retried, and everything ends well.
#include <fmt/core.h>

#include <filesystem>

#include "cli/commands.h"
#include "cli/temporary_folder.h"
#include "flowfabric/engine.h"
#include "model/describe.h"

namespace flowfabric::cli {

namespace {

constexpr int kTasks = 5;

// Claims once and shows what came.
std::vector<ClaimedTask> claim(Engine& engine, const std::string& worker, std::uint32_t max_tasks) {
  auto tasks = engine.call(
      ClaimTasks{.worker_id = worker, .max_tasks = max_tasks, .lease_ttl_ms = 1000, .wait_ms = 5000});
  if (!tasks) throw std::runtime_error(tasks.error().to_string());
  for (const auto& task : *tasks) {
    fmt::print("  {:<9} {} {} (attempt {}, {})\n", worker, enum_name(task.claim),
               task.execution_id.to_string(), task.attempt_index, task.input);
  }
  return *std::move(tasks);
}

template <class Answer>
Answer expect(Result<Answer> result) {
  if (!result) throw std::runtime_error(result.error().to_string());
  return *std::move(result);
}

void submit_all(Engine& engine) {
  const ExecutionPolicy retry_once{
      .retry_policy = RetryPolicy{.max_retries = 1, .backoff = FixedBackoff{.delay_ms = 200}}};
  for (int i = 0; i < kTasks; ++i) {
    expect(engine.call(CreateExecution{.execution_kind = "greet",
                                       .input = fmt::format("hello {}", i),
                                       .idempotency_key = fmt::format("greeting-{}", i),
                                       .policy = retry_once}));
  }
  const auto again =
      expect(engine.call(CreateExecution{.execution_kind = "greet", .idempotency_key = "greeting-0"}));
  fmt::print("Submitted {} tasks. Submitting greeting-0 again: {}\n", kTasks,
             again.duplicate ? "recognised as a duplicate." : "NOT recognised!");
}

int work_until_done(Engine& engine) {
  int completed = 0;
  bool failed_once = false;
  while (completed < kTasks) {
    for (const auto& task : claim(engine, "worker-b", 2)) {
      if (!failed_once) {
        failed_once = true;
        const auto failed = expect(engine.call(FailExecution{
            .execution_id = task.execution_id, .fence = task.fence, .reason = "network hiccup"}));
        fmt::print("            failed; {}\n",
                   failed.retry_scheduled ? "will be retried in 200 ms" : "for good");
        continue;
      }
      expect(engine.call(CompleteExecution{
          .execution_id = task.execution_id, .fence = task.fence, .result = task.input + ", done"}));
      ++completed;
    }
  }
  return completed;
}

int run_demo(const std::string& folder) {
  const std::string url = "sqlite:" + folder + "/demo.db";
  fmt::print("== FlowFabric demo on {}\n", url);
  auto engine = Engine::open(url);
  if (!engine) return report(engine.error());
  submit_all(*engine);

  fmt::print("worker-a claims a task and crashes; its lease runs out after one second:\n");
  const auto lost = claim(*engine, "worker-a", 1);
  fmt::print("worker-b works until everything is done:\n");
  work_until_done(*engine);

  const auto late = engine->call(CompleteExecution{
      .execution_id = lost.at(0).execution_id, .fence = lost.at(0).fence, .result = "late"});
  fmt::print("worker-a comes back and wants to complete its task: refused, {}\n", late.error().to_string());
  const auto counts = expect(engine->call(CountLane{}));
  const auto it = counts.find(PublicState::completed);
  const bool all_done = it != counts.end() && it->second == kTasks && counts.size() == 1;
  fmt::print("{} of {} tasks completed, each exactly once.\n", it == counts.end() ? 0 : it->second, kTasks);
  fmt::print(
      "\nTry next:\n"
      "  build/release/flowfabric bench lifecycle --store sqlite:bench.db --tasks 20000 --workers 16\n"
      "  build/release/flowfabric --help\n"
      "  README.md shows how to use the library from your own program.\n");
  return all_done ? 0 : 1;
}

}  // namespace

void add_demo(Command& app, Action& chosen) {
  auto* command = app.add_subcommand(
      "demo", "Run a short story on a temporary embedded store: submit, crash, retry, done.");
  command->footer("Example:\n  flowfabric demo");
  command->callback([&chosen] {
    chosen = [] {
      const TemporaryFolder folder("flowfabric-demo");
      return run_demo(folder.path());
    };
  });
}

}  // namespace flowfabric::cli
