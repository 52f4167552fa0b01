// JSON Merge Patch: the examples of RFC 7396 that begin with an object, and the limits.
#include "model/merge_patch.h"

#include <gtest/gtest.h>

#include "model/base64.h"

namespace flowfabric {
namespace {

std::string merged(const std::string& document, const std::string& patch) {
  const auto result = merge_patch(document, patch);
  return result ? *result : "refused: " + result.error().detail;
}

TEST(MergePatch, DoesWhatTheStandardSays) {
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"b":"c"})"), R"({"a":"b","b":"c"})");
  EXPECT_EQ(merged(R"({"a":"b"})", R"({"a":null})"), "{}");
  EXPECT_EQ(merged(R"({"a":"b","b":"c"})", R"({"a":null})"), R"({"b":"c"})");
  EXPECT_EQ(merged(R"({"a":["b"]})", R"({"a":"c"})"), R"({"a":"c"})");
  EXPECT_EQ(merged(R"({"a":"c"})", R"({"a":["b"]})"), R"({"a":["b"]})");
  EXPECT_EQ(merged(R"({"a":{"b":"c"}})", R"({"a":{"b":"d","c":null}})"), R"({"a":{"b":"d"}})");
  EXPECT_EQ(merged(R"({"a":[{"b":"c"}]})", R"({"a":[1]})"), R"({"a":[1]})");
  EXPECT_EQ(merged(R"({"e":null})", R"({"a":1})"), R"({"e":null,"a":1})");
  EXPECT_EQ(merged("{}", R"({"a":{"bb":{"ccc":null}}})"), R"({"a":{"bb":{}}})");
}

TEST(MergePatch, KeepsNumbersExactly) {
  EXPECT_EQ(merged("{}", R"({"n":9007199254740993,"m":-9223372036854775808,"u":18446744073709551615})"),
            R"({"n":9007199254740993,"m":-9223372036854775808,"u":18446744073709551615})");
}

TEST(MergePatch, RefusesWhatIsNoPatch) {
  for (const auto* patch : {"[]", "[1]", "3", "null", "\"x\"", "{", "", "{}x"}) {
    EXPECT_EQ(merge_patch("{}", patch).error().code, ErrorCode::invalid_input) << patch;
  }
  EXPECT_EQ(merge_patch("[]", "{}").error().code, ErrorCode::corruption);
  EXPECT_EQ(merge_patch("{", "{}").error().code, ErrorCode::corruption);
}

TEST(MergePatch, HasADepth) {
  const auto nested = [](int levels) {
    std::string text = "1";
    for (int i = 0; i < levels; ++i) text = (i % 2 ? "[" : R"({"a":)") + text + (i % 2 ? "]" : "}");
    return R"({"r":)" + text + "}";
  };
  EXPECT_TRUE(merge_patch("{}", nested(16)));
  EXPECT_EQ(merged("{}", nested(17)), "refused: patch_depth_exceeded");
  EXPECT_EQ(merged("{}", nested(5000)), "refused: patch_depth_exceeded");
}

TEST(MergePatch, TurnsTheSentinelIntoNull) {
  EXPECT_EQ(merged(R"({"a":1})", R"({"a":"__ff_null__","b":[{"c":"__ff_null__"}],"__ff_null__":1})"),
            R"({"a":null,"b":[{"c":null}],"__ff_null__":1})");
}

TEST(Base64, GoesBothWays) {
  for (const auto& bytes : {std::string(), std::string("f"), std::string("fo"), std::string("foo"),
                            std::string("\0\xff\x10", 3), std::string(1000, '\xab')}) {
    EXPECT_EQ(from_base64(to_base64(bytes)), bytes);
  }
  EXPECT_EQ(to_base64("foobar"), "Zm9vYmFy");
  for (const auto* bad : {"Z", "Zg=", "Zg", "Z===", "Zh==", "Zg==\n", " Zg==", "Zg==Zg==", "!!!!"}) {
    EXPECT_EQ(from_base64(bad), std::nullopt) << bad;
  }
}

}  // namespace
}  // namespace flowfabric
