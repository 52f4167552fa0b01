#include "model/encoding.h"

#include <gtest/gtest.h>

namespace flowfabric {
namespace {

TEST(Hex, IsReadInEitherCaseAndWrittenInLowerCase) {
  EXPECT_EQ(bytes_from_hex("00fFA5"), std::string("\x00\xFF\xA5", 3));
  EXPECT_EQ(hex_from_bytes(std::string("\x00\xFF\xA5", 3)), "00ffa5");
  for (const auto* malformed : {"", "0", "0g", "abc", "a b0", "0x10"}) {
    EXPECT_FALSE(bytes_from_hex(malformed)) << malformed;
  }
}

TEST(PercentEncoding, IsDecodedIntoAnyBytes) {
  EXPECT_EQ(percent_decode("a%2Fb%2f%25"), "a/b/%");
  EXPECT_EQ(percent_decode("%00%ff"), std::string("\x00\xFF", 2));
  EXPECT_EQ(percent_decode(""), "");
  for (const auto* malformed : {"%", "%2", "a%2", "%g0", "%0g", "100%"}) {
    EXPECT_FALSE(percent_decode(malformed)) << malformed;
  }
}

TEST(PercentEncoding, APlusIsASpaceInQueryStringsOnly) {
  EXPECT_EQ(percent_decode("a+b%2B"), "a+b+");
  EXPECT_EQ(percent_decode("a+b%2B", Plus::is_space), "a b+");
}

TEST(Secrets, AreEqualWhenTheirBytesAre) {
  EXPECT_TRUE(equal_in_constant_time("", ""));
  EXPECT_TRUE(equal_in_constant_time("abc", "abc"));
  EXPECT_FALSE(equal_in_constant_time("abc", "abd"));
  EXPECT_FALSE(equal_in_constant_time("abc", "ab"));
}

}  // namespace
}  // namespace flowfabric
