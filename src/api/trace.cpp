#include "api/trace.h"

#include <algorithm>
#include <random>

#include "model/encoding.h"

namespace flowfabric::api {

namespace {

constexpr std::string_view kForm = "vv-tttttttttttttttttttttttttttttttt-ssssssssssssssss-ff";
constexpr int kSampled = 1;

bool is_zero(std::string_view digits) {
  return digits.find_first_not_of('0') == std::string_view::npos;
}

int value_of(char digit) {
  return static_cast<int>(kHexDigits.find(digit));
}

std::string random_hex(std::size_t length) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  std::string hex;
  while (hex.size() < length) {
    auto bits = random();
    for (int i = 0; i < 16 && hex.size() < length; ++i, bits >>= 4) hex += kHexDigits[bits & 15];
  }
  return is_zero(hex) ? random_hex(length) : hex;
}

}  // namespace

std::string TraceContext::to_string() const {
  return "00-" + trace_id + "-" + span_id + (sampled ? "-01" : "-00");
}

std::optional<TraceContext> parse_traceparent(std::string_view text) {
  const auto fits = [](char c, char wanted) {
    return wanted == '-' ? c == '-' : kHexDigits.find(c) != std::string_view::npos;
  };
  const auto known = text.substr(0, kForm.size());
  if (known.size() != kForm.size() || !std::equal(known.begin(), known.end(), kForm.begin(), fits)) {
    return std::nullopt;
  }
  const auto version = text.substr(0, 2);
  const auto rest = text.substr(kForm.size());
  if (version == "ff" || (version == "00" && !rest.empty())) return std::nullopt;
  if (!rest.empty() && rest.front() != '-') return std::nullopt;
  TraceContext context{.trace_id = std::string(text.substr(3, 32)),
                       .span_id = std::string(text.substr(36, 16)),
                       .sampled = (value_of(text[54]) & kSampled) != 0};
  if (is_zero(context.trace_id) || is_zero(context.span_id)) return std::nullopt;
  return context;
}

std::string new_trace_id() {
  return random_hex(32);
}
std::string new_span_id() {
  return random_hex(16);
}

}  // namespace flowfabric::api
