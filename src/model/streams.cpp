#include "flowfabric/streams.h"

#include <charconv>

namespace flowfabric {

namespace {

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value{};
  const auto* end = text.data() + text.size();
  const auto [stopped, failed] = std::from_chars(text.data(), end, value);
  if (failed != std::errc() || stopped != end) return std::nullopt;
  return value;
}

}  // namespace

std::string FrameId::to_string() const {
  return std::to_string(ms) + "-" + std::to_string(seq);
}

std::optional<FrameId> FrameId::parse(std::string_view text, std::uint64_t seq) {
  const auto dash = text.find('-');
  const auto ms = number(text.substr(0, dash));
  if (!ms) return std::nullopt;
  if (dash == text.npos) return FrameId{*ms, seq};
  const auto given = number(text.substr(dash + 1));
  if (!given) return std::nullopt;
  return FrameId{*ms, *given};
}

}  // namespace flowfabric
