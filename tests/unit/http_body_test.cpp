// Header sections and bodies are read the same however their bytes are cut.
#include <gtest/gtest.h>

#include "http/body.h"

namespace flowfabric::http {
namespace {

// The body read from these bytes when they come in pieces of this size.
struct Reading {
  std::string content;
  std::string rest;
  bool is_done;
  bool is_malformed;
  bool operator==(const Reading&) const = default;
};

Reading read_in_pieces(BodyForm form, std::string_view bytes, std::size_t size) {
  BodyReader reader(form);
  std::string content;
  std::string waiting;
  for (std::size_t at = 0; at < bytes.size(); at += size) {
    waiting += bytes.substr(at, size);
    waiting.erase(0, reader.read(waiting, content));
  }
  return {content, waiting, reader.is_done(), reader.is_malformed()};
}

TEST(HttpBody, IsReadHoweverItIsCut) {
  struct Case {
    BodyForm form;
    std::string_view bytes;
    Reading expected;
  };
  const BodyForm chunked{BodyForm::Kind::chunked};
  const std::vector<Case> cases{
      {{}, "next", {"", "next", true, false}},
      {{BodyForm::Kind::sized, 0}, "next", {"", "next", true, false}},
      {{BodyForm::Kind::sized, 4}, "bodynext", {"body", "next", true, false}},
      {{BodyForm::Kind::sized, 9}, "body", {"body", "", false, false}},
      {{BodyForm::Kind::until_close}, "everything", {"everything", "", false, false}},
      {chunked, "0\r\n\r\nnext", {"", "next", true, false}},
      {chunked,
       "3\r\nabc\r\n002;x=y\r\nde\r\n0;z\r\nA: b\r\nC: d\r\n\r\nnext",
       {"abcde", "next", true, false}},
      {chunked, "3 \t;x\r\na\r\n\r\n0\r\n\r\n", {"a\r\n", "", true, false}},
      {chunked, "3\r\nab", {"ab", "", false, false}},
      {chunked, "0\r\nA: b\r\n", {"", "", false, false}},
  };
  for (const auto& [form, bytes, expected] : cases) {
    for (std::size_t size = 1; size <= bytes.size(); ++size) {
      EXPECT_EQ(read_in_pieces(form, bytes, size), expected) << bytes << " in pieces of " << size;
    }
  }
}

TEST(HttpBody, IsRefusedHoweverItIsCut) {
  for (const std::string_view bytes : {"g\r\n", "\r\n", "1\r\nab\r\n", "1\r\na\n", "1\n", "1 2\r\n",
                                       "0\r\na\rb", "0\r\na\nb", "11111111111111111\r\n"}) {
    for (std::size_t size = 1; size <= bytes.size(); ++size) {
      EXPECT_TRUE(read_in_pieces({BodyForm::Kind::chunked}, bytes, size).is_malformed)
          << bytes << " in pieces of " << size;
    }
  }
  const std::string trailers = "0\r\n" + std::string(4000, 'a') + ": b\r\n";
  std::string endless = trailers;
  for (int i = 0; i < 9; ++i) endless += trailers.substr(3);
  EXPECT_FALSE(read_in_pieces({BodyForm::Kind::chunked}, trailers, 1000).is_malformed);
  EXPECT_TRUE(read_in_pieces({BodyForm::Kind::chunked}, endless, 1000).is_malformed);
}

TEST(HttpBody, MayHaveLittleAroundItsChunks) {
  const BodyForm chunked{BodyForm::Kind::chunked};
  const auto with = [&](const std::string& chunk, int count) {
    std::string bytes;
    for (int i = 0; i < count; ++i) bytes += chunk;
    return read_in_pieces(chunked, bytes, 1000);
  };
  // 16 KiB, and as much as the chunks hold.
  EXPECT_FALSE(with("1\r\nx\r\n", 4090).is_malformed);
  EXPECT_TRUE(with("1\r\nx\r\n", 4100).is_malformed);
  EXPECT_FALSE(with("5\r\nxxxxx\r\n", 100'000).is_malformed);
  EXPECT_TRUE(with("1;" + std::string(4000, 'e') + "\r\nx\r\n", 5).is_malformed);
}

TEST(HttpHead, IsFoundHoweverItIsCut) {
  const std::string bytes = "GET / HTTP/1.1\r\nA: b\r\n\r\nbody\r\n\r\n";
  for (std::size_t size = 1; size <= bytes.size(); ++size) {
    HeadFinder finder(14, 6);
    auto found = HeadFinder::Found::not_yet;
    for (std::size_t end = size; found == HeadFinder::Found::not_yet && end < bytes.size() + size;
         end += size)
      found = finder.look(std::string_view(bytes).substr(0, end));
    EXPECT_EQ(found, HeadFinder::Found::whole) << size;
    EXPECT_EQ(finder.size(), 24u) << size;
  }
}

TEST(HttpHead, HasLimits) {
  using Found = HeadFinder::Found;
  const std::string head = "GET / HTTP/1.1\r\nA: b\r\n\r\n";
  EXPECT_EQ(HeadFinder(14, 6).look(head), Found::whole);
  EXPECT_EQ(HeadFinder(13, 6).look(head), Found::too_large);
  EXPECT_EQ(HeadFinder(14, 5).look(head), Found::too_large);
  EXPECT_EQ(HeadFinder(14, 6).look("GET / HTTP/1.1\r"), Found::not_yet);
  EXPECT_EQ(HeadFinder(14, 6).look("GET / HTTP/1.12\r"), Found::too_large);
  EXPECT_EQ(HeadFinder(14, 6).look("GET / HTTP/1.1\r\nA: bc\r\n"), Found::too_large);
  EXPECT_EQ(HeadFinder(14, 6).look("GET / HTTP/1.1\n"), Found::malformed);
  EXPECT_EQ(HeadFinder(14, 6).look("\x16"), Found::malformed);
}

}  // namespace
}  // namespace flowfabric::http
