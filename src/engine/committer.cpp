#include "engine/committer.h"

#include <algorithm>

namespace flowfabric::engine {

namespace {

Error full(const std::string& what, std::size_t max) {
  return {ErrorCode::resource_exhausted, what + ": " + std::to_string(max),
          "The engine has as much queued as it may hold. Back off for a moment, then repeat the call."};
}

const Error kStopping{ErrorCode::unavailable, "shutting down",
                      "The engine is stopping and has not run this call. Repeat it on a running one."};

const Error kOverdue{ErrorCode::timeout, "not run in time",
                     "The call waited in the queue past its deadline and has changed nothing. Repeat it."};

}  // namespace

Committer::Committer(std::unique_ptr<store::Session> session, const EngineOptions& options,
                     WaitingClaims& waiting, std::function<void(const BatchEffects&)> committed)
    : session_(std::move(session)),
      options_(options),
      settings_{{options.flow_partitions, options.budget_partitions, options.quota_partitions},
                options.retention.count()},
      waiting_(waiting),
      committed_(std::move(committed)),
      thread_([this] { loop(); }) {}

Committer::~Committer() {
  stop(std::chrono::steady_clock::now());
}

std::optional<Error> Committer::enqueue(Operation& operation) {
  if (stopping_) return kStopping;
  if (queue_.size() >= options_.max_queued_operations) {
    return full("queued operations", options_.max_queued_operations);
  }
  if (queued_bytes_ + operation.bytes > options_.max_queued_bytes) {
    return full("queued bytes", options_.max_queued_bytes);
  }
  queued_bytes_ += operation.bytes;
  queue_.push_back(std::move(operation));
  if (queue_.size() == 1) arrived_.notify_one();
  return std::nullopt;
}

void Committer::submit(Operation operation) {
  std::optional<Error> refusal;
  {
    std::lock_guard lock(mutex_);
    refusal = enqueue(operation);
  }
  if (refusal) operation.answer(&*refusal);
}

void Committer::submit(std::vector<Operation> operations) {
  std::vector<std::pair<Operation, Error>> refused;
  {
    std::lock_guard lock(mutex_);
    for (auto& operation : operations) {
      if (auto refusal = enqueue(operation)) refused.emplace_back(std::move(operation), *std::move(refusal));
    }
  }
  for (auto& [operation, refusal] : refused) operation.answer(&refusal);
}

void Committer::requeue(std::vector<Operation> operations) {
  std::vector<Operation> too_late;
  {
    std::lock_guard lock(mutex_);
    for (auto& operation : operations) {
      if (stopping_) {
        too_late.push_back(std::move(operation));
        continue;
      }
      queued_bytes_ += operation.bytes;
      queue_.push_back(std::move(operation));
    }
  }
  // A claim that waited has an answer already: nothing found.
  for (auto& operation : too_late) operation.answer(nullptr);
}

void Committer::refuse_overdue(SteadyTime now) {
  std::vector<Operation> overdue;
  {
    std::lock_guard lock(mutex_);
    for (auto& operation : queue_) {
      if (operation.deadline > now) continue;
      queued_bytes_ -= operation.bytes;
      overdue.push_back(std::move(operation));
    }
    std::erase_if(queue_, [](const Operation& operation) { return !operation.answer; });
  }
  for (auto& operation : overdue) operation.answer(&kOverdue);
}

std::vector<Operation> Committer::take_batch() {
  std::vector<Operation> batch;
  std::unique_lock lock(mutex_);
  arrived_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
  const auto size = std::min(queue_.size(), options_.max_batch);
  batch.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    queued_bytes_ -= queue_.front().bytes;
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

void Committer::loop() {
  for (;;) {
    auto batch = take_batch();
    if (batch.empty()) return;
    // The store may have been away for longer than some of them were willing to wait.
    const auto now = std::chrono::steady_clock::now();
    for (auto& operation : batch) {
      if (operation.deadline <= now) std::exchange(operation.answer, nullptr)(&kOverdue);
    }
    std::erase_if(batch, [](const Operation& operation) { return !operation.answer; });
    if (!batch.empty()) process(std::move(batch));
  }
}

void Committer::process(std::vector<Operation> batch) {
  const auto result = run_batch(*session_, batch, settings_);
  operations_ += batch.size();
  ++batches_;
  if (batch.size() > largest_batch_) largest_batch_ = batch.size();
  if (!result.failure) committed_(result.effects);
  answer(batch, result);
  if (!result.effects.offers.empty()) requeue(waiting_.wake(result.effects.offers));
}

void Committer::answer(std::vector<Operation>& batch, const BatchResult& result) {
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto& operation = batch[i];
    const Error* refusal = result.failure ? &*result.failure : result.refusals[i];
    const bool may_wait =
        !refusal && operation.claim && operation.wait_until > now && operation.came_back_empty();
    if (may_wait) {
      auto refused = waiting_.park(std::move(operation));
      if (!refused) continue;
      operation = *std::move(refused);
    }
    operation.answer(refusal);
  }
}

void Committer::stop(SteadyTime until) {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  while (std::chrono::steady_clock::now() < until) {
    {
      std::lock_guard lock(mutex_);
      if (queue_.empty()) break;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::deque<Operation> left;
  {
    std::lock_guard lock(mutex_);
    left.swap(queue_);
    queued_bytes_ = 0;
  }
  for (auto& operation : left) operation.answer(&kStopping);
  if (thread_.joinable()) thread_.join();
}

EngineStats Committer::stats() const {
  return {
      .operations = operations_, .batches = batches_, .largest_batch = largest_batch_, .clock_operations = 0};
}

}  // namespace flowfabric::engine
