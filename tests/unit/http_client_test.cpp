// The client: one kept connection, what it sends, and what it says when something goes wrong.
#include <netinet/in.h>

#include "http/client.h"
#include "http/client_connection.h"
#include "unit/http_fixture.h"

namespace flowfabric::http {
namespace {

using namespace std::chrono_literals;

// Accepts one connection after the other, reads a request, and answers with given bytes.
class ScriptedServer {
 public:
  using Answers = std::vector<std::string>;
  // Each connection gets its answers one by one, as requests come, and is closed after the last.
  explicit ScriptedServer(std::vector<Answers> connections) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    ::bind(socket_, reinterpret_cast<sockaddr*>(&address), size);
    ::listen(socket_, 8);
    ::getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this, connections = std::move(connections)] {
      for (const auto& answers : connections) serve(answers);
    });
  }
  ~ScriptedServer() {
    ::shutdown(socket_, SHUT_RDWR);
    thread_.join();
    ::close(socket_);
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  // After the client is gone, or all is answered.
  std::vector<std::string> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void serve(const Answers& answers) {
    const int client = ::accept(socket_, nullptr, nullptr);
    if (client < 0) return;
    for (const auto& answer : answers) {
      std::string request;
      char bytes[4096];
      while (!request.contains("\r\n\r\n")) {
        const auto got = ::recv(client, bytes, sizeof bytes, 0);
        if (got <= 0) break;
        request.append(bytes, static_cast<std::size_t>(got));
      }
      {
        std::lock_guard lock(mutex_);
        requests_.push_back(request);
      }
      ::send(client, answer.data(), answer.size(), MSG_NOSIGNAL);
    }
    ::close(client);
  }

  const int socket_{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  std::uint16_t port_{0};
  mutable std::mutex mutex_;
  std::vector<std::string> requests_;
  std::thread thread_;
};

using Answers = ScriptedServer::Answers;

std::string ok(const std::string& body) {
  return "HTTP/1.1 200 OK\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

std::unique_ptr<Client> connected(const std::string& url, ClientOptions options = {}) {
  auto client = Client::connect(url, std::move(options));
  if (!client) throw std::runtime_error(client.error().to_string());
  return *std::move(client);
}

class HttpClientTest : public HttpServerTest {
 protected:
  std::string url() { return "http://127.0.0.1:" + std::to_string(server_->port()); }
};

TEST_F(HttpClientTest, AsksOneAfterTheOtherOverOneConnection) {
  start();
  const auto client = connected(url() + "/prefix/");
  EXPECT_EQ(client->send({.path = "/a", .query = "q=1"})->body, "GET /prefix/a?q=1 ");
  EXPECT_EQ(client->send({.method = "POST", .path = "/b", .body = "body"})->body, "POST /prefix/b body");
  EXPECT_EQ(client->send({.method = "HEAD", .path = "/c"})->body, "");
  const auto last = client->send({.path = "/d"});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->status, 200);
  EXPECT_EQ(last->content_type, "text/plain");
  EXPECT_EQ(server_->stats().accepted, 1u);
}

TEST_F(HttpClientTest, EveryStatusIsAnAnswer) {
  start();
  handler_.route("/none", [](auto, auto answer) { answer({.status = 204}); });
  handler_.route("/no", [](auto, auto answer) { answer({.status = 503, .body = "no"}); });
  const auto client = connected(url());
  EXPECT_EQ(client->send({.path = "/none"})->status, 204);
  EXPECT_EQ(client->send({.path = "/no"})->status, 503);
  EXPECT_EQ(client->send({.path = "/fine"})->status, 200);
}

TEST_F(HttpClientTest, OpensAConnectionAgainThatWasClosedMeanwhile) {
  start({.idle_timeout = 10ms});
  const auto client = connected(url());
  EXPECT_TRUE(client->send({.path = "/a"}));
  ASSERT_TRUE(eventually([&] { return server_->stats().connections == 0; }));
  const auto again = client->send({.path = "/b"});
  ASSERT_TRUE(again) << again.error().to_string();
  EXPECT_EQ(again->body, "GET /b ");
  EXPECT_EQ(server_->stats().accepted, 2u);
}

TEST(HttpClient, RepeatsOnceWhatAServerClosedUnansweredOnAKeptConnection) {
  ScriptedServer server({Answers{ok("one"), ""}, Answers{ok("two")}});
  const auto client = connected(server.url());
  EXPECT_EQ(client->send({.path = "/1"})->body, "one");
  const auto repeated = client->send({.path = "/2"});
  ASSERT_TRUE(repeated) << repeated.error().to_string();
  EXPECT_EQ(repeated->body, "two");
  EXPECT_EQ(server.requests().size(), 3u);
}

TEST(HttpClient, DoesNotRepeatOnAFreshConnection) {
  ScriptedServer server({Answers{""}, Answers{ok("never")}});
  const auto client = connected(server.url());
  const auto answer = client->send({.path = "/1"});
  ASSERT_FALSE(answer);
  EXPECT_EQ(answer.error().code, ErrorCode::transport);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST(HttpClient, DoesNotRepeatOnceAnAnswerHasBegun) {
  ScriptedServer server(
      {Answers{ok("one"), "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\ncut"}, Answers{ok("never")}});
  const auto client = connected(server.url());
  EXPECT_TRUE(client->send({.path = "/1"}));
  const auto cut = client->send({.path = "/2"});
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, ErrorCode::transport);
  EXPECT_TRUE(cut.error().advice.contains("cut off")) << cut.error().advice;
  EXPECT_EQ(server.requests().size(), 2u);
}

TEST(HttpClient, ReadsAnswersInEveryForm) {
  ScriptedServer server(
      {Answers{"HTTP/1.1 100 Continue\r\n\r\n" + ok("after continue"),
               "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nin \r\n6\r\nchunks\r\n"
               "0\r\n\r\n",
               "HTTP/1.0 200 OK\r\nX-Old: yes\r\n\r\nuntil the end"}});
  const auto client = connected(server.url());
  EXPECT_EQ(client->send({})->body, "after continue");
  EXPECT_EQ(client->send({})->body, "in chunks");
  const auto last = client->send({});
  ASSERT_TRUE(last);
  EXPECT_EQ(last->body, "until the end");
  ASSERT_EQ(last->headers.size(), 1u);
  EXPECT_EQ(last->headers[0], (Header{"x-old", "yes"}));
}

TEST(HttpClient, SendsWhatItIsGivenAndItsToken) {
  ScriptedServer server({Answers{ok(""), ok("")}});
  const auto client = connected(server.url(), {.token = "secret"});
  EXPECT_TRUE(client->send({.method = "PATCH", .path = "/p", .headers = {{"x-a", "b"}}}));
  EXPECT_TRUE(client->send({.path = "/p", .headers = {{"authorization", "mine"}}, .keep_alive = false}));
  const auto host = server.url().substr(7);
  EXPECT_EQ(server.requests().at(0),
            "PATCH /p HTTP/1.1\r\nhost: " + host + "\r\nx-a: b\r\nauthorization: Bearer secret\r\n\r\n");
  EXPECT_EQ(server.requests().at(1),
            "GET /p HTTP/1.1\r\nhost: " + host + "\r\nauthorization: mine\r\nconnection: close\r\n\r\n");
}

TEST(HttpClient, RefusesToSendWhatHttpDoesNotAllow) {
  ScriptedServer server({Answers{ok("")}});
  const auto client = connected(server.url());
  for (const Request& request :
       {Request{.path = "/a b"}, Request{.path = "/a\r\nx: y"}, Request{.path = "a"}, Request{.query = "\n"},
        Request{.method = ""}, Request{.headers = {{"a", "b\r\nc: d"}}}, Request{.headers = {{"a:", "b"}}}}) {
    const auto answer = client->send(request);
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, ErrorCode::invalid_input);
  }
}

TEST(HttpClient, SaysWhatWentWrongAndKeepsItsToken) {
  std::string dead_url;
  {
    ScriptedServer server({});
    dead_url = server.url();
  }
  const auto dead = Client::connect(dead_url, {.token = "secret"});
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, ErrorCode::transport);
  EXPECT_TRUE(dead.error().advice.contains("is the server running")) << dead.error().advice;
  EXPECT_FALSE(dead.error().to_string().contains("secret"));

  ScriptedServer other({Answers{"SSH-2.0-OpenSSH\r\n\r\n"}});
  const auto not_http = connected(other.url(), {.token = "secret"})->send({});
  ASSERT_FALSE(not_http);
  EXPECT_TRUE(not_http.error().advice.contains("does not speak HTTP")) << not_http.error().advice;
  EXPECT_FALSE(not_http.error().to_string().contains("secret"));
}

TEST(HttpClient, WaitsNoLongerThanItsTimeout) {
  // Answers nothing, and keeps the connection while it waits for more of the request than there is.
  ScriptedServer server({Answers{"HTTP/1.1 200 OK\r\n", ""}});
  const auto client = connected(server.url(), {.timeout = 50ms});
  const auto answer = client->send({});
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().advice.contains("in time")) << answer.error().advice;
}

TEST(HttpClient, TakesNoLargerAnswersThanAllowed) {
  ScriptedServer server({Answers{ok("1234567890")}});
  const auto answer = connected(server.url(), {.max_body = 9})->send({});
  ASSERT_FALSE(answer);
  EXPECT_TRUE(answer.error().advice.contains("larger than 9")) << answer.error().advice;
}

// ---- Streams ----------------------------------------------------------------------------------------------

TEST(HttpClient, TellsAStreamAsItComes) {
  ScriptedServer server(
      {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n",
        ok("and it is kept")}});
  const auto client = connected(server.url());
  std::string told;
  const auto streamed = client->stream({.path = "/events"}, [&](std::string_view piece) {
    told += piece;
    return true;
  });
  ASSERT_TRUE(streamed) << streamed.error().to_string();
  EXPECT_EQ(told, "onetwo");
  EXPECT_EQ(client->send({})->body, "and it is kept");
}

TEST(HttpClient, StopsAStreamWhenToldTo) {
  ScriptedServer server(
      {{"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n", ""}, Answers{ok("new")}});
  const auto client = connected(server.url());
  int pieces = 0;
  EXPECT_TRUE(client->stream({}, [&](std::string_view) { return ++pieces < 1; }));
  EXPECT_EQ(pieces, 1);
  EXPECT_EQ(client->send({})->body, "new");
}

TEST(HttpClient, AStreamThatIsRefusedIsNotToldAndOneThatIsCutOffIsAnError) {
  ScriptedServer server({Answers{"HTTP/1.1 404 Not Found\r\ncontent-length: 7\r\n\r\nno such",
                                 "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n"}});
  const auto client = connected(server.url());
  std::string told;
  const auto note = [&](std::string_view piece) { return told += piece, true; };
  const auto refused = client->stream({}, note);
  ASSERT_TRUE(refused) << refused.error().to_string();
  EXPECT_EQ(refused->status, 404);
  EXPECT_EQ(refused->body, "no such");
  EXPECT_EQ(told, "");
  const auto cut = client->stream({}, note);
  ASSERT_FALSE(cut);
  EXPECT_TRUE(cut.error().advice.contains("cut off")) << cut.error().advice;
  EXPECT_EQ(told, "one");
}

// ---- URLs -------------------------------------------------------------------------------------------------

TEST(HttpClient, ReadsUrls) {
  const auto plain = parse_url("http://some.host");
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->authority(), "some.host:80");
  EXPECT_EQ(plain->prefix, "");
  EXPECT_FALSE(plain->is_tls);
  const auto full = parse_url("https://[::1]:8443/a/b/");
  ASSERT_TRUE(full);
  EXPECT_EQ(full->host, "::1");
  EXPECT_EQ(full->authority(), "[::1]:8443");
  EXPECT_EQ(full->prefix, "/a/b");
  EXPECT_TRUE(full->is_tls);
  EXPECT_EQ(parse_url("https://h")->port, "443");
  for (const std::string_view wrong :
       {"", "host:80", "ftp://host", "http://", "http://:80", "http://h:", "http://h:0", "http://h:65536",
        "http://h:x", "http://u:secret@h", "http://[::1", "http://[::1]x", "http://h/?q", "http://h/#f",
        "http://h/a b"}) {
    const auto place = parse_url(wrong);
    ASSERT_FALSE(place) << wrong;
    EXPECT_EQ(place.error().code, ErrorCode::invalid_input);
    EXPECT_FALSE(place.error().to_string().contains("secret"));
  }
}

}  // namespace
}  // namespace flowfabric::http
