// A 128-bit UUID value: parsing, printing, and minting of time-ordered (version 7) values.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace flowfabric {

struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  // Accepts hyphenated, 32 bare hex digits, `urn:uuid:` prefixed and braced forms, in any case.
  static std::optional<Uuid> parse(std::string_view text);

  // Always hyphenated lower case.
  std::string to_string() const;

  auto operator<=>(const Uuid&) const = default;
};

// A version 7 UUID: 48 bits of `now_ms`, the upper 12 bits of `random_high`, the upper 62 of `random_low`.
// Time-ordered, so that consecutive inserts stay together in an index.
Uuid uuid_v7(std::int64_t now_ms, std::uint64_t random_high, std::uint64_t random_low);

}  // namespace flowfabric

template <>
struct std::hash<flowfabric::Uuid> {
  std::size_t operator()(const flowfabric::Uuid& uuid) const noexcept {
    // Minted ids start with the time and end with randomness; caller-made ones may differ in any few bytes
    // only. So every byte counts, and reaches the hash's lowest bits too.
    std::uint64_t high = 0;
    std::uint64_t low = 0;
    std::memcpy(&high, uuid.bytes.data(), 8);
    std::memcpy(&low, uuid.bytes.data() + 8, 8);
    std::uint64_t mixed = (high * 0x9E3779B97F4A7C15ULL) ^ low;
    for (int round = 0; round < 2; ++round) mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93ULL;
    return mixed ^ (mixed >> 32);
  }
};
