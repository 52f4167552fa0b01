// The committers of an engine: one per writing session of the store. Operations on one execution always go to
// the same one, so that they meet in one batch rather than at a lock of the store.
#pragma once

#include <memory>
#include <vector>

#include "engine/committer.h"

namespace flowfabric::engine {

class Committers {
 public:
  Committers(store::Store& store, const EngineOptions& options, WaitingClaims& waiting,
             std::function<void(const BatchEffects&)> committed, SharedStore shared = {});

  void submit(Operation operation);
  void submit(std::vector<Operation> operations);
  // Claims that waited run again.
  void requeue(std::vector<Operation> operations);
  void refuse_overdue(SteadyTime now);
  void stop(SteadyTime until);
  EngineStats stats() const;

 private:
  std::vector<std::vector<Operation>> split(std::vector<Operation> operations) const;

  std::vector<std::unique_ptr<Committer>> all_;
};

}  // namespace flowfabric::engine
