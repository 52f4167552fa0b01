// Refusals that the OpenAPI document names one by one (`x-error-codes`) and that no other test meets.
#include "suspension_support.h"

namespace flowfabric::tests {
namespace {

class HttpRefusals : public HttpSuspensionTest {
 protected:
  static std::string code(const Reply& reply) {
    return std::to_string(reply.status) + " " + (reply.body.empty() ? "" : reply.at("/code"));
  }
  // The reports that a worker may make under a lease, with their required keys.
  static std::vector<std::pair<std::string, std::string>> ops() {
    return {{"complete", ""},         {"fail", ""},
            {"cancel", ""},           {"renew", ""},
            {"progress", ""},         {"delay", R"(,"delay_ms":1000)"},
            {"wait_children", ""},    {"suspend", ""},
            {"create_waitpoint", ""}, {"append", R"(,"frame_type":"token","text":"x")"}};
  }
  static std::string with_other_lease_id(std::string lease) {
    const std::string key = R"("lease_id":")";
    return lease.replace(lease.find(key) + key.size(), 8, "00000000");
  }
  std::string execution(const Task& task, const std::string& what) const {
    return "/v1/executions/" + task.execution_id + what;
  }

  // A flow in partition 16, with members that are named by one digit.
  static constexpr const char* kFlow = "7c9e6679-7425-40de-944b-e07fc1f90ae7";
  static std::string member(char digit) {
    return std::string("{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c00") + digit;
  }
  std::string of_flow(const std::string& what) const { return std::string("/v1/flows/") + kFlow + what; }
  Reply add(char digit) {
    submitted(R"(,"execution_id":")" + member(digit) + "\"");
    return post(of_flow("/members"), R"({"flow_id":")" + std::string(kFlow) + R"(","execution_id":")" +
                                         member(digit) + R"(","now":1})");
  }
  void make_flow(const std::string& digits) {
    post("/v1/flows",
         R"({"flow_id":")" + std::string(kFlow) + R"(","flow_kind":"f","namespace":"default","now":1})");
    for (const char digit : digits) ASSERT_EQ(add(digit).status, 201);
  }
  Reply edge(const std::string& path, const std::string& edge_id, char from, char to, int revision) {
    const auto number = std::to_string(revision);
    return post(of_flow(path), R"({"flow_id":")" + std::string(kFlow) + R"(","edge_id":")" + edge_id +
                                   R"(","upstream_execution_id":")" + member(from) +
                                   R"(","downstream_execution_id":")" + member(to) +
                                   R"(","expected_graph_revision":)" + number + R"(,"graph_revision":)" +
                                   number + R"(,"now":1})");
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpRefusals, kHttpStores, http_store_name);

// ---- workers ----

TEST_P(HttpRefusals, OfReportsAboutNobody) {
  auto task = running();
  task.execution_id.back() = task.execution_id.back() == '0' ? '1' : '0';
  for (const auto& [op, keys] : ops()) {
    EXPECT_EQ(code(report(op, task, keys)), "404 execution_not_found") << op;
  }
}

TEST_P(HttpRefusals, OfReportsWithAnotherLease) {
  auto task = running();
  task.lease = with_other_lease_id(task.lease);
  for (const auto& [op, keys] : ops()) {
    const auto* wanted = op == "append" ? "409 stale_owner_cannot_append" : "409 stale_lease";
    EXPECT_EQ(code(report(op, task, keys)), wanted) << op;
  }
}

TEST_P(HttpRefusals, OfReportsAfterTheLeaseWasTakenAway) {
  const auto task = running();
  ASSERT_EQ(post(execution(task, "/revoke-lease")).status, 200);
  for (const auto& [op, keys] : ops()) {
    const auto* wanted = op == "append" ? "409 stale_owner_cannot_append" : "409 lease_revoked";
    EXPECT_EQ(code(report(op, task, keys)), wanted) << op;
  }
  EXPECT_EQ(code(post(execution(task, "/cancel"), R"({"reason":"r","source":"lease_holder",)" +
                                                      task.lease.substr(1, task.lease.size() - 2) + "}")),
            "409 lease_revoked");
}

TEST_P(HttpRefusals, OfReportsAfterTheLeaseRanOut) {
  submitted();
  const auto claim = post("/v1/tasks/claim", R"({"worker_id":"w","lease_ttl_ms":1000})");
  const Task task{claim.at("/tasks/0/execution_id"), claim.at("/tasks/0/lease"), "0"};
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  for (const auto& [op, keys] : ops()) {
    const auto* wanted = op == "append" ? "409 stale_owner_cannot_append" : "409 lease_expired";
    EXPECT_EQ(code(report(op, task, keys)), wanted) << op;
  }
  EXPECT_EQ(code(post(execution(task, "/cancel"), R"({"reason":"r","source":"lease_holder",)" +
                                                      task.lease.substr(1, task.lease.size() - 2) + "}")),
            "409 lease_expired");
}

TEST_P(HttpRefusals, OfReportsAboutWhatHasEnded) {
  const auto task = running();
  ASSERT_EQ(report("complete", task).status, 200);
  for (const auto& [op, keys] : ops()) {
    if (op == "complete") continue;  // its own answer, once more
    const auto* wanted = op == "append"   ? "409 stream_closed"
                         : op == "cancel" ? "409 terminal"
                                          : "409 execution_not_active";
    EXPECT_EQ(code(report(op, task, keys)), wanted) << op;
  }
}

TEST_P(HttpRefusals, OfWaitingForChildrenAreOnlyThese) {
  const auto task = running();
  EXPECT_EQ(report("wait_children", task).at("/outcome"), "waiting_children");
  EXPECT_EQ(report("wait_children", task).at("/outcome"), "waiting_children") << "once more";
  EXPECT_EQ(get(execution(task, "/state")).at(""), "waiting") << "without children it is back in line";
}

TEST_P(HttpRefusals, OfSummariesThatGrowTooLarge) {
  const auto task = running();
  const std::string much(60'000, 'x');
  std::string last;
  for (int i = 0; i < 18 && last.empty(); ++i) {
    const auto reply = report("append", task,
                              R"(,"frame_type":"summary_token","mode":"summary","payload":{"k)" +
                                  std::to_string(i) + R"(":")" + much + "\"}");
    if (reply.status != 200) last = code(reply);
  }
  EXPECT_EQ(last, "400 payload_too_large");
}

TEST_P(HttpRefusals, OfCapabilitiesThatAreNone) {
  const std::string bad = R"(["a,b"])";
  EXPECT_EQ(code(post("/v1/tasks/claim", R"({"worker_id":"w","capabilities":)" + bad + "}")),
            "400 invalid_capabilities");
  EXPECT_EQ(code(put("/v1/workers/w",
                     R"({"worker_id":"w","lanes":["default"],"liveness_ttl_ms":60000,"capabilities":)" + bad +
                         "}")),
            "400 invalid_capabilities");
  EXPECT_EQ(
      code(post("/v1/flows/submit", R"({"flow_kind":"f","nodes":[{"name":"a","execution_kind":"k","policy":)"
                                    R"({"routing_requirements":{"required_capabilities":)" +
                                        bad + "}}}]}")),
      "400 invalid_capabilities");
}

// ---- suspending ----

TEST_P(HttpRefusals, OfWaitpointsThatCannotBeUsed) {
  const auto use = [](const std::string& id) {
    return R"(,"waitpoints":[{"UsePending":{"waitpoint_id":")" + id + R"("}}])";
  };
  const auto task =
      running(R"(,"policy":{"retry_policy":{"max_retries":3,"backoff":{"type":"fixed","delay_ms":0}}})");
  EXPECT_EQ(code(report("suspend", task, use("33333333-3333-4333-8333-333333333333") + under(any()))),
            "409 waitpoint_not_found");
  const auto used = pending(task, R"(,"waitpoint_key":"gate")");
  const auto old = pending(task, R"(,"waitpoint_key":"old")");
  suspend(task, use(used.waitpoint_id) + under(any()));
  ASSERT_EQ(effect(used), "resume_condition_satisfied");
  auto again = claimed();
  EXPECT_EQ(code(report("suspend", again, use(used.waitpoint_id) + under(any()))),
            "409 waitpoint_not_pending");
  ASSERT_EQ(report("fail", again).at("/outcome"), "retry_scheduled");
  again = claimed();
  EXPECT_EQ(code(report("suspend", again, use(old.waitpoint_id) + under(any("old")))),
            "400 invalid_waitpoint_for_execution");
}

TEST_P(HttpRefusals, OfSuspendingForWhatHasCome) {
  const auto task = running();
  const auto early = pending(task, R"(,"waitpoint_key":"gate")");
  ASSERT_EQ(effect(early), "buffered_for_pending_waitpoint");
  const auto keys =
      R"(,"waitpoints":[{"UsePending":{"waitpoint_id":")" + early.waitpoint_id + R"("}}])" + under(any());
  EXPECT_EQ(code(report("suspend", task, keys + R"(,"strict":true)")), "409 already_satisfied");
  EXPECT_EQ(report("suspend", task, keys).at("/outcome"), "already_satisfied");
}

// ---- executions ----

TEST_P(HttpRefusals, OfCancelsThatDoNotSayWhoSpeaks) {
  const auto task = running();
  const auto cancel = [&](const std::string& keys) {
    return code(post(execution(task, "/cancel"), R"({"reason":"r","source":"lease_holder")" + keys + "}"));
  };
  EXPECT_EQ(cancel(""), "400 fence_required");
  EXPECT_EQ(cancel(R"(,"lease_epoch":1)"), "400 partial_fence_triple");
}

TEST_P(HttpRefusals, OfTags) {
  const std::string bad = R"("tags":{"":"x"})";
  EXPECT_EQ(code(post("/v1/executions", R"({"execution_kind":"k",)" + bad + "}")), "400 invalid_tag_key");
  EXPECT_EQ(code(post("/v1/flows", R"({"flow_id":")" + std::string(kFlow) +
                                       R"(","flow_kind":"f","namespace":"n","now":1,)" + bad + "}")),
            "400 invalid_tag_key");
  EXPECT_EQ(code(post("/v1/flows/submit",
                      R"({"flow_kind":"f","nodes":[{"name":"a","execution_kind":"k"}],)" + bad + "}")),
            "400 invalid_tag_key");
  EXPECT_EQ(code(put("/v1/executions/" + member('1') + "/tags", R"({"tags":{"a.b":"c"}})")),
            "404 execution_not_found");
}

TEST_P(HttpRefusals, OfHoldingWhatRuns) {
  EXPECT_EQ(code(post(execution(running(), "/hold"))), "409 execution_not_eligible");
}

TEST_P(HttpRefusals, OfListingsThatAskForTooMuch) {
  for (const auto* path :
       {"/v1/lanes", "/v1/workers", "/v1/leases/expired", "/v1/budgets", "/v1/quotas", "/v1/flows"}) {
    for (const auto* query :
         {"?limit=0", "?limit=100001", "?limit=x", "?limit=", "?limit=1&limit=2", "?limit=%zz"})
      EXPECT_EQ(code(get(std::string(path) + query)), "400 invalid_input") << path << query;
  }
}

// ---- flows ----

TEST_P(HttpRefusals, OfEdgesToWhatHasEnded) {
  make_flow("123");
  const std::string first = "66666666-6666-4666-8666-666666666666";
  ASSERT_EQ(edge("/edges", first, '1', '3', 3).status, 201);
  ASSERT_EQ(post("/v1/executions/" + member('3') + "/cancel", R"({"reason":"r"})").status, 200);
  EXPECT_EQ(code(edge("/edges/apply", first, '1', '3', 4)), "409 group_already_terminal");
  EXPECT_EQ(code(edge("/edges", "66666666-6666-4666-8666-666666666667", '2', '3', 4)),
            "409 group_already_terminal");
}

TEST_P(HttpRefusals, OfMembersThatABudgetDenies) {
  make_flow("1");
  const std::string budget = "550e8400-e29b-41d4-a716-446655440000";
  ASSERT_EQ(
      post(
          "/v1/budgets",
          R"({"budget_id":")" + budget + R"(","scope_type":"flow","scope_id":")" + kFlow +
              R"(","enforcement_mode":"strict","on_hard_limit":"deny_child","on_soft_limit":"warn",)" +
              R"("reset_interval_ms":0,"dimensions":["tokens"],"hard_limits":[10],"soft_limits":[0],"now":1})")
          .status,
      201);
  ASSERT_EQ(post("/v1/budgets/" + budget + "/usage", R"({"dimensions":{"tokens":10},"now":1})").status, 200);
  EXPECT_EQ(code(add('2')), "409 budget_exceeded");
}

TEST_P(HttpRefusals, OfFlowsForALaneThatTakesNothing) {
  ASSERT_EQ(post("/v1/lanes/closed/drain").status, 200);
  EXPECT_EQ(code(post("/v1/flows/submit",
                      R"({"flow_kind":"f","nodes":[{"name":"a","execution_kind":"k","lane_id":"closed"}]})")),
            "409 lane_not_accepting");
}

TEST_P(HttpRefusals, OfPoliciesOfTheWrongShape) {
  make_flow("1");
  const auto path = of_flow("/groups/" + member('1'));
  for (const auto* body :
       {"[]", "null", "{}", R"({"kind":1})", R"({"kind":"quorum","k":"1","on_satisfied":"let_run"})"})
    expect_shape_refused(put(path, body), body);
}

// ---- limits ----

TEST_P(HttpRefusals, OfLimitsForNobody) {
  const std::string budget = "/v1/budgets/550e8400-e29b-41d4-a716-446655440000";
  const std::string quota = "/v1/quotas/9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e2f";
  ASSERT_EQ(
      post(
          "/v1/budgets",
          R"({"budget_id":"550e8400-e29b-41d4-a716-446655440000","scope_type":"lane","scope_id":"x",)"
          R"("enforcement_mode":"strict","on_hard_limit":"fail","on_soft_limit":"warn","reset_interval_ms":0,)"
          R"("dimensions":["t"],"hard_limits":[1],"soft_limits":[0],"now":1})")
          .status,
      201);
  ASSERT_EQ(
      post("/v1/quotas", R"({"quota_policy_id":"9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e2f","window_seconds":60,)"
                         R"("max_requests_per_window":1,"max_concurrent":1,"now":1})")
          .status,
      201);
  EXPECT_EQ(
      code(post(
          "/v1/budgets",
          R"({"budget_id":"550e8400-e29b-41d4-a716-446655440001","scope_type":"galaxy","scope_id":"x",)"
          R"("enforcement_mode":"strict","on_hard_limit":"fail","on_soft_limit":"warn","reset_interval_ms":0,)"
          R"("dimensions":["t"],"hard_limits":[1],"soft_limits":[0],"now":1})")),
      "400 invalid_budget_scope");
  const auto nobody = R"({"scope_type":"execution","scope_id":")" + member('1') + "\"}";
  for (const auto& limit : {budget, quota}) {
    for (const auto* verb : {"/attach", "/detach"}) {
      EXPECT_EQ(code(post(limit + verb, nobody)), "404 execution_not_found") << limit << verb;
      EXPECT_EQ(code(post(limit + verb, R"({"scope_type":"galaxy","scope_id":"x"})")),
                "400 invalid_budget_scope")
          << limit << verb;
    }
  }
  EXPECT_EQ(
      code(post(
          "/v1/quotas",
          R"({"quota_policy_id":"9a1de5f0-0c2b-4f57-8d0e-5a3b7c9d1e20","window_seconds":18446744073709551615,)"
          R"("max_requests_per_window":1,"max_concurrent":1,"now":1})")),
      "400 invalid_quota_spec");
}

}  // namespace
}  // namespace flowfabric::tests
