// Spans, and their form for a collector: OTLP over HTTP, as JSON.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "flowfabric/operations.h"
#include "flowfabric/stats.h"

namespace flowfabric::api {

struct Span {
  enum class Kind { internal = 1, server = 2, consumer = 5 };  // the numbers are OTLP's
  using Value = std::variant<std::string, std::int64_t>;

  std::string trace_id;
  std::string span_id;
  std::string parent_id{};  // empty: the root of its trace
  std::string name;
  Kind kind{};
  std::int64_t start_ns{};  // since the epoch
  std::int64_t end_ns{};
  std::vector<std::pair<std::string, Value>> attributes{};
  bool failed{false};
  std::string failure{};
};

// An ExportTraceServiceRequest. `instance` tells this server from others.
std::string otlp_json(std::span<const Span> spans, const std::string& instance);

// The span of an attempt: from its claim to its end. It belongs to the trace of the submit, or to a trace of
// its own. Absent if that trace is not sampled.
std::optional<Span> span_of(const EndedAttempt& attempt, const ExecutionSnapshot& execution);

}  // namespace flowfabric::api
