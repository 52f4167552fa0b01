#include "flowfabric/ids.h"

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>

namespace flowfabric {
namespace {

using ParseError = ExecutionId::ParseError;

constexpr std::string_view kUuid = "11111111-2222-4333-8444-555555555555";

TEST(ExecutionId, RoundTripsItsCanonicalForm) {
  for (const std::string_view text :
       {"{fp:0}:00000000-0000-4000-8000-000000000000", "{fp:42}:11111111-2222-4333-8444-555555555555",
        "{fp:255}:ffffffff-ffff-4fff-8fff-ffffffffffff", "{fp:65535}:00000000-0000-0000-0000-000000000000"}) {
    const auto id = ExecutionId::parse(text);
    ASSERT_TRUE(id) << text;
    EXPECT_EQ(id->to_string(), text);
  }
}

TEST(ExecutionId, ReadsPartitionAndUuid) {
  const auto id = ExecutionId::parse("{fp:42}:11111111-2222-4333-8444-555555555555");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->partition, 42);
  EXPECT_EQ(id->uuid, Uuid::parse(kUuid));
}

TEST(ExecutionId, OtherSpellingsBecomeCanonical) {
  for (const std::string_view text :
       {"{fp:007}:11111111-2222-4333-8444-555555555555", "{fp:7}:11111111222243338444555555555555",
        "{fp:00000000007}:urn:uuid:11111111-2222-4333-8444-555555555555",
        "{fp:7}:{11111111-2222-4333-8444-555555555555}"}) {
    const auto id = ExecutionId::parse(text);
    ASSERT_TRUE(id) << text;
    EXPECT_EQ(id->to_string(), "{fp:7}:11111111-2222-4333-8444-555555555555");
  }
  EXPECT_EQ(ExecutionId::parse("{fp:7}:ABCDEFAB-CDEF-4ABC-8DEF-ABCDEFABCDEF")->to_string(),
            "{fp:7}:abcdefab-cdef-4abc-8def-abcdefabcdef");
}

void expect_refused(std::string_view text, ParseError expected) {
  auto why = ParseError{-1};
  EXPECT_FALSE(ExecutionId::parse(text, &why)) << text;
  EXPECT_EQ(why, expected) << text;
  EXPECT_FALSE(ExecutionId::parse(text)) << text;
}

TEST(ExecutionId, NeedsItsTag) {
  const std::string uuid(kUuid);
  for (const std::string& text : {std::string(), uuid, "{fp:7}" + uuid, "{fp:7" + uuid, "fp:7:" + uuid,
                                  "{b:7}:" + uuid, "{FP:7}:" + uuid, " {fp:7}:" + uuid}) {
    expect_refused(text, ParseError::missing_tag);
  }
}

TEST(ExecutionId, PartitionIsDigitsThatFitSixteenBits) {
  for (const std::string_view index :
       {"", "+7", "-7", " 7", "7 ", "7a", "0x7", "65536", "99999999999999999999", "7.0"}) {
    expect_refused("{fp:" + std::string(index) + "}:" + std::string(kUuid),
                   ParseError::invalid_partition_index);
  }
}

TEST(ExecutionId, NeedsAUuid) {
  expect_refused("{fp:7}:", ParseError::invalid_uuid);
  expect_refused("{fp:7}:task-1", ParseError::invalid_uuid);
  expect_refused("{fp:7}:11111111-2222-4333-8444-555555555555 ", ParseError::invalid_uuid);
}

TEST(TypedId, ParsesPrintsAndHashes) {
  static_assert(!std::is_same_v<LeaseId, AttemptId>);
  static_assert(!std::is_convertible_v<LeaseId, AttemptId>);
  const auto id = FlowId::parse("{11111111-2222-4333-8444-555555555555}");
  ASSERT_TRUE(id);
  EXPECT_EQ(id->to_string(), kUuid);
  EXPECT_FALSE(FlowId::parse("no-uuid"));
  const std::unordered_set<FlowId> flows{*id, *FlowId::parse(kUuid)};
  EXPECT_EQ(flows.size(), 1U);
}

TEST(ExecutionId, SameUuidInTwoPartitionsIsTwoIds) {
  const std::unordered_set<ExecutionId> ids{{1, *Uuid::parse(kUuid)}, {2, *Uuid::parse(kUuid)}};
  EXPECT_EQ(ids.size(), 2U);
  EXPECT_LT((ExecutionId{1, *Uuid::parse(kUuid)}), (ExecutionId{2, Uuid{}}));
}

}  // namespace
}  // namespace flowfabric
