// Which routes of a lane offer something, as far as this process knows. Asking the database means to walk
// past what was taken and not vacuumed yet: a claim that asks each time would pay for that each time. So the
// longer the answer took, the longer it is believed, unless this process offers something on another route.
// Shared by the sessions of a process. Safe from any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/records.h"

namespace flowfabric::store::postgres {

class OfferingRoutes {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;

  // Absent: ask the database.
  std::optional<std::vector<Route>> believed(const std::string& lane) const {
    const auto now = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    const auto it = lanes_.find(lane);
    if (it == lanes_.end() || it->second.took < kCheap) return std::nullopt;
    if (now - it->second.asked_at >= kRest * it->second.took) return std::nullopt;
    return it->second.routes;
  }

  // The database was asked at that time, and said this.
  void are(const std::string& lane, std::vector<Route> routes, SteadyTime asked_at) {
    const auto now = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    if (lanes_.size() >= kMostLanes) lanes_.clear();
    lanes_[lane] = {std::move(routes), asked_at, now - asked_at};
  }

  // This one does now. Who does not know it asks again.
  void offers(const std::string& lane, std::int64_t route_id) {
    std::lock_guard lock(mutex_);
    const auto it = lanes_.find(lane);
    if (it == lanes_.end()) return;
    if (std::ranges::find(it->second.routes, route_id, &Route::route_id) == it->second.routes.end())
      lanes_.erase(it);
  }

 private:
  static constexpr std::chrono::milliseconds kCheap{1};
  static constexpr int kRest = 20;  // times what asking took
  static constexpr std::size_t kMostLanes = 10'000;
  struct Lane {
    std::vector<Route> routes;
    SteadyTime asked_at{};
    SteadyTime::duration took{};
  };
  mutable std::mutex mutex_;
  std::unordered_map<std::string, Lane> lanes_;
};

}  // namespace flowfabric::store::postgres
