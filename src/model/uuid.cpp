#include "flowfabric/uuid.h"

#include "model/encoding.h"

namespace flowfabric {
namespace {

constexpr std::string_view kUrnPrefix = "urn:uuid:";
constexpr std::size_t kBareLength = 32;
constexpr std::size_t kHyphenatedLength = 36;

constexpr bool is_hyphen_position(std::size_t index) {
  return index == 8 || index == 13 || index == 18 || index == 23;
}

constexpr char to_lower_ascii(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool has_urn_prefix(std::string_view text) {
  if (text.size() < kUrnPrefix.size()) return false;
  for (std::size_t i = 0; i < kUrnPrefix.size(); ++i) {
    if (to_lower_ascii(text[i]) != kUrnPrefix[i]) return false;
  }
  return true;
}

// Only the hyphenated form may be wrapped; what comes back is either form without its wrapping.
std::string_view unwrap(std::string_view text) {
  if (text.size() == kHyphenatedLength + kUrnPrefix.size() && has_urn_prefix(text)) {
    return text.substr(kUrnPrefix.size());
  }
  if (text.size() == kHyphenatedLength + 2 && text.front() == '{' && text.back() == '}') {
    return text.substr(1, kHyphenatedLength);
  }
  return text;
}

}  // namespace

std::optional<Uuid> Uuid::parse(std::string_view text) {
  const std::string_view digits = unwrap(text);
  const bool hyphenated = digits.size() == kHyphenatedLength;
  if (!hyphenated && digits.size() != kBareLength) return std::nullopt;

  Uuid uuid;
  std::size_t nibbles = 0;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (hyphenated && is_hyphen_position(i)) {
      if (digits[i] != '-') return std::nullopt;
      continue;
    }
    const int value = hex_value(digits[i]);
    if (value < 0) return std::nullopt;
    std::uint8_t& byte = uuid.bytes[nibbles / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | value);
    ++nibbles;
  }
  return uuid;
}

std::string Uuid::to_string() const {
  std::string text(kHyphenatedLength, '-');
  std::size_t at = 0;
  for (const std::uint8_t byte : bytes) {
    if (is_hyphen_position(at)) ++at;
    text[at++] = kHexDigits[byte >> 4];
    text[at++] = kHexDigits[byte & 0x0F];
  }
  return text;
}

Uuid uuid_v7(std::int64_t now_ms, std::uint64_t random_high, std::uint64_t random_low) {
  const std::uint64_t high = static_cast<std::uint64_t>(now_ms) << 16 | 0x7000 | random_high >> 52;
  const std::uint64_t low = 0x8000'0000'0000'0000 | random_low >> 2;
  Uuid uuid;
  for (std::size_t i = 0; i < 8; ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(high >> (56 - 8 * i));
    uuid.bytes[8 + i] = static_cast<std::uint8_t>(low >> (56 - 8 * i));
  }
  return uuid;
}

}  // namespace flowfabric
