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

// How long a failed commit is worth telling when nothing else is tried.
constexpr std::chrono::seconds kTroubleLasts{30};
constexpr std::chrono::seconds kBetweenWarnings{60};

}  // namespace

Committer::Committer(std::unique_ptr<store::Session> session, const EngineOptions& options,
                     WaitingClaims& waiting, std::function<void(const BatchEffects&)> committed,
                     SharedStore shared)
    : session_(std::move(session)),
      options_(options),
      settings_{{options.flow_partitions, options.budget_partitions, options.quota_partitions},
                options.retention.count(),
                options.budget_grace.count(),
                options.reclaim_grace.count(),
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
    if (batch.empty()) return session_->await_durable();
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

bool Committer::others_wait() const {
  std::lock_guard lock(mutex_);
  return !queue_.empty();
}

// What went wrong; absent: it is on its way, and is finished when it is durable.
std::optional<BatchResult> Committer::run_once(const std::shared_ptr<Run>& run) {
  auto [result, unit] = work_out(*session_, run->operations, settings_,
                                 [this](OfferedWork& offers) { return waiting_.join(offers); });
  if (!unit) return std::move(result);
  run->result = std::move(result);
  if (unit->has_changes()) run->commit_began = std::chrono::steady_clock::now();
  BatchResult failed;
  commit(*session_, std::move(unit), others_wait(), failed,
         [this, run](const std::optional<store::StoreFailure>& failure) {
           if (failure) {
             count_failure(failure->error);
             run->result.fail(*failure);
           }
           finish(*run);
         });
  if (failed.failure) return failed;
  return std::nullopt;
}

// Operations are pure, so a batch that met another writer, or a store that is away, is simply run again. A
// connection may have been lost long ago, unnoticed: that alone does not mean that the store is away now.
std::optional<BatchResult> Committer::run_until_handed_over(const std::shared_ptr<Run>& run) {
  Backoff contention(std::chrono::milliseconds(1), std::chrono::milliseconds(50));
  Backoff outage(std::chrono::milliseconds(20), std::chrono::milliseconds(2000));
  bool reconnected = false;
  for (int reruns = 0;;) {
    auto failed = run_once(run);
    if (!failed) return std::nullopt;
    count_failure(*failed->failure);
    if (failed->retry == store::Retry::when_back && !std::exchange(reconnected, true)) continue;
    const bool raced = failed->retry == store::Retry::now && ++reruns <= kMaxReruns;
    const bool away = failed->retry == store::Retry::when_back && shared_.waits_when_away && !is_stopping();
    if (!raced && !away) return failed;
    std::this_thread::sleep_for(raced ? contention.next() : outage.next());
    refuse_overdue(run->operations);
    if (run->operations.empty()) return failed;
  }
}

void Committer::process(std::vector<Operation> batch) {
  auto run = std::make_shared<Run>(std::move(batch), std::chrono::steady_clock::now(), waiting_.wakeups());
  auto failed = run_until_handed_over(run);
  if (!failed) return;
  if (failed->retry == store::Retry::one_by_one && run->operations.size() > 1) {
    for (auto& operation : run->operations) {
      std::vector<Operation> alone;
      alone.push_back(std::move(operation));
      process(std::move(alone));
    }
    return;
  }
  run->result = *std::move(failed);
  finish(*run);
}

void Committer::finish(Run& run) {
  count(run);
  note_outcome(run);
  if (!run.result.failure) committed_(run.result.effects);
  answer(run);
  wake(run.result.effects);
}

void Committer::count(const Run& run) {
  using Seconds = std::chrono::duration<double>;
  const auto now = std::chrono::steady_clock::now();
  const auto operations = run.operations.size();
  std::lock_guard lock(figures_mutex_);
  figures_.operations += operations;
  ++figures_.batches;
  figures_.largest_batch = std::max<std::uint64_t>(figures_.largest_batch, operations);
  figures_.batch_sizes.observe(static_cast<double>(operations));
  figures_.batch_seconds.observe(Seconds(now - run.began).count());
  if (run.commit_began && !run.result.failure) {
    figures_.commit_seconds.observe(Seconds(now - *run.commit_began).count());
  }
  figures_.round_trips = session_->round_trips();
}

void Committer::count_failure(const Error& failure) {
  std::lock_guard lock(figures_mutex_);
  ++figures_.store_failures[std::string(enum_name(error_info(failure.code).kind))];
}

void Committer::note_outcome(const Run& run) {
  const auto& failure = run.result.failure;
  if (!failure && !run.commit_began) return;
  const auto now = std::chrono::steady_clock::now();
  {
    std::lock_guard lock(figures_mutex_);
    const bool is_news = failure && (!trouble_ || trouble_->code != failure->code ||
                                     now - trouble_told_at_ > kBetweenWarnings);
    trouble_ = failure;
    trouble_at_ = now;
    if (!is_news) return;
    trouble_told_at_ = now;
  }
  if (options_.warning) options_.warning("The store cannot commit: " + failure->to_string());
}

void Committer::wake(const BatchEffects& effects) {
  if (effects.offers.empty()) return;
  auto woken = waiting_.wake(effects.offers);
  requeue(std::move(woken.operations));
  if (!woken.unserved.empty() && shared_.unserved) shared_.unserved(woken.unserved);
}

void Committer::answer(Run& run) {
  std::vector<Operation> again;
  const auto now = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < run.operations.size(); ++i) {
    auto& operation = run.operations[i];
    const auto& result = run.result;
    const Error* refusal = result.failure ? &*result.failure : result.refusals[i];
    // What a waiting claim joined has failed, which is no answer to the claim.
    if (operation.joined && result.failure) {
      operation.joined = false;
      again.push_back(std::move(operation));
      continue;
    }
    const bool may_wait =
        !refusal && operation.claim && operation.wait_until > now && operation.came_back_empty();
    if (may_wait) {
      const auto parked = waiting_.park(operation, run.wakeups_before);
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
    const bool is_recent = std::chrono::steady_clock::now() - trouble_at_ < kTroubleLasts;
    // Without the store's own words, which may name hosts and files: anybody may ask for it (/readyz).
    if (trouble_ && is_recent) stats.store_trouble = trouble_->advice;
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
