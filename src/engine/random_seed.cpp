#include "engine/random_seed.h"

#include <random>

namespace flowfabric::engine {

std::uint64_t random_seed() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

}  // namespace flowfabric::engine
