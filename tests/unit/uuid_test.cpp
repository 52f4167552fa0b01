#include "flowfabric/uuid.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "model/random.h"

namespace flowfabric {
namespace {

constexpr std::string_view kCanonical = "550e8400-e29b-41d4-a716-446655440000";

TEST(Uuid, ParsesTheBytesInOrder) {
  const auto uuid = Uuid::parse(kCanonical);
  ASSERT_TRUE(uuid);
  const std::array<std::uint8_t, 16> expected = {0x55, 0x0e, 0x84, 0x00, 0xe2, 0x9b, 0x41, 0xd4,
                                                 0xa7, 0x16, 0x44, 0x66, 0x55, 0x44, 0x00, 0x00};
  EXPECT_EQ(uuid->bytes, expected);
  EXPECT_EQ(uuid->to_string(), kCanonical);
}

TEST(Uuid, EverySpellingBecomesHyphenatedLowerCase) {
  for (const std::string_view spelling :
       {"550E8400-E29B-41D4-A716-446655440000", "550e8400e29b41d4a716446655440000",
        "550E8400E29B41D4A716446655440000", "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
        "URN:UUID:550E8400-e29b-41d4-a716-446655440000", "{550e8400-e29b-41d4-a716-446655440000}"}) {
    const auto uuid = Uuid::parse(spelling);
    ASSERT_TRUE(uuid) << spelling;
    EXPECT_EQ(uuid->to_string(), kCanonical) << spelling;
  }
}

TEST(Uuid, RefusesEverythingElse) {
  for (const std::string_view text :
       {"", "550e8400", "550e8400-e29b-41d4-a716-44665544000", "550e8400-e29b-41d4-a716-4466554400000",
        "550e8400-e29b-41d4-a716-44665544000g", "550e8400e-29b-41d4-a716-446655440000",
        "550e8400_e29b_41d4_a716_446655440000", "-550e840-e29b-41d4-a716-446655440000",
        "(550e8400-e29b-41d4-a716-446655440000)", "{550e8400-e29b-41d4-a716-446655440000",
        "{550e8400-e29b-41d4-a716-446655440000)", "urn:uuix:550e8400-e29b-41d4-a716-446655440000",
        " 550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000\n",
        "550e8400e29b41d4a71644665544000 ", "------------------------------------"}) {
    EXPECT_FALSE(Uuid::parse(text)) << text;
  }
}

TEST(Uuid, OrdersByItsBytes) {
  EXPECT_LT(*Uuid::parse("00000000-0000-0000-0000-0000000000ff"),
            *Uuid::parse("00000000-0000-0000-0000-000000000100"));
  EXPECT_LT(*Uuid::parse("7fffffff-ffff-ffff-ffff-ffffffffffff"),
            *Uuid::parse("80000000-0000-0000-0000-000000000000"));
}

// Executions are spread over committers by this hash's remainder: ids that differ in one byte only must not
// all meet on the same one.
TEST(Uuid, HashesOfIdsThatDifferInOneByteSpreadOverAnyFewBuckets) {
  for (std::size_t byte = 0; byte < 16; ++byte) {
    for (const std::size_t buckets : {2U, 3U, 4U, 8U}) {
      std::vector<int> filled(buckets);
      Uuid uuid;
      for (int value = 0; value < 256; ++value) {
        uuid.bytes[byte] = static_cast<std::uint8_t>(value);
        ++filled[std::hash<Uuid>{}(uuid) % buckets];
      }
      const auto fair = 256.0 / static_cast<double>(buckets);
      for (const int count : filled) EXPECT_NEAR(count, fair, fair / 2) << "byte " << byte;
    }
  }
}

TEST(UuidV7, PlacesTimeVersionVariantAndRandomness) {
  EXPECT_EQ(uuid_v7(0x0123456789ab, 0, 0).to_string(), "01234567-89ab-7000-8000-000000000000");
  EXPECT_EQ(uuid_v7(0x0123456789ab, ~0ULL, ~0ULL).to_string(), "01234567-89ab-7fff-bfff-ffffffffffff");
  EXPECT_EQ(uuid_v7(1, 0xABC0000000000000ULL, 4).to_string(), "00000000-0001-7abc-8000-000000000001");
}

TEST(UuidV7, LaterIdsSortLater) {
  EXPECT_LT(uuid_v7(1'767'225'600'000, ~0ULL, ~0ULL), uuid_v7(1'767'225'600'001, 0, 0));
}

TEST(UuidV7, MintingIsReproducible) {
  Random first(42);
  Random second(42);
  const Uuid minted = mint_uuid(1'000, first);
  EXPECT_EQ(minted, mint_uuid(1'000, second));
  EXPECT_NE(minted, mint_uuid(1'000, first));
}

TEST(Random, BetweenStaysInsideItsLimitsAndReachesThem) {
  Random random(7);
  std::array<int, 3> seen{};
  for (int i = 0; i < 300; ++i) ++seen[random.between(5, 7) - 5];
  for (const int count : seen) EXPECT_GT(count, 60);
  EXPECT_EQ(random.between(9, 9), 9U);
}

}  // namespace
}  // namespace flowfabric
