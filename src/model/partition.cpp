#include "model/partition.h"

#include <array>

namespace flowfabric {
namespace {

constexpr std::uint16_t kPolynomial = 0x1021;
constexpr std::uint64_t kFnvOffset = 0xcbf29ce484222325ULL;
constexpr std::uint64_t kFnvPrime = 0x100000001b3ULL;

constexpr std::uint16_t crc_of_high_byte(std::uint16_t byte) {
  auto crc = static_cast<std::uint16_t>(byte << 8);
  for (int bit = 0; bit < 8; ++bit) {
    const bool carry = (crc & 0x8000) != 0;
    crc = static_cast<std::uint16_t>(crc << 1);
    if (carry) crc ^= kPolynomial;
  }
  return crc;
}

constexpr auto kCrcTable = [] {
  std::array<std::uint16_t, 256> table{};
  for (std::uint16_t byte = 0; byte < table.size(); ++byte) table[byte] = crc_of_high_byte(byte);
  return table;
}();

constexpr std::uint16_t crc_step(std::uint16_t crc, std::uint8_t byte) {
  return static_cast<std::uint16_t>(crc << 8 ^ kCrcTable[crc >> 8 ^ byte]);
}

}  // namespace

std::uint16_t crc16_xmodem(std::string_view bytes) {
  std::uint16_t crc = 0;
  for (const char c : bytes) crc = crc_step(crc, static_cast<std::uint8_t>(c));
  return crc;
}

std::uint16_t partition_of(const Uuid& uuid, std::uint16_t count) {
  std::uint16_t crc = 0;
  for (const std::uint8_t byte : uuid.bytes) crc = crc_step(crc, byte);
  return static_cast<std::uint16_t>(crc % count);
}

std::uint16_t partition_of_lane(std::string_view lane, std::uint16_t count) {
  return static_cast<std::uint16_t>(crc16_xmodem(lane) % count);
}

std::uint64_t fnv1a64(std::string_view bytes) {
  std::uint64_t hash = kFnvOffset;
  for (const char c : bytes) hash = (hash ^ static_cast<std::uint8_t>(c)) * kFnvPrime;
  return hash;
}

}  // namespace flowfabric
