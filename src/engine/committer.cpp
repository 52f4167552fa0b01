#include "engine/committer.h"

#include <algorithm>

#include "engine/backoff.h"

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

// Another writer cannot be in the way this often by chance.
constexpr int kMaxReruns = 20;

}  // namespace

Committer::Committer(std::unique_ptr<store::Session> session, const EngineOptions& options,
                     WaitingClaims& waiting, std::function<void(const BatchEffects&)> committed,
                     SharedStore shared)
    : session_(std::move(session)),
      options_(options),
      settings_{{options.flow_partitions, options.budget_partitions, options.quota_partitions},
                options.retention.count(),
                options.budget_grace.count(),
                static_cast<bool>(options.attempts_ended)},
      waiting_(waiting),
      committed_(std::move(committed)),
      shared_(std::move(shared)),
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
  arrived_.notify_one();
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
    refuse_overdue(batch);
    if (!batch.empty()) process(std::move(batch));
  }
}

void Committer::refuse_overdue(std::vector<Operation>& operations) {
  const auto now = std::chrono::steady_clock::now();
  for (auto& operation : operations) {
    if (operation.deadline <= now) std::exchange(operation.answer, nullptr)(&kOverdue);
  }
  std::erase_if(operations, [](const Operation& operation) { return !operation.answer; });
}

bool Committer::is_stopping() const {
  std::lock_guard lock(mutex_);
  return stopping_;
}

// Operations are pure, so a batch that met another writer, or a store that is away, is simply run again. A
// connection may have been lost long ago, unnoticed: that alone does not mean that the store is away now.
BatchResult Committer::run_until_settled(std::vector<Operation>& batch) {
  Backoff contention(std::chrono::milliseconds(1), std::chrono::milliseconds(50));
  Backoff outage(std::chrono::milliseconds(20), std::chrono::milliseconds(2000));
  bool reconnected = false;
  for (int reruns = 0;;) {
    auto result =
        run_batch(*session_, batch, settings_, [this](Offers& offers) { return waiting_.join(offers); });
    if (result.failure) count_failure(*result.failure);
    if (result.retry == store::Retry::when_back && !std::exchange(reconnected, true)) continue;
    const bool raced = result.retry == store::Retry::now && ++reruns <= kMaxReruns;
    const bool away = result.retry == store::Retry::when_back && shared_.waits_when_away && !is_stopping();
    if (!raced && !away) return result;
    std::this_thread::sleep_for(raced ? contention.next() : outage.next());
    refuse_overdue(batch);
    if (batch.empty()) return result;
  }
}

void Committer::process(std::vector<Operation> batch) {
  const auto began = std::chrono::steady_clock::now();
  const auto wakeups_before = waiting_.wakeups();
  const auto result = run_until_settled(batch);
  if (result.retry == store::Retry::one_by_one && batch.size() > 1) {
    for (auto& operation : batch) {
      std::vector<Operation> alone;
      alone.push_back(std::move(operation));
      process(std::move(alone));
    }
    return;
  }
  count(batch.size(), result,
        std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count());
  if (!result.failure) committed_(result.effects);
  answer(batch, result, wakeups_before);
  wake(result.effects);
}

void Committer::count(std::size_t operations, const BatchResult& result, double seconds) {
  std::lock_guard lock(figures_mutex_);
  figures_.operations += operations;
  ++figures_.batches;
  figures_.largest_batch = std::max<std::uint64_t>(figures_.largest_batch, operations);
  figures_.batch_sizes.observe(static_cast<double>(operations));
  figures_.batch_seconds.observe(seconds);
  if (result.commit_seconds > 0) figures_.commit_seconds.observe(result.commit_seconds);
  figures_.round_trips = session_->round_trips();
}

void Committer::count_failure(const Error& failure) {
  std::lock_guard lock(figures_mutex_);
  ++figures_.store_failures[std::string(enum_name(error_info(failure.code).kind))];
}

void Committer::wake(const BatchEffects& effects) {
  if (effects.offers.empty()) return;
  auto woken = waiting_.wake(effects.offers);
  requeue(std::move(woken.operations));
  if (!woken.unserved.empty() && shared_.unserved) shared_.unserved(woken.unserved);
}

void Committer::answer(std::vector<Operation>& batch, const BatchResult& result,
                       std::uint64_t wakeups_before) {
  std::vector<Operation> again;
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < batch.size(); ++i) {
    auto& operation = batch[i];
    const Error* refusal = result.failure ? &*result.failure : result.refusals[i];
    // What a waiting claim joined has failed, which is no answer to the claim.
    if (std::exchange(operation.joined, false) && result.failure) {
      again.push_back(std::move(operation));
      continue;
    }
    const bool may_wait =
        !refusal && operation.claim && operation.wait_until > now && operation.came_back_empty();
    if (may_wait) {
      const auto parked = waiting_.park(operation, wakeups_before);
      if (parked == WaitingClaims::Parked::run_again) again.push_back(std::move(operation));
      if (parked != WaitingClaims::Parked::no_room) continue;
    }
    operation.answer(refusal);
  }
  requeue(std::move(again));
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
    was_cut_short_ |= !left.empty();
  }
  for (auto& operation : left) operation.answer(&kStopping);
  if (thread_.joinable()) thread_.join();
}

EngineStats Committer::stats() const {
  EngineStats stats;
  {
    std::lock_guard lock(figures_mutex_);
    stats = figures_;
  }
  std::lock_guard lock(mutex_);
  stats.queued = queue_.size();
  stats.queued_bytes = queued_bytes_;
  stats.max_queued = options_.max_queued_operations;
  stats.queue_is_full =
      queue_.size() >= options_.max_queued_operations || queued_bytes_ >= options_.max_queued_bytes;
  stats.shutdown_timeouts = was_cut_short_ ? 1 : 0;
  return stats;
}

}  // namespace flowfabric::engine
