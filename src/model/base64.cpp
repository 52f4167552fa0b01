#include "model/base64.h"

#include <openssl/evp.h>

namespace flowfabric {

namespace {

const unsigned char* bytes_of(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* bytes_of(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}

}  // namespace

std::string to_base64(std::string_view bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(bytes_of(text), bytes_of(bytes), static_cast<int>(bytes.size()));
  return text;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string bytes(text.size() / 4 * 3, '\0');
  // It does not say how many of the last bytes were padding.
  const auto size = EVP_DecodeBlock(bytes_of(bytes), bytes_of(text), static_cast<int>(text.size()));
  if (size < 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  bytes.resize(static_cast<std::size_t>(size) - padding);
  if (to_base64(bytes) != text) return std::nullopt;  // spaces around it, or bits that mean nothing
  return bytes;
}

}  // namespace flowfabric
