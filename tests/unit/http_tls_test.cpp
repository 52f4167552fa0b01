// TLS: the server's certificate, its renewal, and whom clients trust.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "http/client.h"
#include "http/tls.h"
#include "http/transport.h"
#include "support/temporary_folder.h"
#include "unit/http_fixture.h"

namespace flowfabric::http {
namespace {

using namespace std::chrono_literals;

class HttpTlsTest : public HttpServerTest {
 protected:
  // Makes name.crt and name.key, for this host.
  void make_certificate(const std::string& name, const std::string& host = "DNS:localhost,IP:127.0.0.1") {
    const auto command =
        "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
        " -subj /CN=" +
        name + " -addext subjectAltName=" + host + " -keyout " + folder_.file(name + ".key") + " -out " +
        folder_.file(name + ".crt") + " >/dev/null 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << "the program openssl is needed";
  }
  ServerOptions with_certificate(const std::string& name) {
    return {.tls_certificate_file = folder_.file(name + ".crt"), .tls_key_file = folder_.file(name + ".key")};
  }
  // Replaces a file as renewing programs do.
  void replace(const std::string& old_file, const std::string& new_file) {
    std::filesystem::copy_file(folder_.file(new_file), folder_.file("temporary"),
                               std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(folder_.file("temporary"), folder_.file(old_file));
  }
  Result<std::unique_ptr<Client>> connect_trusting(const std::string& name,
                                                   const std::string& host = "localhost") {
    return Client::connect(url(host), {.ca_file = folder_.file(name + ".crt")});
  }
  std::string url(const std::string& host = "localhost") {
    return "https://" + host + ":" + std::to_string(server_->port());
  }
  bool is_noticed(const std::string& words) {
    return eventually([&] {
      const auto all = notices();
      return !all.empty() && all.back().contains(words);
    });
  }

  tests::TemporaryFolder folder_;
};

TEST_F(HttpTlsTest, SpeaksTls) {
  make_certificate("one");
  start(with_certificate("one"));
  const auto client = connect_trusting("one");
  ASSERT_TRUE(client) << client.error().to_string();
  for (int i = 0; i < 3; ++i) {
    const auto answer = (*client)->send({.method = "POST", .path = "/a", .body = "hello"});
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_EQ(answer->body, "POST /a hello");
  }
  EXPECT_EQ(server_->stats().accepted, 1u);
  EXPECT_TRUE(connect_trusting("one", "127.0.0.1")) << "by address";
}

TEST_F(HttpTlsTest, MovesLargeThingsBothWays) {
  make_certificate("one");
  start(with_certificate("one"));
  const std::string large(3u << 20, 'x');
  handler_.route("/large", [&](auto, auto answer) { answer({.body = large}); });
  const auto client = connect_trusting("one");
  ASSERT_TRUE(client);
  const auto answer = (*client)->send({.path = "/large"});
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(answer->body == large);
  // The request is refused by its length, and the client reads the reason while it still sends.
  const auto refused = (*client)->send({.method = "POST", .path = "/p", .body = large});
  ASSERT_TRUE(refused) << refused.error().to_string();
  EXPECT_EQ(refused->status, 413);
  EXPECT_EQ((*client)->send({.path = "/next"})->body, "GET /next ");
}

TEST_F(HttpTlsTest, MovesBodiesOfEverySize) {
  make_certificate("one");
  start(with_certificate("one"));
  const auto client = connect_trusting("one");
  ASSERT_TRUE(client);
  for (const std::size_t size : {16u << 10, 32u << 10, 48u << 10, 64u << 10, 65000u, 1u << 20}) {
    const std::string body(size, 'x');
    const auto answer = (*client)->send({.method = "POST", .path = "/big", .body = body});
    ASSERT_TRUE(answer) << size << ": " << answer.error().to_string();
    EXPECT_TRUE(answer->body == "POST /big " + body) << size;
  }
  EXPECT_EQ(server_->stats().accepted, 1u);
}

TEST_F(HttpTlsTest, DoesNotWaitForWhatTlsHasReadAlready) {
  make_certificate("one");
  start(with_certificate("one"));
  RawClient client(server_->port());
  const auto context = load_client_tls({.insecure = true});
  ASSERT_TRUE(context);
  const auto tls = tls_client_transport(client.socket(), **context, "");
  ASSERT_EQ(tls->handshake(), Transport::Status::ok);
  // Records that reach the server together, and are cut by its reads somewhere in the middle.
  constexpr std::size_t kRecord = 10'000;
  const auto hold_back = [&](int on) {
    ::setsockopt(client.socket(), IPPROTO_TCP, TCP_CORK, &on, sizeof on);
  };
  hold_back(1);
  tls->write("POST /big HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 40000\r\n\r\n", "");
  for (int i = 0; i < 4; ++i) tls->write(std::string(kRecord, 'x'), "");
  hold_back(0);
  std::string answer;
  std::array<char, 1000> room;
  for (auto moved = tls->read(room); moved.bytes > 0; moved = tls->read(room)) {
    answer.append(room.data(), moved.bytes);
  }
  EXPECT_TRUE(body_of(answer) == "POST /big " + std::string(40'000, 'x')) << status_of(answer);
}

TEST_F(HttpTlsTest, MayDemandCertificatesOfClients) {
  make_certificate("one");
  make_certificate("friend");
  make_certificate("stranger");
  auto options = with_certificate("one");
  options.tls_client_ca_file = folder_.file("friend.crt");
  start(options);
  const auto ask_as = [&](const std::string& name) {
    ClientOptions shown{.ca_file = folder_.file("one.crt")};
    if (!name.empty()) {
      shown.certificate_file = folder_.file(name + ".crt");
      shown.key_file = folder_.file(name + ".key");
    }
    const auto client = Client::connect(url(), shown);
    if (!client) return false;
    for (int i = 0; i < 2; ++i) {
      const auto answer = (*client)->send({.path = "/a"});
      if (!answer || answer->status != 200) return false;
    }
    return true;
  };
  EXPECT_TRUE(ask_as("friend"));
  EXPECT_TRUE(ask_as("friend")) << "with a session of its own";
  EXPECT_FALSE(ask_as("stranger"));
  EXPECT_FALSE(ask_as(""));
}

TEST_F(HttpTlsTest, SpeaksOnlyCiphersWithForwardSecrecy) {
  make_certificate("one");
  start(with_certificate("one"));
  const auto shakes_hands_with = [&](const std::string& ciphers) {
    const auto command =
        "echo | timeout 10 openssl s_client -connect 127.0.0.1:" + std::to_string(server_->port()) +
        " -tls1_2 -cipher " + ciphers + " >/dev/null 2>&1";
    return std::system(command.c_str()) == 0;
  };
  EXPECT_TRUE(shakes_hands_with("ECDHE-ECDSA-AES128-GCM-SHA256"));
  EXPECT_TRUE(shakes_hands_with("ECDHE-ECDSA-CHACHA20-POLY1305"));
  EXPECT_FALSE(shakes_hands_with("ECDHE-ECDSA-AES128-SHA")) << "no authentication of what is encrypted";
  auto options = with_certificate("one");
  options.tls_ciphers = "ECDHE-ECDSA-AES256-GCM-SHA384";
  start(options);
  EXPECT_TRUE(shakes_hands_with("ECDHE-ECDSA-AES256-GCM-SHA384"));
  EXPECT_FALSE(shakes_hands_with("ECDHE-ECDSA-AES128-GCM-SHA256"));
  options.tls_ciphers = "nonsense";
  EXPECT_FALSE(Server::start(options, handler_));
}

TEST_F(HttpTlsTest, AClientMistrustsWhomItDoesNotKnow) {
  make_certificate("one");
  make_certificate("other");
  start(with_certificate("one"));
  const auto stranger = connect_trusting("other");
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, ErrorCode::transport);
  EXPECT_TRUE(stranger.error().advice.contains("not trusted")) << stranger.error().advice;
  const auto careless = Client::connect(url(), {.insecure = true});
  ASSERT_TRUE(careless) << careless.error().to_string();
  EXPECT_EQ((*careless)->send({.path = "/a"})->body, "GET /a ");
}

TEST_F(HttpTlsTest, AClientMistrustsACertificateForSomebodyElse) {
  make_certificate("elsewhere", "DNS:elsewhere,IP:127.0.0.2");
  start(with_certificate("elsewhere"));
  for (const auto& [host, why] :
       {std::pair{"localhost", "hostname mismatch"}, {"127.0.0.1", "IP address mismatch"}}) {
    const auto client = connect_trusting("elsewhere", host);
    ASSERT_FALSE(client) << host;
    EXPECT_TRUE(client.error().advice.contains(why)) << client.error().advice;
  }
}

TEST_F(HttpTlsTest, UsesARenewedCertificateForNewConnections) {
  make_certificate("one");
  make_certificate("two");
  std::filesystem::copy_file(folder_.file("one.crt"), folder_.file("live.crt"));
  std::filesystem::copy_file(folder_.file("one.key"), folder_.file("live.key"));
  start(with_certificate("live"));
  const auto before = connect_trusting("one");
  ASSERT_TRUE(before) << before.error().to_string();

  std::ofstream(folder_.file("broken")) << "no certificate";
  replace("live.crt", "broken");
  EXPECT_TRUE(is_noticed("cannot be used"));
  EXPECT_TRUE(connect_trusting("one")) << "the one before stays in use";

  replace("live.key", "two.key");
  replace("live.crt", "two.crt");
  EXPECT_TRUE(is_noticed("is in use"));
  EXPECT_TRUE(connect_trusting("two"));
  EXPECT_FALSE(connect_trusting("one"));
  EXPECT_EQ((*before)->send({.path = "/still"})->body, "GET /still ");
}

TEST_F(HttpTlsTest, SaysWhatIsWrongWithItsFiles) {
  make_certificate("one");
  make_certificate("two");
  const auto trouble = [&](const std::string& certificate, const std::string& key) {
    const auto started = Server::start({.tls_certificate_file = certificate, .tls_key_file = key}, handler_);
    if (started) return std::string("started");
    EXPECT_EQ(started.error().code, ErrorCode::invalid_input);
    return started.error().advice;
  };
  EXPECT_TRUE(trouble(folder_.file("one.crt"), "").contains("both"));
  EXPECT_TRUE(trouble(folder_.file("none.crt"), folder_.file("one.key")).contains("none.crt"));
  EXPECT_TRUE(trouble(folder_.file("one.key"), folder_.file("one.key")).contains("one.key"));
  EXPECT_TRUE(trouble(folder_.file("one.crt"), folder_.file("two.key")).contains("two.key"));
}

TEST_F(HttpTlsTest, ClosesConnectionsThatDoNotSpeakTls) {
  make_certificate("one");
  auto options = with_certificate("one");
  options.header_timeout = 300ms;
  start(options);
  EXPECT_FALSE(connect()->get("/plain").read_to_end().contains("HTTP"));
  const auto silent = connect();
  EXPECT_EQ(silent->read_to_end(), "");
  EXPECT_TRUE(eventually([&] { return server_->stats().connections == 0; }));
}

TEST_F(HttpTlsTest, StreamsAndNoticesThatTheClientIsGone) {
  make_certificate("one");
  start(with_certificate("one"));
  const auto source = std::make_shared<TestSource>();
  handler_.route("/stream", [&](auto, auto answer) { answer({.source = source}); });
  source->add("piece");
  const auto client = connect_trusting("one");
  ASSERT_TRUE(client);
  std::string told;
  EXPECT_TRUE((*client)->stream({.path = "/stream"}, [&](std::string_view piece) {
    told = piece;
    return false;
  }));
  EXPECT_EQ(told, "piece");
  EXPECT_TRUE(eventually([&] { return source->abandoned == 1; }));
}

TEST_F(HttpTlsTest, DrainingSaysGoodbye) {
  make_certificate("one");
  start(with_certificate("one"));
  const auto client = connect_trusting("one");
  ASSERT_TRUE(client);
  EXPECT_TRUE((*client)->send({.path = "/a"}));
  EXPECT_TRUE(server_->drain(10s));
  EXPECT_FALSE((*client)->send({.path = "/b"}));
}

}  // namespace
}  // namespace flowfabric::http
