// Flows over HTTP, built step by step as clients of the reference do (07 §5.11; 04 §3, §4, §9).
#include <future>

#include "http_checks.h"

namespace flowfabric::tests {
namespace {

// Both of partition 16.
const std::string kFlow = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
const std::string kOtherFlow = "7c9e6679-7425-40de-944b-e07fc1f90bf7";
const std::string kNobody = "7c9e6679-7425-40de-944b-e07fc1f90c87";

std::string member(int number) {
  return "{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c00" + std::to_string(number);
}

std::string edge(int number) {
  return "66666666-6666-4666-8666-66666666666" + std::to_string(number);
}

class HttpFlows : public HttpTest {
 protected:
  Reply create_flow(const std::string& id = kFlow) {
    return post("/v1/flows", R"({"flow_id":")" + id +
                                 R"(","flow_kind":"pipeline","namespace":"acme","now":1767225600000})");
  }
  std::string create_execution(int number) {
    return submitted(R"(,"execution_id":")" + member(number) + R"(","namespace":"acme")");
  }
  Reply add(const std::string& execution_id, const std::string& flow = kFlow) {
    return post("/v1/flows/" + flow + "/members",
                R"({"flow_id":")" + flow + R"(","execution_id":")" + execution_id + R"(","now":1})");
  }
  // A flow with members 1 to `count`.
  void create_with_members(int count) {
    ASSERT_EQ(create_flow().status, 201);
    for (int i = 1; i <= count; ++i) {
      create_execution(i);
      ASSERT_EQ(add(member(i)).status, 201);
    }
  }
  Reply stage(int number, int from, int to, int revision, const std::string& flow = kFlow,
              const std::string& more_keys = "") {
    return post("/v1/flows/" + flow + "/edges",
                R"({"flow_id":")" + flow + R"(","edge_id":")" + edge(number) +
                    R"(","upstream_execution_id":")" + member(from) + R"(","downstream_execution_id":")" +
                    member(to) + R"(","expected_graph_revision":)" + std::to_string(revision) +
                    R"(,"now":1)" + more_keys + "}");
  }
  Reply apply(int number, int from, int to, const std::string& flow = kFlow) {
    return post("/v1/flows/" + flow + "/edges/apply",
                R"({"flow_id":")" + flow + R"(","edge_id":")" + edge(number) +
                    R"(","downstream_execution_id":")" + member(to) + R"(","upstream_execution_id":")" +
                    member(from) + R"(","graph_revision":3,"dependency_kind":"success_only","now":1})");
  }
  // From one member to the next: stage and apply; `revision` is the flow's before.
  void connect(int number, int from, int to, int revision, const std::string& more_keys = "") {
    const auto staged = stage(number, from, to, revision, kFlow, more_keys);
    ASSERT_EQ(staged.status, 201) << staged.body;
    ASSERT_EQ(apply(number, from, to).status, 200);
  }
  // A flow whose only member is `a`.
  Reply submit_one() {
    return post("/v1/flows/submit", R"({"flow_kind":"k","nodes":[{"name":"a","execution_kind":"k"}]})");
  }
  Reply cancel(const std::string& policy, const std::string& query = "", const std::string& flow = kFlow) {
    return post("/v1/flows/" + flow + "/cancel" + query, R"({"flow_id":")" + flow +
                                                             R"(","reason":"abort","cancellation_policy":")" +
                                                             policy + R"(","now":1})");
  }
  std::string state(int number) { return get("/v1/executions/" + member(number) + "/state").at(""); }
  bool becomes(int number, const std::string& wanted) {
    return eventually([&] { return state(number) == wanted; });
  }
  std::string revision() { return get("/v1/flows/" + kFlow).at("/graph_revision"); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpFlows, kHttpStores, http_store_name);

// ---- creating ----

TEST_P(HttpFlows, AreCreatedOnce) {
  const auto created = create_flow();
  EXPECT_EQ(created.status, 201);
  EXPECT_EQ(created.body, R"({"Created":{"flow_id":")" + kFlow + "\"}}");
  for (const auto* spelling : {"7c9e6679-7425-40de-944b-e07fc1f90ae7", "7C9E6679-7425-40DE-944B-E07FC1F90AE7",
                               "7c9e6679742540de944be07fc1f90ae7", "{7c9e6679-7425-40de-944b-e07fc1f90ae7}",
                               "urn:uuid:7c9e6679-7425-40de-944b-e07fc1f90ae7"}) {
    const auto again = create_flow(spelling);
    EXPECT_EQ(again.status, 200) << spelling;
    EXPECT_EQ(again.body, R"({"AlreadySatisfied":{"flow_id":")" + kFlow + "\"}}") << spelling;
  }
}

TEST_P(HttpFlows, OfWrongShapeAreRefused) {
  create_with_members(2);
  const std::string id = R"("flow_id":")" + kFlow + "\"";
  const std::string ends = R"("upstream_execution_id":")" + member(1) + R"(","downstream_execution_id":")" +
                           member(2) + R"(","edge_id":")" + edge(1) + "\"";
  const std::string flow = "/v1/flows/" + kFlow;
  const std::vector<std::pair<std::string, std::string>> wrong{
      {"/v1/flows", "{" + id + R"(,"namespace":"acme"})"},
      {"/v1/flows", R"({"flow_id":"x","flow_kind":"k","namespace":"acme"})"},
      {"/v1/flows", R"({"flow_id":5,"flow_kind":"k","namespace":"acme"})"},
      {"/v1/flows", "{" + id + R"(,"flow_kind":null,"namespace":"acme"})"},
      {"/v1/flows", "{" + id + R"(,"flow_kind":"k","flow_kind":"k","namespace":"acme"})"},
      {"/v1/flows", "{" + id + R"(,"flow_kind":"k","namespace":"acme","now":"1"})"},
      {"/v1/flows", "[]"},
      {flow + "/members", "{" + id + R"(,"now":1})"},
      {flow + "/members", "{" + id + R"(,"execution_id":"0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001"})"},
      {flow + "/edges", "{" + id + "," + ends + "}"},
      {flow + "/edges", "{" + id + "," + ends + R"(,"expected_graph_revision":"2"})"},
      {flow + "/edges", "{" + id + "," + ends + R"(,"expected_graph_revision":-1})"},
      {flow + "/edges", "{" + id + "," + ends + R"(,"expected_graph_revision":2.0})"},
      {flow + "/edges", "{" + id + "," + ends + R"(,"expected_graph_revision":2,"dependency_kind":null})"},
      {flow + "/edges", "{" + id + "," + ends + R"(,"expected_graph_revision":2,"data_passing_ref":1})"},
      {flow + "/edges/apply", "{" + id + R"(,"graph_revision":3})"},
      {flow + "/edges/apply", "{" + id + "," + ends + R"(,"graph_revision":"3"})"},
      {flow + "/edges/apply", "{" + id + "," + ends + R"(,"graph_revision":3,"dependency_kind":null})"},
      {flow + "/cancel", "{" + id + R"(,"cancellation_policy":"cancel_all","now":1})"},
      {flow + "/cancel", "{" + id + R"(,"reason":"r","cancellation_policy":5,"now":1})"}};
  for (const auto& [path, body] : wrong) expect_shape_refused(post(path, body), path + body);
  EXPECT_EQ(revision(), "2");
  EXPECT_EQ(get(flow).at("/public_flow_state"), "open");
}

TEST_P(HttpFlows, NeedJson) {
  EXPECT_EQ(said(post("/v1/flows", "{")), "400 invalid JSON: Bad Request");
  EXPECT_EQ(said(send({.method = "POST", .path = "/v1/flows", .body = "{}"})),
            "415 invalid JSON: Unsupported Media Type");
  EXPECT_EQ(get("/v1/flows/").status, 404);
  const auto large =
      post("/v1/flows/" + kFlow + "/cancel", R"({"reason":")" + std::string(70'000, 'x') + "\"}");
  EXPECT_EQ(large.status, 413);
  EXPECT_EQ(large.at("/error"), "payload_too_large");
  EXPECT_EQ(large.at("/limit_bytes"), "65536");
  EXPECT_EQ(large.at("/route"), "/v1/flows/{id}/cancel");
}

TEST_P(HttpFlows, ThatAreNotThereAreNotFound) {
  create_execution(1);
  create_execution(2);
  for (const auto& reply : {add(member(1), kNobody), stage(1, 1, 2, 0, kNobody), apply(1, 1, 2, kNobody),
                            cancel("cancel_all", "", kNobody)}) {
    EXPECT_EQ(said(reply), "404 not found: flow");
    EXPECT_EQ(reply.at("/code"), "flow_not_found");
  }
}

TEST_P(HttpFlows, AreNamedByTheSameIdInPathAndBody) {
  create_with_members(2);
  const auto other = R"({"flow_id":")" + kOtherFlow + R"(","execution_id":")" + member(1) +
                     R"(","edge_id":")" + edge(1) + R"(","upstream_execution_id":")" + member(1) +
                     R"(","downstream_execution_id":")" + member(2) +
                     R"(","expected_graph_revision":2,"graph_revision":3,"reason":"r",)" +
                     R"("cancellation_policy":"cancel_all","now":1})";
  for (const auto* what : {"/members", "/edges", "/edges/apply", "/cancel"}) {
    EXPECT_EQ(said(post("/v1/flows/" + kFlow + what, other)), "400 path flow_id does not match body flow_id")
        << what;
    const auto bad = post(std::string("/v1/flows/nonsense") + what, other);
    EXPECT_EQ(bad.status, 400) << what;
    EXPECT_TRUE(bad.at("/error").starts_with("invalid flow_id: ")) << bad.body;
  }
  EXPECT_EQ(get("/v1/flows/" + kFlow).at("/public_flow_state"), "open");
}

// ---- members ----

TEST_P(HttpFlows, TakeMembers) {
  create_flow();
  create_execution(1);
  create_execution(2);
  const auto added = add(member(1));
  EXPECT_EQ(added.status, 201);
  EXPECT_EQ(added.body, R"({"Added":{"execution_id":")" + member(1) + R"(","new_node_count":1}})");
  EXPECT_EQ(add(member(2)).at("/Added/new_node_count"), "2");
  const auto again = add(member(1));
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, R"({"AlreadyMember":{"execution_id":")" + member(1) + R"(","node_count":2}})");
  EXPECT_EQ(revision(), "2");
  EXPECT_EQ(get("/v1/executions/" + member(1)).at("/flow_id"), kFlow);
  EXPECT_EQ(state(1), "waiting");
}

TEST_P(HttpFlows, RefuseMembersThatDoNotFit) {
  create_with_members(1);
  create_flow(kOtherFlow);
  const auto elsewhere = add(submitted());
  EXPECT_EQ(elsewhere.status, 400);
  EXPECT_TRUE(contains(elsewhere.at("/error"), "partition")) << elsewhere.body;
  EXPECT_EQ(said(add(member(9))), "404 not found: execution");
  EXPECT_EQ(said(add(member(1), kOtherFlow)),
            "409 execution_already_in_flow: ExecutionAlreadyInFlow (execution_already_in_flow, final)");
  EXPECT_TRUE(contains(add(member(1), kOtherFlow).body, kFlow)) << "it says where it is";
  cancel("flow_only");
  create_execution(2);
  EXPECT_EQ(said(add(member(2))),
            "409 flow_already_terminal: FlowAlreadyTerminal (flow_already_terminal, final)");
  EXPECT_EQ(get("/v1/executions/" + member(2)).at("/flow_id"), "null");
}

// ---- edges ----

TEST_P(HttpFlows, TakeEdges) {
  create_with_members(3);
  const auto staged = stage(1, 1, 2, 3);
  EXPECT_EQ(staged.status, 201);
  EXPECT_EQ(staged.body, R"({"Staged":{"edge_id":")" + edge(1) + R"(","new_graph_revision":4}})");
  EXPECT_EQ(state(2), "waiting") << "it is not applied yet";
  EXPECT_EQ(stage(2, 3, 2, 4).at("/Staged/new_graph_revision"), "5");
  const auto applied = apply(1, 1, 2);
  EXPECT_EQ(applied.status, 200);
  EXPECT_EQ(applied.body, R"({"Applied":{"unsatisfied_count":1}})");
  EXPECT_EQ(apply(2, 3, 2).at("/Applied/unsatisfied_count"), "2");
  EXPECT_EQ(state(2), "waiting_children");
  const auto again = apply(1, 1, 2);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, "\"AlreadyApplied\"");
  EXPECT_EQ(revision(), "5") << "applying does not change it";
}

TEST_P(HttpFlows, RefuseEdgesThatDoNotFit) {
  create_with_members(3);
  create_execution(4);
  ASSERT_EQ(stage(1, 1, 2, 3).status, 201);
  ASSERT_EQ(stage(2, 2, 3, 4).status, 201);
  EXPECT_EQ(said(stage(3, 1, 1, 5)),
            "409 self_referencing_edge: SelfReferencingEdge (self_referencing_edge, final)");
  EXPECT_EQ(said(stage(3, 1, 3, 4)), "409 contention: StaleGraphRevision (contention, retryable)");
  EXPECT_EQ(said(stage(1, 1, 2, 3)), "409 contention: StaleGraphRevision (contention, retryable)");
  EXPECT_EQ(said(stage(3, 1, 4, 5)), "409 state_conflict: ExecutionNotInFlow (state_conflict, final)");
  EXPECT_EQ(said(stage(3, 3, 1, 5)), "409 cycle_detected: CycleDetected (cycle_detected, final)");
  EXPECT_EQ(said(stage(1, 1, 3, 5)),
            "409 dependency_already_exists: DependencyAlreadyExists (dependency_already_exists, final)");
  const auto kind = stage(3, 1, 3, 5, kFlow, R"(,"dependency_kind":"failure_only")");
  EXPECT_EQ(kind.status, 400);
  EXPECT_EQ(kind.at("/code"), "invalid_dependency");
  EXPECT_EQ(revision(), "5");
  cancel("flow_only");
  EXPECT_EQ(said(stage(3, 1, 3, 5)),
            "409 flow_already_terminal: FlowAlreadyTerminal (flow_already_terminal, final)");
}

TEST_P(HttpFlows, ApplyOnlyWhatWasStaged) {
  create_with_members(3);
  ASSERT_EQ(stage(1, 1, 2, 3).status, 201);
  EXPECT_EQ(apply(2, 1, 2).status, 404) << "no such edge";
  EXPECT_EQ(apply(2, 1, 9).status, 404) << "no such execution";
  const auto other_ends = apply(1, 1, 3);
  EXPECT_EQ(other_ends.status, 400) << other_ends.body;
  EXPECT_EQ(other_ends.at("/code"), "invalid_dependency");
  EXPECT_EQ(state(3), "waiting");
}

TEST_P(HttpFlows, LetAMemberRunWhenItsUpstreamSucceeded) {
  create_with_members(2);
  connect(1, 1, 2, 2, R"(,"data_passing_ref":"result")");
  const auto first = claimed();
  EXPECT_EQ(first.execution_id, member(1)) << "the other cannot be claimed";
  report("complete", first, R"(,"result":{"n":2})");
  const auto second = post("/v1/tasks/claim", R"({"worker_id":"w","wait_ms":20000,"namespace":"acme"})");
  EXPECT_EQ(second.at("/tasks/0/execution_id"), member(2));
  EXPECT_EQ(second.at("/tasks/0/flow_id"), kFlow);
  EXPECT_EQ(second.at("/tasks/0/input/n"), "2");
}

TEST_P(HttpFlows, SkipAMemberWhoseUpstreamFailed) {
  create_with_members(3);
  connect(1, 1, 2, 3);
  connect(2, 2, 3, 4);
  report("fail", claimed(), R"(,"reason":"r","category":"permanent")");
  EXPECT_TRUE(becomes(3, "skipped"));
  EXPECT_EQ(state(2), "skipped");
  EXPECT_EQ(get("/v1/flows/" + kFlow).at("/state"), "failed");
}

// ---- cancelling ----

TEST_P(HttpFlows, AreCancelledWhileTheCallerWaits) {
  for (const auto* query : {"?wait=true", "?wait=1", "?wait=true&wait_timeout_ms=60000"}) {
    const auto flow = submit_one();
    const auto cancelled = cancel("cancel_all", query, flow.at("/flow_id"));
    EXPECT_EQ(cancelled.status, 200);
    EXPECT_EQ(cancelled.body,
              R"({"Cancelled":{"cancellation_policy":"cancel_all","member_execution_ids":[")" +
                  flow.at("/executions/a") + "\"]}}")
        << query;
    EXPECT_EQ(get("/v1/executions/" + flow.at("/executions/a") + "/state").at(""), "cancelled") << query;
  }
}

// Only `true` and `1` wait.
TEST_P(HttpFlows, AreNotWaitedForByOtherWords) {
  for (const auto* word : {"false", "0", "TRUE", "True", "yes", ""}) {
    const auto cancelled = cancel("cancel_all", std::string("?wait=") + word, submit_one().at("/flow_id"));
    EXPECT_EQ(cancelled.keys(), std::vector<std::string>{"CancellationScheduled"}) << word;
  }
}

TEST_P(HttpFlows, AreCancelledInTheBackground) {
  create_with_members(2);
  const auto scheduled = cancel("cancel_all");
  EXPECT_EQ(scheduled.status, 200);
  EXPECT_EQ(scheduled.keys("/CancellationScheduled"),
            (std::vector<std::string>{"cancellation_policy", "member_count", "member_execution_ids"}));
  EXPECT_EQ(scheduled.at("/CancellationScheduled/cancellation_policy"), "cancel_all");
  EXPECT_EQ(scheduled.at("/CancellationScheduled/member_count"), "2");
  EXPECT_EQ(scheduled.size("/CancellationScheduled/member_execution_ids"), 2u);
  EXPECT_TRUE(becomes(1, "cancelled"));
  EXPECT_TRUE(becomes(2, "cancelled"));
  const auto flow = get("/v1/flows/" + kFlow);
  EXPECT_EQ(flow.at("/public_flow_state"), "cancelled");
  EXPECT_EQ(flow.at("/cancel_reason"), "abort");
  EXPECT_EQ(flow.at("/cancellation_policy"), "cancel_all");
  EXPECT_GT(std::stoll(flow.at("/cancelled_at")), 0);
  EXPECT_EQ(flow.at("/state"), "cancelled");
}

TEST_P(HttpFlows, WithoutMembersAreCancelledAtOnce) {
  create_flow();
  const std::string nobody =
      R"({"Cancelled":{"cancellation_policy":"cancel_pending","member_execution_ids":[]}})";
  EXPECT_EQ(cancel("cancel_pending").body, nobody);
  EXPECT_EQ(cancel("cancel_all", "?wait=true").body, nobody) << "the first policy stays";
  create_execution(1);
  EXPECT_EQ(add(member(1)).status, 409);
}

TEST_P(HttpFlows, CanBeCancelledWithoutTheirMembers) {
  for (const auto* policy : {"flow_only", "cancel_flow_only"}) {
    const auto flow =
        post("/v1/flows/submit", R"({"flow_kind":"k","nodes":[{"name":"a","execution_kind":"k"}]})");
    const auto id = flow.at("/flow_id");
    const auto cancelled = cancel(policy, "", id);
    EXPECT_EQ(cancelled.body, R"({"Cancelled":{"cancellation_policy":")" + std::string(policy) +
                                  R"(","member_execution_ids":[")" + flow.at("/executions/a") + "\"]}}");
    EXPECT_EQ(get("/v1/flows/" + id).at("/public_flow_state"), "cancelled") << policy;
    EXPECT_EQ(claimed().execution_id, flow.at("/executions/a")) << "it goes on";
  }
}

TEST_P(HttpFlows, CanLeaveAloneWhatRuns) {
  create_with_members(2);
  const auto task = claimed();
  const auto cancelled = cancel("cancel_pending", "?wait=true");
  EXPECT_EQ(cancelled.at("/Cancelled/cancellation_policy"), "cancel_pending");
  EXPECT_EQ(cancelled.size("/Cancelled/member_execution_ids"), 2u) << "all are named";
  EXPECT_EQ(state(task.execution_id == member(1) ? 2 : 1), "cancelled");
  EXPECT_EQ(report("complete", task).body, R"({"outcome":"completed"})");
}

TEST_P(HttpFlows, AreWaitedForWhileTheActiveFinish) {
  create_with_members(2);
  const auto task = claimed();
  const int other = task.execution_id == member(1) ? 2 : 1;
  auto waiting = std::async(std::launch::async, [&] { return cancel("let_active_finish", "?wait=true"); });
  EXPECT_TRUE(eventually([&] { return get("/v1/flows/" + kFlow).at("/public_flow_state") == "cancelled"; }));
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(300)), std::future_status::timeout);
  report("complete", task);
  const auto cancelled = waiting.get();
  EXPECT_EQ(cancelled.keys(), std::vector<std::string>{"Cancelled"}) << cancelled.body;
  EXPECT_EQ(cancelled.at("/Cancelled/cancellation_policy"), "let_active_finish");
  EXPECT_EQ(state(other), "cancelled") << "when it is answered, all is done";
}

TEST_P(HttpFlows, AreWaitedForNoLongerThanTheCallerSays) {
  create_with_members(2);
  const auto task = claimed();
  const int other = task.execution_id == member(1) ? 2 : 1;
  const auto began = std::chrono::steady_clock::now();
  const auto late = cancel("let_active_finish", "?wait=true&wait_timeout_ms=400");
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_GE(took, std::chrono::milliseconds(400));
  EXPECT_LT(took, std::chrono::seconds(20));
  EXPECT_EQ(late.status, 200);
  EXPECT_EQ(late.keys("/PartiallyCancelled"),
            (std::vector<std::string>{"cancellation_policy", "failed_member_execution_ids",
                                      "member_execution_ids"}))
      << late.body;
  EXPECT_EQ(late.at("/PartiallyCancelled/failed_member_execution_ids"), "[\"" + member(other) + "\"]");
  EXPECT_EQ(late.size("/PartiallyCancelled/member_execution_ids"), 2u);
  report("complete", task);
  EXPECT_TRUE(becomes(other, "cancelled")) << "it goes on all the same";
  EXPECT_EQ(cancel("cancel_all", "?wait=true&wait_timeout_ms=-1", submit_one().at("/flow_id")).status, 400);
}

TEST_P(HttpFlows, LeaveWhatHadEnded) {
  create_with_members(2);
  const auto task = claimed();
  report("complete", task);
  const auto cancelled = cancel("cancel_all", "?wait=true");
  EXPECT_EQ(cancelled.keys(), std::vector<std::string>{"Cancelled"}) << "who had ended is no failure";
  EXPECT_EQ(get("/v1/executions/" + task.execution_id + "/state").at(""), "completed");
}

TEST_P(HttpFlows, KeepTheFirstCancellation) {
  create_with_members(1);
  cancel("flow_only");
  const auto again = cancel("cancel_all", "?wait=true");
  EXPECT_EQ(again.body, R"({"Cancelled":{"cancellation_policy":"flow_only","member_execution_ids":[")" +
                            member(1) + "\"]}}");
  EXPECT_EQ(state(1), "waiting");
}

TEST_P(HttpFlows, AreNotCancelledByAnUnknownPolicy) {
  create_with_members(1);
  const auto refused = cancel("cancel_some");
  EXPECT_EQ(refused.status, 400);
  EXPECT_TRUE(refused.has("/code")) << refused.body;
  EXPECT_EQ(get("/v1/flows/" + kFlow).at("/public_flow_state"), "open");
}

}  // namespace
}  // namespace flowfabric::tests
