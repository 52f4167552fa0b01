// What an operation may know of the world: the store's time, its own random bits, the settings.
#pragma once

#include <cstdint>
#include <limits>

#include "core/rule.h"
#include "model/partition.h"
#include "model/random.h"

namespace flowfabric::core {

struct Context {
  std::int64_t now_ms{};
  Random random{0};
  PartitionCounts partitions{};
  std::int64_t retention_ms{0};      // of what has ended, unless its policy says otherwise; zero: for ever
  std::int64_t budget_grace_ms{0};   // after which an attempt that passed a hard limit is failed; zero: never
  std::int64_t reclaim_grace_ms{0};  // for which a lost lease is not offered to others
  RuleSet off{};                     // rules that the clock which runs this operation leaves alone

  template <class Id>
  Id mint() {
    return Id{mint_uuid(now_ms, random)};
  }
};

// `base + duration`, never past the end of time: policies may hold any 64-bit number.
inline std::int64_t saturating_add(std::int64_t base, std::uint64_t duration) {
  constexpr std::int64_t end_of_time = std::numeric_limits<std::int64_t>::max();
  const auto room = static_cast<std::uint64_t>(end_of_time - base);
  return duration >= room ? end_of_time : base + static_cast<std::int64_t>(duration);
}

}  // namespace flowfabric::core
