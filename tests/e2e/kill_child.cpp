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
    // Now and then so much is written that the log is moved into the database under load.
    const std::size_t most_bytes = round_ % 6 == 5 ? 200'000 : 600;
    for (int i = 0; !wrong_; ++i) {
      std::vector<std::future<Result<Creation>>> answers;
      for (std::size_t j = 0; j < kInFlight; ++j) {
        CreateExecution request{
            .lane_id = random() % 2 ? "left" : "right",
            .execution_kind = "kill",
            .input = std::string(random() % most_bytes, 'x'),
            .tags = {{"test.round", std::to_string(round_)}},
            .policy = {.retry_policy = RetryPolicy{.max_retries = 2, .backoff = FixedBackoff{5}}}};
        if (random() % 4 == 0) {
          request.idempotency_key = std::to_string(round_) + "-" + std::to_string(number) + "-" +
                                    std::to_string(i) + "-" + std::to_string(j);
        }
        answers.push_back(engine_.submit(std::move(request)));
      }
      for (auto& answer : answers) {
        if (const auto created = checked(answer.get())) say("C " + created->execution_id.to_string());
      }
    }
  }

  void work(int number) {
    std::mt19937 random(static_cast<unsigned>(round_ * 100 + 50 + number));
    const auto name = "w" + std::to_string(round_) + "." + std::to_string(number);
    while (!wrong_) {
      const auto tasks = checked(engine_.call(ClaimTasks{.worker_id = name,
                                                         .lanes = {"left", "right"},
                                                         .max_tasks = kInFlight,
                                                         .lease_ttl_ms = 1000,
                                                         .wait_ms = 50}));
      if (!tasks) return;
      for (const auto& task : *tasks) {
        say("T " + task.execution_id.to_string() + " " + std::to_string(*task.fence.lease_epoch));
      }
      for (const auto& task : *tasks) end(task, random() % 100);
    }
  }

 private:
  void end(const ClaimedTask& task, std::uint64_t roll) {
    const auto id = task.execution_id.to_string();
    const auto epoch = *task.fence.lease_epoch;
    const auto tail = " " + id + " " + std::to_string(epoch);
    if (roll < 5) return;  // forgets it: the lease will be lost
    if (roll < 70) {
      const auto done = engine_.call(CompleteExecution{
          .execution_id = task.execution_id, .fence = task.fence, .result = result_of(id, epoch)});
      if (accepted(done)) say("D" + tail);
    } else if (roll < 85) {
      const auto failed = engine_.call(
          FailExecution{.execution_id = task.execution_id, .fence = task.fence, .reason = "on purpose"});
      if (accepted(failed)) say("F" + tail + (failed->retry_scheduled ? " 1" : " 0"));
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

int run_child(const std::string& database, int pipe, int round) {
  auto engine = Engine::open("sqlite:" + database);
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
