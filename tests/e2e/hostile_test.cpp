// `flowfabric serve` among clients that mean no good, with little to spend: few files, little memory.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>

#include <algorithm>

#include "e2e/serving.h"
#include "e2e/waiting.h"
#include "http/client.h"
#include "support/postgres_server.h"
#include "support/temporary_folder.h"
#include "unit/http_fixture.h"

namespace flowfabric::e2e {
namespace {

using namespace std::chrono_literals;
using http::RawClient;
using Clients = std::vector<std::unique_ptr<RawClient>>;

constexpr std::chrono::seconds kPatience{30};

http::Request post(const std::string& path, std::string body) {
  return {.method = "POST",
          .path = path,
          .headers = {{"content-type", "application/json"}},
          .body = std::move(body)};
}

class Hostile : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
  }
  int status(const http::Request& request) const {
    const auto client = http::Client::connect(server_->url(), {.timeout = 10s});
    const auto answer = client ? (*client)->send(request) : std::unexpected(client.error());
    if (!answer) ADD_FAILURE() << request.path << ": " << answer.error().to_string();
    return answer ? answer->status : 0;
  }
  std::string body(const std::string& path) const {
    return http::Client::connect(server_->url()).value()->send({.path = path}).value().body;
  }

  // Over the network, where addresses are, with a role of its own.
  static std::string url_of(const tests::PostgresServer& postgres) {
    postgres.query("create role ff login superuser");
    return "postgres://ff@127.0.0.1:" + std::to_string(postgres.port()) + "/postgres?outage=fail";
  }

  tests::TemporaryFolder folder_;
  std::string store_{"sqlite:" + folder_.file("jobs.db")};
  std::unique_ptr<Serving> server_;
};

TEST_F(Hostile, SilentConnectionsUseUpNoFiles) {
  server_ = std::make_unique<Serving>(store_, std::vector<std::string>{}, "127.0.0.1:0", 256);
  EXPECT_TRUE(server_->said().contains("The limit of open files allows")) << server_->said();
  Clients silent;
  for (int i = 0; i < 1100; ++i) {
    silent.push_back(std::make_unique<RawClient>(server_->port()));
    ASSERT_TRUE(silent.back()->is_connected()) << i;
  }
  const Stopwatch watch;
  EXPECT_EQ(status({.path = "/livez"}), 200);
  EXPECT_LT(watch.elapsed(), 2s);
  EXPECT_EQ(status({.path = "/readyz"}), 200);
  EXPECT_EQ(status({.path = "/healthz"}), 200);
  EXPECT_EQ(status(post("/v1/executions", R"({"execution_kind":"k"})")), 201);
  const auto before = server_->processor_time();
  std::this_thread::sleep_for(1s);
  EXPECT_LT(server_->processor_time() - before, 400ms) << "it waits, and does not try again and again";
  silent.clear();
  EXPECT_EQ(status(post("/v1/tasks/claim", R"({"worker_id":"w"})")), 200);
  EXPECT_EQ(status({.path = "/v1/executions"}), 200);
}

// Long polls are not idle: nobody makes room, and health is answered all the same.
TEST_F(Hostile, LongPollsThatTakeAllConnectionsLeaveRoomForHealth) {
  server_ = std::make_unique<Serving>(store_, std::vector<std::string>{"--http-max-connections", "50"});
  Clients waiting;
  const std::string claim = R"({"worker_id":"w","wait_ms":30000})";
  for (int i = 0; i < 50; ++i) {
    waiting.push_back(std::make_unique<RawClient>(server_->port()));
    waiting.back()->send(
        "POST /v1/tasks/claim HTTP/1.1\r\nHost: localhost\r\n" +
        ("Content-Type: application/json\r\nContent-Length: " + std::to_string(claim.size())) + "\r\n\r\n" +
        claim);
  }
  ASSERT_TRUE(wait_until([&] { return status({.path = "/v1/lanes"}) == 503; }, kPatience));
  for (const auto* path : {"/livez", "/readyz", "/healthz"}) EXPECT_EQ(status({.path = path}), 200) << path;
  const auto refused = http::Client::connect(server_->url()).value()->send({.path = "/v1/lanes"}).value();
  EXPECT_TRUE(std::ranges::find(refused.headers, http::Header{"retry-after", "1"}) != refused.headers.end());
  for (const auto& client : waiting) EXPECT_TRUE(client->is_quiet());
  waiting.clear();
  EXPECT_TRUE(wait_until([&] { return status({.path = "/v1/lanes"}) == 200; }, kPatience));
}

TEST_F(Hostile, ClaimsThatWaitKeepNothingOfWhatTheySent) {
  server_ = std::make_unique<Serving>(store_, std::vector<std::string>{"--http-max-body", "1048576"});
  ASSERT_EQ(status({.path = "/v1/lanes"}), 200);
  const auto before = server_->memory();
  const std::string claim =
      R"({"worker_id":"w","wait_ms":30000,"stray":")" + std::string(1'000'000, 'x') + R"("})";
  const auto request =
      "POST /v1/tasks/claim HTTP/1.1\r\nHost: localhost\r\nX-Much: " + std::string(20'000, 'y') +
      "\r\nContent-Type: application/json\r\nContent-Length: " + std::to_string(claim.size()) + "\r\n\r\n" +
      claim;
  constexpr int kClaims = 200;
  Clients waiting;
  for (int i = 0; i < kClaims; ++i) {
    waiting.push_back(std::make_unique<RawClient>(server_->port()));
    waiting.back()->send(request);
  }
  ASSERT_TRUE(wait_until([&] { return body("/metrics").contains("\nff_waiting_claims 200\n"); }, kPatience))
      << body("/metrics");
  const auto taken = server_->memory() - before;
  // Kept, it would be 400 MB: the text, and what was read from it. The allocator keeps some for what comes
  // next.
  EXPECT_LT(taken, 160u << 20);
}

// ---- words for operators, not for clients -----------------------------------------------------------------

TEST_F(Hostile, AStoreThatIsAwayIsDescribedInTheLogOnly) {
  tests::PostgresServer postgres;
  server_ = std::make_unique<Serving>(url_of(postgres));
  ASSERT_EQ(status({.path = "/v1/lanes"}), 200);
  postgres.stop();
  const auto port = std::to_string(postgres.port());
  const auto client = http::Client::connect(server_->url()).value();
  for (const auto& request : {post("/v1/executions", R"({"execution_kind":"k"})"),
                              post("/v1/executions/bulk", R"({"executions":[{"execution_kind":"k"}]})"),
                              http::Request{.path = "/v1/lanes"}, http::Request{.path = "/v1/executions"},
                              http::Request{.path = "/readyz"}, http::Request{.path = "/healthz"},
                              http::Request{.path = "/v1/events"}}) {
    const auto answer = client->send(request).value();
    EXPECT_TRUE(answer.status == 503 || answer.status == 200) << answer.status;
    EXPECT_TRUE(answer.body.contains("PostgreSQL is away")) << request.path << answer.body;
    for (const auto* word : {"connection to server", "127.0.0.1", "port", "refused"})
      EXPECT_FALSE(answer.body.contains(word)) << request.path << " tells " << word << ": " << answer.body;
    EXPECT_FALSE(answer.body.contains(port)) << answer.body;
  }
  EXPECT_TRUE(server_->said().contains("connection to server")) << server_->said();
  EXPECT_TRUE(server_->said().contains("GET /v1/lanes, failed")) << server_->said();
}

// A password that was changed under a running server is no mistake of its clients.
TEST_F(Hostile, AStoreThatRefusesTheServerIsUnavailable) {
  tests::PostgresServer postgres;
  server_ = std::make_unique<Serving>(url_of(postgres));
  ASSERT_EQ(status({.path = "/v1/lanes"}), 200);
  postgres.query("alter role ff rename to gg");
  postgres.query("select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()");
  const auto client = http::Client::connect(server_->url()).value();
  for (const auto& request :
       {post("/v1/executions", R"({"execution_kind":"k"})"), http::Request{.path = "/v1/lanes"}}) {
    const auto answer = client->send(request).value();
    EXPECT_EQ(answer.status, 503) << answer.body;
    EXPECT_FALSE(answer.body.contains("\"ff\"") || answer.body.contains("role")) << answer.body;
  }
}

// The name of a dimension may be any text, and a warning repeats it.
TEST_F(Hostile, WhatClientsSendIsOneLineOfTheLog) {
  for (const auto* format : {"text", "json"}) {
    server_.reset();
    server_ = std::make_unique<Serving>(store_, std::vector<std::string>{"--log-format", format});
    const auto budget = std::string(R"({"budget_id":"550e8400-e29b-41d4-a716-44665544000)") +
                        (format[0] == 't' ? "0" : "1") +
                        R"(","scope_type":"lane","scope_id":"m","enforcement_mode":"strict",)"
                        R"("on_hard_limit":"fail","on_soft_limit":"warn","reset_interval_ms":0,)"
                        R"("dimensions":["t\nforged\r\u001b[31m\u007f\u0085\u2028\u202e"],)"
                        R"("hard_limits":[1],"soft_limits":[5],"now":1})";
    EXPECT_EQ(status(post("/v1/budgets", budget)), 201);
    EXPECT_TRUE(wait_until([&] { return server_->said().contains("is above the hard limit"); }, kPatience))
        << server_->said();
    const auto said = server_->said();
    for (const auto* bad : {"\nforged", "\r", "\x1b", "\x7f", "\xc2\x85", "\u2028", "\u202e"})
      EXPECT_FALSE(said.contains(bad)) << said;
    EXPECT_TRUE(said.contains("\\u001b[31m\\u007f\\u0085\\u2028\\u202e")) << said;
  }
}

}  // namespace
}  // namespace flowfabric::e2e
