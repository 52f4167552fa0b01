// What operations did, counted after each commit; and how long claims of granted work took.
#pragma once

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <vector>

#include "engine/batch.h"
#include "flowfabric/stats.h"

namespace flowfabric::engine {

// How often something has happened lately.
class Recent {
 public:
  void add(std::int64_t second) {
    auto& slot = slots_[static_cast<std::size_t>(second) % slots_.size()];
    if (slot.second != second) slot = {second, 0};
    ++slot.count;
  }
  // In the last ten whole seconds.
  double per_second(std::int64_t now) const {
    std::uint64_t total = 0;
    for (const auto& slot : slots_) {
      if (slot.second < now && slot.second >= now - kSeconds) total += slot.count;
    }
    return static_cast<double>(total) / kSeconds;
  }

 private:
  static constexpr std::int64_t kSeconds = 10;
  struct Slot {
    std::int64_t second{-1};
    std::uint64_t count{0};
  };
  std::array<Slot, kSeconds + 1> slots_{};
};

class Tally {
 public:
  // How many values a label may have, so that whoever keeps the figures need not keep one for each of a
  // million lanes. The rest share `other`.
  static constexpr std::size_t kMaxLabels = 200;

  // Once per commit: the lock is not taken for each operation.
  void add(const BatchEffects& effects);
  void count_renewal(bool succeeded) { ++(succeeded ? renewed_ : not_renewed_); }
  void count_grant_claim(const std::string& lane, double seconds);

  void add_to(EngineStats& stats) const;

 private:
  struct LaneTally {
    std::array<std::uint64_t, 5> attempts{};
    std::array<Distribution, 4> seconds{};
  };

  void add(const core::Note& note, std::string_view& last_label, LaneTally*& last_lane);
  void add_recent(core::Noted what, std::int64_t second);

  mutable std::mutex mutex_;
  std::map<std::string, LaneTally, std::less<>> lanes_;
  std::map<std::string, Distribution, std::less<>> grant_claims_;
  std::array<std::map<std::string, std::uint64_t, std::less<>>, core::kNotedSize>
      labelled_;  // by what was noted
  std::uint64_t frame_bytes_{0};
  Recent submitted_;
  Recent completed_;
  Recent failed_;
  std::array<std::uint64_t, enum_names<LeaseEventType>.size()> lease_events_{};
  std::atomic<std::uint64_t> renewed_{0};
  std::atomic<std::uint64_t> not_renewed_{0};
};

}  // namespace flowfabric::engine
