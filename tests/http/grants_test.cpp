// Grants over HTTP: work that is kept for one worker (07 §5.8, §5.9; 02 §5.2, §5.4, §6; 09 §1).
#include "http_checks.h"

namespace flowfabric::tests {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kNobody = "{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff";

std::string partition_of(const std::string& execution_id) {
  return execution_id.substr(0, execution_id.find(':', 4));
}

class HttpGrants : public HttpTest {
 protected:
  // Work for a worker, not yet claimed.
  Reply offer(const std::string& worker, const std::string& more_keys = "", const std::string& ttl = "60000",
              const std::string& lane = "default") {
    return post(
        "/v1/workers/" + worker + "/claim",
        R"({"lane_id":")" + lane + R"(","worker_instance_id":"i-1","grant_ttl_ms":)" + ttl + more_keys + "}");
  }
  Reply reclaim(const std::string& execution_id, const std::string& worker = "w1",
                const std::string& more_keys = "", const std::string& ttl = "60000",
                const std::string& lane = "default") {
    return post("/v1/executions/" + execution_id + "/reclaim",
                R"({"worker_id":")" + worker + R"(","worker_instance_id":"i-1","lane_id":")" + lane +
                    R"(","grant_ttl_ms":)" + ttl + more_keys + "}");
  }
  static std::string grant(const std::string& execution_id, const std::string& key) {
    return R"({"execution_id":")" + execution_id + R"(","grant_key":")" + key + "\"}";
  }
  static std::string grant(const Reply& given) {
    return grant(given.at("/execution_id"), given.at("/grant_key"));
  }
  Reply use(const std::string& worker, const std::string& grants) {
    return post("/v1/tasks/claim", R"({"worker_id":")" + worker + R"(","grants":[)" + grants + "]}");
  }
  // A running execution whose worker has lost it.
  Task lost(const std::string& more_keys = "") {
    const auto task = running(more_keys);
    post("/v1/executions/" + task.execution_id + "/revoke-lease");
    return task;
  }
  std::string state(const std::string& id) { return get("/v1/executions/" + id + "/state").at(""); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpGrants, kHttpStores, http_store_name);

// ---- new work ----

TEST_P(HttpGrants, KeepAnExecutionForAWorker) {
  const auto id = submitted();
  const auto given = offer("w1");
  EXPECT_EQ(given.status, 200) << given.body;
  EXPECT_EQ(given.keys(), (Names{"execution_id", "expires_at_ms", "grant_key", "partition_key"}));
  EXPECT_EQ(given.at("/execution_id"), id);
  EXPECT_EQ(given.at("/partition_key"), partition_of(id));
  EXPECT_FALSE(contains(given.body, R"("expires_at_ms":")")) << "an integer";
  EXPECT_NE(given.at("/grant_key"), "");
  EXPECT_EQ(state(id), "waiting") << "a grant changes nothing";
  EXPECT_EQ(offer("w2").status, 204) << "it is taken";
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w2"})").size("/tasks"), 0u);
}

TEST_P(HttpGrants, AreNotGivenWhenThereIsNothing) {
  const auto nothing = offer("w1");
  EXPECT_EQ(nothing.status, 204);
  EXPECT_EQ(nothing.body, "");
  submitted(R"(,"lane_id":"other")");
  submitted(R"(,"delay_until":99999999999999)");
  submitted(R"(,"policy":{"routing_requirements":{"required_capabilities":["gpu","tpu"]}})");
  EXPECT_EQ(offer("w1", R"(,"capabilities":["gpu"])").status, 204);
  EXPECT_EQ(offer("w%2F1", R"(,"capabilities":["tpu","gpu","tpu"])").status, 200);
  EXPECT_EQ(offer("w1", "", "1", "other").status, 200);
}

TEST_P(HttpGrants, AreNotGivenOverABudget) {
  const std::string budget = "550e8400-e29b-41d4-a716-446655440000";
  post("/v1/budgets", R"({"budget_id":")" + budget +
                          R"(","scope_type":"lane","scope_id":"main","enforcement_mode":"strict",)"
                          R"("on_hard_limit":"fail","on_soft_limit":"warn","reset_interval_ms":0,)"
                          R"("dimensions":["t"],"hard_limits":[1],"soft_limits":[0],"now":1})");
  ASSERT_EQ(post("/v1/budgets/" + budget + "/usage", R"({"dimensions":{"t":1},"now":1})").body, "\"Ok\"");
  submitted(R"(,"policy":{"budget_ids":[")" + budget + R"("]})");
  EXPECT_EQ(offer("w1").status, 204);
}

TEST_P(HttpGrants, EndWithTheirTime) {
  const auto id = submitted();
  const auto given = offer("w1", "", "1");
  ASSERT_EQ(given.status, 200);
  Reply next;
  EXPECT_TRUE(eventually([&] { return (next = offer("w2")).status == 200; }));
  EXPECT_EQ(next.at("/execution_id"), id);
  EXPECT_NE(next.at("/grant_key"), given.at("/grant_key"));
  EXPECT_EQ(use("w1", grant(given)).size("/refused"), 1u) << "too late";
  EXPECT_EQ(use("w2", grant(next)).size("/tasks"), 1u);
}

TEST_P(HttpGrants, AreNotGivenToWhoIsNobody) {
  submitted();
  const std::string long_name(257, 'x');
  for (const auto& worker : {std::string("%20"), std::string("a%09b"), std::string("a%C2%A0b"), long_name}) {
    EXPECT_EQ(offer(worker).status, 400) << worker;
  }
  for (const auto& instance : {std::string(), std::string("a b"), long_name}) {
    EXPECT_EQ(post("/v1/workers/w1/claim",
                   R"({"lane_id":"default","worker_instance_id":")" + instance + R"(","grant_ttl_ms":1})")
                  .status,
              400)
        << instance;
  }
  for (const auto* ttl : {"0", "60001", "18446744073709551615"})
    EXPECT_EQ(offer("w1", "", ttl).status, 400) << ttl;
  for (const auto& lane : {std::string(), std::string(65, 'x'), std::string("ä"), std::string("a\\tb")}) {
    EXPECT_EQ(offer("w1", "", "1", lane).status, 400) << lane;
  }
  std::string many = R"("c")";
  for (int i = 0; i < 256; ++i) many += ",\"c" + std::to_string(i) + "\"";
  for (const auto& capabilities : {std::string(R"("")"), std::string(R"("a,b")"), std::string(R"("a b")"),
                                   std::string(R"("a\tb")"), many, "\"" + std::string(4097, 'x') + "\""}) {
    EXPECT_EQ(offer("w1", R"(,"capabilities":[)" + capabilities + "]").status, 400) << capabilities;
  }
  EXPECT_EQ(offer("w1", R"(,"capabilities":[")" + std::string(4096, 'x') + R"("])").status, 200)
      << "all were refused";
}

TEST_P(HttpGrants, OfWrongShapeAreRefused) {
  for (const auto* body :
       {R"({"worker_instance_id":"i","grant_ttl_ms":1})", R"({"lane_id":"default","grant_ttl_ms":1})",
        R"({"lane_id":"default","worker_instance_id":"i"})",
        R"({"lane_id":"default","worker_instance_id":"i","grant_ttl_ms":"1"})",
        R"({"lane_id":"default","worker_instance_id":"i","grant_ttl_ms":1,"capabilities":null})",
        R"({"lane_id":"default","worker_instance_id":"i","grant_ttl_ms":1,"capabilities":[1]})"}) {
    expect_shape_refused(post("/v1/workers/w1/claim", body), body);
  }
  const auto path = "/v1/executions/" + submitted() + "/reclaim";
  for (
      const auto* body :
      {R"({"worker_instance_id":"i","lane_id":"l","grant_ttl_ms":1})",
       R"({"worker_id":"w","lane_id":"l","grant_ttl_ms":1})",
       R"({"worker_id":"w","worker_instance_id":"i","grant_ttl_ms":1})",
       R"({"worker_id":"w","worker_instance_id":"i","lane_id":"l"})",
       R"({"worker_id":"w","worker_instance_id":"i","lane_id":"l","grant_ttl_ms":1,"worker_capabilities":null})"}) {
    expect_shape_refused(post(path, body), body);
  }
}

// ---- claiming with them ----

TEST_P(HttpGrants, AreClaimed) {
  const auto id = submitted(R"(,"input":{"n":1})");
  const auto given = offer("w1");
  submitted(R"(,"priority":9)");
  const auto claimed = post(
      "/v1/tasks/claim", R"({"worker_id":"w1","worker_instance_id":"i-2","lease_ttl_ms":60000,"grants":[)" +
                             grant(given) + "]}");
  EXPECT_EQ(claimed.status, 200);
  ASSERT_EQ(claimed.size("/tasks"), 1u) << "nothing is searched";
  EXPECT_EQ(claimed.at("/refused"), "[]");
  EXPECT_EQ(claimed.at("/tasks/0/execution_id"), id);
  EXPECT_EQ(claimed.at("/tasks/0/claim"), "fresh");
  EXPECT_EQ(claimed.at("/tasks/0/input/n"), "1");
  EXPECT_EQ(report("complete", {id, claimed.at("/tasks/0/lease"), "0"}).body, R"({"outcome":"completed"})");
}

TEST_P(HttpGrants, AreClaimedAfterASuspension) {
  const auto task = running();
  report("suspend", task);
  post("/v1/executions/" + task.execution_id + "/resume", "{}");
  const auto claimed = use("w1", grant(offer("w1")));
  ASSERT_EQ(claimed.size("/tasks"), 1u) << claimed.body;
  EXPECT_EQ(claimed.at("/tasks/0/execution_id"), task.execution_id);
  EXPECT_EQ(claimed.at("/tasks/0/claim"), "resumed");
  EXPECT_EQ(claimed.at("/tasks/0/attempt_index"), "0");
}

TEST_P(HttpGrants, AreOfUseOnceAndToOneWorker) {
  const auto first = submitted();
  const auto first_grant = grant(offer("w1"));
  const auto second = submitted();
  const auto second_grant = grant(offer("w1"));
  const auto mixed = use("w1", first_grant + "," + grant(kNobody, "x") + "," + grant(second, "nonsense"));
  ASSERT_EQ(mixed.size("/tasks"), 1u) << mixed.body;
  EXPECT_EQ(mixed.at("/tasks/0/execution_id"), first);
  ASSERT_EQ(mixed.size("/refused"), 2u) << mixed.body;
  EXPECT_EQ(mixed.at("/refused/0/execution_id"), kNobody);
  EXPECT_EQ(mixed.at("/refused/0/error/error"), "not found: execution");
  EXPECT_EQ(mixed.at("/refused/1/execution_id"), second);
  EXPECT_EQ(mixed.at("/refused/1/error/code"), "invalid_claim_grant");
  const auto again = use("w1", first_grant);
  EXPECT_EQ(again.size("/tasks"), 0u);
  EXPECT_EQ(again.at("/refused/0/execution_id"), first);
  const auto stolen = use("w2", second_grant);
  EXPECT_EQ(stolen.size("/tasks"), 0u);
  EXPECT_EQ(stolen.at("/refused/0/error/code"), "invalid_claim_grant");
  EXPECT_EQ(use("w1", second_grant).size("/tasks"), 1u) << "it is still good";
}

TEST_P(HttpGrants, AreClaimedInOneRequestUpToALimit) {
  std::string many;
  for (int i = 0; i < 256; ++i) many += (i > 0 ? "," : "") + grant(kNobody, "x");
  EXPECT_EQ(use("w1", many).size("/refused"), 256u);
  EXPECT_EQ(use("w1", many + "," + grant(kNobody, "x")).status, 400);
  for (const auto* grants : {R"({"execution_id":"x","grant_key":"k"})", R"({"grant_key":"k"})", "5",
                             R"({"execution_id":"{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff"})"}) {
    expect_shape_refused(use("w1", grants), grants);
  }
  expect_shape_refused(post("/v1/tasks/claim", R"({"worker_id":"w","grants":{}})"), "no array");
}

// ---- lost work ----

TEST_P(HttpGrants, GiveLostWorkToAnotherWorker) {
  const auto task = lost();
  const auto granted =
      reclaim(task.execution_id, "w1",
              R"(,"capability_hash":"h","route_snapshot_json":"{}","admission_summary":null)");
  EXPECT_EQ(granted.status, 200) << granted.body;
  EXPECT_EQ(granted.keys(),
            (Names{"execution_id", "expires_at_ms", "grant_key", "lane_id", "partition_key", "status"}));
  EXPECT_EQ(granted.at("/status"), "granted");
  EXPECT_EQ(granted.at("/execution_id"), task.execution_id);
  EXPECT_EQ(granted.at("/partition_key"), partition_of(task.execution_id));
  EXPECT_EQ(granted.at("/lane_id"), "default");
  EXPECT_FALSE(contains(granted.body, R"("expires_at_ms":")")) << "an integer";
  const auto other = use("w2", grant(granted));
  EXPECT_EQ(other.size("/refused"), 1u) << other.body;
  const auto claimed = use("w1", grant(granted));
  ASSERT_EQ(claimed.size("/tasks"), 1u) << claimed.body;
  EXPECT_EQ(claimed.at("/tasks/0/claim"), "reclaimed");
  EXPECT_EQ(claimed.at("/tasks/0/attempt_type"), "reclaim");
  EXPECT_EQ(claimed.at("/tasks/0/attempt_index"), "1");
  EXPECT_EQ(report("complete", task).status, 409) << "the old worker is out";
  EXPECT_EQ(report("complete", {task.execution_id, claimed.at("/tasks/0/lease"), "1"}).status, 200);
}

TEST_P(HttpGrants, GiveWorkWhoseLeaseHasExpired) {
  submitted();
  const auto claim = post("/v1/tasks/claim", R"({"worker_id":"w","lease_ttl_ms":1000})");
  const auto id = claim.at("/tasks/0/execution_id");
  EXPECT_EQ(reclaim(id).at("/status"), "not_reclaimable");
  EXPECT_TRUE(eventually([&] { return reclaim(id).at("/status") == "granted"; }));
}

TEST_P(HttpGrants, GiveNothingThatIsNotLost) {
  const auto task = running();
  const auto ended = lost();
  post("/v1/executions/" + ended.execution_id + "/cancel", R"({"reason":"r"})");
  for (const auto& id : {task.execution_id, submitted(), ended.execution_id}) {
    const auto refused = reclaim(id);
    EXPECT_EQ(refused.status, 200);
    EXPECT_EQ(refused.keys(), (Names{"detail", "execution_id", "status"}));
    EXPECT_EQ(refused.at("/status"), "not_reclaimable");
    EXPECT_EQ(refused.at("/execution_id"), id);
    EXPECT_EQ(refused.at("/detail"), "execution_not_reclaimable");
  }
}

TEST_P(HttpGrants, GiveNothingToWhoCannotDoIt) {
  submitted(R"(,"policy":{"routing_requirements":{"required_capabilities":["gpu","asr","llm"]}})");
  const auto claim = post("/v1/tasks/claim", R"({"worker_id":"w","capabilities":["gpu","asr","llm"]})");
  const auto id = claim.at("/tasks/0/execution_id");
  post("/v1/executions/" + id + "/revoke-lease");
  const auto refused = reclaim(id, "w1", R"(,"worker_capabilities":["llm"])");
  EXPECT_EQ(refused.status, 200);
  EXPECT_EQ(refused.at("/status"), "not_reclaimable");
  EXPECT_EQ(refused.at("/detail"), "capability_mismatch: asr,gpu");
  EXPECT_EQ(reclaim(id, "w1", R"(,"worker_capabilities":["llm","gpu","asr","x"])").at("/status"), "granted");
}

TEST_P(HttpGrants, GiveLostWorkToOneAtATime) {
  const auto task = lost();
  EXPECT_EQ(reclaim(task.execution_id).at("/status"), "granted");
  const auto taken = reclaim(task.execution_id, "w2");
  EXPECT_EQ(said(taken), "409 state_conflict: GrantAlreadyExists (state_conflict, final)");
  EXPECT_EQ(taken.at("/code"), "grant_already_exists");
}

// The engine itself ends an execution that may not be reclaimed again; a call before that is refused.
TEST_P(HttpGrants, GiveLostWorkSoManyTimes) {
  const auto asked_in_time = [&] {
    const auto id = lost(R"(,"policy":{"max_reclaim_count":1})").execution_id;
    EXPECT_EQ(use("w1", grant(reclaim(id))).size("/tasks"), 1u);
    post("/v1/executions/" + id + "/revoke-lease");
    const auto refused = reclaim(id);
    EXPECT_EQ(refused.status, 200);
    EXPECT_EQ(state(id), "failed");
    if (refused.at("/status") == "not_reclaimable") return false;
    EXPECT_EQ(refused.body,
              R"({"status":"reclaim_cap_exceeded","execution_id":")" + id + R"(","reclaim_count":1})");
    return true;
  };
  EXPECT_TRUE(eventually(asked_in_time));
}

TEST_P(HttpGrants, GiveNothingToWhoIsNobody) {
  const auto id = lost().execution_id;
  EXPECT_EQ(said(reclaim(kNobody)), "404 not found: execution");
  EXPECT_EQ(reclaim("nonsense").status, 400);
  for (const auto& worker : {std::string(), std::string("a b"), std::string(257, 'x')}) {
    EXPECT_EQ(reclaim(id, worker).status, 400) << worker;
  }
  for (const auto* ttl : {"0", "60001"}) EXPECT_EQ(reclaim(id, "w1", "", ttl).status, 400) << ttl;
  for (const auto& lane : {std::string(), std::string(65, 'x'), std::string("ä")}) {
    EXPECT_EQ(reclaim(id, "w1", "", "1", lane).status, 400) << lane;
  }
  EXPECT_EQ(reclaim(id, "w1", R"(,"worker_capabilities":["a,b"])").status, 400);
  EXPECT_EQ(reclaim(id).at("/status"), "granted") << "all were refused";
}

}  // namespace
}  // namespace flowfabric::tests
