// Tokens as somebody outside may send them.
#include "model/waitpoint_token.h"

#include <algorithm>

#include "model/text.h"
#include "targets.h"

namespace flowfabric::fuzz {

namespace {

bool is_hex(std::string_view text) {
  return std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
  });
}

void check_split(std::string_view token) {
  const auto parts = split_token(token);
  const auto shown = redacted_token(token);
  const auto fingerprint = token_fingerprint(token);
  if (!parts) {
    require(shown == "<REDACTED:malformed>" && fingerprint.empty(), "nothing of a malformed token is shown");
    return;
  }
  require(std::string(parts->kid) + ":" + std::string(parts->digest) == token, "the parts are the token");
  require(is_kid(parts->kid) && parts->kid.find(':') == parts->kid.npos, "the kid may be looked up");
  require(check_text("kid", parts->kid).has_value(), "the kid is a text");
  require(parts->digest.size() == 64 && is_hex(parts->digest), "the digest is 64 hex digits");
  // A kid is no secret, even if somebody names it like the digest.
  const auto after_kid = shown.substr(shown.find(parts->kid) + parts->kid.size());
  require(after_kid.find(parts->digest) == after_kid.npos, "the digest is not shown");
  require(fingerprint == parts->digest.substr(0, 16), "the fingerprint is the beginning of the digest");
}

void check_hex(std::string_view text) {
  const auto bytes = bytes_from_hex(text);
  require(bytes.has_value() == (!text.empty() && text.size() % 2 == 0 && is_hex(text)),
          "pairs of hex digits, and only those, are bytes");
  if (!bytes) return;
  require(bytes->size() * 2 == text.size(), "two digits are one byte");
  require(bytes_from_hex(hex_from_bytes(*bytes)) == bytes, "bytes survive as hex");
}

// The input as secret, and as kid if it may be one.
void check_mint(std::string_view input) {
  const auto kid = std::string(is_kid(input) ? input : "k1");
  const auto token = mint_token(kid, input, ExecutionId{}, WaitpointId{});
  const auto parts = split_token(token);
  require(parts && parts->kid == kid, "what is minted is a token");
  require(equal_in_constant_time(token, mint_token(kid, input, ExecutionId{}, WaitpointId{})),
          "minting is repeatable");
  require(equal_in_constant_time(token, input) == (token == input), "equal is equal");
}

}  // namespace

void waitpoint_token(std::string_view input) {
  check_split(input);
  check_hex(input);
  check_mint(input);
}

}  // namespace flowfabric::fuzz
