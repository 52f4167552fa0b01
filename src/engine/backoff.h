// How long to wait before trying again: twice as long every time, up to a bound, and never quite the same, so
// that those who failed together do not come back together.
#pragma once

#include <algorithm>
#include <chrono>

#include "engine/random_seed.h"
#include "model/random.h"

namespace flowfabric::engine {

class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : next_(first), longest_(longest), random_(random_seed()) {}

  std::chrono::microseconds next() {
    const auto micros = std::chrono::microseconds(next_).count();
    next_ = std::min(next_ * 2, longest_);
    return std::chrono::microseconds(static_cast<std::int64_t>(
        random_.between(static_cast<std::uint64_t>(micros / 2), static_cast<std::uint64_t>(micros))));
  }

 private:
  std::chrono::milliseconds next_;
  const std::chrono::milliseconds longest_;
  Random random_;
};

}  // namespace flowfabric::engine
