#include "cli/open_engine.h"

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <iterator>

namespace flowfabric::cli {

namespace {

constexpr const char* kSecret = "FF_WAITPOINT_HMAC_SECRET";
constexpr const char* kSecretFile = "FF_WAITPOINT_HMAC_SECRET_FILE";

std::unexpected<Error> is_empty(const char* variable) {
  return fail_with(ErrorCode::invalid_secret_hex, std::string(variable) + ": empty",
                   "Give a secret in hex, such as `openssl rand -hex 32` prints, or unset the variable.");
}

// Editors and `echo` add an end of line.
std::string without_line_end(std::string text) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

// Empty if none is given.
Result<std::string> given_secret() {
  if (const char* secret = std::getenv(kSecret)) {
    if (*secret == '\0') return is_empty(kSecret);
    return std::string(secret);
  }
  const char* path = std::getenv(kSecretFile);
  if (!path) return std::string();
  std::ifstream file(path, std::ios::binary);
  auto secret = without_line_end({std::istreambuf_iterator<char>(file), {}});
  if (!file) {
    return fail_with(ErrorCode::invalid_input, std::string(kSecretFile) + ": cannot read " + path,
                     "Name a file that holds the secret for waitpoint tokens in hex.");
  }
  if (secret.empty()) return is_empty(kSecretFile);
  return secret;
}

}  // namespace

Result<Engine> open_engine(const std::string& url, EngineOptions options) {
  auto secret = given_secret();
  if (!secret) return std::unexpected(secret.error());
  options.waitpoint_secret_hex = *std::move(secret);
  options.notice = [](const std::string& words) { fmt::print(stderr, "flowfabric: {}\n", words); };
  options.warning = options.notice;
  return Engine::open(url, std::move(options));
}

}  // namespace flowfabric::cli
