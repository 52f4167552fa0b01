#include "model/partition.h"

#include <gtest/gtest.h>

#include <limits>

namespace flowfabric {
namespace {

constexpr std::uint16_t kNoModulo = std::numeric_limits<std::uint16_t>::max();

TEST(Crc16, HasTheXmodemCheckValue) {
  EXPECT_EQ(crc16_xmodem("123456789"), 0x31C3);
  EXPECT_EQ(crc16_xmodem(""), 0);
}

TEST(Crc16, BytesAboveAsciiCountUnsigned) {
  // The remainder of one 0xFF byte is the last entry of every published CRC-16/XMODEM table.
  EXPECT_EQ(crc16_xmodem("\xFF"), 0x1EF0);
}

TEST(Partition, OfLanes) {
  struct Vector {
    std::string_view lane;
    std::uint16_t crc;
    std::uint16_t partition;
  };
  for (const auto& [lane, crc, partition] :
       {Vector{"default", 54870, 86}, {"workers-a", 11969, 193}, {"lane-1", 15021, 173}, {"a", 31879, 135}}) {
    EXPECT_EQ(crc16_xmodem(lane), crc) << lane;
    EXPECT_EQ(partition_of_lane(lane, 256), partition) << lane;
  }
}

TEST(Partition, OfUuids) {
  struct Vector {
    std::string_view uuid;
    std::uint16_t crc;
    std::uint16_t flow;
    std::uint16_t budget;
  };
  for (const auto& [text, crc, flow, budget] : {Vector{"550e8400-e29b-41d4-a716-446655440000", 36888, 24, 24},
                                                {"00000000-0000-0000-0000-000000000000", 0, 0, 0},
                                                {"ffffffff-ffff-ffff-ffff-ffffffffffff", 65, 65, 1},
                                                {"11111111-1111-1111-1111-111111111111", 20486, 6, 6}}) {
    const Uuid uuid = *Uuid::parse(text);
    EXPECT_EQ(partition_of(uuid, kNoModulo), crc) << text;
    EXPECT_EQ(partition_of(uuid, 256), flow) << text;
    EXPECT_EQ(partition_of(uuid, 32), budget) << text;
  }
}

TEST(Partition, CountsNeedNotBePowersOfTwo) {
  EXPECT_EQ(partition_of_lane("default", 100), 70);
  EXPECT_EQ(partition_of_lane("default", 1), 0);
}

TEST(Partition, DefaultCounts) {
  EXPECT_EQ((PartitionCounts{}), (PartitionCounts{256, 32, 32}));
}

TEST(Fnv, OfAWorker) {
  EXPECT_EQ(fnv1a64(""), 0xcbf29ce484222325ULL);
  EXPECT_EQ(fnv1a64("worker-1"), 0x24913ec59027ebedULL);
  EXPECT_EQ(fnv1a64("worker-1") % 256, 237U);
}

TEST(Fnv, CapabilityDigest) {
  const std::uint64_t hash = fnv1a64("cuda,gpu");
  EXPECT_EQ(static_cast<std::uint32_t>(hash ^ hash >> 32), 0xc952a6c4U);
}

}  // namespace
}  // namespace flowfabric
