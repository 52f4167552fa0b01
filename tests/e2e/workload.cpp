#include "e2e/workload.h"

#include <thread>

#include "e2e/kill_child.h"

namespace flowfabric::e2e {

namespace {

constexpr std::uint32_t kTasks = 16;
constexpr std::int64_t kLeaseMs = 2500;
constexpr std::chrono::milliseconds kBeforeRepeat{20};

CreateExecution execution(int number) {
  return {.lane_id = kLanes[static_cast<std::size_t>(number) % kLanes.size()],
          .execution_kind = "chaos",
          .input = "input of " + std::to_string(number),
          .idempotency_key = "task-" + std::to_string(number),
          .policy = {.retry_policy = RetryPolicy{.max_retries = 2, .backoff = FixedBackoff{5}}}};
}

std::string words(char kind, const ClaimedTask& task) {
  return std::string(1, kind) + " " + task.execution_id.to_string() + " " +
         std::to_string(*task.fence.lease_epoch);
}

}  // namespace

bool Workload::may_repeat(const Error& error) {
  if (error.code != ErrorCode::unavailable && error.code != ErrorCode::timeout) return false;
  ++repeats_;
  return true;
}

template <class Request>
std::optional<Result<typename Request::Answer>> Workload::insist(const Request& request) {
  while (!stopping_) {
    auto answer = engine_.call(request);
    if (answer || !may_repeat(answer.error())) return answer;
    std::this_thread::sleep_for(kBeforeRepeat);
  }
  return std::nullopt;
}

// All under way at once.
template <class Request>
std::vector<Result<typename Request::Answer>> Workload::call_all(const std::vector<Request>& requests) {
  std::vector<std::future<Result<typename Request::Answer>>> futures;
  for (const auto& request : requests) futures.push_back(engine_.submit(request));
  std::vector<Result<typename Request::Answer>> answers;
  for (std::size_t i = 0; i < requests.size(); ++i) {
    answers.push_back(futures[i].get());
    if (answers[i] || !may_repeat(answers[i].error())) continue;
    if (auto later = insist(requests[i])) answers[i] = *std::move(later);
  }
  return answers;
}

void Workload::submit(const std::vector<int>& numbers) {
  std::vector<CreateExecution> requests;
  for (const auto number : numbers) requests.push_back(execution(number));
  for (const auto& created : call_all(requests)) {
    if (accepted(created)) say_("C " + created->execution_id.to_string());
  }
}

void Workload::work(int worker) {
  const auto name = name_ + "." + std::to_string(worker);
  std::mt19937 random(static_cast<unsigned>(std::hash<std::string>()(name)));
  while (!stopping_) {
    std::vector<ClaimedTask> good;
    for (const auto& task : claim(name)) {
      say_claimed(task);
      const auto roll = random() % 100;
      if (roll == 0) continue;  // forgets it: the lease will be lost
      if (roll < 5)
        fail(task);
      else
        good.push_back(task);
    }
    complete(good);
  }
}

std::vector<ClaimedTask> Workload::claim(const std::string& worker) {
  const auto tasks = insist(ClaimTasks{
      .worker_id = worker, .lanes = kLanes, .max_tasks = kTasks, .lease_ttl_ms = kLeaseMs, .wait_ms = 200});
  if (!tasks || !accepted(*tasks)) return {};
  return **tasks;
}

void Workload::say_claimed(const ClaimedTask& task) {
  say_(words('T', task));
}

void Workload::complete(const std::vector<ClaimedTask>& tasks) {
  std::vector<CompleteExecution> requests;
  for (const auto& task : tasks) {
    requests.push_back({.execution_id = task.execution_id,
                        .fence = task.fence,
                        .result = result_of(task.execution_id.to_string(), *task.fence.lease_epoch)});
  }
  const auto answers = call_all(requests);
  for (std::size_t i = 0; i < tasks.size(); ++i) {
    if (!accepted(answers[i])) continue;
    say_(words('D', tasks[i]));
    ++completions_;
  }
}

void Workload::fail(const ClaimedTask& task) {
  const auto failed =
      insist(FailExecution{.execution_id = task.execution_id, .fence = task.fence, .reason = "on purpose"});
  if (failed && accepted(*failed)) say_(words('F', task) + ((*failed)->retry_scheduled ? " 1" : " 0"));
}

// A worker that was too slow has lost its lease, and what it worked on may have ended since: no fault.
template <class Answer>
bool Workload::accepted(const Result<Answer>& answer) {
  if (answer) return true;
  const auto code = answer.error().code;
  const bool too_late = code == ErrorCode::lease_expired || code == ErrorCode::stale_lease ||
                        code == ErrorCode::execution_not_active;
  const bool was_stopped = stopping_ && (code == ErrorCode::unavailable || code == ErrorCode::timeout);
  if (!too_late && !was_stopped) say_("! " + answer.error().to_string());
  return false;
}

}  // namespace flowfabric::e2e
