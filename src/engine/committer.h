// The committer: one thread that takes what is queued and commits it as one batch. What arrives while a batch
// is being worked out or committed forms the next one: no timer, no added wait. A store that commits behind
// its back answers on a thread of its own.
#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

#include "engine/batch.h"
#include "engine/waiting_claims.h"
#include "flowfabric/engine.h"

namespace flowfabric::engine {

// What a committer on a store that others use, too, has to know.
struct SharedStore {
  // Told which lanes offer more than claims are waiting for here.
  std::function<void(const std::vector<std::string>&)> unserved{};
  // While the store is away, operations wait for it up to their deadline; otherwise they fail at once.
  bool waits_when_away{false};
};

class Committer {
 public:
  // `committed` is told the effects of every batch, one after the other.
  Committer(std::unique_ptr<store::Session> session, const EngineOptions& options, WaitingClaims& waiting,
            std::function<void(const BatchEffects&)> committed, SharedStore shared = {});
  ~Committer();

  // Answers at once when the operation cannot be queued.
  void submit(Operation operation);
  // All at once, so that they can share a commit.
  void submit(std::vector<Operation> operations);
  // Claims that waited run again; there is always room for them.
  void requeue(std::vector<Operation> operations);
  // Refuses what has waited in the queue past its deadline.
  void refuse_overdue(SteadyTime now);

  // No new operations from now on; what is queued is run, but not beyond `until`.
  void stop(SteadyTime until);

  EngineStats stats() const;

 private:
  void loop();
  std::vector<Operation> take_batch();
  // A batch on its way.
  struct Run {
    std::vector<Operation> operations;
    SteadyTime began;
    std::uint64_t wakeups_before{};            // of waiting claims
    std::optional<SteadyTime> commit_began{};  // if it has changed anything
    BatchResult result{};
  };
  void process(std::vector<Operation> batch);
  std::optional<BatchResult> run_once(const std::shared_ptr<Run>& run);
  std::optional<BatchResult> run_until_handed_over(const std::shared_ptr<Run>& run);
  void finish(Run& run);
  void count(const Run& run);
  void count_failure(const Error& failure);
  void note_outcome(const Run& run);
  void wake(const BatchEffects& effects);
  bool is_stopping() const;
  bool others_wait() const;
  void answer(Run& run);
  // Why it cannot be queued, under the lock; absent: it is queued.
  std::optional<Error> enqueue(Operation& operation);
  static void refuse_overdue(std::vector<Operation>& operations);

  std::unique_ptr<store::Session> session_;
  const EngineOptions options_;
  const BatchSettings settings_;
  WaitingClaims& waiting_;
  const std::function<void(const BatchEffects&)> committed_;
  const SharedStore shared_;

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<Operation> queue_;
  std::size_t queued_bytes_{0};
  bool stopping_{false};
  bool was_cut_short_{false};  // by the end of a stop's grace
  // Changed once per batch.
  mutable std::mutex figures_mutex_;
  EngineStats figures_;
  std::optional<Error> trouble_;  // why the last commit failed
  SteadyTime trouble_at_{};
  SteadyTime trouble_told_at_{};
  std::thread thread_;
};

}  // namespace flowfabric::engine
