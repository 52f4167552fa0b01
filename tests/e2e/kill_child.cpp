#include "e2e/kill_child.h"

#include <unistd.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "flowfabric/engine.h"

namespace flowfabric::e2e {

namespace {

constexpr int kSubmitters = 2;
constexpr int kWorkers = 4;
constexpr std::size_t kInFlight = 8;

class Child {
 public:
  Child(Engine& engine, int pipe, int round) : engine_(engine), pipe_(pipe), round_(round) {}

  void submit(int number) {
    std::mt19937 random(static_cast<unsigned>(round_ * 100 + number));
    for (int i = 0; !wrong_; ++i) {
      CreateExecutions all;
      const auto prefix =
          std::to_string(round_) + "-" + std::to_string(number) + "-" + std::to_string(i) + "-";
      for (std::size_t j = 0; j < kInFlight; ++j) {
        all.executions.push_back(execution(random));
        if (random() % 4 == 0) all.executions.back().idempotency_key = prefix + std::to_string(j);
      }
      for (const auto& answer : random() % 4 == 0 ? create_in_bulk(all) : create_one_by_one(all)) {
        const auto created = checked(answer);
        if (!created) return;
        say("C " + created->execution_id.to_string());
        if (random() % 4 == 0) mark(created->execution_id);
      }
    }
  }

  void work(int number) {
    std::mt19937 random(static_cast<unsigned>(round_ * 100 + 50 + number));
    const auto name = "w" + std::to_string(round_) + "." + std::to_string(number);
    while (!wrong_) {
      const auto tasks = random() % 4 == 0 ? claim_by_grant(name, random) : claim(name);
      if (!tasks) return;
      for (const auto& task : *tasks) {
        say("T " + task.execution_id.to_string() + " " + std::to_string(*task.fence.lease_epoch));
      }
      for (const auto& task : *tasks) end(task, random() % 100);
    }
  }

 private:
  CreateExecution execution(std::mt19937& random) const {
    // Now and then so much is written that the log is moved into the database under load.
    const std::size_t most_bytes = round_ % 6 == 5 ? 200'000 : 600;
    return {.lane_id = random() % 2 ? "left" : "right",
            .execution_kind = "kill",
            .input = std::string(random() % most_bytes, 'x'),
            .tags = {{"test.round", std::to_string(round_)}},
            .policy = {.retry_policy = RetryPolicy{.max_retries = 2, .backoff = FixedBackoff{5}}}};
  }

  std::vector<Result<Creation>> create_in_bulk(const CreateExecutions& all) {
    auto answers = checked(engine_.call(all));
    return answers ? *std::move(answers) : std::vector<Result<Creation>>();
  }
  std::vector<Result<Creation>> create_one_by_one(const CreateExecutions& all) {
    std::vector<std::future<Result<Creation>>> futures;
    for (const auto& request : all.executions) futures.push_back(engine_.submit(request));
    std::vector<Result<Creation>> answers;
    for (auto& future : futures) answers.push_back(future.get());
    return answers;
  }
  void mark(const ExecutionId& id) {
    const auto text = id.to_string();
    if (checked(engine_.call(SetTags{.execution_id = id, .tags = {{kMark, text}}}))) say("M " + text);
  }

  std::optional<std::vector<ClaimedTask>> claim(const std::string& worker) {
    return checked(engine_.call(ClaimTasks{.worker_id = worker,
                                           .lanes = {"left", "right"},
                                           .max_tasks = kInFlight,
                                           .lease_ttl_ms = 1000,
                                           .wait_ms = 50}));
  }
  std::optional<std::vector<ClaimedTask>> claim_by_grant(const std::string& worker, std::mt19937& random) {
    const auto granted = checked(engine_.call(
        ClaimForWorker{.lane_id = random() % 2 ? "left" : "right", .terms = {.worker_id = worker}}));
    if (!granted) return std::nullopt;
    // Some are left to run out.
    if (!*granted || random() % 10 == 0) return std::vector<ClaimedTask>();
    auto task = checked(engine_.call(ClaimGranted{.execution_id = (*granted)->execution_id,
                                                  .use = {.worker_id = worker, .lease_ttl_ms = 1000}}));
    if (!task) return std::nullopt;
    return std::vector<ClaimedTask>{*std::move(task)};
  }

  void replay(const ExecutionId& id) {
    const auto text = id.to_string();
    say("A " + text);
    if (checked(engine_.call(ReplayExecution{.execution_id = id, .reason = "once more"}))) say("R " + text);
  }

  void end(const ClaimedTask& task, std::uint64_t roll) {
    const auto id = task.execution_id.to_string();
    const auto epoch = *task.fence.lease_epoch;
    const auto tail = " " + id + " " + std::to_string(epoch);
    if (roll < 5) return;  // forgets it: the lease will be lost
    if (roll < 70) {
      const auto done = engine_.call(CompleteExecution{
          .execution_id = task.execution_id, .fence = task.fence, .result = result_of(id, epoch)});
      if (!accepted(done)) return;
      say("D" + tail);
      if (roll < 10) replay(task.execution_id);
    } else if (roll < 85) {
      const auto failed = engine_.call(
          FailExecution{.execution_id = task.execution_id, .fence = task.fence, .reason = "on purpose"});
      if (!accepted(failed)) return;
      say("F" + tail + (failed->retry_scheduled ? " 1" : " 0"));
      if (roll < 75 && !failed->retry_scheduled) replay(task.execution_id);
    } else {
      const auto later = engine_.call(DelayExecution{.execution_id = task.execution_id,
                                                     .fence = task.fence,
                                                     .delay_until = task.lease_expires_at - 990});
      if (accepted(later)) say("L" + tail);
    }
  }

  // A worker that was too slow has lost its lease: that is no fault.
  template <class Answer>
  bool accepted(const Result<Answer>& answer) {
    if (answer) return true;
    const auto code = answer.error().code;
    if (code != ErrorCode::lease_expired && code != ErrorCode::stale_lease) checked(answer);
    return false;
  }

  template <class Answer>
  std::optional<Answer> checked(const Result<Answer>& answer) {
    if (answer) return *answer;
    wrong_ = true;
    say("! " + answer.error().to_string());
    return std::nullopt;
  }

  // One write of less than PIPE_BUF bytes: lines of several threads do not mix, and none is cut.
  void say(const std::string& line) {
    const auto text = line + "\n";
    if (write(pipe_, text.data(), text.size()) != static_cast<ssize_t>(text.size())) wrong_ = true;
  }

  Engine& engine_;
  const int pipe_;
  const int round_;
  std::atomic<bool> wrong_{false};
};

}  // namespace

std::string result_of(const std::string& id, std::int64_t epoch) {
  return std::string("result\0of ", 10) + id + " at " + std::to_string(epoch);
}

int run_child(const std::string& url, int round, int pipe) {
  auto engine = Engine::open(url);
  if (!engine) {
    const auto text = "! " + engine.error().to_string() + "\n";
    return write(pipe, text.data(), text.size()) < 0 ? 2 : 1;
  }
  Child child(*engine, pipe, round);
  std::vector<std::thread> threads;
  for (int i = 0; i < kSubmitters; ++i) threads.emplace_back([&child, i] { child.submit(i); });
  for (int i = 0; i < kWorkers; ++i) threads.emplace_back([&child, i] { child.work(i); });
  for (auto& thread : threads) thread.join();
  return 1;
}

}  // namespace flowfabric::e2e
