#include "http/head.h"

#include <algorithm>
#include <boost/beast/http/basic_parser.hpp>
#include <limits>

namespace flowfabric::http {

namespace {

namespace beast = boost::beast;
using beast::error_code;

bool is_token_character(char c) {
  constexpr std::string_view kMarks = "!#$%&'*+-.^_`|~";
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || kMarks.contains(c);
}

bool is_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::string lower_case(std::string_view text) {
  std::string lower{text};
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view view(beast::string_view text) {
  return {text.data(), text.size()};
}

// Boost.Beast's parser, for header sections only: BodyReader reads bodies.
template <bool is_request>
class HeadParser : public beast::http::basic_parser<is_request> {
 public:
  HeadParser() {
    this->header_limit(std::numeric_limits<std::uint32_t>::max());  // HeadFinder has kept the limits
    this->body_limit(boost::none);
  }

  bool parse(std::string_view head) {
    error_code error;
    const auto used = this->put(boost::asio::const_buffer(head.data(), head.size()), error);
    return !error && used == head.size() && this->is_header_done() && !has_unknown_coding_;
  }
  int version() const { return version_; }

  BodyForm body() const {
    if (this->chunked()) return {BodyForm::Kind::chunked};
    if (this->need_eof()) return {BodyForm::Kind::until_close};
    if (const auto size = this->content_length(); size && *size > 0 && !this->is_done())
      return {BodyForm::Kind::sized, *size};
    return {};
  }

 protected:
  void set_version(int version) { version_ = version; }
  virtual void take_header(Header header) = 0;

 private:
  void on_field_impl(beast::http::field field, beast::string_view name, beast::string_view value,
                     error_code&) override {
    Header header{lower_case(view(name)), std::string(view(value))};
    // A server that sees another end of the message than the proxy in front of it can be tricked into seeing
    // requests that are not there.
    if (field == beast::http::field::transfer_encoding && lower_case(header.second) != "chunked")
      has_unknown_coding_ = true;
    take_header(std::move(header));
  }
  void on_header_impl(error_code&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, error_code&) override {}
  std::size_t on_body_impl(beast::string_view body, error_code&) override { return body.size(); }
  void on_chunk_header_impl(std::uint64_t, beast::string_view, error_code&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, beast::string_view body, error_code&) override {
    return body.size();
  }
  void on_finish_impl(error_code&) override {}

  int version_{11};
  bool has_unknown_coding_{false};
};

class RequestParser final : public HeadParser<true> {
 public:
  explicit RequestParser(Request& request) : request_(request) {}

 private:
  void on_request_impl(beast::http::verb, beast::string_view method, beast::string_view target, int version,
                       error_code& error) override {
    request_.method = std::string(view(method));
    set_version(version);
    if (!take_target(view(target))) error = beast::http::error::bad_target;
  }
  void on_response_impl(int, beast::string_view, int, error_code&) override {}
  void take_header(Header header) override { request_.headers.push_back(std::move(header)); }

  bool take_target(std::string_view target) {
    if (!is_ascii(target)) return false;
    if (!target.starts_with('/') && target != "*" && !take_scheme_and_host(target)) return false;
    const auto question = target.find('?');
    request_.path = std::string(target.substr(0, question));
    if (request_.path.empty()) request_.path = "/";
    if (question != std::string_view::npos) request_.query = std::string(target.substr(question + 1));
    return true;
  }
  // "http://host/path": as clients write to proxies, and every server has to understand.
  static bool take_scheme_and_host(std::string_view& target) {
    const auto colon = target.find("://");
    if (colon == std::string_view::npos) return false;
    const auto scheme = lower_case(target.substr(0, colon));
    if (scheme != "http" && scheme != "https") return false;
    const auto rest = target.substr(colon + 3);
    const auto host_end = std::min(rest.find_first_of("/?"), rest.size());
    if (host_end == 0) return false;
    target = rest.substr(host_end);
    return true;
  }

  Request& request_;
};

class ResponseParser final : public HeadParser<false> {
 public:
  ResponseParser(Response& response, bool to_head) : response_(response) { this->skip(to_head); }

 private:
  void on_request_impl(beast::http::verb, beast::string_view, beast::string_view, int, error_code&) override {
  }
  void on_response_impl(int status, beast::string_view, int version, error_code&) override {
    response_.status = status;
    set_version(version);
  }
  void take_header(Header header) override {
    if (header.first == "content-type")
      response_.content_type = std::move(header.second);
    else
      response_.headers.push_back(std::move(header));
  }

  Response& response_;
};

}  // namespace

HeadFinder::Found HeadFinder::look(std::string_view bytes) {
  // Input that is not HTTP, such as TLS, is refused at once and not after many bytes.
  if (!bytes.empty() && !is_token_character(bytes.front())) return Found::malformed;
  for (;;) {
    const auto line_feed = bytes.find('\n', scanned_);
    if (line_feed == std::string_view::npos) break;
    const auto found = end_line(bytes, line_feed);
    if (found != Found::not_yet) return found;
  }
  scanned_ = bytes.size();
  const bool is_too_large =
      first_line_end_ == 0 ? bytes.size() > max_line_ + 1 : bytes.size() - first_line_end_ > max_headers_ + 1;
  return is_too_large ? Found::too_large : Found::not_yet;
}

HeadFinder::Found HeadFinder::end_line(std::string_view bytes, std::size_t line_feed) {
  const bool has_return = line_feed > line_begin_ && bytes[line_feed - 1] == '\r';
  if (!has_return) return Found::malformed;
  const bool is_empty = line_feed == line_begin_ + 1;
  const bool is_first = first_line_end_ == 0;
  const auto begin = line_begin_;
  line_begin_ = scanned_ = line_feed + 1;
  if (is_first) {
    first_line_end_ = line_begin_;
    return line_feed - 1 > max_line_ ? Found::too_large : Found::not_yet;
  }
  if (is_empty) return Found::whole;
  // A folded line is refused: others may read it as a separate header.
  if (bytes[begin] == ' ' || bytes[begin] == '\t') return Found::malformed;
  return line_begin_ - first_line_end_ > max_headers_ ? Found::too_large : Found::not_yet;
}

std::optional<RequestHead> parse_request_head(std::string_view head) {
  RequestHead parsed;
  RequestParser parser(parsed.request);
  if (!parser.parse(head)) return std::nullopt;
  parsed.is_http_1_0 = parser.version() == 10;
  const auto hosts = std::ranges::count(parsed.request.headers, "host", &Header::first);
  if (hosts > 1 || (hosts == 0 && !parsed.is_http_1_0)) return std::nullopt;
  parsed.body = parser.body();
  if (parsed.is_http_1_0 && parsed.body.kind == BodyForm::Kind::chunked) return std::nullopt;
  parsed.request.keep_alive = parser.keep_alive();
  const auto* expect = parsed.request.header("expect");
  parsed.awaits_continue = expect != nullptr && !parsed.is_http_1_0 && lower_case(*expect) == "100-continue";
  return parsed;
}

std::optional<ResponseHead> parse_response_head(std::string_view head, bool to_head) {
  ResponseHead parsed;
  ResponseParser parser(parsed.response, to_head);
  if (!parser.parse(head)) return std::nullopt;
  if (!parser.is_done()) parsed.body = parser.body();
  parsed.keep_alive = parser.keep_alive();
  return parsed;
}

}  // namespace flowfabric::http
