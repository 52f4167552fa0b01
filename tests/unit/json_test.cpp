// JSON from outside: accepted texts, and texts that are refused before they cost anything.
#include "api/json.h"

#include <gtest/gtest.h>

namespace flowfabric::api {
namespace {

TEST(Json, MoreValuesThanAllowedAreRefused) {
  EXPECT_TRUE(Json::parse("[1,2,3]", 4));
  const auto refused = Json::parse("[1,2,3]", 3);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error(),
            "It holds more than 3 values: make several calls of it, or send bytes as base64.");
  for (const auto* four :
       {"[[],[],[]]", R"({"a":1,"b":{"c":null}})", "[true,false,null]", R"(["a",["b"]])"}) {
    EXPECT_TRUE(Json::parse(four, 4)) << four;
    EXPECT_FALSE(Json::parse(four, 3)) << four;
  }
}

// A text that is long enough to be given room for at once.
TEST(Json, LargeTextsAreReadAsSmallOnes) {
  std::string text = "[";
  for (int i = 0; i < 50'000; ++i) text += R"({"key":"value","n":12},)";
  text += "0]";
  const auto json = Json::parse(text, 150'002);
  ASSERT_TRUE(json);
  EXPECT_EQ(json->root().size(), 50'001u);
  EXPECT_EQ(json->root().compact(), text);
  EXPECT_FALSE(Json::parse(text, 150'001));
}

TEST(Json, ValidIsWhatCanBeRead) {
  std::string deep(kMaxJsonDepth, '[');
  deep += std::string(kMaxJsonDepth, ']');
  for (const auto& text : {std::string("1"), std::string(" {\"a\":[1,2]} \n"), std::string("\"x\""), deep,
                           std::string(""), std::string("{"), std::string("1 2"), std::string("nul"),
                           std::string("\"\xFF\""), "[" + deep + "]", std::string("{}x")}) {
    EXPECT_EQ(Json::is_valid(text), Json::parse(text).has_value()) << text;
  }
  EXPECT_TRUE(Json::is_valid(deep));
  EXPECT_FALSE(Json::is_valid("[" + deep + "]"));
}

}  // namespace
}  // namespace flowfabric::api
