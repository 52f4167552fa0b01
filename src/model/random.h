// Reproducible random bits. An operation gets its own seed, so that running it again gives the same ids.
#pragma once

#include <cstdint>

#include "flowfabric/ids.h"

namespace flowfabric {

__extension__ typedef unsigned __int128 Wide;

// SplitMix64.
class Random {
 public:
  explicit constexpr Random(std::uint64_t seed) : state_(seed) {}

  constexpr std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15ULL);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31);
  }

  // Uniform in [low, high]; the bias of the multiplication is below 2^-32 for every range we use.
  constexpr std::uint64_t between(std::uint64_t low, std::uint64_t high) {
    const auto range = static_cast<Wide>(high - low) + 1;
    return low + static_cast<std::uint64_t>((range * next()) >> 64);
  }

 private:
  std::uint64_t state_;
};

inline Uuid mint_uuid(std::int64_t now_ms, Random& random) {
  const std::uint64_t high = random.next();
  const std::uint64_t low = random.next();
  return uuid_v7(now_ms, high, low);
}

}  // namespace flowfabric
