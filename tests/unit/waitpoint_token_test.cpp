// Waitpoint tokens: the specification's vectors, and texts that are not tokens (03 §3).
#include "model/waitpoint_token.h"

#include <gtest/gtest.h>

namespace flowfabric {
namespace {

const std::string kVector = "k1:e41c2c352a8be05f4c149b0a33954ab713e578e25a7cfde00eba6aa2c0c7bb69";

std::string digits(std::size_t count, char digit = 'a') {
  return std::string(count, digit);
}

TEST(WaitpointToken, IsTheOneOfTheSpecification) {
  const auto secret = bytes_from_hex(digits(62, '0') + "01");
  ASSERT_TRUE(secret);
  const auto execution = ExecutionId::parse("{fp:12}:11111111-1111-4111-8111-111111111111");
  const auto waitpoint = WaitpointId::parse("22222222-2222-4222-8222-222222222222");
  ASSERT_TRUE(execution && waitpoint);
  EXPECT_EQ(mint_token("k1", *secret, *execution, *waitpoint), kVector);
  EXPECT_EQ(token_fingerprint(kVector), "e41c2c352a8be05f");
}

TEST(WaitpointToken, DependsOnEverythingItIsFor) {
  const ExecutionId execution{.partition = 1, .uuid = {}};
  const WaitpointId waitpoint{};
  auto other_execution = execution;
  other_execution.partition = 2;
  auto other_waitpoint = waitpoint;
  other_waitpoint.uuid.bytes[0] = 1;
  const std::set<std::string> all{
      mint_token("k", "secret", execution, waitpoint), mint_token("l", "secret", execution, waitpoint),
      mint_token("k", "Secret", execution, waitpoint), mint_token("k", "secret", other_execution, waitpoint),
      mint_token("k", "secret", execution, other_waitpoint)};
  EXPECT_EQ(all.size(), 5u);
  EXPECT_EQ(mint_token("k", "secret", execution, waitpoint), mint_token("k", "secret", execution, waitpoint));
}

TEST(WaitpointToken, IsSplitAtTheFirstColon) {
  const auto parts = split_token(kVector);
  ASSERT_TRUE(parts);
  EXPECT_EQ(parts->kid, "k1");
  EXPECT_EQ(parts->digest, kVector.substr(3));
  EXPECT_TRUE(split_token("k:" + digits(64, 'F'))) << "any case";
}

TEST(WaitpointToken, IsNothingElse) {
  for (const auto& text : {std::string(), std::string(":"), std::string("k1"), "k1:" + digits(63),
                           "k1:" + digits(65), "k1:" + digits(63) + "g", ":" + digits(64),
                           "a:b:" + digits(64), "k1:" + digits(32) + ":" + digits(31), digits(64),
                           "k1:" + digits(63) + std::string(1, '\0'), "k1: " + digits(63)}) {
    EXPECT_FALSE(split_token(text)) << text;
    EXPECT_EQ(token_fingerprint(text), "");
    EXPECT_EQ(redacted_token(text), "<REDACTED:malformed>");
  }
}

TEST(WaitpointToken, IsShownWithoutItsDigest) {
  EXPECT_EQ(redacted_token(kVector), "k1:<REDACTED:len=64>");
}

TEST(WaitpointToken, SecretsAreHex) {
  EXPECT_EQ(bytes_from_hex("00ff7F"), std::string("\0\xff\x7f", 3));
  for (const auto* text : {"", "abc", "zz11", "0x11", " 11"}) EXPECT_FALSE(bytes_from_hex(text)) << text;
}

TEST(WaitpointToken, KidsHaveNoColon) {
  EXPECT_TRUE(is_kid("k1"));
  EXPECT_FALSE(is_kid(""));
  EXPECT_FALSE(is_kid("a:b"));
}

TEST(WaitpointToken, AreCompared) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
}

}  // namespace
}  // namespace flowfabric
