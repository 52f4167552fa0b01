// Claims that found nothing and wait: woken when work that they serve is offered, answered empty when their
// time is up. A waiting claim costs neither a thread nor a timer. Safe from any thread.
#pragma once

#include <list>
#include <mutex>
#include <vector>

#include "core/offer.h"
#include "engine/operation.h"

namespace flowfabric::engine {

class WaitingClaims {
 public:
  // `parked` is told until when a claim waits.
  WaitingClaims(std::size_t limit, std::function<void(SteadyTime)> parked)
      : limit_(limit), parked_(std::move(parked)) {}

  // Gives the operation back when there is no more room.
  std::optional<Operation> park(Operation operation);

  // Takes out the claims that the new work is enough for, longest waiting first.
  std::vector<Operation> wake(const std::vector<std::pair<Route, std::uint32_t>>& offers);

  std::vector<Operation> take_expired(SteadyTime now);
  std::vector<Operation> take_all();
  std::optional<SteadyTime> next_expiry() const;

 private:
  struct Waiting {
    Operation operation;
    core::WorkerScope scope;
  };
  bool serves(const Waiting& waiting, const Route& route) const;

  const std::size_t limit_;
  const std::function<void(SteadyTime)> parked_;
  mutable std::mutex mutex_;
  std::list<Waiting> waiting_;
};

}  // namespace flowfabric::engine
