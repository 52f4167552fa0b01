// Hex digits, percent-encoding, and the comparison of secrets.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flowfabric {

inline constexpr std::string_view kHexDigits = "0123456789abcdef";

// 0 to 15; -1: not a hex digit. Capital letters are hex digits, too.
constexpr int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}
constexpr bool is_hex_digit(char c) {
  return hex_value(c) >= 0;
}

// The bytes that pairs of hex digits stand for; absent: not such.
std::optional<std::string> bytes_from_hex(std::string_view hex);
std::string hex_from_bytes(std::string_view bytes);

// Absent: a % without two hex digits behind it. The bytes may be any: whoever wants UTF-8 checks it.
enum class Plus { is_plus, is_space };  // a space in query strings
std::optional<std::string> percent_decode(std::string_view text, Plus plus = Plus::is_plus);

// Takes as long for any two texts of the same length.
bool equal_in_constant_time(std::string_view a, std::string_view b);

}  // namespace flowfabric
