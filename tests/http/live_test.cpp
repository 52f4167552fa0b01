// Server-sent events (09 §4).
#include <future>

#include "http_fixture.h"

namespace flowfabric::tests {
namespace {

class HttpLive : public HttpTest {
 protected:
  // Reads a stream until it has seen `ending`, or the server has ended it; all that came.
  std::string followed(const std::string& path, const std::string& ending, const std::string& last_id = "") {
    auto client = http::Client::connect(url());
    http::Request request{.method = "GET", .path = path};
    if (const auto mark = path.find('?'); mark != std::string::npos) {
      request.query = path.substr(mark + 1);
      request.path.resize(mark);
    }
    if (!last_id.empty()) request.headers.push_back({"last-event-id", last_id});
    std::string all;
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    const auto ended = (*client)->stream(request, [&](std::string_view piece) {
      all += piece;
      return (ending.empty() || all.find(ending) == all.npos) && std::chrono::steady_clock::now() < until;
    });
    EXPECT_TRUE(ended) << ended.error().to_string();
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpLive, kHttpStores, http_store_name);

TEST_P(HttpLive, FramesComeUntilTheStreamIsClosed) {
  const auto task = running();
  report("append", task, R"(,"frame_type":"token","text":"a")");
  const auto path = "/v1/executions/" + task.execution_id + "/attempts/0/stream/live";
  auto all = std::async(std::launch::async, [&] { return followed(path, ""); });
  report("append", task, R"(,"frame_type":"token","text":"b")");
  report("complete", task);
  const auto text = all.get();
  const auto a = text.find(R"("payload":"a")");
  const auto b = text.find(R"("payload":"b")");
  const auto closed = text.find("event: closed\ndata: {");
  EXPECT_NE(a, text.npos) << text;
  EXPECT_LT(a, b);
  EXPECT_LT(b, closed);
  EXPECT_NE(closed, text.npos);
  EXPECT_NE(text.find("\"closed_reason\":\"attempt_success\""), text.npos);
  // From the first frame on.
  const auto id = text.substr(4, text.find('\n') - 4);
  const auto rest = followed(path, "", id);
  EXPECT_EQ(rest.find(R"("payload":"a")"), rest.npos) << rest;
  EXPECT_NE(rest.find(R"("payload":"b")"), rest.npos);
}

TEST_P(HttpLive, EventsComeFromTheOldestOn) {
  const auto task = running();
  report("complete", task);
  const auto text = followed("/v1/events?after=0&kind=lease&kind=completion", "event: completion");
  EXPECT_NE(text.find("event: lease\ndata: {\"kind\":\"lease\",\"name\":\"acquired\""), text.npos) << text;
  EXPECT_NE(text.find("\"name\":\"success\""), text.npos);
  EXPECT_NE(text.find(task.execution_id), text.npos);
}

TEST_P(HttpLive, EventsResumeWhereTheyWereLeft) {
  report("complete", running());
  const auto first = followed("/v1/events?after=0&kind=completion", "event: completion");
  const auto id = first.substr(4, first.find('\n') - 4);
  const auto second = running();
  report("complete", second);
  const auto rest = followed("/v1/events?kind=completion", "event: completion", id);
  EXPECT_NE(rest.find(second.execution_id), rest.npos) << rest;
  EXPECT_EQ(rest.find("id: " + id + "\n"), rest.npos);
}

TEST_P(HttpLive, EventsOfOneExecutionAreChosen) {
  report("complete", running());
  const auto task = running();
  report("complete", task);
  const auto text =
      followed("/v1/events?after=0&kind=completion&execution=" + task.execution_id, "event: completion");
  EXPECT_NE(text.find(task.execution_id), text.npos);
  EXPECT_EQ(text.find("event: completion"), text.rfind("event: completion"));
}

TEST_P(HttpLive, EventsEndForWhoDoesNotFollow) {
  report("complete", running());
  report("complete", running());
  const auto task = running();
  report("complete", task);
  for (const auto* kinds : {"", "&kind=completion", "&kind=completion&kind=signal"}) {
    const auto text =
        followed("/v1/events?after=0&follow=false&name=success" + std::string(kinds), "never said");
    std::size_t count = 0;
    for (auto at = text.find("event: completion"); at != text.npos;
         at = text.find("event: completion", at + 1))
      ++count;
    EXPECT_EQ(count, 3u) << kinds << "\n" << text;
  }
  EXPECT_EQ(followed("/v1/events?follow=false", "never said").find("event: "), std::string::npos);
}

TEST_P(HttpLive, StreamsAreRefusedForBadCursorsAndKinds) {
  for (const auto* query :
       {"kind=x", "follow=x", "after=x", "after=lease:x", "after=lease", "tag=x", "flow=x"}) {
    EXPECT_EQ(get(std::string("/v1/events?") + query).status, 400) << query;
  }
  const auto id = submitted();
  EXPECT_EQ(get("/v1/executions/" + id + "/attempts/0/stream/live?after=x").status, 400);
  EXPECT_EQ(get("/v1/executions/" + id + "/attempts/x/stream/live").status, 400);
}

TEST_P(HttpLive, OnlySoManyStreamsAreOpenAtOnce) {
  serve({.max_live_streams = 1});
  const auto task = running();
  report("append", task, R"(,"text":"a")");
  auto client = http::Client::connect(url());
  const auto path = "/v1/executions/" + task.execution_id + "/attempts/0/stream/live";
  int status = 0;
  (void)(*client)->stream({.method = "GET", .path = path}, [&](std::string_view) {
    status = get(path).status;
    return false;
  });
  EXPECT_EQ(status, 429);
}

TEST_P(HttpLive, LifeIsToldInOrder) {
  const auto task = running();
  report("complete", task);
  const auto path = "/v1/executions/" + task.execution_id + "/events";
  const auto all = get(path);
  ASSERT_EQ(all.size("/events"), 4u) << all.body;
  EXPECT_EQ(all.at("/events/0/name"), "created");
  EXPECT_EQ(all.at("/events/0/kind"), "lifecycle");
  EXPECT_EQ(all.at("/events/1/attempt_index"), "0");
  EXPECT_EQ(all.at("/events/3/kind"), "completion");
  const auto page = get(path + "?limit=3");
  EXPECT_EQ(page.at("/next_cursor"), "3");
  EXPECT_EQ(get(path + "?cursor=3").size("/events"), 1u);
}

}  // namespace
}  // namespace flowfabric::tests
