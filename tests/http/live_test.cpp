// Server-sent events (09 §4).
#include <future>

#include "http_checks.h"

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
  // The `id` of the first event of that name.
  static std::string id_of(const std::string& text, const std::string& event) {
    const auto end = text.find("\nevent: " + event + "\n");
    if (end == text.npos) throw std::runtime_error("no " + event + " in " + text);
    const auto start = text.rfind("id: ", end) + 4;
    return text.substr(start, end - start);
  }
  static std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++found;
    return found;
  }
  // Whether there is a place for one more, who leaves at once.
  bool has_room(const std::string& path) {
    const auto client = http::Client::connect(url());
    return (*client)
        ->stream({.method = "GET", .path = path}, [](std::string_view) { return false; })
        .has_value();
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
  // The two logs are followed side by side: either may come first.
  const std::string path = "/v1/events?after=0&kind=lease&kind=completion";
  const auto leases = followed(path, "event: lease");
  EXPECT_NE(leases.find("event: lease\ndata: {\"kind\":\"lease\",\"name\":\"acquired\""), leases.npos)
      << leases;
  const auto ends = followed(path, "event: completion");
  EXPECT_NE(ends.find("\"name\":\"success\""), ends.npos) << ends;
  EXPECT_NE(ends.find(task.execution_id), ends.npos);
}

TEST_P(HttpLive, EventsResumeWhereTheyWereLeft) {
  report("complete", running());
  const auto id = id_of(followed("/v1/events?after=0&kind=completion", "event: completion"), "completion");
  const auto second = running();
  report("complete", second);
  const auto rest = followed("/v1/events?kind=completion", "event: completion", id);
  EXPECT_NE(rest.find(second.execution_id), rest.npos) << rest;
  EXPECT_EQ(count(rest, "event: completion"), 1u) << rest;
  EXPECT_FALSE(contains(rest, "id: " + id + "\nevent: ")) << "not again what it has seen";
}

// A client that loses its connection before the first event misses nothing, either.
TEST_P(HttpLive, EventsSayFirstWhereTheyBegin) {
  report("complete", running());
  const auto text = followed("/v1/events?kind=completion&kind=lease", "\n\n");
  EXPECT_EQ(text.rfind(": still here\nid: lease:", 0), 0u) << text;
  EXPECT_FALSE(contains(text, "data:"));
  const auto start = text.find("id: ") + 4;
  const auto id = text.substr(start, text.find('\n', start) - start);
  const auto task = running();
  report("complete", task);
  const auto rest = followed("/v1/events?kind=completion&kind=lease", "event: completion", id);
  EXPECT_TRUE(contains(rest, task.execution_id)) << rest;
  EXPECT_EQ(count(rest, "event: completion"), 1u) << rest;
}

TEST_P(HttpLive, EventsThatAreGoneAreTold) {
  reopen({.clock_interval = std::chrono::milliseconds(0), .event_retention = std::chrono::milliseconds(1)});
  report("complete", running());
  const auto first = id_of(followed("/v1/events?after=0&kind=completion", "event: completion"), "completion");
  report("complete", running());
  report("complete", running());
  const auto last = running();
  report("complete", last);
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  ASSERT_TRUE(engine().run_due());
  const auto text = followed("/v1/events?kind=completion", "", first);
  EXPECT_EQ(count(text, "event: lagged"), 1u) << text;
  EXPECT_FALSE(contains(text, "event: completion")) << "what comes after a gap comes after it is known";
  const auto oldest = id_of(text, "lagged");
  EXPECT_TRUE(contains(text, R"(data: {"cursor":")" + oldest + "\"")) << text;
  const auto rest = followed("/v1/events?kind=completion", "event: completion", oldest);
  EXPECT_TRUE(contains(rest, last.execution_id)) << rest;
}

TEST_P(HttpLive, EventsAreChosenByWhoseTheyAre) {
  report("complete", running());
  submitted(R"(,"namespace":"team","lane_id":"side","tags":{"k":"v"})");
  const auto task = claimed("side");
  report("complete", task);
  for (const auto* filter : {"namespace=team", "lane=side", "tag=k=v", "namespace=team&lane=side&tag=k=v"}) {
    const auto text =
        followed("/v1/events?after=0&kind=completion&" + std::string(filter), "event: completion");
    EXPECT_TRUE(contains(text, task.execution_id)) << filter << text;
    EXPECT_EQ(count(text, "event: completion"), 1u) << filter;
  }
  const auto text = followed("/v1/events?after=0&name=released&name=success", "event: completion");
  EXPECT_FALSE(contains(text, "\"acquired\"")) << text;
}

TEST_P(HttpLive, EventsThatCannotBeReadArePassed) {  // 06 §10.2
  report("complete", running());
  reopen_changed("update ff_completion_event set tags='[1]'");
  const auto task = running();
  report("complete", task);
  const auto text = followed("/v1/events?after=0&kind=completion&follow=false", "never said");
  const auto id = id_of(text, "damaged");
  EXPECT_TRUE(contains(text, R"(data: {"cursor":")" + id + "\"")) << text;
  EXPECT_LT(text.find("event: damaged"), text.find("event: completion")) << text;
  EXPECT_TRUE(contains(text, task.execution_id)) << text;
  EXPECT_FALSE(contains(followed("/v1/events?kind=completion&follow=false", "never said", id), "damaged"));
}

// Written by a newer version (06 §16.62).
TEST_P(HttpLive, EventsOfUnknownNamesArePassedOn) {
  const auto odd = running();
  report("complete", odd);
  reopen_changed("update ff_completion_event set outcome='tele\"ported'");
  report("complete", running());
  const auto text = followed("/v1/events?after=0&kind=completion&follow=false", "never said");
  EXPECT_TRUE(contains(text, R"("name":"tele\"ported","at":)")) << text;
  EXPECT_TRUE(contains(text, R"("outcome":"tele\"ported")")) << text;
  EXPECT_EQ(count(text, "event: completion"), 2u) << text;
  const auto chosen = followed("/v1/events?after=0&kind=completion&follow=false&name=success", "never said");
  EXPECT_EQ(count(chosen, "event: completion"), 1u) << chosen;
  EXPECT_FALSE(contains(chosen, odd.execution_id)) << chosen;
}

TEST_P(HttpLive, ThePlaceOfWhoLeavesIsFree) {
  serve({.max_stream_operations = 1, .max_live_streams = 1});
  const auto task = running();
  const auto stream = "/v1/executions/" + task.execution_id + "/attempts/0/stream";
  const auto begin = std::chrono::steady_clock::now();
  report("append", task, R"(,"text":"a")");
  EXPECT_TRUE(has_room(stream + "/live"));
  EXPECT_TRUE(eventually([&] { return has_room("/v1/events"); }));
  EXPECT_TRUE(eventually([&] { return has_room("/v1/events"); }));
  {
    const auto client = http::Client::connect(url(), {.timeout = std::chrono::milliseconds(200)});
    const http::Request wait{
        .method = "GET", .path = stream + "/tail", .query = "after=99999999999999&block_ms=30000"};
    EXPECT_FALSE((*client)->send(wait)) << "nothing comes";
  }
  EXPECT_TRUE(eventually([&] { return get(stream).status == 200; }));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(10))
      << "it has waited for what nobody wants any more";
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
       {"kind=x", "follow=x", "after=x", "after=lease:x", "after=lease", "tag=x", "flow=x",
        // A cursor of another store.
        "after=lease:99999999999", "kind=completion&after=completion:99999999999"}) {
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

TEST_P(HttpLive, LifeHasItsDelays) {
  const auto task = running();
  report("delay", task, R"(,"delay_ms":3600000)");
  const auto life = get("/v1/executions/" + task.execution_id + "/events");
  ASSERT_EQ(life.size("/events"), 3u) << life.body;
  EXPECT_EQ(life.at("/events/2/kind"), "lifecycle");
  EXPECT_EQ(life.at("/events/2/name"), "delayed");
  EXPECT_EQ(life.at("/events/2/attempt_index"), "0");
  EXPECT_EQ(life.at("/events/2/detail/reason"), "waiting_for_delay");
  EXPECT_TRUE(life.has("/events/2/detail/until")) << life.body;
}

}  // namespace
}  // namespace flowfabric::tests
