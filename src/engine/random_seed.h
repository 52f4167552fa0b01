// Randomness for operations, and for secrets.
#pragma once

#include <cstdint>
#include <string>

namespace flowfabric::engine {

// Fresh, one per operation.
std::uint64_t random_seed();

// 32 bytes that nobody can guess, in hex.
std::string random_secret_hex();

}  // namespace flowfabric::engine
