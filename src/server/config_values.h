// Turns the text of a setting into its value. What cannot be read is answered with a sentence that says what
// to give instead; who asked knows which setting it is about.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace flowfabric::server {

template <class T>
using Parsed = std::expected<T, std::string>;

Parsed<std::uint64_t> parse_number(std::string_view text, std::uint64_t least, std::uint64_t most);
// true, false, 1 or 0, in any case.
Parsed<bool> parse_boolean(std::string_view text);
// Variables have always been read like this: 1 and true, in any case, and anything else is false.
bool is_true_variable(std::string_view text);

// Separated by commas; spaces around the parts and empty parts do not count.
std::vector<std::string> split_list(std::string_view text);
// The same; at least one part must be left.
Parsed<std::vector<std::string>> parse_list(std::string_view text);

struct ListenAddress {
  std::string host;  // without brackets
  std::uint16_t port{};
};
// host:port, and [::1]:port for IPv6.
Parsed<ListenAddress> parse_listen_address(std::string_view text);
// Only programs on this machine can reach it.
bool is_loopback_address(const std::string& host);

// No control characters, and UTF-8: anything else is an accident, and spoils logs.
Parsed<void> check_plain_text(std::string_view text);
// Short ones can be guessed.
Parsed<void> check_api_token(std::string_view token);
Parsed<void> check_waitpoint_secret(std::string_view hex);
// http://host[:port][/path], or https.
Parsed<void> check_http_url(std::string_view url);
Parsed<void> check_store_url(const std::string& url);

std::string lower_case(std::string_view text);
std::string trimmed(std::string_view text);

// The one of `names` that takes the fewest changes of single letters; "" if there are none.
std::string nearest_name(std::string_view name, const std::vector<std::string>& names);

}  // namespace flowfabric::server
