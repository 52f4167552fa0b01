#include "api/otlp.h"

#include <algorithm>

#include "api/json.h"
#include "api/trace.h"
#include "flowfabric/version.h"
#include "model/describe.h"
#include "model/text.h"

namespace flowfabric::api {

namespace {

constexpr int kStatusError = 2;
constexpr std::size_t kMaxFailureBytes = 256;
constexpr std::int64_t kNsPerMs = 1'000'000;

// Protobuf's JSON writes 64-bit numbers as strings.
void write_attribute(JsonWriter& out, const std::string& key, const Span::Value& value) {
  out.object().field("key", key).key("value").object();
  if (const auto* number = std::get_if<std::int64_t>(&value))
    out.field("intValue", std::to_string(*number));
  else
    out.field("stringValue", std::get<std::string>(value));
  out.end().end();
}

void write_span(JsonWriter& out, const Span& span) {
  out.object().field("traceId", span.trace_id).field("spanId", span.span_id);
  if (!span.parent_id.empty()) out.field("parentSpanId", span.parent_id);
  out.field("name", span.name)
      .field("kind", static_cast<std::int64_t>(span.kind))
      .field("startTimeUnixNano", std::to_string(span.start_ns))
      .field("endTimeUnixNano", std::to_string(span.end_ns))
      .key("attributes")
      .array();
  for (const auto& [key, value] : span.attributes) write_attribute(out, key, value);
  out.end().key("status").object();
  if (span.failed) out.field("code", kStatusError);
  if (!span.failure.empty()) out.field("message", span.failure);
  out.end().end();
}

std::string hex_of(const Uuid& uuid) {
  auto text = uuid.to_string();
  std::erase(text, '-');
  return text;
}

std::string outcome_of(const EndedAttempt& attempt) {
  switch (attempt.how) {
    case AttemptLifecycle::ended_success:
      return "ok";
    case AttemptLifecycle::ended_cancelled:
      return "cancelled";
    case AttemptLifecycle::ended_failure:
      return attempt.failure_category == "timeout" ? "timeout" : "error";
    default:
      return "interrupted";
  }
}

}  // namespace

std::string otlp_json(std::span<const Span> spans, const std::string& instance) {
  JsonWriter out;
  out.object().key("resourceSpans").array().object();
  out.key("resource").object().key("attributes").array();
  write_attribute(out, "service.name", std::string("flowfabric"));
  write_attribute(out, "service.version", std::string(kVersion));
  write_attribute(out, "service.instance.id", instance);
  out.end().end();
  out.key("scopeSpans").array().object();
  out.key("scope").object().field("name", "flowfabric").field("version", kVersion).end();
  out.key("spans").array();
  for (const auto& span : spans) write_span(out, span);
  out.end().end().end().end().end().end();
  return out.take();
}

std::optional<Span> span_of(const EndedAttempt& attempt, const ExecutionSnapshot& execution) {
  const auto kept = parse_traceparent(execution.trace_context);
  if (kept && !kept->sampled) return std::nullopt;
  const auto outcome = outcome_of(attempt);
  Span span{.trace_id = kept ? kept->trace_id : hex_of(attempt.execution_id.uuid),
            // The random half of the attempt's id: any server makes the same span.
            .span_id = hex_of(attempt.attempt_id.uuid).substr(16),
            .parent_id = kept ? kept->span_id : "",
            .name = "attempt " + execution.execution_kind,
            .kind = Span::Kind::consumer,
            .start_ns = attempt.started_at * kNsPerMs,
            .end_ns = attempt.ended_at * kNsPerMs,
            .failed = outcome != "ok" && outcome != "cancelled",
            .failure = truncate_utf8(attempt.failure_reason, kMaxFailureBytes)};
  span.attributes = {{"ff.execution_id", attempt.execution_id.to_string()},
                     {"ff.lane", execution.lane_id},
                     {"ff.namespace", execution.namespace_},
                     {"ff.kind", execution.execution_kind},
                     {"ff.attempt", static_cast<std::int64_t>(attempt.attempt_index)},
                     {"ff.attempt_type", std::string(enum_name(attempt.attempt_type))},
                     {"ff.outcome", outcome},
                     {"ff.worker_id", attempt.worker_id}};
  if (execution.flow_id) span.attributes.emplace_back("ff.flow_id", execution.flow_id->to_string());
  if (!attempt.failure_category.empty())
    span.attributes.emplace_back("ff.failure_category", attempt.failure_category);
  return span;
}

}  // namespace flowfabric::api
