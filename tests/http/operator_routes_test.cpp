// Calls of operators and schedulers over HTTP, beyond the reference's routes (09 §1, §2, §4).
#include "suspension_support.h"

namespace flowfabric::tests {
namespace {

const std::string kNobody = "{fp:1}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001";

class HttpOperators : public HttpSuspensionTest {
 protected:
  static std::string who(const std::string& execution_id) {
    return R"({"execution_id":")" + execution_id + "\"}";
  }
  std::string state_of(const std::string& id) { return get("/v1/executions/" + id + "/state").body; }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpOperators, kHttpStores, http_store_name);

// ---- suspensions ----

TEST_P(HttpOperators, SeeWhatIsSuspended) {
  const auto first = suspended();
  submitted(R"(,"lane_id":"other","namespace":"acme")");
  const auto second = suspend(claimed("other"), under(any("a")));
  submitted();
  const auto all = get("/v1/suspensions");
  ASSERT_EQ(all.size("/suspensions"), 2u) << all.body;
  EXPECT_EQ(all.at("/suspensions/0/execution_id"), first.task.execution_id);
  EXPECT_EQ(all.at("/suspensions/0/reason_code"), "waiting_for_signal");
  EXPECT_EQ(all.at("/suspensions/0/timeout_at"), "null");
  EXPECT_EQ(all.at("/suspensions/0/waitpoint_ids/0"), first.waitpoint_id);
  EXPECT_EQ(all.at("/suspensions/1/namespace"), "acme");
  EXPECT_EQ(all.at("/suspensions/1/lane_id"), "other");
  EXPECT_EQ(all.at("/next_cursor"), "null");

  const auto page = get("/v1/suspensions?limit=1");
  EXPECT_EQ(page.size("/suspensions"), 1u);
  const auto rest = get("/v1/suspensions?limit=1&cursor=" + page.at("/next_cursor"));
  EXPECT_EQ(rest.at("/suspensions/0/execution_id"), second.task.execution_id) << rest.body;
  for (const auto* bad : {"?limit=0", "?limit=1001", "?cursor=x"}) {
    EXPECT_EQ(get(std::string("/v1/suspensions") + bad).status, 400) << bad;
  }
}

TEST_P(HttpOperators, ApproveWithoutAToken) {
  const auto waiting = suspended(under(by_name("approved")));
  const auto body = R"({"waitpoint_id":")" + waiting.waitpoint_id + "\"";
  const auto wrong_lane = post(waiting.path("/approve"), body + R"(,"lane_id":"elsewhere"})");
  EXPECT_EQ(wrong_lane.status, 400) << wrong_lane.body;
  EXPECT_EQ(state_of(waiting.task.execution_id), "\"suspended\"");
  const auto approved = post(waiting.path("/approve"), body + "}");
  EXPECT_EQ(approved.at("/Accepted/effect"), "resume_condition_satisfied") << approved.body;
  EXPECT_EQ(state_of(waiting.task.execution_id), "\"waiting\"");
  EXPECT_TRUE(post(waiting.path("/approve"), body + "}").has("/Duplicate/existing_signal_id"));
  expect_shape_refused(post(waiting.path("/approve"), "{}"), "{}");
  EXPECT_EQ(post("/v1/executions/" + kNobody + "/approve", body + "}").status, 404);
}

TEST_P(HttpOperators, ApproveOnlyWhatTakesSignals) {
  const auto approve = [&](const Waiting& to, const std::string& suffix = "") {
    return post(to.path("/approve"),
                R"({"waitpoint_id":")" + to.waitpoint_id + R"(","idempotency_suffix":")" + suffix + "\"}");
  };
  const auto full = pending(running(R"(,"policy":{"max_signals_per_execution":1})"));
  deliver(full, "first");
  EXPECT_EQ(approve(full).at("/code"), "signal_limit_exceeded");

  const auto closed = pending(running(R"(,"lane_id":"default")"));
  post(closed.path("/waitpoints/" + closed.waitpoint_id + "/close"));
  EXPECT_EQ(said(approve(closed)), "409 state_conflict: WaitpointClosed (state_conflict, final)");

  const auto resumed = suspended();
  approve(resumed);
  EXPECT_EQ(said(approve(resumed, "again")),
            "409 state_conflict: TargetNotSignalable (state_conflict, final)");
}

TEST_P(HttpOperators, CloseWaitpoints) {
  const auto waiting = pending(running());
  const auto path = waiting.path("/waitpoints/" + waiting.waitpoint_id + "/close");
  EXPECT_EQ(post(path).at("/outcome"), "closed");
  EXPECT_EQ(post(path, R"({"reason":"again"})").at("/outcome"), "already_closed");
  EXPECT_EQ(post(waiting.path("/waitpoints/nothing/close")).status, 400);
}

// ---- grants ----

TEST_P(HttpOperators, ReserveAnExecutionForAWorker) {
  const auto id = submitted();
  const auto path = "/v1/executions/" + id + "/grant";
  const auto granted = post(path, R"({"worker_id":"w1","grant_ttl_ms":60000})");
  ASSERT_EQ(granted.status, 200) << granted.body;
  EXPECT_EQ(said(post(path, R"({"worker_id":"w2","grant_ttl_ms":60000})")),
            "409 state_conflict: GrantAlreadyExists (state_conflict, final)");
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w2"})").size("/tasks"), 0u);
  const auto claim = post("/v1/tasks/claim", R"({"worker_id":"w1","grants":[{"execution_id":")" + id +
                                                 R"(","grant_key":")" + granted.at("/grant_key") + "\"}]}");
  EXPECT_EQ(claim.at("/tasks/0/execution_id"), id) << claim.body;
  EXPECT_EQ(post(path, R"({"worker_id":"w1","grant_ttl_ms":60001})").status, 400);
  expect_shape_refused(post(path, R"({"worker_id":"w1"})"), "no ttl");
}

TEST_P(HttpOperators, ReserveOnlyWhatAWorkerMayHave) {
  const auto needy =
      submitted(R"(,"policy":{"routing_requirements":{"required_capabilities":["gpu"]}},"lane_id":"other")");
  const auto grant = [&](const std::string& id, const std::string& more_keys) {
    return post("/v1/executions/" + id + "/grant",
                R"({"worker_id":"w1","grant_ttl_ms":100)" + more_keys + "}");
  };
  EXPECT_EQ(grant(needy, R"(,"lane_id":"other")").at("/code"), "capability_mismatch");
  EXPECT_EQ(grant(needy, R"(,"lane_id":"other","capabilities":["a b"])").at("/code"), "invalid_capabilities");
  EXPECT_EQ(grant(needy, R"(,"capabilities":["gpu"])").at("/code"), "execution_not_in_eligible_set");
  EXPECT_EQ(grant(kNobody, "").at("/code"), "execution_not_found");
}

TEST_P(HttpOperators, TakeAnExecutionThemselves) {
  const auto reserved = submitted();
  post("/v1/executions/" + reserved + "/grant", R"({"worker_id":"w1","grant_ttl_ms":60000})");
  EXPECT_EQ(post("/v1/executions/" + reserved + "/claim").at("/code"), "grant_already_exists");
  const auto id = submitted();
  const auto path = "/v1/executions/" + id + "/claim";
  const auto task = post(path, R"({"lease_ttl_ms":5000})");
  ASSERT_EQ(task.status, 200) << task.body;
  EXPECT_EQ(task.at("/execution_id"), id);
  EXPECT_EQ(state_of(id), "\"active\"");
  EXPECT_EQ(post(path).status, 409);
}

// ---- holding back ----

TEST_P(HttpOperators, BlockAndUnblock) {
  const auto id = submitted();
  const auto path = "/v1/executions/" + id;
  EXPECT_EQ(post(path + "/block", R"({"reason":"waiting_for_capable_worker","detail":"gpu"})").status, 200);
  EXPECT_EQ(get(path).at("/state_vector/blocking_reason"), "waiting_for_capable_worker");
  EXPECT_EQ(post(path + "/unblock", R"({"expected_reason":"waiting_for_budget"})").status, 409);
  EXPECT_EQ(
      post(path + "/unblock", R"({"expected_reason":"waiting_for_capable_worker"})").at("/public_state"),
      "waiting");
  EXPECT_EQ(get(path).at("/state_vector/eligibility_state"), "eligible_now");
  expect_shape_refused(post(path + "/block", R"({"reason":"moonlight"})"), "an unknown word");
  expect_shape_refused(post(path + "/unblock", "{}"), "none");
  EXPECT_EQ(post(path + "/block", R"({"reason":"waiting_for_signal"})").status, 400);
  const auto running_path = "/v1/executions/" + running().execution_id;
  EXPECT_EQ(post(running_path + "/block", R"({"reason":"paused_by_policy"})").at("/code"),
            "execution_not_eligible");
  const auto nobody = "/v1/executions/" + kNobody;
  EXPECT_EQ(post(nobody + "/block", R"({"reason":"paused_by_policy"})").at("/code"), "execution_not_found");
  EXPECT_EQ(post(nobody + "/unblock", R"({"expected_reason":"paused_by_policy"})").at("/code"),
            "execution_not_found");
}

// ---- limits ----

TEST_P(HttpOperators, RecordWhatWasSpentAndGiveItBack) {
  const std::string budget = "/v1/budgets/550e8400-e29b-41d4-a716-446655440000";
  post("/v1/budgets", R"({"budget_id":"550e8400-e29b-41d4-a716-446655440000","scope_type":"lane",)"
                      R"("scope_id":"main","dimensions":["t"],"hard_limits":[10],"soft_limits":[0]})");
  const auto id = submitted();
  const auto spend = [&](int amount) {
    return post(budget + "/spend",
                R"({"execution_id":")" + id + R"(","dimensions":{"t":)" + std::to_string(amount) + "}}");
  };
  EXPECT_EQ(spend(8).body, R"({"outcome":"ok"})");
  EXPECT_EQ(spend(3).body, R"({"outcome":"hard_breach","dimension":"t","current_usage":8,"hard_limit":10})");
  EXPECT_EQ(get(budget + "/spending").at("/spendings/0/spent"), R"({"t":8})");
  EXPECT_EQ(post(budget + "/release", who(id)).body, R"({"outcome":"released"})");
  EXPECT_EQ(get(budget).at("/usage"), R"({"t":0})");
  EXPECT_EQ(post("/v1/budgets/550e8400-e29b-41d4-a716-446655440001/release", who(id)).status, 404);
  expect_shape_refused(post(budget + "/spend", who(id)), "no dimensions");
}

TEST_P(HttpOperators, AskAQuotaPolicy) {
  const std::string quota = "/v1/quotas/9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e2f";
  post("/v1/quotas", R"({"quota_policy_id":"9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e2f","max_concurrent":1})");
  const auto first = submitted();
  const auto second = submitted();
  EXPECT_EQ(post(quota + "/admission", who(first)).body, R"({"outcome":"admitted"})");
  EXPECT_EQ(post(quota + "/admission", who(first)).body, R"({"outcome":"already_admitted"})");
  EXPECT_EQ(post(quota + "/admission", who(second)).body, R"({"outcome":"concurrency_exceeded"})");
  EXPECT_EQ(post(quota + "/release", who(first)).body, R"({"outcome":"released"})");
  EXPECT_EQ(post(quota + "/admission", who(second)).body, R"({"outcome":"admitted"})");
}

// ---- reading ----

TEST_P(HttpOperators, SeeStreamsAndEdges) {
  const auto task = running();
  report("append", task, R"(,"frame_type":"token","text":"hi")");
  const auto streams = get("/v1/executions/" + task.execution_id + "/streams");
  EXPECT_EQ(streams.at("/streams/0/frame_count"), "1") << streams.body;
  EXPECT_EQ(streams.at("/streams/0/closed_at"), "null");

  const auto flow = post("/v1/flows/submit", R"({"flow_kind":"k","nodes":[{"name":"a","execution_kind":"k"},)"
                                             R"({"name":"b","execution_kind":"k"}],)"
                                             R"("edges":[{"from":"a","to":"b"}]})");
  const auto a = flow.at("/executions/a");
  const auto b = flow.at("/executions/b");
  const auto out = get("/v1/executions/" + a + "/edges");
  ASSERT_EQ(out.size("/edges"), 1u) << out.body;
  EXPECT_EQ(out.at("/edges/0/downstream_execution_id"), b);
  EXPECT_EQ(get("/v1/executions/" + b + "/edges?direction=incoming").at("/edges/0/upstream_execution_id"), a);
  EXPECT_EQ(get("/v1/executions/" + a + "/edges?direction=incoming").size("/edges"), 0u);
  EXPECT_EQ(get("/v1/executions/" + a + "/edges?direction=up").status, 400);
  const auto edge = "/v1/flows/" + flow.at("/flow_id") + "/edges/" + out.at("/edges/0/edge_id");
  EXPECT_EQ(get(edge).at("/dependency_kind"), "success_only");
  EXPECT_EQ(said(get("/v1/flows/" + flow.at("/flow_id") + "/edges/66666666-6666-4666-8666-666666666666")),
            "404 not found: edge");
}

TEST_P(HttpOperators, SeeHowManyLeasesAWorkerHolds) {
  put("/v1/workers/w1-a", R"({"worker_id":"w1"})");
  put("/v1/workers/idle", R"({"worker_id":"w2"})");
  for (int i = 0; i < 3; ++i) submitted();
  post("/v1/tasks/claim", R"({"worker_id":"w1","worker_instance_id":"w1-a","max_tasks":2})");
  const auto workers = get("/v1/workers");
  EXPECT_EQ(workers.at("/workers/0/worker_instance_id"), "idle") << workers.body;
  EXPECT_EQ(workers.at("/workers/0/leases"), "0");
  EXPECT_EQ(workers.at("/workers/1/leases"), "2");
}

TEST_P(HttpOperators, TakeAWorkerOutAndOthersGoOnWithItsWork) {
  put("/v1/workers/w1-a", R"({"worker_id":"w1"})");
  const auto id = submitted();
  post("/v1/tasks/claim", R"({"worker_id":"w1","worker_instance_id":"w1-a","lease_ttl_ms":3600000})");
  EXPECT_EQ(remove("/v1/workers/w1-a").at("/was_registered"), "true");
  const auto again = post("/v1/tasks/claim", R"({"worker_id":"w2"})");
  ASSERT_EQ(again.size("/tasks"), 1u) << again.body;
  EXPECT_EQ(again.at("/tasks/0/execution_id"), id);
  EXPECT_EQ(again.at("/tasks/0/attempt_type"), "reclaim");
}

TEST_P(HttpOperators, SeeAnOverview) {
  const auto nothing = get("/v1/overview");
  EXPECT_EQ(nothing.at("/oldest_waiting_at"), "null") << nothing.body;
  EXPECT_EQ(nothing.at("/counts"), "{}");
  put("/v1/workers/w1-a", R"({"worker_id":"w1"})");
  report("complete", running());
  submitted(R"(,"lane_id":"other")");
  const auto seen = get("/v1/overview");
  EXPECT_EQ(seen.at("/counts/completed"), "1") << seen.body;
  EXPECT_EQ(seen.at("/counts/waiting"), "1");
  EXPECT_EQ(seen.at("/lanes"), "2");
  EXPECT_EQ(seen.at("/workers"), "1");
  EXPECT_GT(std::stoll(seen.at("/oldest_waiting_at")), 0);
  // Whole seconds are counted.
  EXPECT_TRUE(
      eventually([&] { return std::stod(get("/v1/overview").at("/rates/submitted_per_second")) > 0; }));
  EXPECT_GT(std::stod(get("/v1/overview").at("/rates/completed_per_second")), 0);
  EXPECT_EQ(std::stod(get("/v1/overview").at("/rates/failed_per_second")), 0);
}

TEST_P(HttpOperators, RegisterLanes) {
  EXPECT_EQ(send({.method = "PUT", .path = "/v1/lanes/mail"}).body, R"({"lane_id":"mail","state":"active"})");
  post("/v1/lanes/mail/pause");
  EXPECT_EQ(send({.method = "PUT", .path = "/v1/lanes/mail"}).at("/state"), "paused") << "nothing changes";
  EXPECT_EQ(send({.method = "PUT", .path = "/v1/lanes/" + std::string(65, 'x')}).status, 400);
}

TEST_P(HttpOperators, CheckTheStoreWhileItIsServed) {
  running();
  const auto report = post("/v1/admin/check");
  EXPECT_EQ(report.at("/found"), "0") << report.body;
  EXPECT_EQ(report.at("/executions"), "1");
  EXPECT_EQ(post("/v1/admin/check", R"({"repair":true})").at("/repaired"), "0");
  expect_shape_refused(post("/v1/admin/check", R"({"repair":"yes"})"), "no boolean");
}

}  // namespace
}  // namespace flowfabric::tests
