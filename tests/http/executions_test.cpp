// Executions over HTTP (07 §5.1 to §5.3, §5.5, §5.7; 09 §2).
#include "http_fixture.h"

namespace flowfabric::tests {
namespace {

class HttpExecutions : public HttpTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpExecutions, kHttpStores, http_store_name);

constexpr const char* kId = "{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001";
constexpr const char* kPath = "/v1/executions/%7Bfp:16%7D:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001";
constexpr const char* kNobody = "/v1/executions/{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff";

std::string full_body(const std::string& id = kId) {
  return R"({"execution_id":")" + id +
         R"(","namespace":"acme","lane_id":"main","execution_kind":"resize",
    "input_payload":[123,34,110,34,58,49,125],"payload_encoding":"json","priority":5,
    "creator_identity":"cli","tags":{"acme.team":"img"},"policy_json":"stray",
    "policy":{"retry_policy":{"max_retries":2,"backoff":{"type":"fixed","delay_ms":500}}},
    "partition_id":0,"now":1767225600000,"idempotency_key":null})";
}

TEST_P(HttpExecutions, AreCreatedWithTheBodyOfTheReference) {
  const auto created = post("/v1/executions", full_body());
  EXPECT_EQ(created.status, 201) << created.body;
  EXPECT_EQ(created.at("/Created/execution_id"), kId);
  EXPECT_EQ(created.at("/Created/public_state"), "waiting");
  EXPECT_EQ(created.header("content-type"), "application/json");
  const auto again = post("/v1/executions", full_body());
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, std::string(R"({"Duplicate":{"execution_id":")") + kId + "\"}}");
}

TEST_P(HttpExecutions, AreCreatedWithAKindAlone) {
  const auto created = post("/v1/executions", R"({"execution_kind":"k"})");
  ASSERT_EQ(created.status, 201) << created.body;
  const auto seen = get("/v1/executions/" + created.at("/Created/execution_id"));
  EXPECT_EQ(seen.at("/namespace"), "default");
  EXPECT_EQ(seen.at("/lane_id"), "default");
  EXPECT_EQ(seen.at("/priority"), "0");
}

TEST_P(HttpExecutions, AreDelayedUntilTheirTime) {
  EXPECT_EQ(post("/v1/executions", R"({"execution_kind":"k","delay_until":99999999999999})")
                .at("/Created/public_state"),
            "delayed");
}

TEST_P(HttpExecutions, OfWrongShapeAreRefused) {
  for (const auto* body :
       {R"({})", R"([])", R"("x")", R"({"execution_kind":5})", R"({"execution_kind":"k","priority":5.0})",
        R"({"execution_kind":"k","priority":"5"})", R"({"execution_kind":"k","priority":2147483648})",
        R"({"execution_kind":"k","tags":null})", R"({"execution_kind":"k","tags":{"a":1}})",
        R"({"execution_kind":"k","execution_kind":"k"})", R"({"execution_kind":"k","execution_id":"x"})",
        R"({"execution_kind":"k","lane_id":""})", R"({"execution_kind":"k","input_payload":"text"})",
        R"({"execution_kind":"k","input_payload":[256]})", R"({"execution_kind":"k","policy":[]})",
        R"({"execution_kind":"k","input":1,"input_base64":"YQ=="})",
        R"({"execution_kind":"k","input_base64":"?"})"}) {
    const auto refused = post("/v1/executions", body);
    EXPECT_EQ(refused.status, 422) << body << refused.body;
    EXPECT_EQ(refused.at("/error"), "invalid JSON: Unprocessable Entity") << body;
    EXPECT_EQ(refused.at("/code"), "invalid_input");
    EXPECT_TRUE(refused.has("/detail")) << body;
  }
}

TEST_P(HttpExecutions, OfBrokenJsonAreRefused) {
  const std::string deep(129, '[');
  for (const auto& body : {std::string("{"), std::string(R"({"execution_kind":"k"} x)"), std::string(""),
                           std::string(R"({"execution_kind":"\ud800"})"), deep + std::string(129, ']'),
                           std::string("{\"execution_kind\":\"\xff\"}")}) {
    const auto refused = post("/v1/executions", body);
    EXPECT_EQ(refused.status, 400) << body;
    EXPECT_EQ(refused.at("/error"), "invalid JSON: Bad Request") << body;
  }
  EXPECT_EQ(send({.method = "POST", .path = "/v1/executions", .body = R"({"execution_kind":"k"})"}).status,
            415);
}

TEST_P(HttpExecutions, ThatAreNotAllowedAreRefused) {
  for (const auto* body :
       {R"({"execution_kind":"k","policy":{"routing_requirements":{"required_capabilities":["a,b"]}}})",
        R"({"execution_kind":"a\u0000b"})",
        R"({"execution_kind":"k","execution_id":"{fp:999}:0b6d7a526f0e4c1e9f5e2b9a64d1c001"})",
        R"({"execution_kind":"k","policy":{"retry_policy":5}})"}) {
    const auto refused = post("/v1/executions", body);
    EXPECT_EQ(refused.status, 400) << body << refused.body;
    EXPECT_TRUE(refused.has("/code"));
  }
}

TEST_P(HttpExecutions, AreRead) {
  post("/v1/executions", full_body());
  const auto seen = get(kPath);
  EXPECT_EQ(seen.status, 200);
  EXPECT_EQ(seen.keys(), (std::vector<std::string>{"blocking_detail", "created_at", "current_attempt_index",
                                                   "execution_id", "execution_kind", "flow_id", "lane_id",
                                                   "namespace", "priority", "public_state", "state_vector"}));
  EXPECT_EQ(seen.at("/execution_id"), kId);
  EXPECT_EQ(seen.at("/flow_id"), "null");
  EXPECT_EQ(seen.at("/blocking_detail"), "");
  EXPECT_EQ(seen.at("/state_vector/lifecycle_phase"), "runnable");
  EXPECT_EQ(seen.at("/state_vector/public_state"), "waiting");
  EXPECT_EQ(seen.keys("/state_vector").size(), 7u);
  EXPECT_EQ(get(std::string(kPath) + "/state").body, "\"waiting\"");
  // However the id is spelled.
  for (const auto* path : {"/v1/executions/{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001",
                           "/v1/executions/%7Bfp%3A16%7D%3A0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001",
                           "/v1/executions/{fp:016}:0B6D7A52-6F0E-4C1E-9F5E-2B9A64D1C001"}) {
    EXPECT_EQ(get(path).at("/execution_id"), kId) << path;
  }
}

TEST_P(HttpExecutions, ThatAreNotThereAreNotFound) {
  const auto missing = get(kNobody);
  EXPECT_EQ(missing.status, 404);
  EXPECT_EQ(missing.at("/error"), "execution not found: {fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff");
  EXPECT_EQ(missing.at("/code"), "execution_not_found");
  EXPECT_EQ(get(std::string(kNobody) + "/result").at("/error"),
            "execution result not found: {fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff");
  for (const auto* what : {"/state", "/result", "/attempts", "/why", "/tags", "/snapshot", "/input", "/wait",
                           "/events", "/suspension", "/pending-waitpoints"}) {
    EXPECT_EQ(get(kNobody + std::string(what)).status, 404) << what;
  }
  for (const auto* what : {"/replay", "/revoke-lease", "/release"}) {
    EXPECT_EQ(post(kNobody + std::string(what)).status, 404) << what;
  }
  EXPECT_EQ(put(kNobody + std::string("/priority"), R"({"new_priority":1})").status, 404);
  EXPECT_EQ(post(kNobody + std::string("/cancel"), R"({"reason":"r"})").status, 404);
  EXPECT_EQ(get("/v1/executions/nonsense").status, 400);
  EXPECT_EQ(get("/v1/executions/%ff").status, 400);
  EXPECT_EQ(get("/v1/executions/%zz").status, 400);
}

TEST_P(HttpExecutions, TellTheirLimitsAndMarks) {
  const std::string budget = "0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0b1";
  const std::string policy = "0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0c1";
  const auto limited =
      submitted(R"(,"policy":{"budget_ids":[")" + budget + R"("],"quota_policy_id":")" + policy + R"("})");
  const auto seen = get("/v1/executions/" + limited + "/snapshot");
  EXPECT_EQ(seen.at("/budget_ids/0"), budget);
  EXPECT_EQ(seen.at("/quota_policy_id"), policy);
  for (const auto* mark :
       {"/last_failure_message", "/last_capability_mismatch_at", "/last_hmac_validation_failed_at"}) {
    EXPECT_EQ(seen.at(mark), "null") << mark;
  }
  const auto refused = post(
      "/v1/executions/" + limited + "/signal",
      R"({"waitpoint_id":"0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff","waitpoint_token":"k1:00","signal_name":"go"})");
  EXPECT_GE(refused.status, 400) << refused.body;
  EXPECT_NE(get("/v1/executions/" + limited + "/snapshot").at("/last_hmac_validation_failed_at"), "null");
}

TEST_P(HttpExecutions, GiveTheirResultAsBytes) {
  const auto task = running();
  EXPECT_EQ(get("/v1/executions/" + task.execution_id + "/result").status, 404);
  EXPECT_EQ(report("complete", task, R"(,"result_base64":"AP8=")").body, R"({"outcome":"completed"})");
  const auto result = get("/v1/executions/" + task.execution_id + "/result");
  EXPECT_EQ(result.status, 200);
  EXPECT_EQ(result.header("content-type"), "application/octet-stream");
  EXPECT_EQ(result.body, std::string("\0\xff", 2));
  const auto seen = get("/v1/executions/" + task.execution_id);
  EXPECT_GT(std::stoll(seen.at("/started_at")), 0);
  EXPECT_GT(std::stoll(seen.at("/completed_at")), 0);
  const auto attempts = get("/v1/executions/" + task.execution_id + "/attempts");
  EXPECT_EQ(attempts.at("/attempts/0/attempt_state"), "ended_success");
  EXPECT_EQ(attempts.at("/attempts/0/result_base64"), "AP8=");
}

TEST_P(HttpExecutions, KeepJsonAsItWasSent) {
  const auto id =
      submitted(R"(,"input": { "n" : 1.10, "big": 123456789012345678901234567890, "s":"\u00e4" })");
  EXPECT_NE(get("/v1/executions/" + id + "/input")
                .body.find("\"input\":{\"n\":1.10,\"big\":123456789012345678901234567890,\"s\":\"ä\"}"),
            std::string::npos);
}

TEST_P(HttpExecutions, AreListedByPartition) {
  post("/v1/executions", full_body());
  post("/v1/executions", full_body("{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c002"));
  const auto first = get("/v1/executions?partition=16&limit=1");
  EXPECT_EQ(first.body, std::string(R"({"executions":[")") + kId + R"("],"next_cursor":")" + kId + "\"}");
  const auto second =
      get("/v1/executions?partition=16&cursor=%7Bfp:16%7D:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001");
  EXPECT_EQ(second.size("/executions"), 1u);
  EXPECT_EQ(second.at("/next_cursor"), "null");
  EXPECT_EQ(get("/v1/executions?partition=16&limit=0").size("/executions"), 0u);
  EXPECT_EQ(get("/v1/executions?partition=9999").size("/executions"), 0u);
  for (const auto* query : {"partition=x", "partition=-1", "partition=65536", "partition=1&partition=2",
                            "partition=1&limit=x", "partition=1&cursor=x", "partition=%zz"}) {
    EXPECT_EQ(get(std::string("/v1/executions?") + query).status, 400) << query;
  }
}

TEST_P(HttpExecutions, AreListedByFilter) {
  post("/v1/executions", full_body());
  submitted();
  const auto all = get("/v1/executions");
  EXPECT_EQ(all.size("/executions"), 2u);
  EXPECT_EQ(all.keys("/executions/0"),
            (std::vector<std::string>{"attempts", "completed_at", "created_at", "execution_id",
                                      "execution_kind", "flow_id", "lane_id", "namespace", "priority",
                                      "public_state", "started_at", "tags"}));
  const auto some = get("/v1/executions?lane=main&state=waiting&state=active&tag=acme.team=img&order=oldest");
  ASSERT_EQ(some.size("/executions"), 1u);
  EXPECT_EQ(some.at("/executions/0/execution_id"), kId);
  const auto page = get("/v1/executions?limit=1");
  EXPECT_EQ(get("/v1/executions?limit=1&cursor=" + page.at("/next_cursor")).size("/executions"), 1u);
  for (const auto* query : {"limit=0", "limit=1001", "order=x", "state=x", "created_after=x", "cursor=x"}) {
    const auto refused = get(std::string("/v1/executions?") + query);
    EXPECT_EQ(refused.status, 400) << query;
    EXPECT_EQ(refused.at("/code"), "invalid_input");
  }
}

TEST_P(HttpExecutions, AreCancelled) {
  post("/v1/executions", full_body());
  const auto path = std::string(kPath) + "/cancel";
  const auto body = std::string(R"({"execution_id":")") + kId + R"(","reason":"r","now":1})";
  EXPECT_EQ(
      post(path, R"({"execution_id":"{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff","reason":"r"})").status,
      400);
  EXPECT_EQ(post(path, "{}").status, 422);
  EXPECT_EQ(post(path, R"({"reason":"r","source":null})").status, 422);
  const auto cancelled = post(path, body);
  EXPECT_EQ(cancelled.status, 200);
  EXPECT_EQ(cancelled.body,
            std::string(R"({"Cancelled":{"execution_id":")") + kId + R"(","public_state":"cancelled"}})");
  EXPECT_EQ(post(path, body).status, 200);
  const auto task = running();
  const auto stale = post(
      "/v1/executions/" + task.execution_id + "/cancel",
      R"({"reason":"r","source":"lease_holder","lease_id":"0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001","lease_epoch":7,"attempt_id":"0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001"})");
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.at("/error"), "state_conflict: StaleLease");
  EXPECT_EQ(stale.at("/kind"), "state_conflict");
  EXPECT_EQ(stale.at("/retryable"), "false");
  report("complete", task);
  const auto late = post("/v1/executions/" + task.execution_id + "/cancel", R"({"reason":"r"})");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(late.at("/kind"), "terminal");
}

TEST_P(HttpExecutions, ChangeTheirPriority) {
  post("/v1/executions", full_body());
  EXPECT_EQ(put(std::string(kPath) + "/priority", R"({"new_priority":99999})").body,
            std::string(R"({"Changed":{"execution_id":")") + kId + "\"}}");
  EXPECT_EQ(get(kPath).at("/priority"), "9000");
  const auto task = running();
  const auto refused = put("/v1/executions/" + task.execution_id + "/priority", R"({"new_priority":1})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.at("/error"), "contention: ExecutionNotEligible");
  EXPECT_EQ(refused.at("/retryable"), "true");
}

TEST_P(HttpExecutions, AreReplayed) {
  const auto task = running(R"(,"policy":{"max_replay_count":1})");
  const auto path = "/v1/executions/" + task.execution_id + "/replay";
  const auto early = post(path);
  EXPECT_EQ(early.status, 409);
  EXPECT_EQ(early.at("/error"), "execution_not_terminal: ExecutionNotTerminal");
  report("complete", task);
  EXPECT_EQ(post(path).body, R"({"Replayed":{"public_state":"waiting"}})");
  report("complete", claimed());
  EXPECT_EQ(post(path).at("/kind"), "max_replays_exhausted");
}

TEST_P(HttpExecutions, LoseTheirLease) {
  const auto task = running();
  const auto path = "/v1/executions/" + task.execution_id + "/revoke-lease";
  const auto revoked = post(path);
  EXPECT_EQ(revoked.status, 200);
  EXPECT_EQ(revoked.at("/Revoked/lease_epoch"), "1");
  EXPECT_NE(revoked.body.find(R"("lease_epoch":"1")"), std::string::npos) << "a string";
  EXPECT_EQ(post(path).body, R"({"AlreadySatisfied":{"reason":"already_revoked"}})");
  EXPECT_EQ(post("/v1/executions/" + submitted() + "/revoke-lease").body,
            R"({"AlreadySatisfied":{"reason":"no_active_lease"}})");
}

TEST_P(HttpExecutions, AreCreatedManyAtOnce) {
  const auto made =
      post("/v1/executions/bulk",
           R"({"executions":[{"execution_kind":"a"},{"execution_kind":5},{"execution_kind":"a\u0000"}]})");
  EXPECT_EQ(made.status, 200) << made.body;
  EXPECT_EQ(made.at("/results/0/ok/created"), "true");
  EXPECT_EQ(made.at("/results/0/ok/public_state"), "waiting");
  EXPECT_EQ(made.at("/results/1/error/status"), "422");
  EXPECT_EQ(made.at("/results/2/error/status"), "400");
  EXPECT_EQ(post("/v1/executions/bulk", R"({"executions":[]})").status, 400);
}

TEST_P(HttpExecutions, AreWaitedFor) {
  const auto task = running();
  const auto path = "/v1/executions/" + task.execution_id + "/wait";
  EXPECT_EQ(get(path + "?wait_ms=1").status, 204);
  EXPECT_EQ(get(path + "?wait_ms=30001").status, 400);
  report("complete", task, R"(,"result":{"a":[1]})");
  const auto ended = get(path + "?wait_ms=10000");
  EXPECT_EQ(ended.status, 200);
  EXPECT_EQ(ended.at("/public_state"), "completed");
  EXPECT_EQ(ended.at("/result/a/0"), "1");
}

TEST_P(HttpExecutions, TellWhyTheyWait) {
  const auto id = submitted();
  const auto why = get("/v1/executions/" + id + "/why");
  EXPECT_EQ(why.at("/public_state"), "waiting");
  EXPECT_EQ(why.at("/reasons/0/code"), "waiting_for_worker");
}

TEST_P(HttpExecutions, AreTaggedHeldAndReleased) {
  const auto id = submitted(R"(,"tags":{"a":"1"})");
  const auto path = "/v1/executions/" + id;
  EXPECT_EQ(get(path + "/tags").body, R"({"tags":{"a":"1"}})");
  EXPECT_EQ(put(path + "/tags", R"({"tags":{"x.y":"2"}})").body, R"({"tags":{"a":"1","x.y":"2"}})");
  EXPECT_EQ(put(path + "/tags", R"({"tags":{"x.y":null}})").body, R"({"tags":{"a":"1"}})");
  EXPECT_EQ(put(path + "/tags", R"({"tags":{"BAD":"2"}})").at("/code"), "invalid_tag_key");
  EXPECT_EQ(put(path + "/tags", R"({"tags":{"x.y":5}})").status, 422);
  EXPECT_EQ(post(path + "/hold", R"({"reason":"later"})").at("/execution_id"), id);
  EXPECT_EQ(get(path + "/why").at("/reasons/0/code"), "paused_by_operator");
  EXPECT_EQ(post(path + "/release").at("/public_state"), "waiting");
  EXPECT_EQ(post(path + "/release").at("/code"), "execution_not_eligible");
}

TEST_P(HttpExecutions, KeepTheTraceTheyCameWith) {
  const std::string trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
  const auto created = send({.method = "POST",
                             .path = "/v1/executions",
                             .headers = {json_type(), {"traceparent", trace}},
                             .body = R"({"execution_kind":"k"})"});
  ASSERT_EQ(created.status, 201);
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w"})").at("/tasks/0/traceparent"), trace);
}

}  // namespace
}  // namespace flowfabric::tests
