// Rules for text that callers choose: what is refused, with which code, and in which words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "flowfabric/error.h"

namespace flowfabric {

bool is_valid_utf8(std::string_view text);

// Valid UTF-8 without NUL. `field` is named in the error (`invalid_input`).
Result<void> check_text(std::string_view field, std::string_view text);
// 1–64 bytes, each 0x20–0x7E.
Result<void> check_lane(std::string_view lane);
// Up to 256 bytes of UTF-8 without control characters; empty means unscoped.
Result<void> check_namespace(std::string_view name);
// Worker ids and worker instance ids: 1–256 bytes of UTF-8, no (Unicode) whitespace or control characters.
Result<void> check_worker_name(std::string_view field, std::string_view name);
// Tags given at create: any key of 1–256 bytes (`invalid_tag_key`), any value; both UTF-8 without NUL.
Result<void> check_create_tag(std::string_view key, std::string_view value);
// Tags set later: keys are `caller.field`, lower case (`invalid_tag_key`).
Result<void> check_tag(std::string_view key, std::string_view value);

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

// The prefix of at most `limit` bytes that does not cut a UTF-8 sequence.
std::string truncate_utf8(std::string text, std::size_t limit);

}  // namespace flowfabric
