// Health, metrics, and the version.
#include "api/engine_metrics.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "api/shapes.h"
#include "api/tracer.h"
#include "flowfabric/version.h"

namespace flowfabric::api {

namespace {

Error store_is_silent() {
  return {ErrorCode::unavailable, "store: no answer",
          "The store does not answer: see whether it runs and can be reached."};
}

// One round trip to the store.
Result<void> probe_store(Call& call) {
  const auto seen = call.services.store_probe.fresh();
  if (!seen) return std::unexpected(store_is_silent());
  if (*seen) return {};
  call.services.log_failure(seen->error(), call.exchange->request, call.request_id);
  return std::unexpected(seen->error());
}

void write_problem(JsonWriter& out, const std::string& text, const Error& error, const Call& call) {
  out.field("error", text)
      .field("code", error_name(error.code))
      .field("kind", enum_name(error_info(error.code).kind))
      .field("retryable", true)
      .field("detail", error.advice)
      .field("request_id", call.request_id);
}

void reply_health(Call& self, const Result<void>& probed) {
  JsonWriter out;
  if (probed) return self.reply(200, out.object().field("status", "ok").end().take());
  write_problem(out.object(), error_text(probed.error()), probed.error(), self);
  self.reply(503, out.end().take());
}

void health(const CallPtr& call) {
  call->services.prober.run([call] { call->guard([&] { reply_health(*call, probe_store(*call)); }); });
}

void alive(const CallPtr& call) {
  call->reply(200, R"({"status":"ok"})");
}

struct Check {
  std::string_view name;
  std::string problem;  // empty: healthy
};

std::string problem_of_clock(const EngineStats& stats) {
  if (!stats.clock_is_stalled) return "";
  return "The clock has not finished a look for " + std::to_string(stats.since_clock_look_ms / 1000) +
         " seconds: what is due does not happen here." +
         (stats.clock_trouble.empty() ? "" : " The log tells why.");
}

std::vector<Check> check_all(Call& call) {
  const auto stats = call.engine().stats();
  const auto probed = probe_store(call);
  const auto& limit = std::to_string(stats.max_queued);
  return {{"accepting", call.services.draining ? "The server is shutting down." : ""},
          {"store", probed ? stats.store_trouble : probed.error().advice},
          {"clock", problem_of_clock(stats)},
          {"queue", stats.queue_is_full
                        ? std::to_string(stats.queued) + " operations wait, of at most " + limit + "."
                        : ""}};
}

void reply_readiness(Call& self) {
  const auto checks = check_all(self);
  std::string wrong;
  for (const auto& check : checks) {
    if (!check.problem.empty()) wrong.append(wrong.empty() ? "" : ", ").append(check.name);
  }
  JsonWriter out;
  out.object().field("status", wrong.empty() ? "ok" : "not_ready");
  if (!wrong.empty()) {
    const Error why{ErrorCode::unavailable, "", "`checks` tells what is wrong."};
    write_problem(out, "not ready: " + wrong, why, self);
  }
  out.key("checks").array();
  for (const auto& check : checks) {
    out.object().field("name", check.name).field("ok", check.problem.empty());
    write_text_or_null(out, "detail", check.problem);
    out.end();
  }
  self.reply(wrong.empty() ? 200 : 503, out.end().end().take());
}

void ready(const CallPtr& call) {
  call->services.prober.run([call] { call->guard([&] { reply_readiness(*call); }); });
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

// The current figures, or the last ones if the store does not answer in time.
std::optional<StoreFigures> figures_of(Services& services) {
  const auto seen = services.figures.fresh();
  std::lock_guard lock(services.last_figures_mutex);
  if (seen && *seen) services.last_figures = **seen;
  return services.last_figures;
}

void append_gauge(std::string& out, std::string_view name, std::string_view help, std::size_t value) {
  append_family(out, name, "gauge", help);
  append_series(out, name, "", static_cast<std::uint64_t>(value));
}

void append_tracer(std::string& out, const TracerStats& stats) {
  const auto counter = [&](std::string_view name, std::string_view help, std::uint64_t value) {
    append_family(out, name, "counter", help);
    append_series(out, name, "", value);
  };
  counter("ff_otlp_spans_exported_total", "Spans that the collector has accepted.", stats.exported);
  counter("ff_otlp_spans_dropped_total",
          "Spans that the collector refused, or that did not fit into the queue.", stats.dropped);
  append_gauge(out, "ff_otlp_spans_queued", "Queued spans.", stats.queued);
}

void reply_metrics(Call& self) {
  auto& services = self.services;
  auto text = services.metrics.text();
  append_engine(text, self.engine().stats());
  if (const auto figures = figures_of(services)) append_store(text, *figures);
  append_gauge(text, "ff_stream_ops_in_flight", "Reads and tails of streams in progress.",
               services.stream_operations.taken());
  append_gauge(text, "ff_live_streams", "Open server-sent event streams.", services.live_streams.taken());
  if (services.options.tracer) append_tracer(text, services.options.tracer->stats());
  self.reply(
      http::Response{.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = std::move(text)});
}

void metrics(const CallPtr& call) {
  call->services.prober.run([call] { call->guard([&] { reply_metrics(*call); }); });
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
