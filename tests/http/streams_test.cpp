// Output of attempts over HTTP (07 §5.10; 06 §1 to §5, §7; 09 §1).
#include <chrono>
#include <future>

#include "http_checks.h"

namespace flowfabric::tests {
namespace {

using Names = std::vector<std::string>;
using Clock = std::chrono::steady_clock;

const std::string kEmpty = R"({"frames":[],"count":0})";
const std::string kNobody = "/v1/executions/{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff";

class HttpStreams : public HttpTest {
 protected:
  static std::string path(const Task& task, const std::string& query = "") {
    return "/v1/executions/" + task.execution_id + "/attempts/" + task.attempt_index + "/stream" + query;
  }
  static std::string summary_path(const Task& task) {
    return "/v1/executions/" + task.execution_id + "/attempts/" + task.attempt_index + "/summary";
  }
  static std::string tail(const Task& task, const std::string& query = "") {
    return path(task, "/tail" + (query.empty() ? "" : "?" + query));
  }
  // The frame's id.
  std::string append(const Task& task, const std::string& text, const std::string& more_keys = "") {
    const auto reply = report("append", task, R"(,"frame_type":"token","text":")" + text + "\"" + more_keys);
    if (reply.status != 200) throw std::runtime_error("not appended: " + reply.body);
    return reply.at("/frame_id");
  }
  std::string payloads(const Reply& reply) const {
    std::string all;
    for (std::size_t i = 0; i < reply.size("/frames"); ++i) {
      all += reply.at("/frames/" + std::to_string(i) + "/fields/payload");
    }
    return all;
  }
  // Asked by another client, which waits for its answer while the test goes on. It asks again when the server
  // has no place for it.
  std::future<Reply> ask(const std::string& target) {
    return std::async(std::launch::async, [target, url = url()] {
      auto client = http::Client::connect(url).value();
      const auto mark = target.find('?');
      http::Request request{.method = "GET", .path = target.substr(0, mark)};
      if (mark != std::string::npos) request.query = target.substr(mark + 1);
      while (true) {
        const auto response = client->send(request).value();
        if (response.status != 429) return Reply{response.status, response.body, response.headers};
      }
    });
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpStreams, kHttpStores, http_store_name);

// ---- frames ----

TEST_P(HttpStreams, AreRead) {
  const auto task = running();
  const auto appended = report("append", task, R"(,"frame_type":"token","text":"hi")");
  EXPECT_EQ(appended.keys(), (Names{"frame_count", "frame_id"}));
  EXPECT_EQ(appended.at("/frame_count"), "1");
  const auto read = get(path(task));
  EXPECT_EQ(read.status, 200);
  EXPECT_EQ(read.keys(), (Names{"count", "frames"})) << "open: no closed_at";
  EXPECT_EQ(read.at("/count"), "1");
  EXPECT_EQ(read.keys("/frames/0"), (Names{"fields", "id"}));
  EXPECT_EQ(read.at("/frames/0/id"), appended.at("/frame_id"));
  const auto ts = read.at("/frames/0/fields/ts");
  EXPECT_TRUE(contains(read.body, R"("fields":{"encoding":"utf8","frame_type":"token","mode":"durable",)"
                                  R"("payload":"hi","source":"worker","ts":")" +
                                      ts + "\"}"))
      << read.body;
  EXPECT_GT(std::stoll(ts), 0);
  EXPECT_EQ(get(tail(task)).body, read.body);
}

TEST_P(HttpStreams, HoldFramesOfEveryKind) {
  const auto task = running();
  for (const auto& [keys, wanted] : std::vector<std::pair<std::string, std::map<std::string, std::string>>>{
           {R"("frame_type":"log","text":"ä","correlation_id":"c-1")",
            {{"frame_type", "log"}, {"payload", "ä"}, {"correlation_id", "c-1"}, {"encoding", "utf8"}}},
           {R"("frame_type":"agent_step","payload":{"n":[1]})",
            {{"payload", R"({"n":[1]})"}, {"encoding", "utf8"}}},
           {R"("frame_type":"blob","payload_base64":"AP8=")", {{"payload", "AP8="}, {"encoding", "binary"}}},
           {R"("frame_type":"t","text":"x","mode":"best_effort","ttl_ms":5000)",
            {{"mode", "best_effort"}, {"ttl_ms", "5000"}}},
           {R"("frame_type":"s","payload":{"a":1},"mode":"summary")",
            {{"mode", "summary"}, {"summary_version", "1"}}}}) {
    const auto appended = report("append", task, "," + keys);
    ASSERT_EQ(appended.status, 200) << keys << appended.body;
    const auto seen = get(path(task, "?from=" + appended.at("/frame_id")));
    ASSERT_EQ(seen.at("/count"), "1") << keys;
    for (const auto& [name, value] : wanted) EXPECT_EQ(seen.at("/frames/0/fields/" + name), value) << keys;
  }
}

TEST_P(HttpStreams, RefuseFramesThatDoNotFit) {
  const auto task = running();
  EXPECT_EQ(append(task, std::string(65'536, 'x')).empty(), false);
  const auto large =
      report("append", task, R"(,"frame_type":"t","text":")" + std::string(65'537, 'x') + "\"");
  EXPECT_EQ(large.status, 400);
  EXPECT_EQ(large.at("/code"), "retention_limit_exceeded");
  for (const auto* keys : {R"(,"frame_type":"t","text":"a","payload":1)", R"(,"frame_type":"t","text":5)",
                           R"(,"frame_type":"t","payload":1,"payload_base64":"YQ==")",
                           R"(,"frame_type":"t","text":"a","mode":"loud")"}) {
    expect_shape_refused(report("append", task, keys), keys);
  }
  for (const auto* patch : {"[]", "1", "null"}) {
    const auto refused =
        report("append", task, R"(,"frame_type":"s","mode":"summary","payload":)" + std::string(patch));
    EXPECT_EQ(refused.status, 400) << patch;
    EXPECT_EQ(refused.at("/code"), "invalid_input") << patch;
  }
  EXPECT_EQ(get(path(task)).at("/count"), "1");
  report("complete", task);
  EXPECT_EQ(said(report("append", task, R"(,"frame_type":"t","text":"late")")),
            "409 state_conflict: StreamClosed (state_conflict, final)");
  auto nobody = task;
  nobody.execution_id = "{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff";
  EXPECT_EQ(said(report("append", nobody, R"(,"frame_type":"t","text":"x")")), "404 not found: execution");
}

// ---- cursors ----

TEST_P(HttpStreams, AreReadFromACursorToAnother) {
  const auto task = running();
  const auto a = append(task, "a");
  const auto b = append(task, "b");
  const auto c = append(task, "c");
  EXPECT_EQ(payloads(get(path(task, "?from=start&to=end"))), "abc");
  EXPECT_EQ(payloads(get(path(task, "?from=" + b))), "bc") << "both ends belong to it";
  EXPECT_EQ(payloads(get(path(task, "?to=" + b))), "ab");
  EXPECT_EQ(payloads(get(path(task, "?from=" + b + "&to=" + b))), "b");
  EXPECT_EQ(payloads(get(path(task, "?from=" + c + "&to=" + a))), "");
  EXPECT_EQ(payloads(get(path(task, "?limit=2"))), "ab");
  EXPECT_EQ(payloads(get(path(task, "?from=" + a.substr(0, a.find('-'))))), "abc");
  EXPECT_EQ(payloads(get(path(task, "?to=" + c.substr(0, c.find('-'))))), "abc") << "the whole millisecond";
  EXPECT_EQ(payloads(get(tail(task, "after=" + a))), "bc") << "what comes after";
  EXPECT_EQ(payloads(get(tail(task, "after=" + a + "&limit=1"))), "b");
  EXPECT_EQ(get(tail(task, "after=" + c)).body, kEmpty);
  EXPECT_EQ(payloads(get(tail(task, "after=0"))), "abc");
}

TEST_P(HttpStreams, RefuseWhatIsNoCursorOrLimit) {
  const auto task = running();
  append(task, "a");
  for (const auto* word : {"", "-", "%2B", "x", "1-", "-1", "1-2-3", "0x1", "1.5", "Start", "1-x"}) {
    for (const auto& target : {path(task, "?from="), path(task, "?to="), tail(task, "after=")}) {
      const auto refused = get(target + word);
      EXPECT_EQ(refused.status, 400) << target << word;
      EXPECT_EQ(refused.at("/code"), "invalid_input") << target << word;
    }
  }
  for (const auto* word : {"start", "end"})
    EXPECT_EQ(get(tail(task, std::string("after=") + word)).status, 400);
  for (const auto* limit : {"0", "1001", "-1", "x", ""}) {
    EXPECT_EQ(get(path(task, std::string("?limit=") + limit)).status, 400) << limit;
    EXPECT_EQ(get(tail(task, std::string("limit=") + limit)).status, 400) << limit;
  }
  EXPECT_EQ(get(path(task, "?limit=1000")).status, 200);
  for (const auto* ms : {"30001", "-1", "x"}) {
    EXPECT_EQ(get(tail(task, std::string("block_ms=") + ms)).status, 400) << ms;
  }
  for (const auto* index : {"x", "-1", "4294967296", "1.0"}) {
    const auto wrong = "/v1/executions/" + task.execution_id + "/attempts/" + index + "/stream";
    EXPECT_EQ(get(wrong).status, 400) << index;
    EXPECT_EQ(get(wrong + "/tail").status, 400) << index;
  }
  EXPECT_EQ(get("/v1/executions/nonsense/attempts/0/stream").status, 400);
}

TEST_P(HttpStreams, AreEmptyWhenThereAreNone) {
  EXPECT_EQ(get(kNobody + "/attempts/0/stream").body, kEmpty);
  EXPECT_EQ(get(kNobody + "/attempts/0/stream").status, 200);
  EXPECT_EQ(get(kNobody + "/attempts/0/stream/tail").body, kEmpty);
  const auto task = running();
  EXPECT_EQ(get(path(task)).body, kEmpty);
  EXPECT_EQ(get("/v1/executions/" + task.execution_id + "/attempts/7/stream").body, kEmpty);
}

TEST_P(HttpStreams, CanBeReadWithoutWhatIsBestEffort) {
  const auto task = running();
  append(task, "a");
  append(task, "b", R"(,"mode":"best_effort","ttl_ms":30000)");
  append(task, "c");
  EXPECT_EQ(payloads(get(path(task, "?visibility=exclude_best_effort"))), "ac");
  EXPECT_EQ(payloads(get(tail(task, "visibility=exclude_best_effort&limit=2"))), "ac");
  EXPECT_EQ(payloads(get(path(task, "?visibility=all"))), "abc");
  EXPECT_EQ(get(path(task, "?visibility=some")).status, 400);
}

// ---- the end ----

TEST_P(HttpStreams, EndWithTheAttempt) {
  for (const auto& [op, keys, reason] : std::vector<std::array<std::string, 3>>{
           {"complete", "", "attempt_success"},
           {"fail", R"(,"reason":"r","category":"permanent")", "attempt_failure"},
           {"cancel", R"(,"reason":"r")", "attempt_cancelled"}}) {
    const auto task = running();
    append(task, "a");
    ASSERT_EQ(report(op, task, keys).status, 200) << op;
    for (const auto& target : {path(task), tail(task)}) {
      const auto ended = get(target);
      EXPECT_EQ(ended.keys(), (Names{"closed_at", "closed_reason", "count", "frames"})) << op;
      EXPECT_EQ(ended.at("/closed_reason"), reason);
      EXPECT_FALSE(contains(ended.body, R"("closed_at":")")) << "an integer";
      EXPECT_GT(std::stoll(ended.at("/closed_at")), 0);
      EXPECT_EQ(payloads(ended), "a");
    }
  }
}

TEST_P(HttpStreams, OfASilentAttemptEndToo) {
  const auto task = running();
  report("complete", task);
  EXPECT_EQ(get(path(task)).at("/closed_reason"), "attempt_success");
}

TEST_P(HttpStreams, GoOnAfterASuspension) {
  const auto task = running();
  append(task, "a");
  report("suspend", task);
  EXPECT_FALSE(get(path(task)).has("/closed_at"));
  post("/v1/executions/" + task.execution_id + "/resume", "{}");
  const auto resumed = claimed();
  EXPECT_EQ(resumed.attempt_index, task.attempt_index);
  append(resumed, "b");
  EXPECT_EQ(payloads(get(path(task))), "ab");
}

// ---- waiting ----

TEST_P(HttpStreams, AreNotWaitedForWhenTheyHaveEnded) {
  const auto task = running();
  const auto last = append(task, "a");
  report("complete", task);
  const auto begin = Clock::now();
  const auto ended = get(tail(task, "block_ms=25000&after=" + last));
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(15)) << "at once";
  EXPECT_EQ(ended.at("/count"), "0");
  EXPECT_EQ(ended.at("/closed_reason"), "attempt_success");
}

TEST_P(HttpStreams, AreWaitedForUntilAFrameComes) {
  serve({.max_stream_operations = 1});
  const auto task = running();
  const auto first = append(task, "a");
  auto waiting = ask(tail(task, "block_ms=30000&after=" + first));
  // It waits when it has the only place.
  ASSERT_TRUE(eventually([&] { return get(path(task)).status == 429; }));
  const auto begin = Clock::now();
  append(task, "b");
  const auto woken = waiting.get();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(15));
  EXPECT_EQ(payloads(woken), "b");
  EXPECT_FALSE(woken.has("/closed_at"));
}

TEST_P(HttpStreams, AreWaitedForUntilTheyEnd) {
  serve({.max_stream_operations = 1});
  const auto task = running();
  auto waiting = ask(tail(task, "block_ms=30000"));
  ASSERT_TRUE(eventually([&] { return get(path(task)).status == 429; }));
  const auto begin = Clock::now();
  report("complete", task);
  const auto woken = waiting.get();
  EXPECT_LT(Clock::now() - begin, std::chrono::seconds(15));
  EXPECT_EQ(woken.at("/count"), "0");
  EXPECT_EQ(woken.at("/closed_reason"), "attempt_success");
}

TEST_P(HttpStreams, AreWaitedForUntilTheTimeIsOver) {
  const auto task = running();
  const auto begin = Clock::now();
  const auto nothing = get(tail(task, "block_ms=50"));
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(50));
  EXPECT_EQ(nothing.status, 200);
  EXPECT_EQ(nothing.body, kEmpty);
}

TEST_P(HttpStreams, AreWaitedForAsLongAsIsAsked) {  // 06 §16, 17
  const auto task = running();
  const auto begin = Clock::now();
  EXPECT_EQ(get(tail(task, "block_ms=7000")).body, kEmpty);
  EXPECT_GE(Clock::now() - begin, std::chrono::milliseconds(7000));
}

TEST_P(HttpStreams, AreReadByALimitedNumberAtOnce) {  // 06 §16, 41
  serve({.max_stream_operations = 2});
  const auto task = running();
  auto waiting = ask(tail(task, "block_ms=30000"));
  auto also_waiting = ask(tail(task, "block_ms=30000"));
  ASSERT_TRUE(eventually([&] { return get(path(task)).status == 429; }));
  for (const auto& target : {path(task), tail(task), tail(task, "block_ms=30000")}) {
    const auto refused = get(target);
    EXPECT_EQ(refused.status, 429) << target;
    EXPECT_EQ(refused.at("/kind"), "resource_exhausted");
    EXPECT_EQ(refused.at("/retryable"), "true");
    EXPECT_TRUE(contains(refused.at("/error"), "2")) << refused.body;
    EXPECT_EQ(refused.header("retry-after"), "1");
  }
  EXPECT_EQ(get("/v1/executions/" + task.execution_id).status, 200) << "other routes go on";
  append(task, "a");
  EXPECT_EQ(payloads(waiting.get()), "a");
  EXPECT_EQ(payloads(also_waiting.get()), "a");
  EXPECT_TRUE(eventually([&] { return get(path(task)).status == 200; })) << "the place is free again";
}

TEST_P(HttpStreams, AreNotBegunWhenTheServerEnds) {  // 06 §16, 42
  const auto task = running();
  append(task, "a");
  begin_draining();
  for (const auto& target : {path(task), tail(task), tail(task, "block_ms=30000"), path(task, "/live"),
                             std::string("/v1/events")}) {
    const auto refused = get(target);
    EXPECT_EQ(refused.status, 503) << target;
    EXPECT_EQ(refused.at("/kind"), "unavailable") << target;
  }
  EXPECT_EQ(get(summary_path(task)).status, 404) << "this waits for nobody";
}

// ---- summaries, and all attempts ----

TEST_P(HttpStreams, AreSummedUp) {
  const auto task = running();
  EXPECT_EQ(get(summary_path(task)).status, 404);
  for (const auto* patch : {R"({"a":1,"b":{"c":2}})", R"({"a":null,"b":{"d":"__ff_null__"},"e":[1]})"}) {
    const auto keys = R"(,"frame_type":"s","mode":"summary","payload":)" + std::string(patch);
    ASSERT_EQ(report("append", task, keys).status, 200);
  }
  const auto summary = get(summary_path(task));
  ASSERT_EQ(summary.status, 200) << "06 §5.3, §7";
  ASSERT_EQ(summary.keys(),
            (Names{"document", "first_applied_ms", "last_updated_ms", "patch_kind", "version"}));
  EXPECT_EQ(summary.keys("/document"), (Names{"b", "e"}));
  EXPECT_EQ(summary.at("/document/b/c"), "2");
  EXPECT_EQ(summary.at("/document/b/d"), "null");
  EXPECT_EQ(summary.at("/document/e"), "[1]");
  EXPECT_EQ(summary.at("/version"), "2");
  EXPECT_EQ(summary.at("/patch_kind"), "json-merge-patch");
  EXPECT_GE(std::stoll(summary.at("/last_updated_ms")), std::stoll(summary.at("/first_applied_ms")));
  EXPECT_EQ(get(path(task, "/summary")).body, summary.body) << "by its other name";
  EXPECT_EQ(get("/v1/executions/" + task.execution_id + "/attempts/7/stream/summary").status, 404);
}

TEST_P(HttpStreams, KnowOneKindOfPatch) {  // 06 §3.2
  const auto task = running();
  const auto patched = [&](const std::string& mode, const std::string& kind) {
    return report("append", task,
                  R"(,"mode":")" + mode + R"(","patch_kind":")" + kind + R"(","payload":{"a":1})");
  };
  for (const auto* mode : {"summary", "durable"}) {
    for (const auto* kind : {"json-patch", "json_merge_patch", "", "JSON-MERGE-PATCH"}) {
      const auto refused = patched(mode, kind);
      EXPECT_EQ(refused.status, 400) << kind << refused.body;
      EXPECT_EQ(refused.at("/code"), "invalid_input") << kind;
      EXPECT_TRUE(contains(refused.at("/detail"), "json-merge-patch")) << refused.body;
    }
  }
  expect_shape_refused(report("append", task, R"(,"mode":"summary","patch_kind":1,"payload":{})"),
                       "a number");
  EXPECT_EQ(get(summary_path(task)).status, 404) << "nothing was changed";
  EXPECT_EQ(patched("summary", "json-merge-patch").at("/summary_version"), "1");
  EXPECT_EQ(patched("summary", "JsonMergePatch").at("/summary_version"), "2");
  EXPECT_EQ(get(summary_path(task)).at("/patch_kind"), "json-merge-patch");
}

TEST_P(HttpStreams, AreListed) {
  const auto all = [](const std::string& id) { return "/v1/executions/" + id + "/streams"; };
  EXPECT_EQ(get(kNobody + "/streams").body, R"({"streams":[],"next_cursor":null})");
  EXPECT_EQ(get("/v1/executions/nonsense/streams").status, 400);
  const auto task = running();
  EXPECT_EQ(get(all(task.execution_id)).size("/streams"), 0u) << "it has said nothing";
  append(task, "a");
  const auto id = append(task, "bc");
  const auto open = get(all(task.execution_id));
  ASSERT_EQ(open.size("/streams"), 1u) << open.body;
  EXPECT_EQ(open.at("/streams/0/stream_id"), task.execution_id + ":0");
  EXPECT_EQ(open.at("/streams/0/frame_count"), "2");
  EXPECT_EQ(open.at("/streams/0/total_bytes"), "3");
  EXPECT_EQ(open.at("/streams/0/last_id"), id);
  EXPECT_EQ(open.at("/streams/0/has_summary"), "false");
  EXPECT_EQ(open.at("/streams/0/closed_at"), "null");
  report("complete", task);
  EXPECT_EQ(get(all(task.execution_id)).at("/streams/0/closed_reason"), "attempt_success");
}

TEST_P(HttpStreams, OfAllAttemptsAreReadAsOne) {
  const auto first =
      running(R"(,"policy":{"retry_policy":{"max_retries":1,"backoff":{"type":"fixed","delay_ms":0}}})");
  append(first, "a");
  append(first, "b");
  ASSERT_EQ(report("fail", first).at("/outcome"), "retry_scheduled");
  const auto second = claimed();
  EXPECT_EQ(second.attempt_index, "1");
  append(second, "c");
  const auto all = "/v1/executions/" + first.execution_id + "/stream";
  const auto output = get(all);
  EXPECT_EQ(payloads(output), "abc");
  EXPECT_EQ(output.at("/frames/0/attempt_index"), "0");
  EXPECT_EQ(output.at("/frames/2/attempt_index"), "1");
  const auto page = get(all + "?limit=2");
  EXPECT_EQ(payloads(page), "ab");
  EXPECT_EQ(payloads(get(all + "?cursor=" + page.at("/next_cursor"))), "c");
  EXPECT_EQ(payloads(get(all + "?attempts=latest")), "c");
  EXPECT_EQ(get(all + "?limit=0").status, 400);
  EXPECT_EQ(get(all + "?cursor=nonsense").status, 400);
  EXPECT_EQ(get(path(first)).at("/closed_reason"), "attempt_failure") << "a retry ends the first";
  EXPECT_FALSE(get(path(second)).has("/closed_at"));
}

}  // namespace
}  // namespace flowfabric::tests
