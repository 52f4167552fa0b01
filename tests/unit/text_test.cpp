#include "model/text.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "flowfabric/policy.h"

namespace flowfabric {
namespace {

using namespace std::string_literals;
using Tokens = std::vector<std::string>;

template <class T>
void expect_refused(const Result<T>& result, ErrorCode code, std::string_view detail) {
  ASSERT_FALSE(result) << detail;
  EXPECT_EQ(error_name(result.error().code), error_name(code));
  EXPECT_EQ(result.error().detail, detail);
  EXPECT_FALSE(result.error().advice.empty());
}

TEST(Utf8, AcceptsTheEdgesOfEveryLength) {
  for (const std::string& text :
       {""s, "\0"s, "\x7F"s, "\xC2\x80"s, "\xDF\xBF"s, "\xE0\xA0\x80"s, "\xED\x9F\xBF"s, "\xEE\x80\x80"s,
        "\xEF\xBF\xBF"s, "\xF0\x90\x80\x80"s, "\xF4\x8F\xBF\xBF"s, "größe 漢字 🎉"s}) {
    EXPECT_TRUE(is_valid_utf8(text)) << text;
  }
}

TEST(OneLine, EscapesWhatEndsALineOrMovesTheCursor) {
  EXPECT_EQ(one_line("größe 漢字 🎉 \\ \"x\""), "größe 漢字 🎉 \\ \"x\"");
  EXPECT_EQ(one_line("a\nb\r\tc\0d"s), "a\\u000ab\\u000d\\u0009c\\u0000d");
  EXPECT_EQ(one_line("\x1b[31m\x7f"), "\\u001b[31m\\u007f");
  EXPECT_EQ(one_line("\xC2\x85|\xC2\x9B"), "\\u0085|\\u009b") << "C1: a line end, and what begins a sequence";
  EXPECT_EQ(one_line("\u2028\u2029"), "\\u2028\\u2029");
  EXPECT_EQ(one_line("user\u202Egnp.exe"), "user\\u202egnp.exe");
  EXPECT_EQ(one_line("\xFF\xC2|\xE2\x82"), "\\ufffd\\ufffd|\\ufffd\\ufffd");
  EXPECT_EQ(one_line(""), "");
}

TEST(Utf8, RefusesOverlongSurrogateTruncatedAndStrayBytes) {
  for (const std::string& text :
       {"\x80"s, "\xBF"s, "\xC0\x80"s, "\xC1\xBF"s, "\xE0\x9F\xBF"s, "\xED\xA0\x80"s, "\xED\xBF\xBF"s,
        "\xF0\x8F\xBF\xBF"s, "\xF4\x90\x80\x80"s, "\xF8\x88\x80\x80\x80"s, "\xFF"s, "\xC2"s, "\xE2\x82"s,
        "\xF0\x9F\x8E"s, "\xC2 "s, "ok\xE2\x82z"s}) {
    EXPECT_FALSE(is_valid_utf8(text));
  }
}

TEST(CheckText, NamesTheField) {
  EXPECT_TRUE(check_text("reason", ""));
  EXPECT_TRUE(check_text("reason", "tab\tand\nline"));
  expect_refused(check_text("reason", "a\0b"s), ErrorCode::invalid_input, "reason: contains a NUL byte");
  expect_refused(check_text("reason", "\xFF"), ErrorCode::invalid_input, "reason: not valid UTF-8");
}

TEST(CheckLane, OneToSixtyFourPrintableBytes) {
  EXPECT_TRUE(check_lane("a"));
  EXPECT_TRUE(check_lane(" ~"));
  EXPECT_TRUE(check_lane(std::string(64, 'x')));
  expect_refused(check_lane(""), ErrorCode::invalid_input, "lane_id: empty");
  expect_refused(check_lane(std::string(65, 'x')), ErrorCode::invalid_input, "lane_id: too long (65 bytes)");
  expect_refused(check_lane("ab\x1F"), ErrorCode::invalid_input, "lane_id: non-printable byte at index 2");
  expect_refused(check_lane("\x7F"), ErrorCode::invalid_input, "lane_id: non-printable byte at index 0");
  expect_refused(check_lane("xé"), ErrorCode::invalid_input, "lane_id: non-printable byte at index 1");
  expect_refused(check_lane("\0"s), ErrorCode::invalid_input, "lane_id: non-printable byte at index 0");
}

TEST(CheckNamespace, UpTo256BytesWithoutControlCharacters) {
  EXPECT_TRUE(check_namespace(""));
  EXPECT_TRUE(check_namespace("tenant one {é}"));
  EXPECT_TRUE(check_namespace(std::string(256, 'x')));
  expect_refused(check_namespace(std::string(257, 'x')), ErrorCode::invalid_input,
                 "namespace: too long (257 bytes)");
  for (const std::string& name : {"a\nb"s, "\0"s, "\x7F"s, "\xC2\x85"s, "\xC2\x9F"s}) {
    expect_refused(check_namespace(name), ErrorCode::invalid_input,
                   "namespace: contains a control character");
  }
  EXPECT_TRUE(check_namespace("\xC2\xA0"));
  expect_refused(check_namespace("\xC3"), ErrorCode::invalid_input, "namespace: not valid UTF-8");
}

TEST(CheckWorkerName, OneTo256BytesWithoutWhitespaceOrControlCharacters) {
  EXPECT_TRUE(check_worker_name("worker_id", "w-1/größe"));
  EXPECT_TRUE(check_worker_name("worker_id", std::string(256, 'x')));
  EXPECT_TRUE(check_worker_name("worker_id", "a\u200Bb"));  // zero width space is not White_Space
  expect_refused(check_worker_name("worker_id", ""), ErrorCode::invalid_input, "worker_id: empty");
  expect_refused(check_worker_name("worker_id", std::string(257, 'x')), ErrorCode::invalid_input,
                 "worker_id: too long (257 bytes)");
  expect_refused(check_worker_name("worker_instance_id", "\xF0\x9F"), ErrorCode::invalid_input,
                 "worker_instance_id: not valid UTF-8");
}

TEST(CheckWorkerName, KnowsUnicodeWhitespace) {
  for (const std::string& bad :
       {" "s, "\t"s, "\n"s, "\0"s, "\x1B"s, "\x7F"s, "\xC2\x85"s, "\u00A0"s, "\u1680"s, "\u2000"s, "\u200A"s,
        "\u2028"s, "\u2029"s, "\u202F"s, "\u205F"s, "\u3000"s}) {
    expect_refused(check_worker_name("worker_id", "a" + bad + "b"), ErrorCode::invalid_input,
                   "worker_id: contains whitespace or a control character");
  }
}

TEST(CheckText, Length) {
  EXPECT_TRUE(check_text("reason", std::string(4096, 'r')));
  expect_refused(check_text("reason", std::string(4097, 'r')), ErrorCode::invalid_input,
                 "reason: longer than 4096 bytes");
  EXPECT_TRUE(check_text("key", std::string(1024, 'k'), kMaxKeyBytes));
  expect_refused(check_text("key", std::string(1025, 'k'), kMaxKeyBytes), ErrorCode::invalid_input,
                 "key: longer than 1024 bytes");
}

TEST(CheckCreateTags, KeysAndValues) {
  EXPECT_TRUE(check_create_tags({}));
  EXPECT_TRUE(check_create_tags({{"k", ""}}));
  EXPECT_TRUE(check_create_tags({{"Any Key!", "any\nvalue"}}));
  EXPECT_TRUE(check_create_tags({{std::string(256, 'k'), std::string(1024, 'v')}}));
  expect_refused(check_create_tags({{"", "v"}}), ErrorCode::invalid_tag_key, "");
  expect_refused(check_create_tags({{std::string(257, 'k'), "v"}}), ErrorCode::invalid_tag_key,
                 std::string(256, 'k'));
  expect_refused(check_create_tags({{"k\0"s, "v"}}), ErrorCode::invalid_input, "tags: contains a NUL byte");
  expect_refused(check_create_tags({{"k", "\0"s}}), ErrorCode::invalid_input, "tags: contains a NUL byte");
  expect_refused(check_create_tags({{"k", "\xFF"}}), ErrorCode::invalid_input, "tags: not valid UTF-8");
  expect_refused(check_create_tags({{"k", std::string(1025, 'v')}}), ErrorCode::invalid_input,
                 "tags: longer than 1024 bytes");
}

TEST(CheckCreateTags, CountAndSum) {
  std::map<std::string, std::string> tags;
  for (int i = 0; i < 64; ++i) tags["k" + std::to_string(i)] = "v";
  EXPECT_TRUE(check_create_tags(tags));
  tags["one more"] = "v";
  expect_refused(check_create_tags(tags), ErrorCode::invalid_input, "tags: there are 65");
  tags.clear();
  for (int i = 0; i < 16; ++i) tags[std::string(1, static_cast<char>('a' + i))] = std::string(1023, 'v');
  EXPECT_TRUE(check_create_tags(tags)) << "exactly 16 KiB";
  tags["z"] = "";
  expect_refused(check_create_tags(tags), ErrorCode::invalid_input, "tags: 16385 bytes in sum");
}

TEST(Capabilities, SortedWithoutDuplicates) {
  EXPECT_EQ(normalize_capabilities("worker", {"gpu", "cuda", "gpu", "GPU"}), (Tokens{"GPU", "cuda", "gpu"}));
  EXPECT_EQ(normalize_capabilities("worker", {}), Tokens{});
  EXPECT_EQ(normalize_capabilities("worker", {"é"}), Tokens{"é"});
}

TEST(Capabilities, RefusedTokens) {
  const auto refused = [](std::string_view side, Tokens tokens, std::string_view detail) {
    expect_refused(normalize_capabilities(side, std::move(tokens)), ErrorCode::invalid_capabilities, detail);
  };
  refused("required", {"gpu", ""}, "required:empty_token");
  refused("worker", {""}, "worker:empty_token");
  refused("required", {"a,b"}, "required:comma_in_token");
  refused("required", {"a b"}, "required:control_or_whitespace");
  refused("required", {"a\x7F"}, "required:control_or_whitespace");
  refused("required", {"\0"s}, "required:control_or_whitespace");
  refused("worker", {"\xFF"}, "worker:non_string_token");
}

Tokens numbered(std::size_t count, std::size_t size) {
  Tokens tokens;
  for (std::size_t i = 0; i < count; ++i) {
    std::string token = std::to_string(i);
    tokens.push_back(std::string(size - token.size(), 'x') + token);
  }
  return tokens;
}

TEST(Capabilities, LimitsAreInclusive) {
  EXPECT_TRUE(normalize_capabilities("required", numbered(256, 4)));
  expect_refused(normalize_capabilities("required", numbered(257, 4)), ErrorCode::invalid_capabilities,
                 "required:too_many_tokens");

  // 241 tokens of 16 bytes and 240 commas make 4096 bytes.
  Tokens exact = numbered(241, 16);
  EXPECT_EQ(join_capabilities(exact).size(), 4096U);
  EXPECT_TRUE(normalize_capabilities("required", exact));
  exact.front() += 'x';
  expect_refused(normalize_capabilities("required", exact), ErrorCode::invalid_capabilities,
                 "required:too_many_bytes");

  EXPECT_TRUE(normalize_capabilities("required", {std::string(4096, 'x')}));
}

TEST(Capabilities, DuplicatesCollapseBeforeTheyAreCounted) {
  EXPECT_EQ(normalize_capabilities("required", Tokens(1000, "gpu")), Tokens{"gpu"});
}

TEST(Capabilities, JoinAndCover) {
  EXPECT_EQ(join_capabilities({"a", "b", "c"}), "a,b,c");
  EXPECT_EQ(join_capabilities({}), "");
  EXPECT_TRUE(covers({"a", "b", "c"}, {"a", "c"}));
  EXPECT_TRUE(covers({}, {}));
  EXPECT_TRUE(covers({"a"}, {}));
  EXPECT_FALSE(covers({"a", "c"}, {"b"}));
  EXPECT_FALSE(covers({}, {"a"}));
  EXPECT_FALSE(covers({"A"}, {"a"}));
}

TEST(TimeToText, IsReadByPeople) {
  EXPECT_EQ(time_to_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(time_to_text(1'794'927'576'519), "2026-11-17T14:59:36.519Z");
  EXPECT_EQ(time_to_text(951'827'696'789), "2000-02-29T12:34:56.789Z");
  EXPECT_EQ(time_to_text(-1), "1969-12-31T23:59:59.999Z");
  EXPECT_EQ(time_to_text(std::numeric_limits<std::int64_t>::max()), "9999-12-31T23:59:59.999Z");
  EXPECT_EQ(time_to_text(std::numeric_limits<std::int64_t>::min()), "0001-01-01T00:00:00.000Z");
}

TEST(TruncateUtf8, NeverCutsASequence) {
  EXPECT_EQ(truncate_utf8("abc", 3), "abc");
  EXPECT_EQ(truncate_utf8("abcd", 3), "abc");
  EXPECT_EQ(truncate_utf8("aé", 2), "a");
  EXPECT_EQ(truncate_utf8("aéb", 3), "aé");
  EXPECT_EQ(truncate_utf8("🎉", 3), "");
  EXPECT_EQ(truncate_utf8("x🎉🎉", 8), "x🎉");
  EXPECT_EQ(truncate_utf8("é", 0), "");
}

TEST(TruncateUtf8, CutsWhatIsNoUtf8AtTheLimit) {
  EXPECT_EQ(truncate_utf8(std::string(10, '\x80'), 6), std::string(6, '\x80'));
}

}  // namespace
}  // namespace flowfabric
