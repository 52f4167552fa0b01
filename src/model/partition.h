// Where things live: CRC-16/XMODEM picks the partition of a flow, lane, budget or quota policy.
#pragma once

#include <cstdint>
#include <string_view>

#include "flowfabric/uuid.h"

namespace flowfabric {

// Fixed when a store is first opened; a start with other counts is refused.
struct PartitionCounts {
  std::uint16_t flow{256};
  std::uint16_t budget{32};
  std::uint16_t quota{32};
  bool operator==(const PartitionCounts&) const = default;
};

std::uint16_t crc16_xmodem(std::string_view bytes);
// `count` must not be 0.
std::uint16_t partition_of(const Uuid& uuid, std::uint16_t count);
std::uint16_t partition_of_lane(std::string_view lane, std::uint16_t count);

// FNV-1a, 64 bits: worker registry partitions, capability digests, route ids.
std::uint64_t fnv1a64(std::string_view bytes);

}  // namespace flowfabric
