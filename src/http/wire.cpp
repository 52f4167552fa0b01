#include "http/wire.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <iterator>

namespace flowfabric::http {

namespace {

std::string_view reason_of(int status) {
  namespace beast = boost::beast::http;
  const auto known = beast::int_to_status(static_cast<unsigned>(status));
  if (known == beast::status::unknown) return {};
  const auto reason = beast::obsolete_reason(known);
  return {reason.data(), reason.size()};
}

bool is_of_the_edge(std::string_view name) {
  constexpr std::array<std::string_view, 4> kNames{"content-length", "transfer-encoding", "connection",
                                                   "content-type"};
  return std::ranges::any_of(kNames, [&](std::string_view known) {
    return std::ranges::equal(name, known, [](char a, char b) {
      return a == b || (a >= 'A' && a <= 'Z' && static_cast<char>(a - 'A' + 'a') == b);
    });
  });
}

// A line break in a value would begin a header of its own.
void append_header(std::string& head, std::string_view name, std::string_view value) {
  const auto begin = head.size();
  fmt::format_to(std::back_inserter(head), "{}: {}", name, value);
  std::replace_if(
      head.begin() + static_cast<std::ptrdiff_t>(begin), head.end(),
      [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
  head += "\r\n";
}

}  // namespace

std::string response_head(const Response& response, Framing framing, std::string_view connection) {
  std::string head;
  head.reserve(256);
  fmt::format_to(std::back_inserter(head), "HTTP/1.1 {} {}\r\n", response.status, reason_of(response.status));
  if (framing == Framing::sized)
    fmt::format_to(std::back_inserter(head), "content-length: {}\r\n", response.body.size());
  if (framing == Framing::chunked) head += "transfer-encoding: chunked\r\n";
  if (!connection.empty()) append_header(head, "connection", connection);
  if (!response.content_type.empty()) append_header(head, "content-type", response.content_type);
  for (const auto& [name, value] : response.headers) {
    if (!is_of_the_edge(name)) append_header(head, name, value);
  }
  head += "\r\n";
  return head;
}

std::string last_response(const Response& response) {
  return response_head(response, Framing::sized, "close") + response.body;
}

std::string as_chunk(std::string piece) {
  auto chunk = fmt::format("{:x}\r\n", piece.size());
  chunk += piece;
  chunk += "\r\n";
  return chunk;
}

bool may_have_body(int status) {
  return status >= 200 && status != 204 && status != 304;
}

}  // namespace flowfabric::http
