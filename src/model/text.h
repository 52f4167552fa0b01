// Rules for text that callers choose: what is refused, with which code, and in which words.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "flowfabric/error.h"

namespace flowfabric {

bool is_valid_utf8(std::string_view text);

// Texts for people (reasons, messages), and texts by which something is found again (kinds, keys,
// identities).
inline constexpr std::size_t kMaxTextBytes = 4096;
inline constexpr std::size_t kMaxKeyBytes = 1024;
// Why something failed, or is cancelled, is cut off where it is stored: it must not go untold because it is
// long.
inline constexpr std::size_t kAnyLength = std::string_view::npos;

// Valid UTF-8 without NUL, up to `most` bytes. `field` is named in the error (`invalid_input`).
Result<void> check_text(std::string_view field, std::string_view text, std::size_t most = kMaxTextBytes);
// 1–64 bytes, each 0x20–0x7E.
Result<void> check_lane(std::string_view lane);
// Up to 256 bytes of UTF-8 without control characters; empty means unscoped.
Result<void> check_namespace(std::string_view name);
// Worker ids and worker instance ids: 1–256 bytes of UTF-8, no (Unicode) whitespace or control characters.
Result<void> check_worker_name(std::string_view field, std::string_view name);
// Tags given at create: any key of 1–256 bytes (`invalid_tag_key`), any value up to 1024; both UTF-8 without
// NUL.
Result<void> check_create_tags(const std::map<std::string, std::string>& tags);
// Tags set later: keys are `caller.field`, lower case (`invalid_tag_key`).
Result<void> check_tag(std::string_view key, std::string_view value);
// How many they are, and how large in sum.
Result<void> check_tags_fit(const std::map<std::string, std::string>& tags);

// Sorted, without duplicates. Refuses with `invalid_capabilities`, detail `<side>:<why>`, where side is
// `required` or `worker` and why is empty_token, comma_in_token, control_or_whitespace, too_many_tokens or
// too_many_bytes.
Result<std::vector<std::string>> normalize_capabilities(std::string_view side,
                                                        std::vector<std::string> tokens);
// "a,b,c"
std::string join_capabilities(const std::vector<std::string>& sorted_tokens);
// Both sorted.
bool covers(const std::vector<std::string>& worker, const std::vector<std::string>& required);

// A point in time as people read it: 2026-11-16T21:40:03.120Z. Times outside the years 1 to 9999 are shown as
// the nearest one inside.
std::string time_to_text(std::int64_t ms);

// The text as a part of one line on a terminal or in a log. Characters that would end the line, move the
// cursor or turn the direction of writing around become \u000a and the like, as JSON writes them, so that
// JSON stays JSON; a byte that is no UTF-8 becomes \ufffd.
std::string one_line(std::string_view text);

// The prefix of at most `limit` bytes that does not cut a UTF-8 sequence.
std::string truncate_utf8(std::string text, std::size_t limit);

}  // namespace flowfabric
