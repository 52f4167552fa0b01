#include "api/router.h"

#include <fmt/format.h>

#include <algorithm>

#include "api/routes.h"
#include "api/tracer.h"
#include "model/describe.h"

namespace flowfabric::api {

namespace {

constexpr std::string_view kJson = "application/json";
constexpr std::size_t kMaxRequestId = 128;
// The header that tells a caller the span of its request.
constexpr std::string_view kTraceResponse = "traceresponse";
constexpr std::string_view kTraceParent = "traceparent";

std::vector<Route> all_routes() {
  std::vector<Route> all;
  for (const auto part : {execution_routes(), signal_routes(), stream_routes(), flow_routes(), limit_routes(),
                          task_routes(), registry_routes(), operator_routes(), system_routes()}) {
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

bool is_health(std::string_view path) {
  return path == "/healthz" || path == "/livez" || path == "/readyz";
}

// Paths that machines ask for every few seconds.
bool is_probe(std::string_view path) {
  return is_health(path) || path == "/metrics";
}

bool is_admin(std::string_view path) {
  return path.starts_with("/v1/admin/");
}

bool changes_something(std::string_view method) {
  return method != "GET" && method != "HEAD";
}

bool says_json(const http::Request& head) {
  const auto* type = head.header("content-type");
  if (!type) return false;
  auto name = type->substr(0, type->find(';'));
  while (name.ends_with(' ')) name.pop_back();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return name == kJson || (name.starts_with("application/") && name.ends_with("+json"));
}

// The caller's request id, if it is fit for a header and a log.
std::string request_id_of(const http::Request& head) {
  if (const auto* given = head.header("x-request-id");
      given && !given->empty() && given->size() <= kMaxRequestId &&
      std::all_of(given->begin(), given->end(), [](char c) { return c > ' ' && c < 0x7F; })) {
    return *given;
  }
  return new_request_id();
}

const std::string* header_of(const http::Response& response, std::string_view name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return &value;
  }
  return nullptr;
}

// The caller's trace.
std::optional<TraceContext> trace_of(const http::Request& head) {
  const auto* given = head.header(kTraceParent);
  return given ? parse_traceparent(*given) : std::nullopt;
}

// Drops everything that the answer does not need (it needs the place to resume a stream): a parked claim must
// not hold the bytes of its request. From here on other threads may read the request.
void keep_the_least(http::Request& request) {
  http::free_text(request.body);
  http::free_text(request.query);
  std::erase_if(request.headers, [](const http::Header& header) {
    return header.first != "origin" && header.first != kTraceParent && header.first != "last-event-id";
  });
  request.headers.shrink_to_fit();
}

http::Response json_response(int status, std::string body) {
  return {.status = status, .content_type = std::string(kJson), .body = std::move(body)};
}

http::Response too_large(const Route& route, std::size_t most, std::string_view request_id) {
  JsonWriter out;
  out.object()
      .field("error", "payload_too_large")
      .field("code", "payload_too_large")
      .field("limit_bytes", static_cast<std::uint64_t>(most))
      .field("route", route.pattern)
      .field("request_id", request_id)
      .end();
  return json_response(413, out.take());
}

}  // namespace

std::span<const Route> routes() {
  static const auto all = all_routes();
  return all;
}

Api::Api(Engine& engine, Options options) : services_(engine, std::move(options)) {}

void Api::add_cors(const http::Request& head, http::Response& response, bool preflight) const {
  if (head.path == "/metrics") return;
  const auto& origins = services_.options.cors_origins;
  if (origins.empty()) return;
  response.headers.emplace_back("vary",
                                "origin, access-control-request-method, access-control-request-headers");
  const bool any = std::find(origins.begin(), origins.end(), "*") != origins.end();
  const bool has_token = services_.token.is_needed();
  if (any) {
    response.headers.emplace_back("access-control-allow-origin", "*");
    response.headers.emplace_back("access-control-expose-headers", "*");
    if (!preflight) return;
    response.headers.emplace_back("access-control-allow-methods", "*");
    // For browsers, the star does not include this header.
    response.headers.emplace_back("access-control-allow-headers", has_token ? "*, authorization" : "*");
    return;
  }
  const auto* origin = head.header("origin");
  if (!origin || !is_listed(origins, *origin)) return;
  response.headers.emplace_back("access-control-allow-origin", *origin);
  if (!preflight) return;
  response.headers.emplace_back("access-control-allow-methods", "GET,POST,PUT,DELETE");
  response.headers.emplace_back("access-control-allow-headers",
                                has_token ? "content-type,authorization" : "content-type");
}

http::Response Api::finish(const http::Request& head, http::Response response,
                           const std::string& request_id) const {
  response.headers.emplace_back("x-request-id", request_id);
  if (!header_of(response, kTraceResponse)) {
    if (const auto span = begin_span(head)) response.headers.emplace_back(kTraceResponse, span->to_string());
  }
  if ((response.status == 429 || response.status == 503) && !header_of(response, "retry-after")) {
    response.headers.emplace_back("retry-after", "1");
  }
  if (response.status == 401) response.headers.emplace_back("www-authenticate", "Bearer");
  if (services_.options.speaks_tls) {
    response.headers.emplace_back("strict-transport-security", "max-age=31536000");
  }
  add_cors(head, response, false);
  return response;
}

http::Response Api::refused(const http::Request& head, const Refusal& refusal) const {
  const auto request_id = request_id_of(head);
  return finish(head, json_response(refusal.status, error_body(refusal, request_id)), request_id);
}

// True if the request has the server's token, or needs none.
bool Api::may_enter(const http::Request& head) const {
  const auto& options = services_.options;
  if (!services_.token.is_needed() || is_health(head.path)) return true;
  if (head.path == "/metrics" && options.metrics_are_open) return true;
  return services_.token.is_in(head);
}

std::optional<Refusal> Api::refuse_entry(const http::Request& head, const Match& found) {
  if (!services_.token.is_needed()) {
    auto why =
        refuse_foreign_page(head, {services_.options.loopback_names_only, services_.options.cors_origins});
    if (why) return Refusal{403, "forbidden", "forbidden", *std::move(why)};
  }
  if (may_enter(head)) return std::nullopt;
  const bool has_other_door = found.route && found.route->door == Door::waitpoint_token;
  if (!has_other_door || services_.options.outside_signals_per_minute == 0) return unauthorized();
  // Pages of other origins may not signal; they would only use up the rate limit of legitimate callers.
  if (is_sent_across_origins(head, services_.options.cors_origins)) return unauthorized();
  if (services_.outside_signals.take(head.peer)) return std::nullopt;
  return Refusal{429, "resource_exhausted", "too many signals without the server's token",
                 "This address has sent too many: wait before the next one, or send the server's token.",
                 true};
}

std::optional<http::Response> Api::check(const http::Request& head, const Match& found) const {
  if (head.method == "OPTIONS" && head.path != "/metrics") {
    http::Response preflight;
    add_cors(head, preflight, true);
    return preflight;
  }
  if (!found.route) {
    http::Response missing{.status = found.allowed.empty() ? 404 : 405};
    if (!found.allowed.empty()) missing.headers.emplace_back("allow", found.allowed);
    return finish(head, std::move(missing), request_id_of(head));
  }
  return std::nullopt;
}

http::Response Api::not_found(const http::Request& head) const {
  return finish(head, {.status = 404}, request_id_of(head));
}

http::Handler::Admission Entrance::admit(const http::Request& head) {
  const bool is_administration = is_probe(head.path) || is_admin(head.path);
  if (is_administration != (to_ == To::administration)) return {.refusal = api_.not_found(head)};
  return api_.admit(head);
}

http::Handler::Admission Api::admit(const http::Request& head) {
  const auto found = match(head.method, head.path);
  if (head.method != "OPTIONS") {
    if (const auto refusal = refuse_entry(head, found)) return {.refusal = refused(head, *refusal)};
  }
  if (auto answer = check(head, found)) return {.refusal = std::move(answer)};
  return {.max_body = services_.options.max_body.*found.route->max_body, .is_vital = is_health(head.path)};
}

http::Response Api::refuse(http::Malformed why, const http::Request* head) {
  services_.metrics.count_refusal(enum_name(why));
  const http::Request nobody;
  const auto& asked = head ? *head : nobody;
  const auto request_id = request_id_of(asked);
  const auto refusal = [&](int status, std::string code, std::string detail) {
    return finish(
        asked, json_response(status, error_body(Refusal{status, code, code, std::move(detail)}, request_id)),
        request_id);
  };
  switch (why) {
    case http::Malformed::bad_request:
      return refusal(400, "invalid_input", "This is not a valid HTTP/1.1 request.");
    case http::Malformed::header_too_large:
      return refusal(431, "header_too_large", "The request line or the headers are too long.");
    case http::Malformed::too_slow:
      return refusal(408, "timeout", "The request came too slowly.");
    case http::Malformed::too_busy:
      return refusal(503, "resource_exhausted", "Too many connections are open. Try again later.");
    case http::Malformed::address_busy:
      return refusal(429, "resource_exhausted",
                     "This address has too many connections or requests open. Try again later.");
    case http::Malformed::no_memory:
      return refusal(503, "resource_exhausted",
                     "Too many large requests are being read at once. Try again later.");
    case http::Malformed::closing:
      return refusal(503, "unavailable", "The server is shutting down.");
    case http::Malformed::body_too_large:
      break;
  }
  const auto found = match(asked.method, asked.path);
  if (!found.route) return refusal(413, "payload_too_large", "The body is too long.");
  return finish(asked, too_large(*found.route, services_.options.max_body.*found.route->max_body, request_id),
                request_id);
}

void Api::handle(std::shared_ptr<http::Exchange> exchange, std::function<void(http::Response)> answer) {
  const auto found = match(exchange->request.method, exchange->request.path);
  // The edge has called `admit` before; a direct caller may not have.
  if (auto answered = check(exchange->request, found)) return answer(*std::move(answered));
  const bool is_outsider = !may_enter(exchange->request);
  if (is_outsider && found.route->door == Door::server_token) {
    return answer(refused(exchange->request, unauthorized()));
  }
  auto request_id = request_id_of(exchange->request);
  const auto span = begin_span(exchange->request);
  const auto callers = trace_of(exchange->request);
  auto call = std::make_shared<Call>(
      services_, exchange,
      [this, exchange, request_id, span, answer = std::move(answer)](http::Response response) {
        if (span) response.headers.emplace_back(kTraceResponse, span->to_string());
        answer(finish(exchange->request, std::move(response), request_id));
      });
  call->request_id = std::move(request_id);
  call->is_outsider = is_outsider;
  if (callers)
    call->trace_context = callers->to_string();
  else if (span)
    call->trace_context = span->to_string();
  call->guard([&] {
    for (const auto part : found.open) {
      auto decoded = percent_decode_text(part);
      if (!decoded) refuse_input("the path is not valid percent-encoding of UTF-8", kEncodingAdvice);
      call->segments.push_back(*std::move(decoded));
    }
    call->query = Query(exchange->request.query);
    const bool wants_body = found.route->body == Body::json ||
                            (found.route->body == Body::json_if_any && !exchange->request.body.empty());
    // Browsers let foreign pages send other content types without a preflight, so those types change nothing
    // here.
    const bool is_typed = exchange->request.header("content-type") != nullptr;
    const bool must_be_json = wants_body || (is_typed && changes_something(exchange->request.method));
    if (must_be_json && !says_json(exchange->request)) {
      throw Refusal{415, "invalid_input", "invalid JSON: Unsupported Media Type",
                    "Send the header `content-type: application/json`."};
    }
    if (wants_body) {
      auto parsed = Json::parse(exchange->request.body, services_.options.max_json_values);
      if (!parsed) throw Refusal{400, "invalid_input", "invalid JSON: Bad Request", parsed.error()};
      call->body = *std::move(parsed);
    }
    keep_the_least(exchange->request);
    found.route->handle(call);
  });
  // A route has read these when it returns, and its answer may come much later.
  call->body.reset();
  call->query = {};
}

// Absent if spans are not recorded, or not for this request.
std::optional<TraceContext> Api::begin_span(const http::Request& head) const {
  if (!services_.options.tracer || is_probe(head.path)) return std::nullopt;
  const auto callers = trace_of(head);
  return TraceContext{.trace_id = callers ? callers->trace_id : new_trace_id(),
                      .span_id = new_span_id(),
                      .sampled = !callers || callers->sampled};
}

void Api::trace(const http::Request& head, const http::Response& response, std::string_view route,
                double seconds) const {
  if (!services_.options.tracer) return;
  const auto* given = header_of(response, kTraceResponse);
  const auto own = given ? parse_traceparent(*given) : std::nullopt;
  if (!own || !own->sampled) return;
  const auto callers = trace_of(head);
  const auto end_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::system_clock::now().time_since_epoch())
                          .count();
  const auto method = shown_method(head.method);
  Span span{.trace_id = own->trace_id,
            .span_id = own->span_id,
            .parent_id = callers ? callers->span_id : "",
            .name = std::string(method) + (route.empty() ? "" : " ") + std::string(route),
            .kind = Span::Kind::server,
            .start_ns = end_ns - static_cast<std::int64_t>(seconds * 1e9),
            .end_ns = end_ns,
            .attributes = {{"http.request.method", std::string(method)},
                           {"http.response.status_code", static_cast<std::int64_t>(response.status)}},
            .failed = response.status >= 500};
  if (!route.empty()) span.attributes.emplace_back("http.route", std::string(route));
  if (const auto* id = header_of(response, "x-request-id"))
    span.attributes.emplace_back("ff.request_id", *id);
  if (span.failed) span.attributes.emplace_back("error.type", std::to_string(response.status));
  services_.options.tracer->add(std::move(span));
}

// Audits refused tokens, and every request to the administration.
void Api::audit(const http::Request& head, const http::Response& response) const {
  const bool was_refused = response.status == 401 || response.status == 403;
  if (!services_.options.audit_log || !(was_refused || is_admin(head.path))) return;
  const auto* request_id = header_of(response, "x-request-id");
  JsonWriter out;
  out.object()
      .field("log", "audit")
      .field("event", was_refused ? "login_refused" : "admin_request")
      .field("method", head.method)
      .field("path", head.path)
      .field("status", response.status)
      .field("peer", head.peer)
      .field("request_id", request_id ? std::string_view(*request_id) : std::string_view())
      .end();
  services_.options.audit_log(out.take());
}

void Api::answered(const http::Request& head, const http::Response& response, double seconds) {
  audit(head, response);
  if (head.path == "/metrics" || head.method == "OPTIONS") return;
  const auto found = match(head.method, head.path);
  services_.metrics.count_request(
      shown_method(head.method), found.pattern.empty() ? "unknown" : found.pattern, response.status, seconds);
  trace(head, response, found.pattern, seconds);
  if (!services_.options.access_log) return;
  const auto* request_id = header_of(response, "x-request-id");
  JsonWriter out;
  out.object()
      .field("log", "access")
      .field("method", head.method)
      .field("path", head.path)
      .field("status", response.status)
      .field("ms", static_cast<double>(static_cast<std::int64_t>(seconds * 1e6)) / 1e3)
      .field("bytes", static_cast<std::uint64_t>(response.body.size()))
      .field("peer", head.peer)
      .field("request_id", request_id ? std::string_view(*request_id) : std::string_view())
      .end();
  services_.options.access_log(out.take());
}

}  // namespace flowfabric::api
