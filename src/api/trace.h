// W3C trace context: which trace a request belongs to.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flowfabric::api {

struct TraceContext {
  std::string trace_id;  // 32 hex digits
  std::string span_id;   // 16
  bool sampled{false};   // somebody wants to see it

  std::string to_string() const;  // a `traceparent` of version 00
  bool operator==(const TraceContext&) const = default;
};

// Of a `traceparent`; absent: it is malformed, and a new trace begins. Versions to come are read as far as
// they are known.
std::optional<TraceContext> parse_traceparent(std::string_view text);

std::string new_trace_id();
std::string new_span_id();

}  // namespace flowfabric::api
