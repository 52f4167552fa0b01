// Turns the text of a setting into its value. The error of an unreadable text is a sentence that says what to
// give instead; the caller adds the setting's name.
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
// The historic reading of variables: 1 and true, in any case, are true, and anything else is false.
bool is_true_variable(std::string_view text);

// Splits at commas; drops spaces around the parts, and empty parts.
std::vector<std::string> split_list(std::string_view text);
// The same; at least one part must be left.
Parsed<std::vector<std::string>> parse_list(std::string_view text);

struct ListenAddress {
  std::string host;  // without brackets
  std::uint16_t port{};
};
// host:port, and [::1]:port for IPv6.
Parsed<ListenAddress> parse_listen_address(std::string_view text);
// True if only programs on this machine can reach the address.
bool is_loopback_address(const std::string& host);

// Demands UTF-8 without control characters: anything else is a mistake, and spoils logs.
Parsed<void> check_plain_text(std::string_view text);
// Refuses short tokens, which can be guessed.
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
