// Lanes that share a partition, and so contend: the report of `admin partition-collisions`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flowfabric/error.h"

namespace flowfabric::server {

// Clean, Watch, Elevated or Remediate.
std::string_view collision_severity(std::size_t colliding, std::size_t lanes);

// Refuses a malformed or repeated lane.
Result<std::string> partition_collisions_report(const std::vector<std::string>& lanes,
                                                std::uint16_t flow_partitions);

}  // namespace flowfabric::server
