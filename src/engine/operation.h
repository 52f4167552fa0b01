// An operation on its way through the engine, with its types erased.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include "core/context.h"
#include "core/unit.h"
#include "flowfabric/engine.h"

namespace flowfabric::engine {

using SteadyTime = std::chrono::steady_clock::time_point;

enum class Outcome { keep, undo };

struct Operation {
  // Names the records it will need, if it can tell.
  std::move_only_function<void(core::Unit&)> want;
  // Runs it and remembers the result. May be called again; only the last run counts.
  std::move_only_function<Outcome(core::Unit&, core::Context&)> run;
  // Called exactly once: with null to give the remembered result, or with the reason for refusing.
  std::move_only_function<void(const Error*)> answer;

  std::uint64_t seed{};  // of its random bits: the same in every run
  std::size_t bytes{};
  std::size_t affinity{};  // operations with the same one share a committer
  SteadyTime deadline{};
  // What a worker reports about one task is applied in the order in which it came.
  bool in_order{false};

  // Claims only: what it serves, and until when it may wait when there is nothing.
  std::shared_ptr<const ClaimTasks> claim{};
  SteadyTime wait_until{};
  std::move_only_function<bool()> came_back_empty{};
  bool joined{false};  // it was waiting, and is run with the batch that offers what it waits for
};

inline bool is_abandoned(const ClaimTasks& claim) {
  return claim.abandoned && *claim.abandoned;
}

inline PartitionCounts partitions_of(const EngineOptions& options) {
  return {options.flow_partitions, options.budget_partitions, options.quota_partitions};
}

}  // namespace flowfabric::engine
