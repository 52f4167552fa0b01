// Claims that found nothing and wait: woken when work that they serve is offered, answered empty when their
// time is up. A waiting claim costs neither a thread nor a timer. Safe from any thread.
#pragma once

#include <deque>
#include <list>
#include <mutex>
#include <vector>

#include "core/offer.h"
#include "engine/operation.h"

namespace flowfabric::engine {

// How many executions are offered, by route.
using OfferedWork = std::vector<std::pair<Route, std::uint32_t>>;

struct Woken {
  std::vector<Operation> operations;
  std::vector<std::string> unserved;  // lanes that offer more than was waited for
};

class WaitingClaims {
 public:
  // `parked` is told until when a claim waits.
  WaitingClaims(std::size_t limit, std::function<void(SteadyTime)> parked)
      : limit_(limit), parked_(std::move(parked)) {}

  // Counts the wake-ups. Ask before a claim looks for work, and say it when the claim is parked: what was
  // offered in between by others has woken nobody.
  std::uint64_t wakeups() const;

  enum class Parked { yes, no_room, run_again };
  // Takes the operation only if it was parked.
  Parked park(Operation& operation, std::uint64_t since_wakeup);

  // Takes out the claims that the new work is enough for, longest waiting first.
  Woken wake(OfferedWork offers);
  // The same for work that is not stored yet, to be taken in the same commit. What nobody waits for is left
  // in `offers`; once it is stored, somebody may.
  std::vector<Operation> join(OfferedWork& offers);
  // The lanes that are waited for.
  std::vector<std::string> lanes() const;
  bool waits_for(const std::vector<std::string>& lanes) const;
  std::size_t size() const;

  std::vector<Operation> take_expired(SteadyTime now);
  std::vector<Operation> take_all();
  // Those whose callers are gone.
  std::vector<Operation> take_abandoned();
  std::optional<SteadyTime> next_expiry() const;

 private:
  struct Waiting {
    Operation operation;
    core::WorkerScope scope;
  };
  std::vector<Operation> take_for(const Route& route, std::uint32_t& count);
  template <class Which>
  std::vector<Operation> take_if(Which which);
  static bool serves(const Operation& claim, const core::WorkerScope& scope, const Route& route);
  bool missed_something(const Operation& claim, const core::WorkerScope& scope, std::uint64_t since) const;

  const std::size_t limit_;
  const std::function<void(SteadyTime)> parked_;
  mutable std::mutex mutex_;
  std::list<Waiting> waiting_;
  std::uint64_t wakeups_{0};
  // The last of them that found nobody for all they offered.
  static constexpr std::size_t kRemembered = 256;
  std::deque<std::pair<std::uint64_t, Route>> unserved_;
};

}  // namespace flowfabric::engine
