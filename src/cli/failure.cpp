#include "cli/failure.h"

#include <fmt/core.h>

#include "api/json.h"
#include "model/text.h"

namespace flowfabric::cli {

std::string Failure::to_string() const {
  auto text = code;
  if (!detail.empty()) text += ": " + detail;
  if (!advice.empty()) text += (detail.empty() ? ": " : " — ") + advice;
  return text;
}

std::string Failure::to_json() const {
  if (!body.empty()) return body;
  api::JsonWriter out;
  out.object().field("error", detail.empty() ? code : detail).field("code", code).field("detail", advice);
  return out.end().take();
}

void fail(int exit_code, std::string code, std::string detail, std::string advice) {
  throw Failure{exit_code, std::move(code), std::move(detail), std::move(advice)};
}

void fail_usage(std::string detail, std::string advice) {
  fail(kUsage, "usage", std::move(detail), std::move(advice));
}

void fail_input(std::string detail, std::string advice) {
  fail(kRefused, "invalid_input", std::move(detail), std::move(advice));
}

void fail(const Error& error) {
  const auto kind = error_info(error.code).kind;
  const bool is_unreachable = kind == ErrorKind::transport || kind == ErrorKind::unavailable;
  const int exit_code = kind == ErrorKind::not_found ? kNotFound : is_unreachable ? kUnreachable : kRefused;
  // The HTTP client's error is a whole sentence.
  const auto detail = error.code == ErrorCode::transport && error.detail == "http" ? "" : error.detail;
  fail(exit_code, std::string(error_name(error.code)), detail, error.advice);
}

int tell(const Failure& failure, bool as_json) {
  if (as_json) fmt::print("{}\n", failure.to_json());
  std::fflush(stdout);
  fmt::print(stderr, "flowfabric: {}\n", one_line(failure.to_string()));
  return failure.exit_code;
}

}  // namespace flowfabric::cli
