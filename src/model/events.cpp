#include "flowfabric/events.h"

namespace flowfabric {

namespace {

constexpr char kRelational = 0x02;
constexpr std::size_t kBytes = 9;

}  // namespace

std::string first_cursor() {
  return cursor_of(0);
}

std::string cursor_of(std::int64_t event_id) {
  std::string bytes(1, kRelational);
  for (int shift = 56; shift >= 0; shift -= 8) {
    bytes.push_back(static_cast<char>((static_cast<std::uint64_t>(event_id) >> shift) & 0xFF));
  }
  return bytes;
}

Result<std::int64_t> parse_cursor(const std::string& bytes) {
  const auto refused = [](const char* advice) {
    return fail_with(ErrorCode::invalid_input, "cursor", advice);
  };
  if (bytes.empty() || bytes[0] != kRelational) {
    return refused("This cursor is not of this kind of store: subscribe anew, with an empty one.");
  }
  if (bytes.size() != kBytes) return refused("The cursor is not whole: give it as it was received.");
  std::uint64_t value = 0;
  for (std::size_t i = 1; i < kBytes; ++i) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  if (value >> 63) return refused("The cursor is not one that was given out.");
  return static_cast<std::int64_t>(value);
}

}  // namespace flowfabric
