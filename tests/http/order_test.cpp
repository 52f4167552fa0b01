// The checks that all routes share (07 §1, §3): paths and methods, authentication, CORS, limits of bodies, in
// the order of the specification.
#include "http_fixture.h"

namespace flowfabric::tests {
namespace {

class HttpRequests : public HttpTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpRequests, ::testing::Values("memory"), http_store_name);

constexpr const char* kToken = "a-secret-token";

TEST_P(HttpRequests, ToUnknownPathsAreNotFound) {
  for (const auto* path :
       {"/", "/v1", "/v1/flows/", "/v1//executions", "/v1/executions//state", "/V1/flows"}) {
    const auto reply = get(path);
    EXPECT_EQ(reply.status, 404) << path;
    EXPECT_EQ(reply.body, "") << path;
  }
}

TEST_P(HttpRequests, WithAnotherMethodAreToldWhichAreAllowed) {
  const auto reply = remove("/v1/executions");
  EXPECT_EQ(reply.status, 405);
  EXPECT_EQ(reply.body, "");
  EXPECT_NE(reply.header("allow").find("POST"), std::string::npos);
  EXPECT_NE(reply.header("allow").find("GET"), std::string::npos);
}

TEST_P(HttpRequests, ForTheHeadOnlyGetNoBody) {
  const auto head = send({.method = "HEAD", .path = "/healthz"});
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.body, "");
}

TEST_P(HttpRequests, NeedTheTokenIfThereIsOne) {
  serve({.token = kToken});
  const auto with = [&](const std::string& value, const std::string& path = "/v1/lanes") {
    return send({.method = "GET", .path = path, .headers = {{"authorization", value}}});
  };
  for (const auto* value : {"", "Bearer", "Bearer ", "bearer a-secret-token", "Bearer  a-secret-token",
                            "Bearer a-secret-tokem", "Bearer a-secret-token x", "Basic a-secret-token"}) {
    const auto refused = with(value);
    EXPECT_EQ(refused.status, 401) << value;
    EXPECT_EQ(refused.at("/code"), "unauthorized");
    EXPECT_EQ(refused.header("www-authenticate"), "Bearer");
    EXPECT_EQ(refused.body.find(kToken), std::string::npos);
  }
  EXPECT_EQ(get("/unknown").status, 401) << "before it is known that there is no such path";
  EXPECT_EQ(with(std::string("Bearer ") + kToken).status, 200);
  EXPECT_EQ(with(std::string("Bearer ") + kToken, "/unknown").status, 404);
  for (const auto* path : {"/healthz", "/livez", "/readyz"}) EXPECT_EQ(get(path).status, 200) << path;
  EXPECT_EQ(get("/metrics").status, 401);
  EXPECT_EQ(send({.method = "OPTIONS", .path = "/v1/lanes"}).status, 200);
}

TEST_P(HttpRequests, FromOtherOriginsAreNotAnsweredForThem) {
  const auto reply = get("/v1/lanes");
  EXPECT_EQ(reply.header("access-control-allow-origin"), "");
  EXPECT_EQ(send({.method = "OPTIONS", .path = "/v1/lanes"}).header("access-control-allow-methods"), "");
}

TEST_P(HttpRequests, FromAnyOriginAreAnsweredForAll) {
  serve({.cors_origins = {"*"}});
  const auto reply = get("/v1/lanes");
  EXPECT_EQ(reply.header("access-control-allow-origin"), "*");
  EXPECT_EQ(reply.header("access-control-expose-headers"), "*");
  EXPECT_EQ(reply.header("vary"), "origin, access-control-request-method, access-control-request-headers");
  const auto preflight = send({.method = "OPTIONS", .path = "/whatever"});
  EXPECT_EQ(preflight.status, 200);
  EXPECT_EQ(preflight.body, "");
  EXPECT_EQ(preflight.header("access-control-allow-methods"), "*");
  EXPECT_EQ(preflight.header("access-control-allow-headers"), "*");
  EXPECT_EQ(get("/metrics").header("access-control-allow-origin"), "");
}

TEST_P(HttpRequests, FromListedOriginsAreAnsweredForThem) {
  serve({.token = kToken, .cors_origins = {"https://a.example", "https://b.example"}});
  const auto from = [&](const std::string& method, const std::string& origin) {
    return send({.method = method,
                 .path = "/v1/lanes",
                 .headers = {{"origin", origin}, {"authorization", std::string("Bearer ") + kToken}}});
  };
  EXPECT_EQ(from("GET", "https://b.example").header("access-control-allow-origin"), "https://b.example");
  EXPECT_EQ(from("GET", "https://c.example").header("access-control-allow-origin"), "");
  const auto preflight = from("OPTIONS", "https://a.example");
  EXPECT_EQ(preflight.header("access-control-allow-methods"), "GET,POST,PUT,DELETE");
  EXPECT_EQ(preflight.header("access-control-allow-headers"), "content-type,authorization");
  EXPECT_EQ(from("OPTIONS", "https://c.example").header("access-control-allow-methods"), "");
}

TEST_P(HttpRequests, WithLongBodiesAreRefused) {
  const auto id = submitted();
  const auto body_of = [](std::size_t size) {
    const std::string frame = R"({"reason":""})";
    return R"({"reason":")" + std::string(size - frame.size(), 'r') + "\"}";
  };
  const auto path = "/v1/executions/" + id + "/cancel";
  const auto refused = post(path, body_of(65'537));
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.at("/error"), "payload_too_large");
  EXPECT_EQ(refused.at("/code"), "payload_too_large");
  EXPECT_EQ(refused.at("/limit_bytes"), "65536");
  EXPECT_EQ(refused.at("/route"), "/v1/executions/{id}/cancel");
  EXPECT_EQ(post(path, body_of(65'536)).status, 200);
  // Also where it is not read.
  EXPECT_EQ(post("/v1/executions/" + id + "/replay", std::string(65'537, 'x')).status, 413);
  EXPECT_EQ(post("/v1/executions", std::string((1u << 20) + 1, 'x')).status, 413);
  EXPECT_EQ(post("/v1/executions/" + id + "/signal", std::string((256u << 10) + 1, 'x')).status, 413);
}

TEST_P(HttpRequests, AreCheckedInOrder) {
  // The length before the content type, that before the syntax, that before the shape, that before the id.
  const auto raw = [&](std::string body, bool typed) {
    return send({.method = "POST",
                 .path = "/v1/executions/nonsense/cancel",
                 .headers = typed ? std::vector<http::Header>{json_type()} : std::vector<http::Header>{},
                 .body = std::move(body)})
        .status;
  };
  EXPECT_EQ(raw(std::string(70'000, 'x'), false), 413);
  EXPECT_EQ(raw("x", false), 415);
  EXPECT_EQ(raw("x", true), 400);
  EXPECT_EQ(raw("{}", true), 422);
  EXPECT_EQ(raw(R"({"reason":"r"})", true), 400);
}

TEST_P(HttpRequests, MayNameAnyKindOfJson) {
  for (const auto* type : {"application/json", "application/json; charset=utf-8", "Application/JSON",
                           "application/vnd.x+json"}) {
    const auto reply = send({.method = "POST",
                             .path = "/v1/executions",
                             .headers = {{"content-type", type}},
                             .body = R"({"execution_kind":"k"})"});
    EXPECT_EQ(reply.status, 201) << type;
  }
  for (const auto* type : {"text/json", "application/jsonx", "text/plain"}) {
    const auto reply =
        send({.method = "POST", .path = "/v1/executions", .headers = {{"content-type", type}}, .body = "{}"});
    EXPECT_EQ(reply.status, 415) << type;
    EXPECT_EQ(reply.at("/error"), "invalid JSON: Unsupported Media Type");
  }
}

TEST_P(HttpRequests, CarryAnIdBothWays) {
  const auto given =
      send({.method = "GET", .path = "/v1/executions/x", .headers = {{"x-request-id", "mine-1"}}});
  EXPECT_EQ(given.header("x-request-id"), "mine-1");
  EXPECT_EQ(given.at("/request_id"), "mine-1");
  const auto minted =
      send({.method = "GET", .path = "/v1/executions/x", .headers = {{"x-request-id", "a b"}}});
  EXPECT_EQ(minted.header("x-request-id").size(), 16u);
  EXPECT_EQ(minted.at("/request_id"), minted.header("x-request-id"));
}

TEST_P(HttpRequests, AreLogged) {
  std::mutex mutex;
  std::vector<std::string> lines;
  serve({.access_log = [&](const std::string& line) {
    std::lock_guard lock(mutex);
    lines.push_back(line);
  }});
  get("/v1/executions/x?secret=1");
  get("/metrics");
  serve({});  // the one before has said all
  ASSERT_EQ(lines.size(), 1u);
  const Reply line{.body = lines[0]};
  EXPECT_EQ(line.at("/method"), "GET");
  EXPECT_EQ(line.at("/path"), "/v1/executions/x");
  EXPECT_EQ(line.at("/status"), "400");
  EXPECT_TRUE(line.has("/ms") && line.has("/request_id") && line.has("/peer"));
}

TEST_P(HttpRequests, AreCounted) {
  get("/v1/executions/x/state");
  get("/nowhere");
  const auto metrics = get("/metrics");
  EXPECT_EQ(metrics.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
  for (const auto* line :
       {R"(ff_http_requests_total{method="GET",path="/v1/executions/{id}/state",status="400"} 1)",
        R"(ff_http_requests_total{method="GET",path="unknown",status="404"} 1)",
        R"(ff_http_request_duration_seconds_count{method="GET",path="unknown",status="404"} 1)",
        "# TYPE ff_http_requests_total counter"}) {
    EXPECT_NE(metrics.body.find(line), std::string::npos) << line << "\n" << metrics.body;
  }
  EXPECT_EQ(metrics.body.find("path=\"/metrics\""), std::string::npos);
}

TEST_P(HttpRequests, ForHealthAreAnswered) {
  EXPECT_EQ(get("/healthz").body, R"({"status":"ok"})");
  EXPECT_EQ(get("/livez").status, 200);
  EXPECT_EQ(get("/readyz").status, 200);
  EXPECT_EQ(get("/v1/version").at("/name"), "flowfabric");
}

TEST_P(HttpRequests, ToAStoppedEngineAreRefused) {
  engine().stop();
  const auto refused = post("/v1/executions", R"({"execution_kind":"k"})");
  EXPECT_EQ(refused.status, 503);
  EXPECT_EQ(refused.at("/kind"), "unavailable");
  EXPECT_EQ(refused.header("retry-after"), "1");
}

}  // namespace
}  // namespace flowfabric::tests
