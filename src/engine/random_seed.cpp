#include "engine/random_seed.h"

#include <openssl/rand.h>

#include <array>
#include <random>
#include <stdexcept>

#include "model/waitpoint_token.h"

namespace flowfabric::engine {

std::uint64_t random_seed() {
  thread_local std::mt19937_64 generator = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return generator();
}

std::string random_secret_hex() {
  std::array<unsigned char, 32> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    throw std::runtime_error("the system has no randomness to make a secret of");
  }
  return hex_from_bytes({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

}  // namespace flowfabric::engine
