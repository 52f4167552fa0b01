#include "model/waitpoint_token.h"

#include <openssl/crypto.h>
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

// -1: not a hex digit.
int digit_of(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

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
  const bool is_hex = std::ranges::all_of(digest, [](char c) { return digit_of(c) >= 0; });
  if (digest.size() != kDigestLength || !is_hex) return std::nullopt;
  return TokenParts{token.substr(0, colon), digest};
}

bool is_kid(std::string_view kid) {
  return !kid.empty() && kid.size() <= kMaxKidLength &&
         std::ranges::all_of(kid, [](char c) { return c > ' ' && c <= '~' && c != ':'; });
}

std::optional<std::string> bytes_from_hex(std::string_view hex) {
  if (hex.empty() || hex.size() % 2 != 0) return std::nullopt;
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    const auto high = digit_of(hex[i]);
    const auto low = digit_of(hex[i + 1]);
    if (high < 0 || low < 0) return std::nullopt;
    bytes += static_cast<char>(high * 16 + low);
  }
  return bytes;
}

std::string hex_from_bytes(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
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

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

}  // namespace flowfabric
