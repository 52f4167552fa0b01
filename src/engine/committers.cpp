#include "engine/committers.h"

#include <algorithm>

namespace flowfabric::engine {

Committers::Committers(store::Store& store, const EngineOptions& options, WaitingClaims& waiting,
                       std::function<void(const BatchEffects&)> committed, SharedStore shared) {
  const auto count = store.writers();
  auto share = options;
  share.max_queued_operations = std::max<std::size_t>(options.max_queued_operations / count, 1);
  share.max_queued_bytes = options.max_queued_bytes / count;
  for (std::size_t i = 0; i < count; ++i) {
    all_.push_back(std::make_unique<Committer>(store.open_writer(), share, waiting, committed, shared));
  }
}

void Committers::submit(Operation operation) {
  all_[operation.affinity % all_.size()]->submit(std::move(operation));
}

std::vector<std::vector<Operation>> Committers::split(std::vector<Operation> operations) const {
  std::vector<std::vector<Operation>> shares(all_.size());
  for (auto& operation : operations) {
    shares[operation.affinity % all_.size()].push_back(std::move(operation));
  }
  return shares;
}

void Committers::submit(std::vector<Operation> operations) {
  auto shares = split(std::move(operations));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!shares[i].empty()) all_[i]->submit(std::move(shares[i]));
  }
}

void Committers::requeue(std::vector<Operation> operations) {
  auto shares = split(std::move(operations));
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (!shares[i].empty()) all_[i]->requeue(std::move(shares[i]));
  }
}

void Committers::refuse_overdue(SteadyTime now) {
  for (const auto& committer : all_) committer->refuse_overdue(now);
}

void Committers::stop(SteadyTime until) {
  for (const auto& committer : all_) committer->stop(until);
}

EngineStats Committers::stats() const {
  EngineStats all;
  for (const auto& committer : all_) {
    const auto stats = committer->stats();
    all.operations += stats.operations;
    all.batches += stats.batches;
    all.round_trips += stats.round_trips;
    all.largest_batch = std::max(all.largest_batch, stats.largest_batch);
    all.batch_sizes.add(stats.batch_sizes);
    all.batch_seconds.add(stats.batch_seconds);
    all.commit_seconds.add(stats.commit_seconds);
    for (const auto& [kind, count] : stats.store_failures) all.store_failures[kind] += count;
    all.queued += stats.queued;
    all.queued_bytes += stats.queued_bytes;
    all.max_queued += stats.max_queued;
    all.queue_is_full |= stats.queue_is_full;
    if (all.store_trouble.empty()) all.store_trouble = stats.store_trouble;
    // Several committers stop with one grace.
    all.shutdown_timeouts = std::max(all.shutdown_timeouts, stats.shutdown_timeouts);
  }
  return all;
}

}  // namespace flowfabric::engine
