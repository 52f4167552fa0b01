// W3C trace context: the trace that a request belongs to.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace flowfabric::api {

struct TraceContext {
  std::string trace_id;  // 32 hex digits
  std::string span_id;   // 16
  bool sampled{false};   // the caller wants it recorded

  std::string to_string() const;  // a `traceparent` of version 00
  bool operator==(const TraceContext&) const = default;
};

// Parses a `traceparent`. Absent if it is malformed: then a new trace begins. Of future versions the known
// part is read.
std::optional<TraceContext> parse_traceparent(std::string_view text);

std::string new_trace_id();
std::string new_span_id();

}  // namespace flowfabric::api
