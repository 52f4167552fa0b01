// Streams, clients that go away, and servers that close.
#include "unit/http_fixture.h"

namespace flowfabric::http {
namespace {

using namespace std::chrono_literals;

class HttpClosingTest : public HttpServerTest {
 protected:
  // A server that answers /stream with `source_`.
  void start_streaming(const std::string& content_type = "text/event-stream") {
    start();
    handler_.route("/stream", [this, content_type](auto, auto answer) {
      answer({.content_type = content_type, .source = source_});
    });
  }
  bool is_empty() {
    return eventually([&] { return server_->stats().connections == 0; });
  }

  const std::shared_ptr<TestSource> source_ = std::make_shared<TestSource>();
};

// ---- Streams ----------------------------------------------------------------------------------------------

TEST_F(HttpClosingTest, StreamsPieceByPiece) {
  start_streaming();
  const auto client = connect();
  client->get("/stream").get("/next");
  EXPECT_EQ(client->read_to("\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\ncontent-type: text/event-stream\r\n\r\n");
  source_->add("first");
  EXPECT_EQ(client->read_to("first\r\n"), "5\r\nfirst\r\n");
  source_->add("");
  source_->add(std::string(1000, 'x'));
  EXPECT_EQ(client->read_to("x\r\n"), "3e8\r\n" + std::string(1000, 'x') + "\r\n");
  source_->add(std::nullopt);
  EXPECT_EQ(client->read_to("\r\n\r\n"), "0\r\n\r\n");
  EXPECT_EQ(body_of(client->read_answer()), "GET /next ");
  EXPECT_EQ(source_->abandoned, 0);
}

TEST_F(HttpClosingTest, AsksForAPieceWhenTheOneBeforeIsWritten) {
  start_streaming();
  const auto client = connect();
  client->get("/stream").read_to("\r\n\r\n");
  // More than the system buffers: the next piece is not wanted before the client has read.
  source_->add(std::string(24u << 20, 'x'));
  EXPECT_TRUE(eventually([&] { return !source_->is_asked(); }));
  std::this_thread::sleep_for(50ms);
  EXPECT_FALSE(source_->is_asked());
  client->read_to("x\r\n");
  EXPECT_TRUE(eventually([&] { return source_->is_asked(); }));
}

TEST_F(HttpClosingTest, StreamsToHttp10UntilTheEnd) {
  start_streaming();
  source_->add("one ");
  source_->add("two");
  source_->add(std::nullopt);
  const auto answer = last_words_to("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_TRUE(says_close(answer)) << answer;
  EXPECT_FALSE(answer.contains("transfer-encoding"));
  EXPECT_EQ(body_of(answer), "one two");
}

TEST_F(HttpClosingTest, StreamsNothingToHead) {
  start_streaming();
  const auto client = connect();
  client->send("HEAD /stream HTTP/1.1\r\nHost: x\r\n\r\n").get("/next");
  EXPECT_TRUE(client->read_to("\r\n\r\n").contains("transfer-encoding: chunked"));
  EXPECT_EQ(body_of(client->read_answer()), "GET /next ");
  EXPECT_EQ(source_->abandoned, 1);
}

TEST_F(HttpClosingTest, AStreamIsAbandonedWhenItsClientGoes) {
  start_streaming();
  for (const bool is_reset : {false, true}) {
    const auto client = connect();
    client->get("/stream").read_to("\r\n\r\n");
    ASSERT_TRUE(eventually([&] { return source_->is_asked(); }));
    is_reset ? client->reset() : client->close();
    ASSERT_TRUE(eventually([&] { return source_->abandoned == (is_reset ? 2 : 1); }));
    EXPECT_TRUE(is_empty());
    source_->add("too late");
    EXPECT_EQ(server_->stats().in_flight, 0u);
  }
  EXPECT_EQ(body_of(connect()->get("/fine").read_answer()), "GET /fine ");
  EXPECT_EQ(source_->abandoned, 2);
}

TEST_F(HttpClosingTest, AStreamForAClientThatHasGoneIsAbandoned) {
  start();
  handler_.hold("/slow");
  auto client = connect();
  client->get("/slow");
  const auto held = handler_.next_held();
  client->reset();
  ASSERT_TRUE(is_empty());
  held.answer({.source = source_});
  EXPECT_TRUE(eventually([&] { return source_->abandoned == 1; }));
}

// ---- Clients that go away ---------------------------------------------------------------------------------

TEST_F(HttpClosingTest, AHandlerIsToldThatItsClientIsGone) {
  start();
  handler_.hold("/wait");
  for (const bool is_reset : {false, true}) {
    const auto client = connect();
    client->get("/wait");
    const auto held = handler_.next_held();
    EXPECT_FALSE(held.exchange->abandoned);
    is_reset ? client->reset() : client->close();
    EXPECT_TRUE(eventually([&] { return held.exchange->abandoned.load(); }));
    EXPECT_TRUE(eventually([&] { return handler_.abandoned == (is_reset ? 2 : 1); }));
    held.answer({.body = "too late"});
    EXPECT_TRUE(is_empty());
    EXPECT_EQ(server_->stats().in_flight, 0u);
  }
  EXPECT_EQ(handler_.abandoned, 2);
}

TEST_F(HttpClosingTest, AClientThatHasClosedItsHalfGetsItsAnswers) {
  start();
  handler_.hold("/wait");
  const auto client = connect();
  client->get("/wait").get("/next").close_half();
  const auto held = handler_.next_held();
  EXPECT_TRUE(eventually([&] { return handler_.abandoned == 1; }));
  held.answer({.body = "here it is"});
  EXPECT_EQ(body_of(client->read_answer()), "here it is");
  EXPECT_EQ(body_of(client->read_answer()), "GET /next ");
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_TRUE(is_empty());
}

TEST_F(HttpClosingTest, AnAnsweredRequestIsNotAbandoned) {
  start();
  handler_.hold("/wait");
  auto client = connect();
  client->get("/wait");
  const auto held = handler_.next_held();
  held.answer({});
  client->read_answer();
  client.reset();
  EXPECT_TRUE(is_empty());
  EXPECT_FALSE(held.exchange->abandoned);
  EXPECT_EQ(handler_.abandoned, 0);
}

// ---- Servers that close -----------------------------------------------------------------------------------

TEST_F(HttpClosingTest, DrainingClosesWhatIsIdleAndAcceptsNothingMore) {
  start();
  const auto fresh = connect();
  const auto kept = connect();
  kept->get("/a").read_answer();
  ASSERT_TRUE(eventually([&] { return server_->stats().connections == 2; }));
  EXPECT_TRUE(server_->drain(10s));
  EXPECT_EQ(fresh->read_to_end(), "");
  EXPECT_EQ(kept->read_to_end(), "");
  EXPECT_FALSE(connect()->is_connected());
  EXPECT_TRUE(server_->drain(10s)) << "once more";
  EXPECT_EQ(server_->stats().connections, 0u);
}

TEST_F(HttpClosingTest, DrainingWaitsForAnswersAndAbandonsWhoWaits) {
  start();
  handler_.hold("/wait");
  const auto client = connect();
  client->get("/wait").get("/never");
  const auto held = handler_.next_held();
  std::thread worker([&] {
    eventually([&] { return held.exchange->abandoned.load(); });
    held.answer({.body = "closing down"});
  });
  EXPECT_TRUE(server_->drain(10s));
  worker.join();
  const auto answer = client->read_to_end();
  EXPECT_TRUE(says_close(answer)) << answer;
  EXPECT_EQ(body_of(answer), "closing down");
  EXPECT_EQ(handler_.abandoned, 1);
  EXPECT_EQ(handler_.log(), std::vector<std::string>{"/wait 200"});
}

TEST_F(HttpClosingTest, DrainingRefusesWhatIsNotYetThere) {
  start();
  const auto head = connect();
  head->send("GET /half HTT");
  const auto body = connect();
  body->send("POST /half HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n")
      .read_to("\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server_->stats().connections == 2; }));
  EXPECT_TRUE(server_->drain(10s));
  EXPECT_EQ(body_of(head->read_to_end()), "closing -");
  EXPECT_EQ(body_of(body->read_to_end()), "closing /half");
}

TEST_F(HttpClosingTest, DrainingCutsOffWhatTakesTooLong) {
  start();
  handler_.hold("/wait");
  const auto client = connect();
  client->get("/wait");
  const auto held = handler_.next_held();
  EXPECT_FALSE(server_->drain(30ms));
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_TRUE(held.exchange->abandoned);
  EXPECT_TRUE(is_empty());
  held.answer({});
}

TEST_F(HttpClosingTest, DrainingEndsEventStreamsProperly) {
  start_streaming();
  const auto client = connect();
  client->get("/stream").read_to("\r\n\r\n");
  source_->add("event");
  EXPECT_EQ(client->read_to("event\r\n"), "5\r\nevent\r\n");
  EXPECT_TRUE(server_->drain(10s));
  EXPECT_EQ(client->read_to_end(), "0\r\n\r\n");
  EXPECT_EQ(source_->abandoned, 1);
}

TEST_F(HttpClosingTest, DrainingLetsOtherStreamsEndByThemselves) {
  start_streaming("application/json");
  const auto client = connect();
  client->get("/stream").read_to("\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return source_->is_asked(); }));
  std::thread worker([&] {
    eventually([&] { return !RawClient(server_->port()).is_connected(); });
    source_->add("the rest");
    source_->add(std::nullopt);
  });
  EXPECT_TRUE(server_->drain(10s));
  worker.join();
  EXPECT_EQ(client->read_to_end(), "8\r\nthe rest\r\n0\r\n\r\n");
  EXPECT_EQ(source_->abandoned, 0);
}

TEST_F(HttpClosingTest, AServerCanBeDestroyedWhileHandlersWork) {
  start_streaming();
  handler_.hold("/wait");
  const auto waiting = connect();
  waiting->get("/wait");
  const auto held = handler_.next_held();
  const auto streaming = connect();
  streaming->get("/stream").read_to("\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return source_->is_asked(); }));
  server_.reset();
  EXPECT_TRUE(held.exchange->abandoned);
  EXPECT_EQ(source_->abandoned, 1);
  source_->add("too late");
  const auto unwanted = std::make_shared<TestSource>();
  held.answer({.source = unwanted});
  EXPECT_EQ(unwanted->abandoned, 1);
  EXPECT_EQ(waiting->read_to_end(), "");
}

TEST_F(HttpClosingTest, AnswersMayComeWhileTheServerIsDestroyed) {
  for (int round = 0; round < 20; ++round) {
    start();
    std::vector<std::thread> workers;
    std::mutex mutex;
    handler_.route("/thread", [&](auto exchange, auto answer) {
      std::lock_guard lock(mutex);
      workers.emplace_back([exchange, answer] { answer({.body = exchange->request.path}); });
    });
    std::vector<std::unique_ptr<RawClient>> clients;
    for (int i = 0; i < 8; ++i) clients.push_back(connect());
    for (const auto& client : clients) client->get("/thread").get("/thread").get("/thread");
    if (round % 2 == 0) clients.front()->read_answer();
    server_.reset();
    for (auto& worker : workers) worker.join();
  }
}

}  // namespace
}  // namespace flowfabric::http
