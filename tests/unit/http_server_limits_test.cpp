// Input that the edge refuses: too large, too slow, or too many.
#include <fcntl.h>
#include <sys/resource.h>

#include <ctime>

#include "unit/http_fixture.h"

namespace flowfabric::http {
namespace {

using namespace std::chrono_literals;

class HttpLimitsTest : public HttpServerTest {
 protected:
  bool has_connections(std::size_t count) {
    return eventually([&] { return server_->stats().connections == count; });
  }
};

std::string chunked(const std::string& chunks) {
  return "POST /p HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks;
}

// ---- Sizes ------------------------------------------------------------------------------------------------

TEST_F(HttpLimitsTest, RequestLinesHaveALimit) {
  start({.max_request_line = 1000});
  const auto line = [](std::size_t size) { return "GET /" + std::string(size - 14, 'x') + " HTTP/1.1"; };
  ASSERT_EQ(line(1000).size(), 1000u);
  EXPECT_EQ(status_of(connect()->send(line(1000) + "\r\nHost: x\r\n\r\n").read_answer()), "HTTP/1.1 200 OK");
  const auto refused = last_words_to(line(1001) + "\r\n\r\n");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 431 ")) << refused;
  EXPECT_TRUE(says_close(refused));
  EXPECT_TRUE(last_words_to(std::string(1100, 'x')).starts_with("HTTP/1.1 431 ")) << "without an end";
  EXPECT_TRUE(last_words_to(std::string(1'000'000, 'x')).starts_with("HTTP/1.1 431 ")) << "and endless";
}

TEST_F(HttpLimitsTest, HeadersHaveALimit) {
  start({.max_headers = 1000});
  const auto request = [](std::size_t size) {
    return "GET /h HTTP/1.1\r\nHost: x\r\nA: 1\r\nB: " + std::string(size - 20, 'x') + "\r\n\r\n";
  };
  const auto client = connect();
  EXPECT_EQ(status_of(client->send(request(1000)).read_answer()), "HTTP/1.1 200 OK");
  EXPECT_EQ(status_of(client->send(request(1000)).read_answer()), "HTTP/1.1 200 OK");
  client->send(request(1001));
  EXPECT_TRUE(client->read_to_end().starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(last_words_to("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(5000, 'x'))
                  .starts_with("HTTP/1.1 431 "));
}

TEST_F(HttpLimitsTest, TheDefaultsTakeWhatIsPromised) {
  start();
  const auto target = "/" + std::string((16u << 10) - 14, 'x');
  EXPECT_EQ(status_of(connect()->get(target).read_answer()), "HTTP/1.1 200 OK");
  const std::string value((32u << 10) - 14, 'x');
  EXPECT_EQ(status_of(connect()->send("GET / HTTP/1.1\r\nHost: x\r\nA: " + value + "\r\n\r\n").read_answer()),
            "HTTP/1.1 200 OK");
}

TEST_F(HttpLimitsTest, BodiesMayBeAsLongAsTheHandlerSays) {
  start();
  const std::string most(TestHandler::kMaxBody, 'x');
  const auto client = connect();
  client->send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n" + most);
  EXPECT_EQ(body_of(client->read_answer()), "POST /p " + most);
  client->send(chunked("32\r\n" + most.substr(50) + "\r\n32\r\n" + most.substr(50) + "\r\n0\r\n\r\n"));
  EXPECT_EQ(body_of(client->read_answer()), "POST /p " + most);
}

TEST_F(HttpLimitsTest, LargerBodiesAreRefused) {
  start();
  const std::string most(TestHandler::kMaxBody, 'x');
  // By their length, before a byte of them is there.
  auto refused = last_words_to("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 413 ")) << refused;
  EXPECT_TRUE(says_close(refused));
  EXPECT_EQ(body_of(refused), "refused /p");
  // Even if the client awaits a word.
  refused =
      last_words_to("POST /p HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 101\r\n\r\n");
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 413 ")) << refused;
  // In chunks.
  EXPECT_TRUE(last_words_to(chunked("64\r\n" + most + "\r\n1\r\nx")).starts_with("HTTP/1.1 413 "));
  EXPECT_TRUE(last_words_to(chunked("ffffffff\r\n" + most + most)).starts_with("HTTP/1.1 413 "));
  EXPECT_EQ(handler_.log().back(), "/p 413");
}

TEST_F(HttpLimitsTest, WhatIsAroundChunksHasALimitToo) {
  start();
  // A chunk of one byte, with extensions that make it as large as a line may be.
  const auto chunk = "1;x=" + std::string(3000, 'y') + "\r\na\r\n";
  std::string few;
  for (int i = 0; i < 5; ++i) few += chunk;
  EXPECT_EQ(status_of(connect()->send(chunked(few + "0\r\n\r\n")).read_answer()), "HTTP/1.1 200 OK");
  const auto refused = last_words_to(chunked(few + few));
  EXPECT_EQ(status_of(refused), "HTTP/1.1 400 Bad Request");
  EXPECT_TRUE(says_close(refused));
  // Bodies that are hardly anything but sizes of chunks.
  std::string small;
  for (int i = 0; i < 5000; ++i) small += "1\r\nx\r\n";
  const std::string head = "POST /big HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
  EXPECT_EQ(status_of(last_words_to(head + small)), "HTTP/1.1 400 Bad Request");
  // Chunks that hold something may be as many as they like.
  std::string fair;
  for (int i = 0; i < 5000; ++i) fair += "8\r\n12345678\r\n";
  EXPECT_EQ(status_of(connect()->send(head + fair + "0\r\n\r\n").read_answer()), "HTTP/1.1 200 OK");
}

TEST_F(HttpLimitsTest, AClientThatSendsALargeBodyReadsWhyItIsRefused) {
  start();
  const auto client = connect();
  std::thread sender([&] {
    client->send("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 4000000\r\n\r\n" +
                 std::string(4'000'000, 'x'));
  });
  EXPECT_TRUE(client->read_to_end().starts_with("HTTP/1.1 413 "));
  sender.join();
}

TEST_F(HttpLimitsTest, ARefusedClientMayFinishWhatItSaysAndCostsNothing) {
  start();
  const auto client = connect();
  client->send(std::string(32u << 10, 'x'));
  EXPECT_TRUE(client->read_to_end().starts_with("HTTP/1.1 431 "));
  client->send("and more");
  const auto before = std::clock();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(std::clock() - before, CLOCKS_PER_SEC / 10) << "all threads together";
  EXPECT_FALSE(client->was_reset());
}

// ---- Time -------------------------------------------------------------------------------------------------

TEST_F(HttpLimitsTest, AHeaderSectionThatDoesNotEndIsRefused) {
  start({.header_timeout = 400ms});
  const auto client = connect();
  std::atomic<bool> is_over{false};
  std::thread sender([&] {
    client->send("GET / HTTP/1.1\r\nHost: x\r\n");
    while (!is_over) {
      client->send("X: y\r\n");
      std::this_thread::sleep_for(5ms);
    }
  });
  const auto answer = client->read_to_end();
  is_over = true;
  sender.join();
  EXPECT_EQ(status_of(answer), "HTTP/1.1 408 Request Timeout");
  EXPECT_TRUE(says_close(answer));
}

TEST_F(HttpLimitsTest, TheTimeForAHeaderSectionBeginsWithItsFirstByte) {
  start({.header_timeout = 300ms});
  const auto client = connect();
  EXPECT_EQ(status_of(client->get("/a").read_answer()), "HTTP/1.1 200 OK");
  // Idle for longer than a header section may take.
  std::this_thread::sleep_for(700ms);
  ASSERT_TRUE(client->is_quiet());
  client->send("GET ");
  EXPECT_EQ(status_of(client->read_to_end()), "HTTP/1.1 408 Request Timeout");
}

TEST_F(HttpLimitsTest, AConnectionOnWhichNothingComesIsClosedWithoutAWord) {
  start({.header_timeout = 50ms});
  EXPECT_EQ(connect()->read_to_end(), "");
}

TEST_F(HttpLimitsTest, ABodyThatStopsComingIsRefused) {
  start({.body_timeout = 50ms});
  const auto answer = last_words_to("POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(status_of(answer), "HTTP/1.1 408 Request Timeout");
  EXPECT_EQ(body_of(answer), "refused /p");
  // Also of a request that was refused already.
  const auto client = connect();
  client->send("POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc");
  EXPECT_EQ(body_of(client->read_answer()), "who are you");
  EXPECT_EQ(client->read_to_end(), "");
}

TEST_F(HttpLimitsTest, IdleConnectionsAreClosed) {
  start({.idle_timeout = 50ms});
  const auto client = connect();
  EXPECT_EQ(status_of(client->get("/a").read_answer()), "HTTP/1.1 200 OK");
  EXPECT_EQ(client->read_to_end(), "");
  EXPECT_TRUE(has_connections(0));
}

TEST_F(HttpLimitsTest, AHandlerMayTakeItsTime) {
  start({.header_timeout = 300ms, .body_timeout = 300ms, .idle_timeout = 300ms});
  handler_.hold("/slow");
  const auto client = connect();
  client->send("POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n").send("body");
  const auto held = handler_.next_held();
  std::this_thread::sleep_for(700ms);
  EXPECT_TRUE(client->is_quiet());
  EXPECT_FALSE(held.exchange->abandoned);
  held.answer({.body = "done"});
  EXPECT_EQ(body_of(client->read_answer()), "done");
}

TEST_F(HttpLimitsTest, AClientThatDoesNotReadIsCutOff) {
  start({.body_timeout = 50ms});
  handler_.route("/large", [&](auto, auto answer) { answer({.body = std::string(24u << 20, 'x')}); });
  const auto client = connect();
  client->get("/large");
  EXPECT_TRUE(eventually([&] { return !handler_.log().empty(); }));
  EXPECT_TRUE(has_connections(0));
  EXPECT_EQ(server_->stats().in_flight, 0u);
}

// ---- Numbers ----------------------------------------------------------------------------------------------

TEST_F(HttpLimitsTest, GoesOnAcceptingAfterRunningOutOfFileDescriptors) {
  start();
  ASSERT_EQ(status_of(connect()->get("/warm").read_answer()), "HTTP/1.1 200 OK");
  ASSERT_TRUE(has_connections(0));
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  // The client takes the last descriptor that is allowed; the server needs one more.
  const int lowest_free = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(lowest_free, 0);
  ::close(lowest_free);
  const rlimit tight{static_cast<rlim_t>(lowest_free) + 1, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &tight), 0);
  const auto client = connect();
  const bool is_connected = client->is_connected();
  client->get("/late");
  std::this_thread::sleep_for(150ms);
  const bool was_quiet = client->is_quiet();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(is_connected);
  EXPECT_TRUE(was_quiet);
  EXPECT_EQ(body_of(client->read_answer()), "GET /late ");
}

// ---- Starting ---------------------------------------------------------------------------------------------

TEST_F(HttpLimitsTest, SaysWhyItCannotListen) {
  start();
  const auto taken = Server::start({.port = server_->port()}, handler_);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, ErrorCode::unavailable);
  EXPECT_TRUE(taken.error().advice.contains("Another program listens")) << taken.error().advice;
  const auto foreign = Server::start({.address = "192.0.2.1"}, handler_);
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, ErrorCode::invalid_input);
  const auto nonsense = Server::start({.address = "no such host"}, handler_);
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().code, ErrorCode::invalid_input);
}

TEST_F(HttpLimitsTest, ListensOnNames) {
  start({.address = "localhost"});
  EXPECT_EQ(status_of(connect()->get("/").read_answer()), "HTTP/1.1 200 OK");
}

}  // namespace
}  // namespace flowfabric::http
