#include "engine/waiting_claims.h"

#include <algorithm>

#include "core/claim.h"

namespace flowfabric::engine {

std::optional<Operation> WaitingClaims::park(Operation operation) {
  auto scope = core::check_claim(*operation.claim);
  const auto until = operation.wait_until;
  {
    std::lock_guard lock(mutex_);
    if (!scope || waiting_.size() >= limit_) return operation;
    waiting_.push_back({std::move(operation), *std::move(scope)});
  }
  parked_(until);
  return std::nullopt;
}

bool WaitingClaims::serves(const Waiting& waiting, const Route& route) const {
  const auto& lanes = waiting.operation.claim->lanes;
  return std::find(lanes.begin(), lanes.end(), route.lane_id) != lanes.end() &&
         core::serves(waiting.scope, route);
}

std::vector<Operation> WaitingClaims::wake(const std::vector<std::pair<Route, std::uint32_t>>& offers) {
  std::vector<Operation> woken;
  std::lock_guard lock(mutex_);
  for (const auto& [route, count] : offers) {
    std::uint32_t left = count;
    for (auto it = waiting_.begin(); it != waiting_.end() && left > 0;) {
      if (!serves(*it, route)) {
        ++it;
        continue;
      }
      left -= std::min(left, it->operation.claim->max_tasks);
      woken.push_back(std::move(it->operation));
      it = waiting_.erase(it);
    }
  }
  return woken;
}

std::vector<Operation> WaitingClaims::take_expired(SteadyTime now) {
  std::vector<Operation> expired;
  std::lock_guard lock(mutex_);
  for (auto it = waiting_.begin(); it != waiting_.end();) {
    if (it->operation.wait_until > now) {
      ++it;
      continue;
    }
    expired.push_back(std::move(it->operation));
    it = waiting_.erase(it);
  }
  return expired;
}

std::vector<Operation> WaitingClaims::take_all() {
  std::vector<Operation> all;
  std::lock_guard lock(mutex_);
  for (auto& waiting : waiting_) all.push_back(std::move(waiting.operation));
  waiting_.clear();
  return all;
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
