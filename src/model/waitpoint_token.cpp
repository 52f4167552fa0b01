#include "model/waitpoint_token.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <array>
#include <new>

namespace flowfabric {

namespace {

constexpr std::size_t kDigestLength = 64;
constexpr std::size_t kFingerprintLength = 16;
constexpr std::size_t kMaxKidLength = 128;

}  // namespace

std::string redacted_token(std::string_view token) {
  const auto parts = split_token(token);
  if (!parts) return "<REDACTED:malformed>";
  return std::string(parts->kid) + ":<REDACTED:len=" + std::to_string(parts->digest.size()) + ">";
}

std::string token_fingerprint(std::string_view token) {
  const auto parts = split_token(token);
  return parts ? std::string(parts->digest.substr(0, kFingerprintLength)) : "";
}

std::optional<TokenParts> split_token(std::string_view token) {
  const auto colon = token.find(':');
  if (colon == token.npos || !is_kid(token.substr(0, colon))) return std::nullopt;
  const auto digest = token.substr(colon + 1);
  const bool is_hex = std::ranges::all_of(digest, is_hex_digit);
  if (digest.size() != kDigestLength || !is_hex) return std::nullopt;
  return TokenParts{token.substr(0, colon), digest};
}

bool is_kid(std::string_view kid) {
  return !kid.empty() && kid.size() <= kMaxKidLength &&
         std::ranges::all_of(kid, [](char c) { return c > ' ' && c <= '~' && c != ':'; });
}

std::string mint_token(std::string_view kid, std::string_view secret, const ExecutionId& execution_id,
                       const WaitpointId& waitpoint_id) {
  const auto message = std::string(kid) + ":" + execution_id.to_string() + ":" + waitpoint_id.to_string();
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
  unsigned int size = 0;
  // It fails for want of memory only.
  if (!HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()),
            reinterpret_cast<const unsigned char*>(message.data()), message.size(), digest.data(), &size)) {
    throw std::bad_alloc();
  }
  return std::string(kid) + ":" + hex_from_bytes({reinterpret_cast<const char*>(digest.data()), size});
}

}  // namespace flowfabric
