#include "engine/waiting_claims.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "core/lifecycle/claim.h"

namespace flowfabric::engine {

std::size_t WaitingClaims::size() const {
  std::lock_guard lock(mutex_);
  return waiting_.size();
}

std::uint64_t WaitingClaims::wakeups() const {
  std::lock_guard lock(mutex_);
  return wakeups_;
}

bool WaitingClaims::missed_something(const Operation& claim, const core::WorkerScope& scope,
                                     std::uint64_t since) const {
  const bool forgotten = unserved_.size() == kRemembered && unserved_.front().first > since;
  return forgotten || std::ranges::any_of(unserved_, [&](const auto& offer) {
           return offer.first > since && serves(claim, scope, offer.second);
         });
}

WaitingClaims::Parked WaitingClaims::park(Operation& operation, std::uint64_t since_wakeup) {
  auto scope = core::check_claim(*operation.claim);
  const auto until = operation.wait_until;
  const bool has_waited = std::exchange(operation.joined, false);  // and found nothing: it keeps its place
  {
    std::lock_guard lock(mutex_);
    if (!scope || waiting_.size() >= limit_) return Parked::no_room;
    if (missed_something(operation, *scope, since_wakeup)) return Parked::run_again;
    waiting_.insert(has_waited ? waiting_.begin() : waiting_.end(),
                    {std::move(operation), *std::move(scope)});
  }
  parked_(until);
  return Parked::yes;
}

bool WaitingClaims::serves(const Operation& claim, const core::WorkerScope& scope, const Route& route) {
  const auto& lanes = claim.claim->lanes;
  return !is_abandoned(*claim.claim) && std::ranges::find(lanes, route.lane_id) != lanes.end() &&
         core::serves(scope, route);
}

std::vector<Operation> WaitingClaims::take_for(const Route& route, std::uint32_t& count) {
  std::vector<Operation> taken;
  for (auto it = waiting_.begin(); it != waiting_.end() && count > 0;) {
    if (!serves(it->operation, it->scope, route)) {
      ++it;
      continue;
    }
    count -= std::min(count, it->operation.claim->max_tasks);
    taken.push_back(std::move(it->operation));
    it = waiting_.erase(it);
  }
  return taken;
}

Woken WaitingClaims::wake(OfferedWork offers) {
  Woken woken;
  std::lock_guard lock(mutex_);
  ++wakeups_;
  for (auto& [route, count] : offers) {
    std::ranges::move(take_for(route, count), std::back_inserter(woken.operations));
    if (count == 0) continue;
    woken.unserved.push_back(route.lane_id);
    unserved_.emplace_back(wakeups_, route);
    if (unserved_.size() > kRemembered) unserved_.pop_front();
  }
  return woken;
}

std::vector<Operation> WaitingClaims::join(OfferedWork& offers) {
  std::vector<Operation> joined;
  std::lock_guard lock(mutex_);
  for (auto& [route, count] : offers) {
    std::ranges::move(take_for(route, count), std::back_inserter(joined));
  }
  std::erase_if(offers, [](const auto& offer) { return offer.second == 0; });
  for (auto& operation : joined) operation.joined = true;
  return joined;
}

std::vector<std::string> WaitingClaims::lanes() const {
  std::set<std::string> lanes;
  std::lock_guard lock(mutex_);
  for (const auto& waiting : waiting_) {
    lanes.insert(waiting.operation.claim->lanes.begin(), waiting.operation.claim->lanes.end());
  }
  return {lanes.begin(), lanes.end()};
}

bool WaitingClaims::waits_for(const std::vector<std::string>& lanes) const {
  std::lock_guard lock(mutex_);
  return std::ranges::any_of(waiting_, [&](const Waiting& waiting) {
    return lanes.empty() || std::ranges::find_first_of(waiting.operation.claim->lanes, lanes) !=
                                waiting.operation.claim->lanes.end();
  });
}

template <class Which>
std::vector<Operation> WaitingClaims::take_if(Which which) {
  std::vector<Operation> taken;
  std::lock_guard lock(mutex_);
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (!which(it->operation)) {
      ++it;
      continue;
    }
    taken.push_back(std::move(it->operation));
    it = waiting_.erase(it);
  }
  return taken;
}

std::vector<Operation> WaitingClaims::take_expired(SteadyTime now) {
  return take_if([&](const Operation& operation) { return operation.wait_until <= now; });
}

std::vector<Operation> WaitingClaims::take_all() {
  return take_if([](const Operation&) { return true; });
}

std::vector<Operation> WaitingClaims::take_abandoned() {
  return take_if([](const Operation& operation) { return is_abandoned(*operation.claim); });
}

std::optional<SteadyTime> WaitingClaims::next_expiry() const {
  std::lock_guard lock(mutex_);
  std::optional<SteadyTime> next;
  for (const auto& waiting : waiting_) {
    if (!next || waiting.operation.wait_until < *next) next = waiting.operation.wait_until;
  }
  return next;
}

}  // namespace flowfabric::engine
