#include "server/config_values.h"

#include <arpa/inet.h>
#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <numeric>

#include "model/text.h"
#include "model/waitpoint_token.h"
#include "store/store.h"
#include "store/url.h"

namespace flowfabric::server {

namespace {

constexpr std::string_view kSpaces = " \t";
constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kShortestSecretBytes = 32;  // as many as HMAC-SHA256 uses
constexpr std::uint64_t kLastPort = std::numeric_limits<std::uint16_t>::max();

std::unexpected<std::string> give(std::string advice) {
  return std::unexpected(std::move(advice));
}

std::unexpected<std::string> give_listen_address() {
  return give("Give host:port, for example 127.0.0.1:9090, 0.0.0.0:9090 or [::1]:9090.");
}

std::unexpected<std::string> give_store_url() {
  return give("Give memory:, sqlite:PATH or postgres://user@host/database.");
}

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

bool is_visible(char c) {
  return c > 0x20 && c < 0x7F;
}

bool is_ipv6(const std::string& address) {
  in6_addr parsed{};
  // The part after % names a network interface.
  return inet_pton(AF_INET6, address.substr(0, address.find('%')).c_str(), &parsed) == 1;
}

}  // namespace

Parsed<std::uint64_t> parse_number(std::string_view text, std::uint64_t least, std::uint64_t most) {
  std::uint64_t number = 0;
  const char* end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end && number >= least && number <= most) return number;
  return give(fmt::format("Give a whole number from {} to {}, in decimal digits only.", least, most));
}

Parsed<bool> parse_boolean(std::string_view text) {
  const auto word = lower_case(text);
  if (word == "true" || word == "1") return true;
  if (word == "false" || word == "0") return false;
  return give("Give true or false.");
}

bool is_true_variable(std::string_view text) {
  return parse_boolean(text).value_or(false);
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const auto end = std::min(text.find(',', start), text.size());
    auto part = trimmed(text.substr(start, end - start));
    if (!part.empty()) parts.push_back(std::move(part));
    start = end + 1;
  }
  return parts;
}

Parsed<std::vector<std::string>> parse_list(std::string_view text) {
  auto parts = split_list(text);
  if (parts.empty()) return give("Give at least one, separated by commas.");
  return parts;
}

Parsed<ListenAddress> parse_listen_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == text.npos || colon == 0) return give_listen_address();
  const auto port = parse_number(text.substr(colon + 1), 0, kLastPort);
  if (!port) return give("The port behind the last colon must be a whole number from 0 to 65535.");
  std::string host(text.substr(0, colon));
  if (host.front() == '[') {
    if (host.back() != ']') return give_listen_address();
    host = host.substr(1, host.size() - 2);
    if (!is_ipv6(host)) return give("Give an IPv6 address between the brackets, for example [::1]:9090.");
  } else if (host.contains(':')) {
    return give("Put an IPv6 address into brackets, for example [::1]:9090.");
  } else if (!std::ranges::all_of(host, is_visible)) {
    return give_listen_address();
  }
  return ListenAddress{std::move(host), static_cast<std::uint16_t>(*port)};
}

bool is_loopback_address(const std::string& host) {
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == 127;
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) return IN6_IS_ADDR_LOOPBACK(&v6);
  return lower_case(host) == "localhost";
}

Parsed<void> check_plain_text(std::string_view text) {
  if (std::ranges::any_of(text, is_control)) return give("Leave out control characters and ends of lines.");
  if (!is_valid_utf8(text)) return give("Give it in UTF-8.");
  return {};
}

Parsed<void> check_api_token(std::string_view token) {
  // Clients cannot send other characters in a header.
  if (!std::ranges::all_of(token, is_visible)) {
    return give("A token may hold visible ASCII characters only, such as `openssl rand -hex 32` prints.");
  }
  if (token.size() >= kShortestToken) return {};
  return give(fmt::format("A token has at least {} characters: `openssl rand -hex 32` prints a good one.",
                          kShortestToken));
}

Parsed<void> check_waitpoint_secret(std::string_view hex) {
  const auto bytes = bytes_from_hex(hex);
  if (!bytes)
    return give("Give pairs of hex digits, such as `openssl rand -hex 32` prints, or leave it out.");
  if (bytes->size() >= kShortestSecretBytes) return {};
  return give("Give at least 64 hex digits, such as `openssl rand -hex 32` prints.");
}

Parsed<void> check_http_url(std::string_view url) {
  const auto advice = give("Give a URL like http://localhost:4318.");
  const auto scheme_end = url.find("://");
  if (scheme_end == url.npos || !std::ranges::all_of(url, is_visible)) return advice;
  const auto scheme = lower_case(url.substr(0, scheme_end));
  if (scheme != "http" && scheme != "https") return advice;
  const auto rest = url.substr(scheme_end + 3);
  const auto authority = rest.substr(0, rest.find_first_of("/?#"));
  if (authority.contains('@')) return give("A URL with a user or password in it is not supported.");
  const auto colon = authority.rfind(':');
  const bool has_port = colon != authority.npos && authority.find(']', colon) == authority.npos;
  if (authority.substr(0, has_port ? colon : authority.size()).empty()) return advice;
  if (has_port && !parse_number(authority.substr(colon + 1), 1, kLastPort)) return advice;
  return {};
}

Parsed<void> check_store_url(const std::string& url) {
  if (store::is_postgres_url(url)) return {};
  const auto parsed = store::parse_store_url(url);
  if (!parsed) return give_store_url();
  if (parsed->scheme == "valkey" || parsed->scheme == "redis" || parsed->scheme == "rediss") {
    return give("This build has no Valkey store yet; give memory:, sqlite:PATH or postgres://….");
  }
  if (parsed->scheme == "memory") return {};
  if (parsed->scheme != "sqlite" || parsed->path.empty()) return give_store_url();
  if (parsed->path == ":memory:") return give("Give memory: for a store that is gone with the process.");
  return {};
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(kSpaces);
  if (first == text.npos) return "";
  return std::string(text.substr(first, text.find_last_not_of(kSpaces) - first + 1));
}

namespace {

// Levenshtein distance, row by row.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const auto replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string nearest_name(std::string_view name, const std::vector<std::string>& names) {
  const auto nearest = std::ranges::min_element(
      names, {}, [name](const std::string& candidate) { return distance(name, candidate); });
  return nearest == names.end() ? "" : *nearest;
}

}  // namespace flowfabric::server
