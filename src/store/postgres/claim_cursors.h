// Where the claims of a route have come to. Executions that were taken leave dead entries at the head of the
// claim index until they are vacuumed; starting behind them keeps a scan short even when somebody's open
// transaction keeps the dead from being removed. Shared by the sessions of a process. Safe from any thread.
//
// A scan may start at the cursor because everything before it was taken. That stops being true when something
// older is offered: what this process offers moves the cursor back at once; what others offer, or have let go
// of, is found when a scan starts from the beginning, which it does every so often, and when a scan from the
// cursor came back short. The longer such scans take, the rarer they are.
#pragma once

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <optional>
#include <unordered_map>

namespace flowfabric::store::postgres {

class ClaimCursors {
 public:
  using SteadyTime = std::chrono::steady_clock::time_point;
  static constexpr std::int64_t kBeginning = std::numeric_limits<std::int64_t>::min();

  struct Start {
    std::int64_t order{kBeginning};
    std::uint64_t moves{0};  // back, so far
    SteadyTime at{};
  };

  Start start(std::int64_t route_id) {
    const auto now = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    auto& cursor = cursors_[route_id];
    const bool trusted = now - cursor.full_scan_at < std::max<Duration>(kTrust, kRest * cursor.full_scan);
    if (!trusted) cursor.full_scan_at = now;
    return {trusted ? cursor.order : kBeginning, cursor.moves, now};
  }

  // A scan from the cursor came back short. True: the next one starts from the beginning.
  bool look_again(std::int64_t route_id) {
    const auto now = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    auto& cursor = cursors_[route_id];
    const bool cheap = cursor.full_scan < kCheap;
    if (!cheap && now - cursor.full_scan_at < kRest * cursor.full_scan) return false;
    cursor.full_scan_at = {};
    return true;
  }

  // A scan from `start` has ended; the first offer that it found.
  void found(std::int64_t route_id, const Start& start, std::optional<std::int64_t> first_order) {
    const auto now = std::chrono::steady_clock::now();
    std::lock_guard lock(mutex_);
    auto& cursor = cursors_[route_id];
    if (start.order == kBeginning) cursor.full_scan = now - start.at;
    if (first_order && cursor.moves == start.moves) cursor.order = *first_order;
  }

  void offered(std::int64_t route_id, std::int64_t order) {
    std::lock_guard lock(mutex_);
    auto& cursor = cursors_[route_id];
    if (order >= cursor.order) return;
    cursor.order = order;
    ++cursor.moves;
  }

 private:
  using Duration = SteadyTime::duration;
  static constexpr std::chrono::milliseconds kTrust{200};
  static constexpr std::chrono::milliseconds kCheap{3};
  static constexpr int kRest = 20;  // times what a scan from the beginning took
  struct Cursor {
    std::int64_t order{kBeginning};
    std::uint64_t moves{0};
    SteadyTime full_scan_at{};
    Duration full_scan{};
  };
  std::mutex mutex_;
  std::unordered_map<std::int64_t, Cursor> cursors_;
};

}  // namespace flowfabric::store::postgres
