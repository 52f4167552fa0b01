// The header section of a message: finding its end, and parsing it. It is parsed at once when it is complete,
// so that its limits are exact.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "http/message.h"

namespace flowfabric::http {

// Finds the end of a header section whose bytes come piece by piece.
class HeadFinder {
 public:
  enum class Found { not_yet, whole, malformed, too_large };

  HeadFinder(std::size_t max_line, std::size_t max_headers)
      : max_line_(max_line), max_headers_(max_headers) {}

  // `bytes`: everything received from the section's first byte on; never less than the last time.
  Found look(std::string_view bytes);
  // Of the whole section, with the empty line at its end.
  std::size_t size() const { return line_begin_; }

 private:
  Found end_line(std::string_view bytes, std::size_t line_feed);

  std::size_t max_line_;
  std::size_t max_headers_;
  std::size_t first_line_end_{0};  // 0: not found yet
  std::size_t line_begin_{0};
  std::size_t scanned_{0};
};

// The framing of a body.
struct BodyForm {
  enum class Kind { none, sized, chunked, until_close };
  Kind kind{Kind::none};
  std::uint64_t size{0};
};

struct RequestHead {
  Request request;
  BodyForm body;
  bool is_http_1_0{false};
  bool awaits_continue{false};
};

struct ResponseHead {
  Response response;
  BodyForm body;
  bool keep_alive{false};
};

// Absent if it is not well-formed HTTP/1.x.
std::optional<RequestHead> parse_request_head(std::string_view head);
// `to_head`: the request's method was HEAD, so there is no body whatever the headers say.
std::optional<ResponseHead> parse_response_head(std::string_view head, bool to_head);

}  // namespace flowfabric::http
