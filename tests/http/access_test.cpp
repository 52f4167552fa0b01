// Access control: foreign pages, names of this machine, tokens, and callers with only a waitpoint's token.
#include "suspension_support.h"

namespace flowfabric::tests {
namespace {

constexpr const char* kToken = "a-secret-token-of-the-server";
// Headers of a followed link on a foreign page.
const std::vector<http::Header> kLink{
    {"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "document"}};

class HttpAccess : public HttpTest {
 protected:
  Reply with(std::vector<http::Header> headers, const std::string& method = "GET",
             const std::string& path = "/v1/lanes") {
    return send({.method = method, .path = path, .headers = std::move(headers)});
  }
  std::string own_origin() const { return url(); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpAccess, ::testing::Values("memory"), http_store_name);

TEST_P(HttpAccess, PagesOfStrangersGetNothing) {
  const std::vector<std::vector<http::Header>> strangers{
      {{"origin", "https://evil.example"}},
      {{"origin", "null"}},
      {{"origin", "http://127.0.0.1:1"}},
      {{"origin", "http://localhost:3000"}, {"sec-fetch-site", "same-site"}},
      {{"sec-fetch-site", "cross-site"}},
      {{"sec-fetch-site", "same-site"}, {"sec-fetch-mode", "no-cors"}},
      {{"origin", "https://evil.example"}, {"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}},
      {{"sec-fetch-site", "cross-site"}, {"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "object"}},
      {{"sec-fetch-site", "same-site"}, {"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "iframe"}},
  };
  for (const auto& headers : strangers) {
    for (const auto* method : {"GET", "POST", "DELETE"}) {
      const auto refused =
          with(headers, method, method == std::string("GET") ? "/v1/lanes" : "/v1/lanes/default/disable");
      EXPECT_EQ(refused.status, 403) << headers.front().second;
      EXPECT_EQ(refused.at("/code"), "forbidden");
      EXPECT_EQ(refused.header("access-control-allow-origin"), "");
    }
  }
  EXPECT_EQ(post("/v1/executions", R"({"execution_kind":"k"})").status, 201) << "the lane is as it was";
}

TEST_P(HttpAccess, ItsOwnPagesAndProgramsGetEverything) {
  EXPECT_EQ(with({}).status, 200);
  EXPECT_EQ(with({{"origin", own_origin()}, {"sec-fetch-site", "same-origin"}}).status, 200);
  EXPECT_EQ(with({{"sec-fetch-site", "none"}, {"sec-fetch-mode", "navigate"}}).status, 200);
  EXPECT_EQ(with(kLink).status, 200) << "somebody follows a link";
  EXPECT_EQ(with(kLink, "POST", "/v1/lanes/default/disable").status, 403) << "a form";
}

// A window that a page opens stays empty when there is nothing to show, and when it is a download: the page
// sees that.
TEST_P(HttpAccess, LinksOfStrangersDoNotLeadWhereAWindowMayStayEmpty) {
  const auto path = "/v1/executions/" + submitted();
  const std::vector<http::Header> own_link{{"sec-fetch-site", "none"}, {"sec-fetch-mode", "navigate"}};
  EXPECT_EQ(with(own_link, "GET", path + "/wait").status, 204);
  EXPECT_EQ(with(own_link, "GET", path + "/result").status, 404);
  EXPECT_EQ(with(kLink, "GET", path).status, 200);
  EXPECT_EQ(with(kLink, "GET", path + "/wait").status, 403);
  EXPECT_EQ(with(kLink, "GET", path + "/result").status, 403);
}

TEST_P(HttpAccess, PagesThatAreListedGetEverything) {
  serve({.cors_origins = {"https://friend.example"}});
  const auto reply = with({{"origin", "https://friend.example"}, {"sec-fetch-site", "cross-site"}});
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.header("access-control-allow-origin"), "https://friend.example");
  EXPECT_EQ(with({{"origin", "https://evil.example"}}).status, 403);
}

// With a token, a page would have to know it, and a browser asks before it lets a page send one.
TEST_P(HttpAccess, WithATokenPagesMatterNoMore) {
  serve({.token = kToken, .loopback_names_only = true});
  const http::Header token{"authorization", std::string("Bearer ") + kToken};
  EXPECT_EQ(with({{"origin", "https://evil.example"}}).status, 401);
  EXPECT_EQ(with({{"origin", "https://evil.example"}, token}).status, 200);
}

TEST_P(HttpAccess, NamesThatOthersMayGiveThisMachineAreRefused) {
  for (const auto* name : {"localhost", "LOCALHOST:80", "localhost.:1", "a.localhost", "127.0.0.1",
                           "127.1.2.3:9", "[::1]", "[::1]:9090"}) {
    EXPECT_TRUE(api::is_loopback_host(name)) << name;
  }
  for (const auto* name :
       {"", "evil.example", "evil.example:9090", "127.0.0.1.evil.example", "localhost.evil.example",
        "128.0.0.1", "0.0.0.0", "[::2]", "notlocalhost", "127.0.0.1@evil"}) {
    EXPECT_FALSE(api::is_loopback_host(name)) << name;
  }
}

TEST_P(HttpAccess, MetricsAreAsOpenAsTheyAreSaidToBe) {
  serve({.token = kToken});
  EXPECT_EQ(get("/metrics").status, 401);
  EXPECT_EQ(with({{"authorization", std::string("Bearer ") + kToken}}, "GET", "/metrics").status, 200);
  serve({.token = kToken, .metrics_are_open = true});
  EXPECT_EQ(get("/metrics").status, 200);
}

TEST_P(HttpAccess, ANewTokenIsInForceAtOnce) {
  serve({.token = kToken});
  api().set_token("another-token-of-the-server");
  EXPECT_EQ(with({{"authorization", std::string("Bearer ") + kToken}}).status, 401);
  EXPECT_EQ(with({{"authorization", "Bearer another-token-of-the-server"}}).status, 200);
}

TEST_P(HttpAccess, WhatAPageCanSendWithoutAskingChangesNothing) {
  for (const auto* type :
       {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"}) {
    const auto refused = with({{"content-type", type}}, "POST", "/v1/lanes/default/disable");
    EXPECT_EQ(refused.status, 415) << type;
  }
  EXPECT_EQ(post("/v1/executions", R"({"execution_kind":"k"})").status, 201);
  EXPECT_EQ(with({}, "POST", "/v1/lanes/default/disable").status, 200) << "as curl -XPOST sends it";
}

TEST_P(HttpAccess, OverTlsBrowsersAreToldToStayThere) {
  serve({.speaks_tls = true});
  EXPECT_EQ(get("/v1/lanes").header("strict-transport-security"), "max-age=31536000");
  serve({});
  EXPECT_EQ(get("/v1/lanes").header("strict-transport-security"), "");
}

TEST_P(HttpAccess, RefusedLoginsAndTheAdministrationAreOnRecord) {
  std::mutex mutex;
  std::vector<std::string> lines;
  serve({.token = kToken, .audit_log = [&](const std::string& line) {
           std::lock_guard lock(mutex);
           lines.push_back(line);
         }});
  with({{"x-request-id", "r1"}, {"authorization", "Bearer wrong"}});
  with({{"x-request-id", "r2"}, {"authorization", std::string("Bearer ") + kToken}}, "GET",
       "/v1/admin/nothing");
  with({{"authorization", std::string("Bearer ") + kToken}});
  serve({});  // the one before has said all
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0],
            R"({"log":"audit","event":"login_refused","method":"GET","path":"/v1/lanes","status":401,)"
            R"("peer":"127.0.0.1","request_id":"r1"})");
  EXPECT_EQ(Reply{.body = lines[1]}.at("/event"), "admin_request");
  EXPECT_EQ(Reply{.body = lines[1]}.at("/request_id"), "r2");
}

TEST_P(HttpAccess, TheAdministrationMayHaveAnAddressOfItsOwn) {
  api::Entrance to_work(api(), api::Entrance::To::work);
  api::Entrance to_administration(api(), api::Entrance::To::administration);
  for (const auto* path :
       {"/metrics", "/healthz", "/livez", "/readyz", "/v1/admin/rotate-waitpoint-secret"}) {
    const http::Request head{
        .method = path[1] == 'v' ? "POST" : "GET", .path = path, .headers = {{"host", "localhost"}}};
    EXPECT_EQ(to_work.admit(head).refusal.value().status, 404) << path;
    EXPECT_FALSE(to_administration.admit(head).refusal) << path;
  }
  const http::Request work{.path = "/v1/lanes", .headers = {{"host", "localhost"}}};
  EXPECT_FALSE(to_work.admit(work).refusal);
  EXPECT_EQ(to_administration.admit(work).refusal.value().status, 404);
}

// ---- Those who have a waitpoint's token, and nothing else ----

class HttpOutsiders : public HttpSuspensionTest {
 protected:
  Waiting suspended_behind_a_token(std::size_t per_minute = 600) {
    const auto found = suspended();
    serve({.token = kToken, .outside_signals_per_minute = per_minute});
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpOutsiders, kHttpStores, http_store_name);

TEST_P(HttpOutsiders, MaySignalWithAGenuineToken) {
  const auto to = suspended_behind_a_token();
  const auto delivered = deliver(to);
  EXPECT_EQ(delivered.status, 200) << delivered.body;
  EXPECT_EQ(delivered.at("/Accepted/effect"), "resume_condition_satisfied");
  EXPECT_EQ(get(to.path("/state")).status, 401) << "and nothing else";
  EXPECT_EQ(get(to.token_path()).status, 401);
  EXPECT_EQ(post(to.path("/approve"), R"({"waitpoint_id":")" + to.waitpoint_id + "\"}").status, 401);
}

TEST_P(HttpOutsiders, LearnNothingWithAnyOtherToken) {
  const auto to = suspended_behind_a_token();
  auto forged = to;
  forged.token.back() = forged.token.back() == '0' ? '1' : '0';
  auto elsewhere = to;
  elsewhere.waitpoint_id = "77777777-7777-4777-8777-777777777777";
  auto nobody = to;
  nobody.task.execution_id = "{fp:1}:77777777-7777-4777-8777-777777777777";
  auto no_token = to;
  no_token.token = "nonsense";
  for (const auto& each : {forged, elsewhere, nobody, no_token}) {
    const auto refused = deliver(each);
    EXPECT_EQ(refused.status, 401) << refused.body;
    EXPECT_EQ(refused.at("/code"), "unauthorized");
    EXPECT_EQ(refused.at("/error"), "unauthorized");
  }
  EXPECT_EQ(deliver(to).status, 200) << "nothing was changed";
}

TEST_P(HttpOutsiders, MayNotTryAsOftenAsTheyLike) {
  const auto to = suspended_behind_a_token(5);
  auto forged = to;
  forged.token = "k1:" + std::string(64, '0');
  EXPECT_EQ(deliver(forged).status, 401);
  const auto refused = deliver(forged);
  EXPECT_EQ(refused.status, 429) << refused.body;
  EXPECT_EQ(refused.header("retry-after"), "1");
  const auto with_token = send({.method = "POST",
                                .path = to.path("/signal"),
                                .headers = {json_type(), {"authorization", std::string("Bearer ") + kToken}},
                                .body = signal(to, "approve")});
  EXPECT_EQ(with_token.status, 200) << "who has the server's token may";
}

TEST_P(HttpOutsiders, HaveTheirTriesForThemselves) {
  const auto to = suspended_behind_a_token(5);
  const auto from_page = [&](const char* origin, const char* site) {
    return send({.method = "POST",
                 .path = to.path("/signal"),
                 .headers = {json_type(), {"origin", origin}, {"sec-fetch-site", site}},
                 .body = signal(to, "approve")});
  };
  for (int i = 0; i < 3; ++i) EXPECT_EQ(from_page("https://evil.example", "cross-site").status, 401);
  EXPECT_EQ(from_page("https://approve.example", "same-origin").status, 200) << "behind a proxy";
}

TEST_P(HttpOutsiders, CanBeShutOut) {
  const auto to = suspended_behind_a_token(0);
  EXPECT_EQ(deliver(to).status, 401);
}

TEST(RateLimit, GivesEachAddressItsShare) {
  using namespace std::chrono_literals;
  api::RateLimit limit(60);
  const api::RateLimit::Time start{};
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(limit.take("a", start)) << i;
  EXPECT_FALSE(limit.take("a", start));
  EXPECT_TRUE(limit.take("b", start));
  EXPECT_TRUE(limit.take("a", start + 1s));
  EXPECT_FALSE(limit.take("a", start + 1s));
  EXPECT_TRUE(limit.take("a", start + 1h));
}

}  // namespace
}  // namespace flowfabric::tests
