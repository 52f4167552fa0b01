// Traces: the requests to a collector (OTLP over HTTP, JSON), and the behaviour when it refuses them.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <boost/json.hpp>

#include "api/tracer.h"
#include "http_checks.h"

namespace flowfabric::tests {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00f067aa0ba902b7";
const std::string kSampled = "00-" + kTrace + "-" + kParent + "-01";

// Refuses connections, and is kept from being given to a server of another test.
class ClosedPort {
 public:
  ClosedPort() : socket_(socket(AF_INET, SOCK_STREAM, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address_);
    auto* address = reinterpret_cast<sockaddr*>(&address_);
    if (bind(socket_, address, size) != 0 || getsockname(socket_, address, &size) != 0) {
      throw std::runtime_error("no port");
    }
  }
  ~ClosedPort() { close(socket_); }
  ClosedPort(const ClosedPort&) = delete;
  ClosedPort& operator=(const ClosedPort&) = delete;
  std::string url() const { return "http://127.0.0.1:" + std::to_string(ntohs(address_.sin_port)); }

 private:
  int socket_;
  sockaddr_in address_{};
};

// A collector that accepts spans, or answers as configured.
class Collector : public http::Handler {
 public:
  Collector() {
    auto server = http::Server::start({}, *this);
    if (!server) throw std::runtime_error(server.error().to_string());
    server_ = *std::move(server);
  }
  std::string url() const { return "http://127.0.0.1:" + std::to_string(server_->port()); }
  void answer_with(int status, std::string body = "{}") {
    std::lock_guard lock(mutex_);
    status_ = status;
    body_ = std::move(body);
  }
  std::size_t requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<json::object> spans() const {
    std::lock_guard lock(mutex_);
    return spans_;
  }
  json::object resource() const {
    std::lock_guard lock(mutex_);
    return resource_;
  }
  // The first span of that name, once it is there.
  json::object span(const std::string& name) const {
    json::object found;
    const bool came = eventually([&] {
      for (const auto& span : spans()) {
        if (span.at("name").as_string() == name) found = span;
      }
      return !found.empty();
    });
    EXPECT_TRUE(came) << "no span " << name;
    return found;
  }

  Admission admit(const http::Request&) override { return {.max_body = 16u << 20}; }
  void handle(std::shared_ptr<http::Exchange> exchange, std::function<void(http::Response)> answer) override {
    const auto& request = exchange->request;
    std::lock_guard lock(mutex_);
    ++requests_;
    const auto* type = request.header("content-type");
    if (request.method != "POST" || request.path != "/v1/traces" || !type || *type != "application/json") {
      return answer({.status = 404});
    }
    if (status_ == 200) read(json::parse(request.body).as_object());
    answer({.status = status_, .content_type = "application/json", .body = body_});
  }
  http::Response refuse(http::Malformed, const http::Request*) override { return {.status = 400}; }
  void answered(const http::Request&, const http::Response&, double) override {}

 private:
  void read(const json::object& body) {
    const auto& part = body.at("resourceSpans").at(0);
    resource_ = part.at("resource").as_object();
    for (const auto& span : part.at("scopeSpans").at(0).at("spans").as_array()) {
      spans_.push_back(span.as_object());
    }
  }

  mutable std::mutex mutex_;
  int status_{200};
  std::string body_{"{}"};
  std::size_t requests_{0};
  std::vector<json::object> spans_;
  json::object resource_;
  std::unique_ptr<http::Server> server_;
};

std::string text(const json::object& of, const std::string& key) {
  const auto* value = of.if_contains(key);
  if (!value) return "<missing>";
  return value->is_string() ? std::string(value->as_string()) : json::serialize(*value);
}

// Numbers travel as strings, too.
std::string attribute(const json::object& of, const std::string& key) {
  for (const auto& attribute : of.at("attributes").as_array()) {
    if (attribute.at("key").as_string() != key) continue;
    const auto& value = attribute.at("value").as_object();
    return std::string(value.begin()->key()) + " " + std::string(value.begin()->value().as_string());
  }
  return "<missing>";
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Knows the tracer once there is one: the engine is there before it.
struct Listener {
  std::mutex mutex;
  api::Tracer* tracer{nullptr};
};

EngineOptions telling(const std::shared_ptr<Listener>& listener) {
  return {.attempts_ended = [listener](std::vector<EndedAttempt> ended) {
    std::lock_guard lock(listener->mutex);
    if (listener->tracer) listener->tracer->add(std::move(ended));
  }};
}

class HttpTraces : public HttpTest {
 protected:
  HttpTraces() : HttpTraces(std::make_shared<Listener>()) {}
  explicit HttpTraces(std::shared_ptr<Listener> listener) : HttpTest(telling(listener)), listener_(listener) {
    trace({.endpoint = collector_.url() + "/", .interval = 20ms});
  }
  ~HttpTraces() override { untrace(); }

  void trace(api::TracerOptions options) {
    untrace();
    tracer_ = std::make_unique<api::Tracer>(std::move(options));
    tracer_->describe_with(
        [this](const ExecutionId& id) { return engine().call(DescribeExecution{.execution_id = id}); });
    {
      std::lock_guard lock(listener_->mutex);
      listener_->tracer = tracer_.get();
    }
    serve({.tracer = tracer_.get()});
  }
  void untrace() {
    if (!tracer_) return;
    serve({});
    std::lock_guard lock(listener_->mutex);
    listener_->tracer = nullptr;
    tracer_.reset();
  }
  Reply submit(std::vector<http::Header> headers, const std::string& kind = "k") {
    headers.push_back(json_type());
    return send({.method = "POST",
                 .path = "/v1/executions",
                 .headers = std::move(headers),
                 .body = R"({"execution_kind":")" + kind + "\"}"});
  }
  std::string figure(const std::string& series) {
    const auto all = get("/metrics").body;
    const auto at = all.find("\n" + series + " ");
    if (at == std::string::npos) return "<missing>";
    const auto value = at + series.size() + 2;
    return all.substr(value, all.find('\n', value) - value);
  }

  const std::shared_ptr<Listener> listener_;
  Collector collector_;
  std::unique_ptr<api::Tracer> tracer_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpTraces, ::testing::Values("sqlite"), http_store_name);

// ---- requests ----

TEST_P(HttpTraces, HaveASpanForEachRequest) {
  const auto before = now_ns();
  const auto reply = submit({{"traceparent", kSampled}, {"x-request-id", "mine"}});
  const auto after = now_ns();
  ASSERT_EQ(reply.status, 201);
  const auto span = collector_.span("POST /v1/executions");
  EXPECT_EQ(text(span, "traceId"), kTrace);
  EXPECT_EQ(text(span, "parentSpanId"), kParent);
  EXPECT_EQ("00-" + kTrace + "-" + text(span, "spanId") + "-01", reply.header("traceresponse"));
  EXPECT_NE(text(span, "spanId"), kParent);
  EXPECT_EQ(text(span, "kind"), "2") << "server";
  const auto start = std::stoll(text(span, "startTimeUnixNano"));
  const auto end = std::stoll(text(span, "endTimeUnixNano"));
  EXPECT_TRUE(before <= start && start <= end && end <= after) << before << start << end << after;
  EXPECT_EQ(text(span, "status"), "{}");
  EXPECT_EQ(attribute(span, "http.request.method"), "stringValue POST");
  EXPECT_EQ(attribute(span, "http.route"), "stringValue /v1/executions");
  EXPECT_EQ(attribute(span, "http.response.status_code"), "intValue 201");
  EXPECT_EQ(attribute(span, "ff.request_id"), "stringValue mine");
  EXPECT_EQ(attribute(collector_.resource(), "service.name"), "stringValue flowfabric");
}

TEST_P(HttpTraces, NameTheRouteAndNotThePath) {
  get("/v1/executions/{fp:1}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff/state");
  const auto span = collector_.span("GET /v1/executions/{id}/state");
  EXPECT_EQ(attribute(span, "http.response.status_code"), "intValue 404");
  EXPECT_EQ(text(span, "status"), "{}") << "the caller's mistake";
  get("/nowhere");
  EXPECT_EQ(attribute(collector_.span("GET"), "http.route"), "<missing>");
}

TEST_P(HttpTraces, BeginWhereNobodyHasBegunOne) {
  const auto reply = submit({});
  const auto span = collector_.span("POST /v1/executions");
  EXPECT_EQ(text(span, "traceId").size(), 32u);
  EXPECT_EQ(text(span, "parentSpanId"), "<missing>");
  EXPECT_EQ(reply.header("traceresponse"),
            "00-" + text(span, "traceId") + "-" + text(span, "spanId") + "-01");
  const auto task = post("/v1/tasks/claim", R"({"worker_id":"w"})");
  EXPECT_EQ(task.at("/tasks/0/traceparent"), reply.header("traceresponse")) << "workers can join it";
}

TEST_P(HttpTraces, BeginAnewWhenTheCallersIsMalformed) {
  for (const auto* bad : {"00-00000000000000000000000000000000-00f067aa0ba902b7-01",
                          "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "nonsense",
                          "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01"}) {
    const auto reply = submit({{"traceparent", bad}});
    EXPECT_EQ(reply.status, 201) << bad;
    EXPECT_FALSE(contains(reply.header("traceresponse"), kTrace)) << bad;
    EXPECT_EQ(reply.header("traceresponse").size(), 55u);
  }
}

TEST_P(HttpTraces, LeaveOutWhatNobodyWantsRecorded) {
  const auto unsampled = submit({{"traceparent", "00-" + kTrace + "-" + kParent + "-00"}}, "quiet");
  EXPECT_TRUE(unsampled.header("traceresponse").ends_with("-00"));
  report("complete", claimed());
  submit({{"traceparent", kSampled}}, "loud");
  report("complete", claimed());
  collector_.span("attempt loud");
  int requests = 0;
  for (const auto& span : collector_.spans()) {
    EXPECT_NE(text(span, "name"), "attempt quiet");
    if (text(span, "name") == "POST /v1/executions") ++requests;
  }
  EXPECT_EQ(requests, 1);
}

TEST_P(HttpTraces, HaveNoSpansOfProbes) {
  for (const auto* path : {"/healthz", "/livez", "/readyz", "/metrics"}) {
    EXPECT_EQ(get(path).header("traceresponse"), "") << path;
  }
  get("/v1/version");
  collector_.span("GET /v1/version");
  EXPECT_EQ(collector_.spans().size(), 1u);
}

TEST_P(HttpTraces, ShowWhatTheServerCouldNotDo) {
  engine().stop();
  EXPECT_EQ(submit({}).status, 503);
  const auto span = collector_.span("POST /v1/executions");
  EXPECT_EQ(text(span, "status"), R"({"code":2})");
  EXPECT_EQ(attribute(span, "error.type"), "stringValue 503");
}

// ---- attempts ----

TEST_P(HttpTraces, HaveASpanForEachAttempt) {
  submit({{"traceparent", kSampled}}, "resize");
  const auto task = claimed();
  report("complete", task);
  const auto span = collector_.span("attempt resize");
  EXPECT_EQ(text(span, "traceId"), kTrace);
  EXPECT_EQ(text(span, "parentSpanId"), kParent);
  EXPECT_EQ(text(span, "kind"), "5") << "consumer";
  const auto attempts = get("/v1/executions/" + task.execution_id + "/attempts");
  EXPECT_EQ(text(span, "startTimeUnixNano"), attempts.at("/attempts/0/started_at") + "000000");
  EXPECT_EQ(text(span, "endTimeUnixNano"), attempts.at("/attempts/0/ended_at") + "000000");
  auto digits = attempts.at("/attempts/0/attempt_id");
  std::erase(digits, '-');
  EXPECT_EQ(text(span, "spanId"), digits.substr(16));
  EXPECT_EQ(attribute(span, "ff.execution_id"), "stringValue " + task.execution_id);
  EXPECT_EQ(attribute(span, "ff.lane"), "stringValue default");
  EXPECT_EQ(attribute(span, "ff.kind"), "stringValue resize");
  EXPECT_EQ(attribute(span, "ff.attempt"), "intValue 0");
  EXPECT_EQ(attribute(span, "ff.outcome"), "stringValue ok");
  EXPECT_EQ(attribute(span, "ff.worker_id"), "stringValue w");
  EXPECT_EQ(text(span, "status"), "{}");
}

TEST_P(HttpTraces, ShowFailedAttempts) {
  submit({{"traceparent", kSampled}}, "resize");
  report("fail", claimed(), R"(,"reason":"no such image","category":"permanent")");
  const auto span = collector_.span("attempt resize");
  EXPECT_EQ(text(span, "status"), R"({"code":2,"message":"no such image"})");
  EXPECT_EQ(attribute(span, "ff.outcome"), "stringValue error");
  EXPECT_EQ(attribute(span, "ff.failure_category"), "stringValue permanent");
}

TEST_P(HttpTraces, AreTheExecutionsOwnWhenItHasNone) {
  const auto created = engine().call(CreateExecution{.execution_kind = "orphan"});
  ASSERT_TRUE(created);
  report("complete", claimed());
  const auto span = collector_.span("attempt orphan");
  auto digits = created->execution_id.uuid.to_string();
  std::erase(digits, '-');
  EXPECT_EQ(text(span, "traceId"), digits);
  EXPECT_EQ(text(span, "parentSpanId"), "<missing>");
}

// ---- the collector ----

TEST_P(HttpTraces, AreSentAgainWhenTheCollectorCannotTakeThem) {
  collector_.answer_with(503);
  get("/v1/version");
  EXPECT_TRUE(eventually([&] { return collector_.requests() > 0; }));
  collector_.answer_with(200);
  collector_.span("GET /v1/version");
  EXPECT_TRUE(eventually([&] { return figure("ff_otlp_spans_exported_total") == "1"; }));
  EXPECT_EQ(figure("ff_otlp_spans_dropped_total"), "0");
}

TEST_P(HttpTraces, AreDroppedAndCountedWhenTheCollectorRefusesThem) {
  collector_.answer_with(400);
  get("/v1/version");
  EXPECT_TRUE(eventually([&] { return figure("ff_otlp_spans_dropped_total") == "1"; }));
  collector_.answer_with(200, R"({"partialSuccess":{"rejectedSpans":"1","errorMessage":"no"}})");
  get("/v1/version");
  EXPECT_TRUE(eventually([&] { return figure("ff_otlp_spans_dropped_total") == "2"; }));
  EXPECT_EQ(figure("ff_otlp_spans_exported_total"), "0");
}

TEST_P(HttpTraces, HoldUpNobodyWhenTheCollectorIsAway) {
  const ClosedPort gone;
  const auto url = gone.url();
  std::mutex mutex;
  std::vector<std::string> notices;
  trace({.endpoint = url, .max_queued = 8, .max_batch = 4, .interval = 20ms, .notice = [&](auto& notice) {
           std::lock_guard lock(mutex);
           notices.push_back(notice);
         }});
  EXPECT_TRUE(eventually([&] {
    EXPECT_EQ(get("/v1/version").status, 200);
    return figure("ff_otlp_spans_dropped_total") != "0";
  }));
  EXPECT_EQ(figure("ff_otlp_spans_exported_total"), "0");
  EXPECT_EQ(figure("ff_otlp_spans_queued"), "8");
  const auto began = std::chrono::steady_clock::now();
  tracer_->stop(200ms);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 5s);
  EXPECT_EQ(tracer_->stats().queued, 0u);
  std::lock_guard lock(mutex);
  ASSERT_EQ(notices.size(), 1u) << "it is said once";
  EXPECT_TRUE(contains(notices[0], url)) << notices[0];
}

TEST_P(HttpTraces, AreSentBeforeTheEnd) {
  trace({.endpoint = collector_.url(), .interval = 1h});
  get("/v1/version");
  submit({{"traceparent", kSampled}}, "last");
  report("complete", claimed());
  engine().stop();
  EXPECT_EQ(collector_.spans().size(), 0u);
  tracer_->stop(10s);
  EXPECT_EQ(collector_.spans().size(), 5u) << "four requests and an attempt";
  EXPECT_EQ(tracer_->stats().exported, 5u);
  EXPECT_EQ(tracer_->stats().dropped, 0u);
}

}  // namespace
}  // namespace flowfabric::tests
