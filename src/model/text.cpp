#include "model/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

#include "flowfabric/operations.h"

namespace flowfabric {
namespace {

constexpr std::size_t kMaxLaneBytes = 64;
constexpr std::size_t kMaxNameBytes = 256;

constexpr bool is_continuation(char c) {
  return (static_cast<std::uint8_t>(c) & 0xC0) == 0x80;
}

struct LeadByte {
  std::size_t length;
  char32_t payload;
  char32_t smallest;  // anything below is an overlong spelling
};

constexpr std::optional<LeadByte> read_lead(std::uint8_t byte) {
  if (byte < 0x80) return LeadByte{1, byte, 0};
  if (byte >> 5 == 0b110) return LeadByte{2, byte & 0x1FU, 0x80};
  if (byte >> 4 == 0b1110) return LeadByte{3, byte & 0x0FU, 0x800};
  if (byte >> 3 == 0b11110) return LeadByte{4, byte & 0x07U, 0x10000};
  return std::nullopt;
}

constexpr bool is_scalar_value(char32_t c) {
  return c <= 0x10FFFF && !(c >= 0xD800 && c <= 0xDFFF);
}

// Takes one character off the front of a text that is not empty.
std::optional<char32_t> take_character(std::string_view& text) {
  const auto lead = read_lead(static_cast<std::uint8_t>(text.front()));
  if (!lead || text.size() < lead->length) return std::nullopt;
  char32_t character = lead->payload;
  for (std::size_t i = 1; i < lead->length; ++i) {
    if (!is_continuation(text[i])) return std::nullopt;
    character = character << 6 | (static_cast<std::uint8_t>(text[i]) & 0x3FU);
  }
  if (character < lead->smallest || !is_scalar_value(character)) return std::nullopt;
  text.remove_prefix(lead->length);
  return character;
}

constexpr bool is_control(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F);
}

constexpr bool is_whitespace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

// Changes how what comes after it is shown.
constexpr bool is_mischievous(char32_t c) {
  const bool is_line_end = c == 0x2028 || c == 0x2029;
  const bool is_direction = c == 0x061C || c == 0x200E || c == 0x200F || (c >= 0x202A && c <= 0x202E) ||
                            (c >= 0x2066 && c <= 0x2069);
  return is_control(c) || is_line_end || is_direction;
}

// `text` must be valid UTF-8.
template <class Predicate>
bool any_character(std::string_view text, Predicate predicate) {
  while (!text.empty()) {
    if (predicate(take_character(text).value())) return true;
  }
  return false;
}

std::unexpected<Error> invalid_field(std::string_view field, std::string why, std::string_view rule) {
  return fail_with(ErrorCode::invalid_input, fmt::format("{}: {}", field, why),
                   fmt::format("`{}` must be {}.", field, rule));
}

// The reason a token is refused, empty when it is fine.
std::string_view token_fault(std::string_view token) {
  if (token.empty()) return "empty_token";
  if (token.contains(',')) return "comma_in_token";
  if (std::ranges::any_of(token, [](char c) { return static_cast<std::uint8_t>(c) <= 0x20 || c == 0x7F; })) {
    return "control_or_whitespace";
  }
  if (!is_valid_utf8(token)) return "non_string_token";
  return "";
}

std::unexpected<Error> invalid_capabilities(std::string_view side, std::string_view why) {
  return fail_with(
      ErrorCode::invalid_capabilities, fmt::format("{}:{}", side, why),
      fmt::format("Capabilities are at most {} distinct tokens of printable UTF-8 without spaces or commas, "
                  "at most {} bytes when joined by commas.",
                  kMaxCapabilityTokens, kMaxCapabilityBytes));
}

}  // namespace

bool is_valid_utf8(std::string_view text) {
  while (!text.empty()) {
    if (!take_character(text)) return false;
  }
  return true;
}

std::string one_line(std::string_view text) {
  std::string line;
  line.reserve(text.size());
  while (!text.empty()) {
    const auto before = text;
    const auto character = take_character(text);
    if (!character) text.remove_prefix(1);
    if (character && !is_mischievous(*character))
      line += before.substr(0, before.size() - text.size());
    else
      fmt::format_to(std::back_inserter(line), "\\u{:04x}",
                     static_cast<std::uint32_t>(character.value_or(0xFFFD)));
  }
  return line;
}

Result<void> check_text(std::string_view field, std::string_view text, std::size_t most) {
  if (text.size() > most) {
    return invalid_field(field, fmt::format("longer than {} bytes", most),
                         fmt::format("up to {} bytes long; larger data belongs into a payload", most));
  }
  constexpr std::string_view rule = "valid UTF-8 without NUL bytes";
  if (text.contains('\0')) return invalid_field(field, "contains a NUL byte", rule);
  if (!is_valid_utf8(text)) return invalid_field(field, "not valid UTF-8", rule);
  return {};
}

Result<void> check_lane(std::string_view lane) {
  constexpr std::string_view rule = "1 to 64 printable ASCII characters";
  if (lane.empty()) return invalid_field("lane_id", "empty", rule);
  if (lane.size() > kMaxLaneBytes) {
    return invalid_field("lane_id", fmt::format("too long ({} bytes)", lane.size()), rule);
  }
  const auto bad = std::ranges::find_if_not(lane, [](char c) { return c >= 0x20 && c <= 0x7E; });
  if (bad != lane.end()) {
    return invalid_field("lane_id", fmt::format("non-printable byte at index {}", bad - lane.begin()), rule);
  }
  return {};
}

Result<void> check_namespace(std::string_view name) {
  constexpr std::string_view rule = "at most 256 bytes of UTF-8 without control characters";
  if (name.size() > kMaxNameBytes) {
    return invalid_field("namespace", fmt::format("too long ({} bytes)", name.size()), rule);
  }
  if (!is_valid_utf8(name)) return invalid_field("namespace", "not valid UTF-8", rule);
  if (any_character(name, is_control))
    return invalid_field("namespace", "contains a control character", rule);
  return {};
}

Result<void> check_worker_name(std::string_view field, std::string_view name) {
  constexpr std::string_view rule = "1 to 256 bytes of UTF-8 without whitespace or control characters";
  if (name.empty()) return invalid_field(field, "empty", rule);
  if (name.size() > kMaxNameBytes) {
    return invalid_field(field, fmt::format("too long ({} bytes)", name.size()), rule);
  }
  if (!is_valid_utf8(name)) return invalid_field(field, "not valid UTF-8", rule);
  if (any_character(name, [](char32_t c) { return is_control(c) || is_whitespace(c); })) {
    return invalid_field(field, "contains whitespace or a control character", rule);
  }
  return {};
}

Result<void> check_tags_fit(const std::map<std::string, std::string>& tags) {
  if (tags.size() > kMaxTags) {
    return invalid_field("tags", fmt::format("there are {}", tags.size()),
                         fmt::format("at most {}", kMaxTags));
  }
  std::size_t bytes = 0;
  for (const auto& [key, value] : tags) bytes += key.size() + value.size();
  if (bytes <= kMaxTagsBytes) return {};
  return invalid_field("tags", fmt::format("{} bytes in sum", bytes),
                       fmt::format("at most {} bytes, keys and values together", kMaxTagsBytes));
}

namespace {

Result<void> check_create_tag(std::string_view key, std::string_view value) {
  if (key.empty() || key.size() > kMaxTagKeyBytes) {
    return fail_with(ErrorCode::invalid_tag_key, truncate_utf8(std::string(key), kMaxTagKeyBytes),
                     "A tag's key must be 1 to 256 bytes long.");
  }
  if (auto checked = check_text("tags", key); !checked) return checked;
  return check_text("tags", value, kMaxTagValueBytes);
}

}  // namespace

Result<void> check_create_tags(const std::map<std::string, std::string>& tags) {
  if (auto fit = check_tags_fit(tags); !fit) return fit;
  for (const auto& [key, value] : tags) {
    if (auto checked = check_create_tag(key, value); !checked) return checked;
  }
  return {};
}

Result<void> check_tag(std::string_view key, std::string_view value) {
  if (auto checked = check_create_tag(key, value); !checked) return checked;
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; };
  const auto dot = key.find('.');
  const bool whole = dot != key.npos && dot > 0 && dot + 1 < key.size();
  const auto caller = key.substr(0, dot);
  const auto field = whole ? key.substr(dot + 1) : std::string_view();
  const bool valid = whole && caller[0] >= 'a' && caller[0] <= 'z' && std::ranges::all_of(caller, is_word) &&
                     field[0] != '.' &&
                     std::ranges::all_of(field, [&](char c) { return is_word(c) || c == '.'; });
  if (valid) return {};
  return fail_with(ErrorCode::invalid_tag_key, std::string(key),
                   "A tag's key is caller.field, in lower-case letters, digits and underscores.");
}

Result<std::vector<std::string>> normalize_capabilities(std::string_view side,
                                                        std::vector<std::string> tokens) {
  for (const std::string& token : tokens) {
    if (const auto fault = token_fault(token); !fault.empty()) return invalid_capabilities(side, fault);
  }
  std::ranges::sort(tokens);
  tokens.erase(std::ranges::unique(tokens).begin(), tokens.end());
  if (tokens.size() > kMaxCapabilityTokens) return invalid_capabilities(side, "too_many_tokens");

  std::size_t joined_bytes = tokens.empty() ? 0 : tokens.size() - 1;
  for (const std::string& token : tokens) joined_bytes += token.size();
  if (joined_bytes > kMaxCapabilityBytes) return invalid_capabilities(side, "too_many_bytes");
  return tokens;
}

std::string join_capabilities(const std::vector<std::string>& sorted_tokens) {
  return fmt::format("{}", fmt::join(sorted_tokens, ","));
}

bool covers(const std::vector<std::string>& worker, const std::vector<std::string>& required) {
  return std::ranges::includes(worker, required);
}

std::string time_to_text(std::int64_t ms) {
  using namespace std::chrono;
  constexpr std::int64_t first = -62'135'596'800'000;  // the year 1
  constexpr std::int64_t last = 253'402'300'799'999;   // the end of 9999
  const sys_time<milliseconds> time(milliseconds(std::clamp(ms, first, last)));
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(time - day);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:03}Z", int(date.year()), unsigned(date.month()),
                     unsigned(date.day()), clock.hours().count(), clock.minutes().count(),
                     clock.seconds().count(), clock.subseconds().count());
}

std::string truncate_utf8(std::string text, std::size_t limit) {
  if (text.size() <= limit) return text;
  std::size_t end = limit;
  // A sequence has at most three continuation bytes; more of them is no UTF-8 and may be cut anywhere.
  while (end > 0 && limit - end < 3 && is_continuation(text[end])) --end;
  text.resize(is_continuation(text[end]) ? limit : end);
  return text;
}

}  // namespace flowfabric
