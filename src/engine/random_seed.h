// Fresh random seeds, one per operation.
#pragma once

#include <cstdint>

namespace flowfabric::engine {

std::uint64_t random_seed();

}  // namespace flowfabric::engine
