// Shares of one client and of all together, and connections that make room when the server is full.
#include "http/networks.h"
#include "unit/http_fixture.h"

namespace flowfabric::http {
namespace {

using namespace std::chrono_literals;
using Clients = std::vector<std::unique_ptr<RawClient>>;

class HttpRoomTest : public HttpServerTest {
 protected:
  bool has_connections(std::size_t count) {
    return eventually([&] { return server_->stats().connections == count; });
  }
  // Connections that say nothing, all of them accepted.
  Clients silent(std::size_t count) {
    Clients clients;
    const auto before = server_->stats().accepted;
    for (std::size_t i = 0; i < count; ++i) clients.push_back(connect());
    EXPECT_TRUE(eventually([&] { return server_->stats().accepted == before + count; }));
    return clients;
  }
  // A connection whose request the handler has.
  std::unique_ptr<RawClient> busy() {
    handler_.hold("/slow");
    auto client = connect();
    client->get("/slow");
    held_.push_back(handler_.next_held());
    return client;
  }
  std::string post(const std::string& path, std::size_t size) {
    return "POST " + path + " HTTP/1.1\r\nHost: x\r\nContent-Length: " + std::to_string(size) + "\r\n\r\n";
  }

  std::vector<Held> held_;
};

// ---- All connections --------------------------------------------------------------------------------------

TEST_F(HttpRoomTest, WhoWaitsLongestMakesRoom) {
  start({.max_connections = 3});
  const auto idle = connect();
  EXPECT_EQ(status_of(idle->get("/1").read_answer()), "HTTP/1.1 200 OK");
  std::this_thread::sleep_for(20ms);
  const auto mute = silent(1);
  const auto stuck = busy();
  const auto next = connect();
  EXPECT_EQ(status_of(next->get("/2").read_answer()), "HTTP/1.1 200 OK");
  EXPECT_EQ(idle->read_to_end(), "") << "it has waited longest";
  EXPECT_TRUE(mute.front()->is_quiet());
  const auto after = connect();
  EXPECT_EQ(status_of(after->get("/3").read_answer()), "HTTP/1.1 200 OK");
  EXPECT_EQ(mute.front()->read_to_end(), "");
  EXPECT_TRUE(has_connections(3));
  EXPECT_TRUE(stuck->is_quiet()) << "who is being answered stays";
  EXPECT_EQ(server_->stats().made_room, 2u);
  EXPECT_EQ(server_->stats().refused, 0u);
  EXPECT_EQ(notices().size(), 1u) << "told once, not for each";
}

TEST_F(HttpRoomTest, AHeaderSectionThatIsNotCompleteIsWaitedForAsWell) {
  start({.max_connections = 1});
  const auto slow = connect();
  slow->send("GET / HTTP/1.1\r\n");
  EXPECT_TRUE(has_connections(1));
  EXPECT_EQ(status_of(connect()->get("/").read_answer()), "HTTP/1.1 200 OK");
  EXPECT_EQ(slow->read_to_end(), "");
}

TEST_F(HttpRoomTest, ManySilentConnectionsKeepNobodyOut) {
  start({.max_connections = 50});
  const auto mute = silent(500);
  for (int i = 0; i < 20; ++i) {
    const auto client = connect();
    EXPECT_EQ(status_of(client->get("/").read_answer()), "HTTP/1.1 200 OK");
    EXPECT_EQ(status_of(client->get("/again").read_answer()), "HTTP/1.1 200 OK");
  }
  EXPECT_TRUE(eventually([&] { return server_->stats().connections <= 50; }));
}

TEST_F(HttpRoomTest, WhenAllAreBusyOnlyVitalRequestsAreAnswered) {
  start({.max_connections = 2});
  const auto first = busy();
  const auto second = busy();
  const auto refused = connect()->get("/other").read_to_end();
  EXPECT_EQ(status_of(refused), "HTTP/1.1 503 Service Unavailable");
  EXPECT_TRUE(says_close(refused));
  EXPECT_EQ(body_of(refused), "refused /other");
  const auto vital = connect()->get("/vital").read_to_end();
  EXPECT_EQ(status_of(vital), "HTTP/1.1 200 OK");
  EXPECT_TRUE(says_close(vital)) << "its place is for the next";
  EXPECT_EQ(server_->stats().refused, 1u);
  held_.front().answer({});
  EXPECT_EQ(status_of(first->read_answer()), "HTTP/1.1 200 OK");
  std::this_thread::sleep_for(20ms);  // who waits is not looked for all the time
  const auto later = connect();
  EXPECT_EQ(status_of(later->get("/other").read_answer()), "HTTP/1.1 200 OK");
}

TEST_F(HttpRoomTest, WhoSaysNothingWhileAllAreBusyMakesRoomForVitalRequests) {
  start({.max_connections = 1});
  const auto working = busy();
  Clients mute;
  for (int i = 0; i < 200; ++i) mute.push_back(connect());
  EXPECT_TRUE(
      eventually([&] { return server_->stats().accepted + server_->stats().refused == mute.size() + 1; }));
  EXPECT_LE(server_->stats().connections, 1 + kMostBeyondLimit);
  EXPECT_TRUE(eventually([&] { return server_->stats().connections <= 1 + kConnectionsForVitalRequests; }));
  for (int i = 0; i < 50; ++i) {
    EXPECT_EQ(status_of(connect()->get("/vital").read_to_end()), "HTTP/1.1 200 OK") << i;
    EXPECT_EQ(status_of(connect()->get("/other").read_to_end()), "HTTP/1.1 503 Service Unavailable")
        << "the place that was left is not for everybody";
  }
  EXPECT_TRUE(working->is_quiet());
}

// ---- One address ------------------------------------------------------------------------------------------

TEST_F(HttpRoomTest, AnAddressHasSoManyConnections) {
  start({.max_connections_per_address = 2, .trusted_networks = {}});
  auto first = connect();
  const auto second = connect();
  EXPECT_EQ(status_of(first->get("/1").read_answer()), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of(second->get("/2").read_answer()), "HTTP/1.1 200 OK");
  const auto refused = connect()->read_to_end();
  EXPECT_EQ(status_of(refused), "HTTP/1.1 429 Too Many Requests");
  EXPECT_TRUE(says_close(refused));
  EXPECT_EQ(server_->stats().refused, 1u);
  EXPECT_EQ(server_->stats().connections, 2u);
  first.reset();
  EXPECT_TRUE(has_connections(1));
  EXPECT_EQ(status_of(connect()->get("/3").read_answer()), "HTTP/1.1 200 OK");
}

TEST_F(HttpRoomTest, AnAddressHasSoManyRequests) {
  start({.max_requests_per_address = 2, .trusted_networks = {}});
  const auto first = busy();
  const auto second = busy();
  const auto third = connect();
  const auto refused = third->send(post("/p", 4) + "body").read_answer();
  EXPECT_EQ(status_of(refused), "HTTP/1.1 429 Too Many Requests");
  EXPECT_FALSE(says_close(refused)) << "it may ask again";
  EXPECT_EQ(handler_.log().back(), "/p 429");
  EXPECT_EQ(status_of(third->get("/vital").read_answer()), "HTTP/1.1 200 OK");
  held_.front().answer({});
  EXPECT_EQ(status_of(first->read_answer()), "HTTP/1.1 200 OK");
  EXPECT_TRUE(eventually([&] { return server_->stats().in_flight == 1; }));
  EXPECT_EQ(body_of(third->send(post("/p", 4) + "body").read_answer()), "POST /p body");
}

TEST_F(HttpRoomTest, TrustedAddressesHaveAllTheyNeed) {
  start({.max_connections_per_address = 1, .max_requests_per_address = 1});
  const auto first = busy();
  const auto second = busy();
  EXPECT_EQ(status_of(connect()->get("/1").read_answer()), "HTTP/1.1 200 OK");
}

TEST_F(HttpRoomTest, NetworksMustBeSome) {
  const auto wrong = Server::start({.trusted_networks = {"10.0.0.0/33"}}, handler_);
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::invalid_input);
}

TEST(HttpNetwork, HoldsItsAddresses) {
  const auto holds = [](const char* network, const char* address) {
    return Network::parse(network)->contains(boost::asio::ip::make_address(address));
  };
  EXPECT_TRUE(holds("127.0.0.0/8", "127.255.0.1"));
  EXPECT_FALSE(holds("127.0.0.0/8", "128.0.0.1"));
  EXPECT_TRUE(holds("10.1.2.3", "10.1.2.3"));
  EXPECT_FALSE(holds("10.1.2.3", "10.1.2.2"));
  EXPECT_TRUE(holds("10.1.2.128/25", "10.1.2.129"));
  EXPECT_FALSE(holds("10.1.2.128/25", "10.1.2.127"));
  EXPECT_TRUE(holds("10.0.0.0/8", "::ffff:10.9.9.9")) << "as sockets for both kinds say it";
  EXPECT_TRUE(holds("0.0.0.0/0", "8.8.8.8"));
  EXPECT_FALSE(holds("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(holds("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(holds("2001:db8::/33", "2001:db8:8000::1"));
  for (const auto* text :
       {"", "x", "10.0.0.0/", "10.0.0.0/33", "10.0.0/8", "::/129", "10.0.0.0/8x", "10.0.0.0/-1"})
    EXPECT_FALSE(Network::parse(text)) << text;
}

TEST(HttpNetwork, CountsClientsAsWhatTheyAreGiven) {
  const auto as = [](const char* address) { return counted_as(boost::asio::ip::make_address(address)); };
  EXPECT_EQ(as("10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(as("::ffff:10.1.2.3"), "10.1.2.3");
  EXPECT_EQ(as("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(as("2001:db8:1:2::"), as("2001:db8:1:2:ffff::1"));
}

// ---- Memory -----------------------------------------------------------------------------------------------

TEST_F(HttpRoomTest, BodiesHaveSoMuchMemoryTogether) {
  start({.max_body_memory = 1u << 20});
  Clients senders;
  // Each stops in the middle, and keeps what it has sent.
  for (int i = 0; i < 3; ++i) {
    senders.push_back(connect());
    senders.back()->send(post("/big", 280'000) + std::string(250'000, 'x'));
  }
  ASSERT_TRUE(eventually([&] { return server_->stats().held_bytes >= 750'000; }));
  // Not a byte of a body that does not fit is read.
  const auto refused = connect()->send(post("/big", 400'000)).read_to_end();
  EXPECT_EQ(status_of(refused), "HTTP/1.1 503 Service Unavailable");
  EXPECT_EQ(body_of(refused), "refused /big");
  EXPECT_EQ(handler_.log().back(), "/big 503");
  // In chunks it is noticed when it comes.
  const auto chunks = "POST /big HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n100000\r\n";
  EXPECT_EQ(status_of(connect()->send(chunks + std::string(1u << 20, 'x')).read_to_end()),
            "HTTP/1.1 503 Service Unavailable");
  // Small ones are read as before.
  EXPECT_EQ(body_of(connect()->send(post("/p", 4) + "body").read_answer()), "POST /p body");
  // All of the memory is given back.
  for (auto& sender : senders) {
    sender->send(std::string(30'000, 'x'));
    EXPECT_EQ(status_of(sender->read_answer()), "HTTP/1.1 200 OK");
  }
  EXPECT_TRUE(eventually([&] { return server_->stats().held_bytes == 0; })) << server_->stats().held_bytes;
  EXPECT_EQ(status_of(connect()->send(post("/big", 400'000) + std::string(400'000, 'x')).read_answer()),
            "HTTP/1.1 200 OK");
}

TEST_F(HttpRoomTest, OneAddressHasAQuarterOfTheMemory) {
  start({.trusted_networks = {}, .max_body_memory = 1u << 20});
  const auto first = connect();
  first->send(post("/big", 300'000) + std::string(200'000, 'x'));
  ASSERT_TRUE(eventually([&] { return server_->stats().held_bytes >= 200'000; }));
  EXPECT_EQ(status_of(connect()->send(post("/big", 300'000) + std::string(290'000, 'x')).read_to_end()),
            "HTTP/1.1 503 Service Unavailable");
}

TEST_F(HttpRoomTest, ABodyThatItsHandlerHasFreedTakesNoMemory) {
  start({.max_body_memory = 1u << 20});
  handler_.route("/big", [this](auto exchange, auto answer) {
    free_text(exchange->request.body);
    std::lock_guard lock(mutex_);
    held_.push_back({std::move(exchange), std::move(answer)});
  });
  Clients clients;
  for (int i = 0; i < 20; ++i) {
    clients.push_back(connect());
    clients.back()->send(post("/big", 500'000) + std::string(500'000, 'x'));
    ASSERT_TRUE(eventually([&] {
      std::lock_guard lock(mutex_);
      return held_.size() == clients.size() && server_->stats().held_bytes == 0;
    })) << i;
  }
  for (auto& held : held_) held.answer({.body = "done"});
  for (auto& client : clients) EXPECT_EQ(body_of(client->read_answer()), "done");
}

TEST_F(HttpRoomTest, HeadersThatDoNotEndCountAsWell) {
  start({.max_body_memory = 100'000});
  Clients clients;
  for (int i = 0; i < 10; ++i) {
    clients.push_back(connect());
    clients.back()->send("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(30'000, 'x'));
  }
  EXPECT_TRUE(eventually([&] { return server_->stats().connections < 10; }));
  EXPECT_LE(server_->stats().held_bytes, 200'000u);
  EXPECT_EQ(status_of(connect()->get("/small").read_answer()), "HTTP/1.1 200 OK");
}

}  // namespace
}  // namespace flowfabric::http
