// Limits of counts and sizes: excessive requests are refused, and nothing has changed then.
#include "http_checks.h"

namespace flowfabric::tests {
namespace {

class HttpSizes : public HttpTest {
 protected:
  static std::string tags(int count, const std::string& prefix = "t.k") {
    std::string all;
    for (int i = 0; i < count; ++i) {
      all += (i > 0 ? ",\"" : "\"") + prefix + std::to_string(i) + "\":\"v\"";
    }
    return "{" + all + "}";
  }
  static std::string items(int count, const std::string& item) {
    std::string all;
    for (int i = 0; i < count; ++i) all += (i > 0 ? "," : "") + item;
    return "[" + all + "]";
  }
  Reply create(const std::string& more_keys) {
    return post("/v1/executions", R"({"execution_kind":"k")" + more_keys + "}");
  }
  std::size_t count() { return get("/v1/executions?limit=1000").size("/executions"); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpSizes, kHttpStores, http_store_name);

TEST_P(HttpSizes, OfTags) {
  EXPECT_EQ(create(R"(,"tags":)" + tags(64)).status, 201);
  EXPECT_EQ(said(create(R"(,"tags":)" + tags(65))), "400 tags: there are 65");
  const auto id = submitted();
  const auto path = "/v1/executions/" + id + "/tags";
  EXPECT_EQ(put(path, R"({"tags":)" + tags(64) + "}").status, 200);
  const auto refused = put(path, R"({"tags":{"t.more":"v"}})");
  EXPECT_EQ(refused.status, 400) << refused.body;
  EXPECT_EQ(get(path).size("/tags"), 64u) << "nothing has changed";
  EXPECT_EQ(put(path, R"({"tags":{"t.more":"v","t.k0":null}})").status, 200) << "one goes, one comes";
  EXPECT_EQ(put(path, R"({"tags":)" + tags(129) + "}").status, 400);
  expect_shape_refused(put(path, R"({"tags":{"t.a":1}})"), "a number");
  expect_shape_refused(put(path, R"({"tags":{"t.a":"1","t.a":"2"}})"), "twice");

  EXPECT_EQ(said(post("/v1/flows", R"({"flow_kind":"f","tags":)" + tags(65) + "}")),
            "400 tags: there are 65");
  const auto flow = post("/v1/flows", R"({"flow_kind":"f","tags":)" + tags(64) + "}");
  const auto flow_tags = "/v1/flows/" + flow.at("/Created/flow_id") + "/tags";
  EXPECT_EQ(put(flow_tags, R"({"tags":{"t.more":"v"}})").status, 400);
  EXPECT_EQ(get(flow_tags).size("/tags"), 64u);
}

// The longest that fit into every store's indexes, and one byte more.
TEST_P(HttpSizes, OfTexts) {
  const auto text = [](std::size_t size) { return std::string(size, 'x'); };
  for (const std::string key :
       {"execution_kind", "creator_identity", "idempotency_key", "payload_encoding"}) {
    const auto with = [&](std::size_t size) {
      const auto rest = key == "execution_kind" ? "" : R"("execution_kind":"k",)";
      return post("/v1/executions", "{" + std::string(rest) + "\"" + key + R"(":")" + text(size) + "\"}");
    };
    EXPECT_EQ(with(1024).status, 201) << key;
    EXPECT_EQ(said(with(1025)), "400 invalid_input: " + key + ": longer than 1024 bytes");
  }
  const auto tagged = [&](std::size_t size) { return create(R"(,"tags":{"k":")" + text(size) + "\"}"); };
  EXPECT_EQ(tagged(1024).status, 201);
  EXPECT_EQ(said(tagged(1025)), "400 invalid_input: tags: longer than 1024 bytes");
  EXPECT_EQ(get("/v1/executions?tag=k%3D" + text(1024)).size("/executions"), 1u);

  const auto flow = [&](std::size_t size) {
    return post("/v1/flows", R"({"flow_kind":")" + text(size) + "\"}");
  };
  EXPECT_EQ(flow(1024).status, 201);
  EXPECT_EQ(said(flow(1025)), "400 invalid_input: flow_kind: longer than 1024 bytes");

  const auto task = running();
  const auto progress = [&](std::size_t size) {
    return report("progress", task, R"(,"message":")" + text(size) + "\"");
  };
  EXPECT_EQ(progress(4096).status, 200);
  EXPECT_EQ(said(progress(4097)), "400 invalid_input: message: longer than 4096 bytes");
  const auto other = submitted();
  EXPECT_EQ(post("/v1/executions/" + other + "/cancel", R"({"reason":")" + text(60'000) + "\"}").status, 200);
  EXPECT_EQ(get("/v1/executions/" + other + "/snapshot").at("/cancellation_reason"), text(4096)) << "cut off";
  const auto failed = report("fail", task, R"(,"reason":")" + text(100'000) + "\"");
  EXPECT_EQ(failed.status, 200) << "a failure is told, however long its text is: " << failed.body;
}

TEST_P(HttpSizes, OfPolicies) {
  const auto with = [&](const std::string& policy) { return create(R"(,"policy":{)" + policy + "}"); };
  const auto refused = [&](const std::string& policy) {
    const auto reply = with(policy);
    return std::to_string(reply.status) + " " + reply.at("/code");
  };
  EXPECT_EQ(refused(R"("budget_ids":)" + items(65, R"("550e8400-e29b-41d4-a716-446655440000")")),
            "400 invalid_policy_json");
  EXPECT_EQ(refused(R"("fallback_policy":{"tiers":)" + items(65, R"({"provider":"p","model":"m"})") + "}"),
            "400 invalid_policy_json");
  EXPECT_EQ(
      with(R"("fallback_policy":{"tiers":)" + items(64, R"({"provider":"p","model":"m"})") + "}").status,
      201);
  EXPECT_EQ(count(), 1u);
}

TEST_P(HttpSizes, OfLists) {
  const auto bulk = [&](int size) {
    return post("/v1/executions/bulk", R"({"executions":)" + items(size, R"({"execution_kind":"k"})") + "}");
  };
  EXPECT_EQ(said(bulk(1001)), "400 executions: give 0 to 1000");
  EXPECT_EQ(count(), 0u);
  EXPECT_EQ(bulk(1000).size("/results"), 1000u);

  const auto flow = [&](int nodes, int edges) {
    return post("/v1/flows/submit", R"({"flow_kind":"f","nodes":)" +
                                        items(nodes, R"({"name":"n","execution_kind":"k"})") +
                                        R"(,"edges":)" + items(edges, R"({"from":"n","to":"m"})") + "}");
  };
  EXPECT_EQ(said(flow(0, 0)), "400 nodes: give 1 to 10000");
  EXPECT_EQ(said(flow(10'001, 0)), "400 nodes: give 1 to 10000");
  EXPECT_EQ(said(flow(1, 100'001)), "400 edges: give 0 to 100000");
  EXPECT_EQ(flow(10'000, 0).status, 400) << "equal names, found without comparing each with each";
}

TEST_P(HttpSizes, OfDocuments) {
  serve({.max_json_values = 1000});
  const auto input = [&](int values) { return create(R"(,"input":)" + items(values, "0")); };
  EXPECT_EQ(input(990).status, 201);
  const auto refused = input(1000);
  EXPECT_EQ(said(refused), "400 invalid JSON: Bad Request");
  EXPECT_TRUE(contains(refused.body, "more than 1000 values")) << refused.body;
  std::string keys;
  for (int i = 0; i < 1000; ++i) keys += ",\"unknown" + std::to_string(i) + "\":0";
  serve({});
  expect_shape_refused(create(keys), "a thousand keys that nobody knows");
}

// Each event of a tag carries that tag alone, and is found by all that its execution has.
TEST_P(HttpSizes, OfEventsOfTags) {
  create(R"(,"tags":{"a":"1","b":"2"})");
  create(R"(,"tags":{"c":"3"})");
  for (const auto* tag : {"a%3D1", "b%3D2"}) {
    const auto events = get("/v1/events?after=0&follow=false&kind=tags&tag=" + std::string(tag)).body;
    EXPECT_TRUE(contains(events, R"("tag":"a")")) << events;
    EXPECT_TRUE(contains(events, R"("tag":"b")")) << events;
    EXPECT_FALSE(contains(events, R"("tag":"c")")) << events;
  }
}

}  // namespace
}  // namespace flowfabric::tests
