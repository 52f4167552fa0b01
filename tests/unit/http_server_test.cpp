// The edge speaks HTTP/1.1: requests, answers, persistent connections, and malformed input.
#include "unit/http_fixture.h"

namespace flowfabric::http {
namespace {

using Lines = std::vector<std::string>;

// Sends these bytes in pieces of one, so that every place to cut them is tried.
void drip(RawClient& client, std::string_view bytes) {
  for (const char c : bytes) client.send(std::string_view(&c, 1));
}

std::string post(const std::string& body, const std::string& headers = "") {
  return "POST /p HTTP/1.1\r\nHost: x\r\n" + headers + "Content-Length: " + std::to_string(body.size()) +
         "\r\n\r\n" + body;
}

std::string chunked(const std::string& chunks, const std::string& headers = "") {
  return "POST /p HTTP/1.1\r\nHost: x\r\n" + headers + "Transfer-Encoding: chunked\r\n\r\n" + chunks;
}

// ---- Requests and answers ---------------------------------------------------------------------------------

TEST_F(HttpServerTest, AnswersOneRequestAfterTheOtherOnAConnection) {
  start();
  const auto client = connect();
  EXPECT_EQ(client->get("/a?b=c").read_answer(),
            "HTTP/1.1 200 OK\r\ncontent-length: 11\r\ncontent-type: text/plain\r\n\r\nGET /a?b=c ");
  EXPECT_EQ(body_of(client->get("/again").read_answer()), "GET /again ");
  EXPECT_EQ(server_->stats().accepted, 1u);
  EXPECT_EQ(handler_.log(), (Lines{"/a 200", "/again 200"}));
}

TEST_F(HttpServerTest, TellsTheHandlerWhatCameAndFromWhom) {
  start();
  Request seen;
  handler_.route("/seen", [&](auto exchange, auto answer) {
    seen = exchange->request;
    answer({.status = 204});
  });
  EXPECT_EQ(status_of(connect()
                          ->send("PUT /seen?q=%20&r HTTP/1.1\r\nHost: x\r\nX-Thing:  a b \r\nCOOKIE: c\r\n"
                                 "Content-Length: 2\r\nConnection: close\r\n\r\nhi")
                          .read_to_end()),
            "HTTP/1.1 204 No Content");
  EXPECT_EQ(seen.method, "PUT");
  EXPECT_EQ(seen.path, "/seen");
  EXPECT_EQ(seen.query, "q=%20&r");
  EXPECT_EQ(seen.body, "hi");
  EXPECT_EQ(seen.peer, "127.0.0.1");
  EXPECT_FALSE(seen.keep_alive);
  ASSERT_NE(seen.header("x-thing"), nullptr);
  EXPECT_EQ(*seen.header("x-thing"), "a b");
  ASSERT_NE(seen.header("cookie"), nullptr);
  EXPECT_EQ(seen.header("X-Thing"), nullptr);
}

TEST_F(HttpServerTest, SendsWhatTheHandlerSaysAndNothingThatBreaksTheFraming) {
  start();
  handler_.route("/h", [](auto, auto answer) {
    answer(
        {.status = 299,
         .body = "tea",
         .headers = {{"x-one", "1\r\nx-evil: 2"}, {"Content-Length", "99"}, {"transfer-encoding", "gzip"}}});
  });
  EXPECT_EQ(connect()->get("/h").read_answer(),
            "HTTP/1.1 299 \r\ncontent-length: 3\r\nx-one: 1  x-evil: 2\r\n\r\ntea");
}

TEST_F(HttpServerTest, ClosesWhenTheHandlerSaysSo) {
  start();
  handler_.route("/h", [](auto, auto answer) {
    answer({.body = "bye", .headers = {{"connection", "close"}}});
  });
  const auto answer = connect()->get("/h").read_to_end();
  EXPECT_TRUE(says_close(answer)) << answer;
  EXPECT_EQ(body_of(answer), "bye");
}

TEST_F(HttpServerTest, AnswersPipelinedRequestsInOrder) {
  start();
  handler_.hold("/slow");
  const auto client = connect();
  client->get("/slow").get("/b").send(post("body")).get("/c");
  const auto held = handler_.next_held();
  EXPECT_TRUE(client->is_quiet());
  held.answer({.body = "slow at last"});
  EXPECT_EQ(body_of(client->read_answer()), "slow at last");
  EXPECT_EQ(body_of(client->read_answer()), "GET /b ");
  EXPECT_EQ(body_of(client->read_answer()), "POST /p body");
  EXPECT_EQ(body_of(client->read_answer()), "GET /c ");
}

TEST_F(HttpServerTest, AnswersThousandsOfPipelinedRequests) {
  start({.max_pipelined = 8});
  const auto client = connect();
  constexpr int kCount = 3000;
  std::thread sender([&] {
    for (int i = 0; i < kCount; ++i) client->get("/" + std::to_string(i));
  });
  int right = 0;
  for (int i = 0; i < kCount; ++i) {
    right += body_of(client->read_answer()) == "GET /" + std::to_string(i) + " ";
  }
  sender.join();
  EXPECT_EQ(right, kCount);
}

TEST_F(HttpServerTest, DoesNotReadMoreRequestsThanMayWait) {
  start({.max_pipelined = 4});
  handler_.hold("/slow");
  const auto client = connect();
  client->get("/slow");
  const auto held = handler_.next_held();
  // More than the system buffers for both sides: the client cannot send all of it while the server does not
  // read.
  constexpr int kCount = 3000;
  std::atomic<int> sent{0};
  std::thread sender([&] {
    const std::string target(8u << 10, 'x');
    for (; sent < kCount; ++sent) client->get("/" + target);
    client->close_half();
  });
  for (int before = -1; before != sent;) {
    before = sent;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_LT(sent, kCount);
  held.answer({});
  EXPECT_TRUE(client->read_to_end().ends_with("x "));
  sender.join();
}

TEST_F(HttpServerTest, IgnoresEmptyLinesBetweenRequests) {
  start();
  const auto client = connect();
  drip(*client, "\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\n\r\n\r\nGET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(body_of(client->read_answer()), "GET /a ");
  EXPECT_EQ(body_of(client->read_answer()), "GET /b ");
}

TEST_F(HttpServerTest, TakesTargetsAsTheyAre) {
  start();
  const auto client = connect();
  EXPECT_EQ(body_of(client->get("/v1/executions/{fp:1}:x?f={\"a\":\"b\"}").read_answer()),
            "GET /v1/executions/{fp:1}:x?f={\"a\":\"b\"} ");
  EXPECT_EQ(body_of(client->get("/a%2Fb?c=%20?d").read_answer()), "GET /a%2Fb?c=%20?d ");
  EXPECT_EQ(body_of(client->get("http://some.host:80/path?q").read_answer()), "GET /path?q ");
  EXPECT_EQ(body_of(client->get("HTTP://some.host").read_answer()), "GET / ");
  EXPECT_EQ(body_of(client->get("http://some.host?q").read_answer()), "GET /?q ");
  EXPECT_EQ(body_of(client->send("OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n").read_answer()), "OPTIONS * ");
}

TEST_F(HttpServerTest, SendsNoBodyToHead) {
  start();
  const auto client = connect();
  client->send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n").get("/b");
  EXPECT_EQ(client->read_to("\r\n\r\n"),
            "HTTP/1.1 200 OK\r\ncontent-length: 8\r\ncontent-type: text/plain\r\n\r\n");
  EXPECT_EQ(body_of(client->read_answer()), "GET /b ");
}

TEST_F(HttpServerTest, SendsNoBodyWhereThereIsNone) {
  start();
  handler_.route("/none", [](auto, auto answer) { answer({.status = 204, .body = "lost"}); });
  handler_.route("/same", [](auto, auto answer) { answer({.status = 304, .body = "lost"}); });
  const auto client = connect();
  EXPECT_EQ(client->get("/none").read_to("\r\n\r\n"), "HTTP/1.1 204 No Content\r\n\r\n");
  EXPECT_EQ(client->get("/same").read_to("\r\n\r\n"), "HTTP/1.1 304 Not Modified\r\n\r\n");
  EXPECT_EQ(body_of(client->get("/a").read_answer()), "GET /a ");
}

TEST_F(HttpServerTest, ClosesAfterHttp10UnlessAskedToKeepTheConnection) {
  start();
  const auto last = last_words_to("GET /old HTTP/1.0\r\n\r\n");
  EXPECT_EQ(body_of(last), "GET /old ");
  EXPECT_TRUE(says_close(last)) << last;
  const auto client = connect();
  for (int i = 0; i < 2; ++i) {
    const auto kept = client->send("GET /old HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n").read_answer();
    EXPECT_TRUE(kept.contains("\r\nconnection: keep-alive\r\n")) << kept;
  }
}

TEST_F(HttpServerTest, SendsLargeAnswersWhole) {
  start();
  std::string large(5u << 20, ' ');
  for (std::size_t i = 0; i < large.size(); ++i) large[i] = static_cast<char>('a' + i % 23);
  handler_.route("/large", [&](auto, auto answer) { answer({.body = large}); });
  const auto client = connect();
  client->get("/large").get("/large");
  EXPECT_TRUE(body_of(client->read_answer()) == large);
  EXPECT_TRUE(body_of(client->read_answer()) == large);
}

TEST_F(HttpServerTest, AnswersFromAnyThread) {
  start();
  std::vector<std::thread> threads;
  handler_.route("/threads", [&](auto, auto answer) {
    threads.emplace_back([answer] { answer({.body = "from afar"}); });
  });
  const auto client = connect();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(body_of(client->get("/threads").read_answer()), "from afar");
  for (auto& thread : threads) thread.join();
}

TEST_F(HttpServerTest, TakesTheFirstOfTwoAnswers) {
  start();
  handler_.route("/twice", [](auto, auto answer) {
    answer({.body = "first"});
    answer({.body = "second"});
  });
  const auto client = connect();
  EXPECT_EQ(body_of(client->get("/twice").read_answer()), "first");
  EXPECT_EQ(body_of(client->get("/next").read_answer()), "GET /next ");
}

TEST_F(HttpServerTest, SurvivesAHandlerThatThrows) {
  start();
  handler_.route("/throws", [](auto, auto) { throw std::runtime_error("ouch"); });
  handler_.route("/throws-an-int", [](auto, auto) { throw 7; });
  for (const std::string path : {"/throws", "/throws-an-int", "/admit-throws"}) {
    const auto answer = connect()->get(path).read_to_end();
    EXPECT_EQ(status_of(answer), "HTTP/1.1 500 Internal Server Error");
    EXPECT_TRUE(says_close(answer));
    EXPECT_EQ(body_of(answer), "");
  }
  EXPECT_EQ(notices().size(), 3u);
  EXPECT_TRUE(notices().front().contains("ouch"));
  EXPECT_EQ(body_of(connect()->get("/fine").read_answer()), "GET /fine ");
  EXPECT_EQ(handler_.log().size(), 4u);
}

// ---- Bodies -----------------------------------------------------------------------------------------------

TEST_F(HttpServerTest, ReadsBodiesHoweverTheyAreCut) {
  start();
  const auto client = connect();
  drip(*client, post("with a length"));
  EXPECT_EQ(body_of(client->read_answer()), "POST /p with a length");
  drip(*client, chunked("4\r\nin c\r\n5;name=\"v\"\r\nhunks\r\n0\r\nX-Trailer: t\r\n\r\n"));
  EXPECT_EQ(body_of(client->read_answer()), "POST /p in chunks");
  client->send(chunked("A\r\n0123456789\r\n00\r\n\r\n"));
  EXPECT_EQ(body_of(client->read_answer()), "POST /p 0123456789");
  client->send(post("", "Content-Length: 0\r\n"));
  EXPECT_EQ(body_of(client->read_answer()), "POST /p ");
}

TEST_F(HttpServerTest, DoesNotTakeTrailersForHeaders) {
  start();
  bool has_trailer = true;
  handler_.route("/p", [&](auto exchange, auto answer) {
    has_trailer = exchange->request.header("authorization") != nullptr;
    answer({});
  });
  connect()->send(chunked("0\r\nAuthorization: me\r\n\r\n")).read_answer();
  EXPECT_FALSE(has_trailer);
}

TEST_F(HttpServerTest, TellsAClientToContinueOnceItIsAdmitted) {
  start();
  const auto client = connect();
  client->send("POST /p HTTP/1.1\r\nHost: x\r\nExpect: 100-Continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(client->read_to("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  EXPECT_EQ(body_of(client->send("body").read_answer()), "POST /p body");
  client->send("POST /p HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\nsent");
  EXPECT_EQ(status_of(client->read_answer()), "HTTP/1.1 200 OK");

  const auto refused =
      last_words_to("POST /refused HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n");
  EXPECT_EQ(status_of(refused), "HTTP/1.1 401 Unauthorized");
  EXPECT_TRUE(says_close(refused));
}

TEST_F(HttpServerTest, RefusesWithoutReadingTheBodyAndKeepsTheConnectionIfThatIsSmall) {
  start();
  const auto client = connect();
  client->send("POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n");
  EXPECT_EQ(body_of(client->read_answer()), "who are you");
  client->send("bytesGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(body_of(client->read_answer()), "GET /next ");
  EXPECT_EQ(handler_.log(), (Lines{"/refused 401", "/next 200"}));
}

TEST_F(HttpServerTest, RefusesWithoutReadingALargeBodyAndCloses) {
  start();
  const auto client = connect();
  client->send("POST /refused HTTP/1.1\r\nHost: x\r\nContent-Length: 3000000\r\n\r\n");
  std::thread sender([&] { client->send(std::string(3'000'000, 'x')); });
  const auto answer = client->read_to_end();
  sender.join();
  EXPECT_TRUE(says_close(answer)) << answer;
  EXPECT_EQ(body_of(answer), "who are you");
}

// ---- What is malformed ------------------------------------------------------------------------------------

TEST_F(HttpServerTest, RefusesWhatIsNotHttp) {
  start();
  const std::string get = "GET / HTTP/1.1\r\nHost: x\r\n";
  const std::vector<std::string> malformed{
      std::string("\x16\x03\x01\x02\x00\x01\x00", 7),  // TLS
      "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
      "hello\r\n\r\n",
      "GET /\r\n\r\n",
      "GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\n\n",
      "GET / HTTP/3.1\r\n\r\n",
      "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET /\xc3\xa4 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET no/slash HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET ftp://host/ HTTP/1.1\r\nHost: x\r\n\r\n",
      "CONNECT host:443 HTTP/1.1\r\nHost: x\r\n\r\n",
      "GET / HTTP/1.1\r\n" + std::string("\r\n"),  // no host
      get + "Host: y\r\n\r\n",
      get + "Name: folded\r\n value\r\n\r\n",
      get + "Name: folded\r\n\tvalue\r\n\r\n",
      get + "no colon\r\n\r\n",
      get + "Name : value\r\n\r\n",
      get + ": value\r\n\r\n",
      get + "Name: a\x01z\r\n\r\n",
      get + "Name: value\nOther: x\r\n\r\n",
      get + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      get + "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
      get + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
      get + "Content-Length: 1, 2\r\n\r\nxx",
      get + "Content-Length: -1\r\n\r\n",
      get + "Content-Length: 0x1\r\n\r\nx",
      get + "Content-Length: 99999999999999999999999\r\n\r\n",
      get + "Transfer-Encoding: gzip\r\n\r\n",
      get + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
      get + "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
      get +
          "Transfer-Encoding: \x0b"
          "chunked\r\n\r\n0\r\n\r\n",
      "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
  };
  for (const auto& bytes : malformed) {
    const auto answer = last_words_to(bytes);
    EXPECT_EQ(status_of(answer), "HTTP/1.1 400 Bad Request") << bytes;
    EXPECT_EQ(body_of(answer), "refused -") << bytes;
    EXPECT_TRUE(says_close(answer)) << bytes;
  }
  EXPECT_EQ(handler_.log(), Lines{});
  EXPECT_EQ(body_of(connect()->get("/fine").read_answer()), "GET /fine ");
}

TEST_F(HttpServerTest, RefusesMalformedChunks) {
  start();
  for (const std::string chunks :
       {"x\r\n", "-1\r\n", "0x1\r\na", " 1\r\na", "3\r\nabcd", "3\r\nabc\n", "1 x\r\na", "1\na\r\n",
        "1\r\na\rb", "1;a=\x01\r\n", "fffffffffffffffff\r\n", "0\r\nTrailer: a\nb\r\n\r\n"}) {
    const auto answer = last_words_to(chunked(chunks));
    EXPECT_EQ(status_of(answer), "HTTP/1.1 400 Bad Request") << chunks;
    EXPECT_EQ(body_of(answer), "refused /p") << chunks;
  }
  EXPECT_EQ(status_of(last_words_to(chunked("1;" + std::string(5000, 'e')))), "HTTP/1.1 400 Bad Request");
}

TEST_F(HttpServerTest, RefusesARequestThatEndsTooEarly) {
  start();
  for (const std::string bytes :
       {"GET / HT", "POST /p HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nbod"}) {
    const auto client = connect();
    client->send(bytes).close_half();
    EXPECT_EQ(status_of(client->read_to_end()), "HTTP/1.1 400 Bad Request") << bytes;
  }
  EXPECT_EQ(handler_.log(), Lines{"/p 400"});
}

TEST_F(HttpServerTest, AnswersNothingAfterAMalformedRequest) {
  start();
  const auto answer = last_words_to("GET / HTTP/9\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos) << answer;
  EXPECT_EQ(handler_.log(), Lines{});
}

}  // namespace
}  // namespace flowfabric::http
