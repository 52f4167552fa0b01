#include "api/errors.h"

#include <fmt/format.h>

#include "model/describe.h"

namespace flowfabric::api {

std::string to_camel_case(std::string_view code) {
  std::string camel;
  bool upper = true;
  for (const char c : code) {
    if (c == '_') {
      upper = true;
      continue;
    }
    camel += upper && c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
    upper = false;
  }
  return camel;
}

namespace {

// The error's name as a variant, with its payload.
std::string variant(const Error& error) {
  auto name = to_camel_case(error_name(error.code));
  if (error.not_active) {
    const auto& details = *error.not_active;
    return fmt::format(
        R"({} {{ terminal_outcome: "{}", lease_epoch: "{}", lifecycle_phase: "{}", attempt_id: "{}" }})",
        name, enum_name(details.terminal_outcome), details.lease_epoch, enum_name(details.lifecycle_phase),
        details.attempt_id);
  }
  if (error.code == ErrorCode::rotation_conflict) return fmt::format(R"({}("{}"))", name, error.detail);
  return name;
}

std::string_view entity(ErrorCode code) {
  if (code == ErrorCode::unknown_waitpoint) return "waitpoint";
  auto name = error_name(code);
  constexpr std::string_view suffix = "_not_found";
  if (name.ends_with(suffix)) name.remove_suffix(suffix.size());
  return name;
}

std::string with_detail(std::string_view name, const std::string& detail) {
  return detail.empty() ? std::string(name) : fmt::format("{}: {}", name, detail);
}

}  // namespace

std::string error_text(const Error& error) {
  const auto& info = error_info(error.code);
  if (is_failure(error)) {
    if (error.code == ErrorCode::unavailable) return "backend op unavailable";
    if (info.kind == ErrorKind::contention) return fmt::format("{}: {}", info.http_kind, variant(error));
    return std::string(info.name);
  }
  switch (info.kind) {
    case ErrorKind::not_found:
      return fmt::format("not found: {}", entity(error.code));
    case ErrorKind::validation:
      if (error.code == ErrorCode::fence_required || error.code == ErrorCode::partial_fence_triple) {
        return fmt::format("invalid_input: {}", info.name);
      }
      if (error.code == ErrorCode::corruption || error.code == ErrorCode::handle_from_other_backend) {
        return with_detail("validation_error", error.detail);
      }
      return with_detail(info.name, error.detail);
    case ErrorKind::contention:
    case ErrorKind::conflict:
    case ErrorKind::state:
      return fmt::format("{}: {}", info.http_kind, variant(error));
    case ErrorKind::unavailable:
    case ErrorKind::bug:
    case ErrorKind::transport:
    case ErrorKind::resource_exhausted:
    case ErrorKind::timeout:
      break;
  }
  return with_detail(info.name, error.detail);
}

Refusal unauthorized() {
  return {401, "unauthorized", "unauthorized",
          "Send the server's token in the header `authorization: Bearer <token>`."};
}

bool is_failure(const Error& error) {
  return error_info(error.code).http_status >= 500;
}

int status_of(const Error& error) {
  return error_info(error.code).http_status;
}

namespace {

void write_tail(JsonWriter& out, const std::string& detail, std::string_view request_id,
                std::optional<int> status) {
  if (!detail.empty()) out.field("detail", detail);
  if (status) out.field("status", *status);
  out.field("request_id", request_id).end();
}

}  // namespace

namespace {

// The advice of an error, with its detail where the text does not have it.
std::string advice(const Error& error, const std::string& text) {
  const bool has_detail = !is_failure(error) && !error.detail.empty();
  if (!has_detail || text.find(error.detail) != std::string::npos) return error.advice;
  if (error.advice.empty()) return error.detail;
  return fmt::format("{} ({})", error.advice, error.detail);
}

}  // namespace

std::string error_body(const Error& error, std::string_view request_id, bool with_status) {
  const auto& info = error_info(error.code);
  const auto text = error_text(error);
  JsonWriter out;
  out.object().field("error", text).field("code", info.name);
  if (!info.http_kind.empty()) out.field("kind", info.http_kind);
  out.field_if("retryable", info.http_retryable);
  write_tail(out, advice(error, text), request_id,
             with_status ? std::optional(info.http_status) : std::nullopt);
  return out.take();
}

std::string error_body(const Refusal& refusal, std::string_view request_id, bool with_status) {
  JsonWriter out;
  out.object()
      .field("error", refusal.error)
      .field("code", refusal.code)
      .field_if("retryable", refusal.retryable);
  write_tail(out, refusal.detail, request_id, with_status ? std::optional(refusal.status) : std::nullopt);
  return out.take();
}

}  // namespace flowfabric::api
