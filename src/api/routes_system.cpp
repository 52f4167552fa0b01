// Health, metrics, and what is running here.
#include "api/openapi.h"
#include "api/routes.h"
#include "flowfabric/version.h"

namespace flowfabric::api {

namespace {

// One look at the store.
Result<void> probe(Engine& engine) {
  const auto kids = engine.call(ListWaitpointKids{});
  if (!kids) return std::unexpected(kids.error());
  return {};
}

void reply_health(Call& self, const Result<void>& probed) {
  JsonWriter out;
  if (probed) return self.reply(200, out.object().field("status", "ok").end().take());
  const auto& error = probed.error();
  out.object()
      .field("error", error_text(error))
      .field("code", error_name(error.code))
      .field("kind", enum_name(error_info(error.code).kind))
      .field("retryable", true)
      .field("detail", error.advice)
      .field("request_id", self.request_id)
      .end();
  self.reply(503, out.take());
}

void health(const CallPtr& call) {
  call->services.prober.run([call] { call->guard([&] { reply_health(*call, probe(call->engine())); }); });
}

void alive(const CallPtr& call) {
  call->reply(200, R"({"status":"ok"})");
}

void ready(const CallPtr& call) {
  if (call->services.draining) {
    return call->reply(Error{ErrorCode::unavailable, "draining", "The server is shutting down."});
  }
  health(call);
}

void version(const CallPtr& call) {
  JsonWriter out;
  out.object().field("name", "flowfabric").field("version", kVersion).end();
  call->reply(200, out.take());
}

void document(const CallPtr& call) {
  call->reply(200, std::string(openapi_document()));
}

// ---- metrics ----------------------------------------------------------------------------------------------

void append_engine(std::string& out, const EngineStats& stats) {
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    append_family(out, name, "counter", help);
    append_series(out, name, "", value);
  };
  counter("ff_operations_total", "Operations that were committed or refused.", stats.operations);
  counter("ff_batches_total", "Commits; operations share them.", stats.batches);
  append_family(out, "ff_batch_largest", "gauge", "The most operations that have shared a commit.");
  append_series(out, "ff_batch_largest", "", stats.largest_batch);
  counter("ff_store_round_trips_total", "Round trips of commits to a store across a network.",
          stats.round_trips);
  counter("ff_clock_operations_total", "Records that rules of time have looked at.", stats.clock_operations);
  counter("ff_clock_failures_total", "Of them, those that will be tried again.", stats.clock_failures);
  append_family(out, "ff_scanner_cycle_total", "counter", "How often each rule of time has fired.");
  for (const auto& [rule, count] : stats.clock_rules) {
    append_series(out, "ff_scanner_cycle_total", label("scanner", rule), count);
  }
}

void metrics(const CallPtr& call) {
  auto text = call->services.metrics.text();
  append_engine(text, call->engine().stats());
  append_family(text, "ff_stream_operations", "gauge", "Reads and tails of streams now.");
  append_series(text, "ff_stream_operations", "",
                static_cast<std::uint64_t>(call->services.stream_operations.taken()));
  append_family(text, "ff_live_streams", "gauge", "Server-sent event streams that are open.");
  append_series(text, "ff_live_streams", "", static_cast<std::uint64_t>(call->services.live_streams.taken()));
  call->reply(
      http::Response{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(text)});
}

constexpr Route kRoutes[] = {
    {"GET", "/healthz", "healthz", Body::none, kSmallBody, health},
    {"GET", "/metrics", "metrics", Body::none, kSmallBody, metrics},
    {"GET", "/livez", "livez", Body::none, kSmallBody, alive},
    {"GET", "/readyz", "readyz", Body::none, kSmallBody, ready},
    {"GET", "/v1/version", "version", Body::none, kSmallBody, version},
    {"GET", "/openapi.json", "openapi", Body::none, kSmallBody, document},
};

}  // namespace

std::span<const Route> system_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
