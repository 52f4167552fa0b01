// Flows over HTTP by our own routes: submitted as a whole, listed, described, drawn, tagged (09 §3, §5).
#include <map>

#include "http_checks.h"

namespace flowfabric::tests {
namespace {

const std::string kFlow = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const std::string kNobody = "/v1/flows/7c9e6679-7425-40de-944b-e07fc1f90bf7";

using Names = std::vector<std::string>;

// The example of 09 §3.
std::string example(const std::string& on_satisfied = "cancel_remaining") {
  return R"({"flow_kind":"pipeline","namespace":"acme","tags":{},
 "nodes":[{"name":"fetch","execution_kind":"fetch","input":{}},
          {"name":"a","execution_kind":"ask"},{"name":"b","execution_kind":"ask"},{"name":"c","execution_kind":"ask"},
          {"name":"pick","execution_kind":"pick","join":{"kind":"quorum","k":2,"on_satisfied":")" +
         on_satisfied + R"("}}],
 "edges":[{"from":"fetch","to":"a"},{"from":"fetch","to":"b"},{"from":"fetch","to":"c"},
          {"from":"a","to":"pick"},{"from":"b","to":"pick"},{"from":"c","to":"pick"}]})";
}

// Nodes separated by spaces, and edges.
std::string graph(const std::string& nodes, const std::string& edges, const std::string& more_keys = "") {
  std::string made = R"({"flow_kind":"k")" + more_keys + R"(,"nodes":[)" + nodes + R"(],"edges":[)" + edges;
  return made + "]}";
}
std::string node(const std::string& name, const std::string& more_keys = "") {
  return R"({"name":")" + name + R"(","execution_kind":"k")" + more_keys + "}";
}
std::string edge(const std::string& from, const std::string& to, const std::string& more_keys = "") {
  return R"({"from":")" + from + R"(","to":")" + to + "\"" + more_keys + "}";
}

class HttpFlowRoutes : public HttpTest {
 protected:
  Reply submit(const std::string& body) {
    auto reply = post("/v1/flows/submit", body);
    if (reply.status == 201) submitted_ = reply;
    return reply;
  }
  std::string id(const std::string& name) const { return submitted_.at("/executions/" + name); }
  std::string path(const std::string& what = "") const {
    return "/v1/flows/" + submitted_.at("/flow_id") + what;
  }
  std::string state(const std::string& name) { return get("/v1/executions/" + id(name) + "/state").at(""); }
  // Claims the next `count` members, by name.
  std::map<std::string, Task> take(std::size_t count) {
    std::map<std::string, Task> taken;
    while (taken.size() < count) {
      const auto task = claimed();
      for (const auto& name : submitted_.keys("/executions")) {
        if (id(name) == task.execution_id) taken.insert_or_assign(name, task);
      }
    }
    return taken;
  }

 private:
  Reply submitted_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpFlowRoutes, kHttpStores, http_store_name);

// ---- submitting ----

TEST_P(HttpFlowRoutes, RunTheExampleToItsEnd) {
  const auto made = submit(example());
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_EQ(made.keys(), (Names{"executions", "flow_id"}));
  EXPECT_EQ(made.keys("/executions"), (Names{"a", "b", "c", "fetch", "pick"}));

  const auto fetch = post("/v1/tasks/claim", R"({"worker_id":"w","namespace":"acme","max_tasks":9})");
  ASSERT_EQ(fetch.size("/tasks"), 1u) << fetch.body;
  EXPECT_EQ(fetch.at("/tasks/0/execution_id"), id("fetch"));
  EXPECT_EQ(fetch.at("/tasks/0/flow_id"), made.at("/flow_id"));
  EXPECT_EQ(fetch.at("/tasks/0/input"), "{}");
  report("complete", {id("fetch"), fetch.at("/tasks/0/lease"), "0"});

  const auto asked = take(3);
  ASSERT_EQ(asked.count("pick"), 0u);
  EXPECT_EQ(state("pick"), "waiting_children");
  report("complete", asked.at("a"));
  EXPECT_EQ(state("pick"), "waiting_children") << "one is not two";
  report("complete", asked.at("c"));
  const auto pick = take(1);
  ASSERT_EQ(pick.count("pick"), 1u);
  EXPECT_EQ(get("/v1/executions/" + id("b") + "/wait?wait_ms=20000").at("/public_state"), "cancelled");
  EXPECT_EQ(report("complete", asked.at("b")).status, 409) << "it lost";
  report("complete", pick.at("pick"));

  const auto flow = get(path());
  EXPECT_EQ(flow.at("/state"), "completed") << "a sibling that lost is no failure";
  EXPECT_EQ(flow.at("/counts/completed"), "4");
  EXPECT_EQ(flow.at("/counts/cancelled"), "1");
}

TEST_P(HttpFlowRoutes, LetTheOthersRunWhenAsked) {
  submit(example("let_run"));
  report("complete", take(1).at("fetch"));
  const auto asked = take(3);
  report("complete", asked.at("a"));
  report("complete", asked.at("b"));
  report("complete", take(1).at("pick"));
  EXPECT_EQ(report("complete", asked.at("c")).body, R"({"outcome":"completed"})");
  EXPECT_EQ(get(path()).at("/counts/completed"), "5");
}

TEST_P(HttpFlowRoutes, PassAResultOn) {
  submit(graph(node("a") + "," + node("b", R"(,"input":"own")") + "," + node("c", R"(,"input":"own")"),
               edge("a", "b", R"(,"pass_result":true)") + "," + edge("a", "c")));
  report("complete", take(1).at("a"), R"(,"result":{"n":1})");
  take(2);
  EXPECT_EQ(get("/v1/executions/" + id("b") + "/input").at("/input"), R"({"n":1})");
  EXPECT_EQ(get("/v1/executions/" + id("c") + "/input").at("/input"), "own");
}

TEST_P(HttpFlowRoutes, TakeEverythingThatACreateDoes) {
  submit(graph(node("a", R"(,"lane_id":"fast","priority":7,"tags":{"a.b":"c"},"input_payload":[0,255])") +
                   "," + node("b", R"(,"delay_until":99999999999999)"),
               "", R"(,"namespace":"acme","tags":{"x.y":"z"})"));
  const auto a = get("/v1/executions/" + id("a"));
  EXPECT_EQ(a.at("/namespace"), "acme");
  EXPECT_EQ(a.at("/lane_id"), "fast");
  EXPECT_EQ(a.at("/priority"), "7");
  EXPECT_EQ(get("/v1/executions/" + id("a") + "/tags").body, R"({"tags":{"a.b":"c"}})");
  EXPECT_EQ(get("/v1/executions/" + id("a") + "/input").at("/input_base64"), "AP8=");
  EXPECT_EQ(state("b"), "delayed");
  EXPECT_EQ(get(path("/tags")).body, R"({"tags":{"x.y":"z"}})");
}

TEST_P(HttpFlowRoutes, AreSubmittedOnceByTheirId) {
  const auto body = graph(node("a") + "," + node("b"), edge("a", "b"), R"(,"flow_id":")" + kFlow + "\"");
  const auto first = submit(body);
  ASSERT_EQ(first.status, 201) << first.body;
  EXPECT_EQ(first.at("/flow_id"), kFlow);
  report("complete", take(1).at("a"));
  const auto again = submit(body);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, first.body);
  EXPECT_EQ(get("/v1/executions").size("/executions"), 2u);
  EXPECT_EQ(state("a"), "completed");
}

struct Refused {
  std::string nodes;
  std::string edges;
  int status;
  std::string name;  // that the answer tells
};

TEST_P(HttpFlowRoutes, RefuseAWholeThatDoesNotFit) {
  const auto quorum = [](const std::string& k) {
    return node("zebra", R"(,"join":{"kind":"quorum","on_satisfied":"let_run","k":)" + k + "}");
  };
  const auto pair = node("okapi") + "," + node("zebra");
  for (const auto& [nodes, edges, status, name] :
       {Refused{node("okapi"), edge("okapi", "zebra"), 400, "zebra"},
        Refused{node("okapi"), edge("zebra", "okapi"), 400, "zebra"},
        Refused{node("zebra") + "," + node("zebra"), "", 400, "zebra"},
        Refused{pair, edge("okapi", "zebra") + "," + edge("zebra", "okapi"), 409, "okapi"},
        Refused{pair, edge("zebra", "zebra"), 409, "zebra"},
        Refused{node("okapi") + "," + quorum("2"), edge("okapi", "zebra"), 400, "zebra"},
        Refused{node("okapi") + "," + quorum("0"), edge("okapi", "zebra"), 400, "zebra"},
        Refused{node("okapi") + "," + node("zebra", R"(,"join":{"kind":"most_of"})"), edge("okapi", "zebra"),
                400, "zebra"},
        Refused{node("zebra", R"(,"policy":{"retry_policy":5})"), "", 400, "zebra"},
        Refused{"", "", 400, ""}}) {
    const auto refused = submit(graph(nodes, edges));
    EXPECT_EQ(refused.status, status) << nodes << edges << refused.body;
    EXPECT_TRUE(contains(refused.body, name)) << nodes << edges << refused.body;
    EXPECT_TRUE(refused.has("/code")) << refused.body;
  }
  EXPECT_EQ(get("/v1/flows").size("/flows"), 0u);
  EXPECT_EQ(get("/v1/executions").size("/executions"), 0u);
}

TEST_P(HttpFlowRoutes, TellWhichConflictItIs) {
  const auto pair = node("a") + "," + node("b");
  EXPECT_EQ(said(submit(graph(pair, edge("a", "b") + "," + edge("b", "a")))),
            "409 cycle_detected: CycleDetected (cycle_detected, final)");
  EXPECT_EQ(said(submit(graph(pair, edge("a", "a")))),
            "409 self_referencing_edge: SelfReferencingEdge (self_referencing_edge, final)");
}

TEST_P(HttpFlowRoutes, RefuseAWholeOfTheWrongShape) {
  for (const auto& body :
       {graph(R"({"execution_kind":"k"})", ""), graph(R"({"name":"a"})", ""), graph("5", ""),
        graph(node("a", R"(,"priority":"1")"), ""), graph(node("a"), R"({"from":"a"})"),
        graph(node("a") + "," + node("b"), edge("a", "b", R"(,"pass_result":1)")),
        graph(node("a"), "", R"(,"flow_id":"x")"), std::string(R"({"flow_kind":"k"})"),
        std::string(R"({"nodes":[{"name":"a","execution_kind":"k"}]})")}) {
    expect_shape_refused(submit(body), body);
  }
  EXPECT_EQ(get("/v1/executions").size("/executions"), 0u);
}

TEST_P(HttpFlowRoutes, RefuseTooMany) {
  std::string nodes = node("0");
  for (int i = 1; i <= 10'000; ++i) nodes += "," + node(std::to_string(i));
  EXPECT_EQ(submit(graph(nodes, "")).status, 400);
  std::string edges = edge("a", "b");
  for (int i = 1; i <= 100'000; ++i) edges += R"(,{"from":"a","to":"b"})";
  EXPECT_EQ(submit(graph(node("a") + "," + node("b"), edges)).status, 400);
  EXPECT_EQ(get("/v1/flows").size("/flows"), 0u);
}

// ---- reading ----

TEST_P(HttpFlowRoutes, AreListedByFilter) {
  submit(graph(node("a"), "", R"(,"namespace":"acme","tags":{"a.team":"img"})"));
  const auto first = path();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // they are ordered by their time
  submit(example());
  const auto all = get("/v1/flows");
  ASSERT_EQ(all.size("/flows"), 2u);
  EXPECT_EQ(all.keys(), (Names{"flows", "next_cursor"}));
  EXPECT_EQ(all.at("/next_cursor"), "null");
  EXPECT_EQ("/v1/flows/" + all.at("/flows/1/flow_id"), first) << "newest first";
  EXPECT_EQ(all.at("/flows/1/tags"), R"({"a.team":"img"})");
  EXPECT_EQ(get("/v1/flows?order=oldest").at("/flows/1/flow_id"), all.at("/flows/0/flow_id"));
  report("fail", claimed(), R"(,"category":"permanent")");
  for (const auto& [query, count] :
       std::vector<std::pair<std::string, std::size_t>>{{"namespace=acme", 2},
                                                        {"namespace=other", 0},
                                                        {"kind=pipeline", 1},
                                                        {"kind=k&namespace=acme", 1},
                                                        {"tag=a.team=img", 1},
                                                        {"tag=a.team=img&tag=a.team=txt", 0},
                                                        {"state=failed&state=open&state=blocked", 2},
                                                        {"state=completed", 0},
                                                        {"created_after=99999999999999", 0},
                                                        {"created_before=99999999999999", 2}}) {
    EXPECT_EQ(get("/v1/flows?" + query).size("/flows"), count) << query;
  }
}

TEST_P(HttpFlowRoutes, AreListedPageByPage) {
  for (int i = 0; i < 3; ++i) submit(graph(node("a"), ""));
  std::string cursor;
  std::map<std::string, int> seen;
  for (int page = 0; page < 3; ++page) {
    const auto reply = get("/v1/flows?limit=1" + (cursor.empty() ? "" : "&cursor=" + cursor));
    ASSERT_EQ(reply.size("/flows"), 1u);
    ++seen[reply.at("/flows/0/flow_id")];
    cursor = reply.at("/next_cursor");
    EXPECT_EQ(cursor == "null", page == 2) << reply.body;
  }
  EXPECT_EQ(seen.size(), 3u);
  for (const auto* query :
       {"limit=0", "limit=1001", "limit=x", "order=x", "state=x", "created_after=x", "tag=x", "cursor=x"}) {
    const auto refused = get(std::string("/v1/flows?") + query);
    EXPECT_EQ(refused.status, 400) << query;
    EXPECT_EQ(refused.at("/code"), "invalid_input") << query;
  }
}

TEST_P(HttpFlowRoutes, AreDescribed) {
  submit(example());
  const auto flow = get(path());
  EXPECT_EQ(flow.status, 200);
  EXPECT_EQ("/v1/flows/" + flow.at("/flow_id"), path());
  EXPECT_EQ(flow.at("/flow_kind"), "pipeline");
  EXPECT_EQ(flow.at("/namespace"), "acme");
  EXPECT_EQ(flow.at("/public_flow_state"), "open");
  EXPECT_EQ(flow.at("/state"), "blocked");
  EXPECT_EQ(flow.at("/node_count"), "5");
  EXPECT_EQ(flow.at("/edge_count"), "6");
  EXPECT_EQ(flow.at("/tags"), "{}");
  EXPECT_EQ(flow.at("/counts/waiting"), "1");
  EXPECT_EQ(flow.at("/counts/waiting_children"), "4");
  for (const auto* absent : {"/cancelled_at", "/cancel_reason", "/cancellation_policy"}) {
    EXPECT_EQ(flow.at(absent), "null") << absent;
  }
  for (const auto* time : {"/created_at", "/last_mutation_at"})
    EXPECT_GT(std::stoll(flow.at(time)), 0) << time;
  EXPECT_TRUE(flow.has("/graph_revision"));
  ASSERT_EQ(flow.size("/edge_groups"), 4u);
  for (const auto* key : {"downstream_execution_id", "policy", "total_deps", "satisfied_count",
                          "failed_count", "skipped_count", "running_count", "group_state"}) {
    EXPECT_TRUE(flow.has(std::string("/edge_groups/0/") + key)) << key << " (01 §10.2)";
  }
}

TEST_P(HttpFlowRoutes, AreDrawn) {
  submit(graph(node("a") + "," + node("b", R"(,"join":{"kind":"quorum","k":1,"on_satisfied":"let_run"})"),
               edge("a", "b")));
  report("complete", take(1).at("a"));
  take(1);
  const auto drawn = get(path("/graph"));
  EXPECT_EQ(drawn.status, 200);
  EXPECT_EQ(drawn.keys(), (Names{"edges", "groups", "nodes"}));
  ASSERT_EQ(drawn.size("/nodes"), 2u);
  const std::string a = drawn.at("/nodes/0/name") == "a" ? "/nodes/0" : "/nodes/1";
  EXPECT_EQ(drawn.keys(a), (Names{"execution_id", "execution_kind", "name", "public_state"}));
  EXPECT_EQ(drawn.at(a + "/execution_id"), id("a"));
  EXPECT_EQ(drawn.at(a + "/execution_kind"), "k");
  EXPECT_EQ(drawn.at(a + "/public_state"), "completed");
  ASSERT_EQ(drawn.size("/edges"), 1u);
  EXPECT_EQ(drawn.at("/edges/0/from"), id("a"));
  EXPECT_EQ(drawn.at("/edges/0/to"), id("b"));
  EXPECT_EQ(drawn.at("/edges/0/state"), "satisfied");
  EXPECT_TRUE(drawn.has("/edges/0/edge_id"));
  ASSERT_EQ(drawn.size("/groups"), 1u);
  for (const auto& [key, value] : std::map<std::string, std::string>{{"execution_id", id("b")},
                                                                     {"n", "1"},
                                                                     {"k", "1"},
                                                                     {"succeeded", "1"},
                                                                     {"failed", "0"},
                                                                     {"skipped", "0"},
                                                                     {"group_state", "satisfied"}}) {
    EXPECT_EQ(drawn.at("/groups/0/" + key), value) << key;
  }
  EXPECT_EQ(drawn.at("/groups/0/policy/kind"), "quorum");
  EXPECT_EQ(drawn.at("/groups/0/policy/on_satisfied"), "let_run");
}

TEST_P(HttpFlowRoutes, ThatAreNotThereAreNotFound) {
  for (const auto* what : {"", "/graph", "/tags"}) {
    EXPECT_EQ(said(get(kNobody + what)), "404 not found: flow") << what;
    EXPECT_EQ(get(std::string("/v1/flows/nonsense") + what).status, 400) << what;
  }
  EXPECT_EQ(said(put(kNobody + "/tags", R"({"tags":{"a.b":"c"}})")), "404 not found: flow");
  EXPECT_EQ(said(put(kNobody + "/groups/" + submitted(), R"({"kind":"all_of"})")), "404 not found: flow");
}

// ---- changing ----

TEST_P(HttpFlowRoutes, AreTagged) {
  submit(graph(node("a"), "", R"(,"tags":{"a.b":"1"})"));
  EXPECT_EQ(get(path("/tags")).body, R"({"tags":{"a.b":"1"}})");
  EXPECT_EQ(put(path("/tags"), R"({"tags":{"x.y":"2"}})").body, R"({"tags":{"a.b":"1","x.y":"2"}})");
  EXPECT_EQ(put(path("/tags"), R"({"tags":{"a.b":null,"x.y":"3"}})").body, R"({"tags":{"x.y":"3"}})");
  EXPECT_EQ(get(path()).at("/tags"), R"({"x.y":"3"})");
  for (const auto* key : {"nodot", "Cairn.x", "cairn.", "cairn..x"}) {
    const auto refused = put(path("/tags"), R"({"tags":{"k.l":"m",")" + std::string(key) + R"(":"v"}})");
    EXPECT_EQ(refused.status, 400) << key;
    EXPECT_EQ(refused.at("/code"), "invalid_tag_key") << key;
    EXPECT_TRUE(contains(refused.at("/error"), key)) << refused.body;
  }
  expect_shape_refused(put(path("/tags"), R"({"tags":{"x.y":5}})"), "a number");
  expect_shape_refused(put(path("/tags"), "{}"), "no tags");
  EXPECT_EQ(get(path("/tags")).body, R"({"tags":{"x.y":"3"}})");
}

TEST_P(HttpFlowRoutes, TakeAPolicyForAJoinBeforeItsEdges) {
  submit(graph(node("a") + "," + node("b") + "," + node("c"), ""));
  const auto group = path("/groups/" + id("c"));
  const auto set = put(group, R"({"kind":"quorum","k":2,"on_satisfied":"let_run"})");
  EXPECT_EQ(set.status, 200) << set.body;
  EXPECT_EQ(set.at("/execution_id"), id("c"));
  EXPECT_EQ(set.at("/policy/k"), "2");
  const auto now = put(group, R"({"kind":"any_of","on_satisfied":"let_run"})");
  EXPECT_EQ(now.at("/policy/kind"), "any_of");
  for (const auto* key : {"n", "k", "succeeded", "failed", "skipped", "group_state"}) {
    EXPECT_TRUE(now.has(std::string("/") + key)) << key << " (09 §5: it answers the group)";
  }
  auto revision = get(path()).at("/graph_revision");
  for (const auto* from : {"a", "b"}) {
    const auto ends =
        R"("upstream_execution_id":")" + id(from) + R"(","downstream_execution_id":")" + id("c");
    const auto staged =
        post(path("/edges"), R"({"expected_graph_revision":)" + revision + "," + ends + "\"}");
    ASSERT_EQ(staged.status, 201) << staged.body;
    revision = staged.at("/Staged/new_graph_revision");
    ASSERT_EQ(
        post(path("/edges/apply"), R"({"edge_id":")" + staged.at("/Staged/edge_id") + "\"," + ends + "\"}")
            .status,
        200);
  }
  EXPECT_EQ(state("c"), "waiting_children");
  report("complete", take(1).begin()->second);
  EXPECT_TRUE(eventually([&] { return state("c") == "waiting"; })) << "any of them will do";
  const auto late = put(group, R"({"kind":"all_of"})");
  EXPECT_EQ(late.status, 400);
  EXPECT_TRUE(contains(late.at("/error"), "edge_group_policy_already_fixed")) << late.body;
}

TEST_P(HttpFlowRoutes, RefuseAPolicyThatIsNone) {
  submit(graph(node("a"), ""));
  for (const auto& [policy, text] : std::vector<std::pair<std::string, std::string>>{
           {R"({"kind":"quorum","k":0,"on_satisfied":"let_run"})", "quorum k must be >= 1"},
           {R"({"kind":"quorum","k":2147483648,"on_satisfied":"let_run"})",
            "quorum k exceeds supported maximum"},
           {R"({"kind":"most_of"})", "unsupported_policy_variant: most_of"},
           {R"({"kind":"any_of"})", "on_satisfied"}}) {
    const auto refused = put(path("/groups/" + id("a")), policy);
    EXPECT_EQ(refused.status, 400) << policy << refused.body;
    EXPECT_TRUE(contains(refused.at("/error"), text)) << refused.body;
  }
  EXPECT_EQ(put(path("/groups/nonsense"), R"({"kind":"all_of"})").status, 400);
}

// ---- who waits for whom ----

TEST_P(HttpFlowRoutes, SayWhetherAMemberMayRun) {
  submit(example());
  const auto status = [&](const std::string& of) {
    return get("/v1/executions/" + of + "/flow-eligibility").at("/Status/status");
  };
  EXPECT_EQ(status(id("fetch")), "eligible");
  EXPECT_EQ(status(id("a")), "blocked_by_dependencies");
  report("complete", take(1).at("fetch"));
  EXPECT_EQ(status(id("fetch")), "not_runnable");
  EXPECT_EQ(status(id("a")), "eligible");
  const std::string nobody = "{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff";
  EXPECT_EQ(get("/v1/executions/" + nobody + "/flow-eligibility").at("/code"), "execution_not_found");
  EXPECT_EQ(get("/v1/executions/nonsense/flow-eligibility").status, 400);
}

TEST_P(HttpFlowRoutes, LetGoOfAMemberThatWasForgotten) {
  submit(example());
  const auto promote = [&](const std::string& of) { return post("/v1/executions/" + of + "/promote"); };
  EXPECT_EQ(promote(id("fetch")).at("/code"), "not_blocked_by_deps");
  EXPECT_EQ(promote(id("a")).at("/code"), "deps_not_satisfied");
  const auto fetch = take(1).at("fetch");
  EXPECT_EQ(promote(id("fetch")).at("/code"), "not_runnable");
  report("complete", fetch);
  EXPECT_EQ(promote(id("fetch")).at("/code"), "terminal");
  EXPECT_EQ(promote("{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff").at("/code"), "execution_not_found");
  const auto pick = id("pick");
  reopen_changed("update ff_edge_group set group_state='satisfied'");
  EXPECT_EQ(promote(pick).body, R"({"execution_id":")" + pick + R"(","public_state":"waiting"})");
}

}  // namespace
}  // namespace flowfabric::tests
