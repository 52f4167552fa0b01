#include "flowfabric/ids.h"

#include <charconv>

namespace flowfabric {
namespace {

constexpr std::string_view kTagStart = "{fp:";
constexpr std::string_view kTagEnd = "}:";

// Digits only: std::from_chars takes neither a plus sign nor spaces, and no minus for unsigned types.
std::optional<std::uint16_t> parse_partition(std::string_view digits) {
  std::uint16_t partition = 0;
  const char* const end = digits.data() + digits.size();
  const auto [stopped_at, failure] = std::from_chars(digits.data(), end, partition);
  if (failure != std::errc{} || stopped_at != end) return std::nullopt;
  return partition;
}

}  // namespace

std::optional<ExecutionId> ExecutionId::parse(std::string_view text, ParseError* why) {
  const auto refuse = [why](ParseError reason) -> std::optional<ExecutionId> {
    if (why != nullptr) *why = reason;
    return std::nullopt;
  };
  if (!text.starts_with(kTagStart)) return refuse(ParseError::missing_tag);
  text.remove_prefix(kTagStart.size());
  const std::size_t tag_end = text.find(kTagEnd);
  if (tag_end == std::string_view::npos) return refuse(ParseError::missing_tag);

  const auto partition = parse_partition(text.substr(0, tag_end));
  if (!partition) return refuse(ParseError::invalid_partition_index);
  const auto uuid = Uuid::parse(text.substr(tag_end + kTagEnd.size()));
  if (!uuid) return refuse(ParseError::invalid_uuid);
  return ExecutionId{*partition, *uuid};
}

std::string ExecutionId::to_string() const {
  std::string text{kTagStart};
  text += std::to_string(partition);
  text += kTagEnd;
  text += uuid.to_string();
  return text;
}

}  // namespace flowfabric
