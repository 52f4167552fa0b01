// Workers over HTTP (09 §1).
#include <thread>

#include "http_fixture.h"

namespace flowfabric::tests {
namespace {

class HttpTasks : public HttpTest {
 protected:
  std::string report_json(const std::string& op, const Task& task, const std::string& more_keys = "") {
    return R"({"op":")" + op + R"(","execution_id":")" + task.execution_id + R"(","lease":)" + task.lease +
           more_keys + "}";
  }
  std::string state_of(const Task& task) {
    return get("/v1/executions/" + task.execution_id + "/state").at("");
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpTasks, kHttpStores, http_store_name);

TEST_P(HttpTasks, AreClaimedWithAllAWorkerNeeds) {
  const auto id = submitted(R"(,"namespace":"acme","input":{"n":1},"tags":{"a":"b"},"priority":7)");
  const auto claimed = post("/v1/tasks/claim", R"({"worker_id":"w"})");
  ASSERT_EQ(claimed.status, 200) << claimed.body;
  ASSERT_EQ(claimed.size("/tasks"), 1u);
  EXPECT_EQ(claimed.keys("/tasks/0"),
            (std::vector<std::string>{"attempt_index", "attempt_timeout_at", "attempt_type", "claim",
                                      "deadline_at", "execution_id", "execution_kind", "fallback", "flow_id",
                                      "input", "lane_id", "lease", "namespace", "payload_encoding",
                                      "priority", "resume_signals", "steps", "tags", "traceparent"}));
  EXPECT_EQ(claimed.at("/tasks/0/execution_id"), id);
  EXPECT_EQ(claimed.at("/tasks/0/claim"), "fresh");
  EXPECT_EQ(claimed.at("/tasks/0/attempt_type"), "initial");
  EXPECT_EQ(claimed.at("/tasks/0/input/n"), "1");
  EXPECT_EQ(claimed.at("/tasks/0/payload_encoding"), "json");
  EXPECT_EQ(claimed.keys("/tasks/0/lease"),
            (std::vector<std::string>{"attempt_id", "expires_at", "lease_epoch", "lease_id"}));
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w"})").body, R"({"tasks":[]})");
}

TEST_P(HttpTasks, AreGivenAsBase64WhenTheyAreNoJson) {
  submitted(R"(,"input_payload":[0,255])");
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w"})").at("/tasks/0/input_base64"), "AP8=");
  submitted();
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w"})").at("/tasks/0/input"), "null");
}

TEST_P(HttpTasks, ClaimsAreChecked) {
  for (const auto* body : {R"({"worker_id":""})", R"({"worker_id":"a b"})",
                           R"({"worker_id":"w","max_tasks":0})", R"({"worker_id":"w","max_tasks":257})",
                           R"({"worker_id":"w","lease_ttl_ms":999})", R"({"worker_id":"w","wait_ms":30001})",
                           R"({"worker_id":"w","lanes":[]})", R"({"worker_id":"w","grants":[]})"}) {
    EXPECT_EQ(post("/v1/tasks/claim", body).status, 400) << body;
  }
  for (const auto* body : {R"({})", R"({"worker_id":5})", R"({"worker_id":"w","max_tasks":"1"})",
                           R"({"worker_id":"w","lanes":"default"})", R"({"worker_id":"w","grants":5})"}) {
    EXPECT_EQ(post("/v1/tasks/claim", body).status, 422) << body;
  }
}

TEST_P(HttpTasks, AreWaitedFor) {
  std::thread later([&] {
    auto created = engine().call(CreateExecution{.execution_kind = "k"});
    EXPECT_TRUE(created);
  });
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w","wait_ms":20000})").size("/tasks"), 1u);
  later.join();
}

TEST_P(HttpTasks, AreNotClaimedForAClientThatIsGone) {
  {
    auto impatient = http::Client::connect(url(), {.timeout = std::chrono::milliseconds(200)});
    ASSERT_TRUE(impatient);
    const auto nothing = (*impatient)
                             ->send({.method = "POST",
                                     .path = "/v1/tasks/claim",
                                     .headers = {json_type()},
                                     .body = R"({"worker_id":"gone","wait_ms":30000})"});
    EXPECT_FALSE(nothing) << "it has given up";
  }
  while (in_flight() > 0) std::this_thread::yield();
  submitted();
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w","wait_ms":10000})").size("/tasks"), 1u);
}

TEST_P(HttpTasks, AreReportedOneByOne) {
  const auto task = running();
  const auto renewed = report("renew", task);
  EXPECT_EQ(renewed.status, 200) << renewed.body;
  EXPECT_EQ(renewed.keys(), (std::vector<std::string>{"expires_at", "lease_epoch"}));
  EXPECT_EQ(report("progress", task, R"(,"percent":50,"message":"half")").body, "{}");
  EXPECT_EQ(report("progress", task, R"(,"percent":101)").status, 400);
  const auto appended = report("append", task, R"(,"frame_type":"token","text":"hi")");
  EXPECT_EQ(appended.at("/frame_count"), "1");
  EXPECT_EQ(report("complete", task, R"(,"result":[1,2])").body, R"({"outcome":"completed"})");
  EXPECT_EQ(report("complete", task, R"(,"result":[1,2])").body, R"({"outcome":"completed"})") << "repeated";
  const auto late = report("renew", task);
  EXPECT_EQ(late.status, 409);
  EXPECT_NE(late.at("/error").find("ExecutionNotActive { terminal_outcome: \"success\""), std::string::npos);
  EXPECT_EQ(report("nonsense", task).status, 404);
}

TEST_P(HttpTasks, FailAndAreTriedAgain) {
  const auto task =
      running(R"(,"policy":{"retry_policy":{"max_retries":1,"backoff":{"type":"fixed","delay_ms":0}}})");
  const auto failed = report("fail", task, R"(,"reason":"boom")");
  EXPECT_EQ(failed.at("/outcome"), "retry_scheduled");
  EXPECT_EQ(failed.at("/next_attempt_index"), "1");
  const auto again = claimed();
  EXPECT_EQ(again.attempt_index, "1");
  EXPECT_EQ(report("fail", again, R"(,"reason":"boom","category":"permanent")").body,
            R"({"outcome":"failed"})");
}

TEST_P(HttpTasks, AreDelayedAndCancelled) {
  const auto task = running();
  EXPECT_EQ(report("delay", task).status, 422);
  EXPECT_EQ(report("delay", task, R"(,"delay_ms":5,"delay_until":5)").status, 422);
  EXPECT_EQ(report("delay", task, R"(,"delay_ms":3600000)").at("/outcome"), "delayed");
  EXPECT_EQ(state_of(task), "delayed");
  const auto other = running();
  EXPECT_EQ(report("cancel", other, R"(,"reason":"r")").body, R"({"outcome":"cancelled"})");
}

TEST_P(HttpTasks, AreNotCancelledByWhoHasLostThem) {
  const auto first = running(
      R"(,"policy":{"retry_policy":{"max_retries":1,"backoff":{"type":"fixed","delay_ms":3600000}}})");
  ASSERT_EQ(post("/v1/executions/" + first.execution_id + "/revoke-lease").status, 200);
  ASSERT_EQ(report("fail", claimed(), R"(,"reason":"r")").at("/outcome"), "retry_scheduled");
  const auto late = report("cancel", first, R"(,"reason":"r")");
  EXPECT_EQ(late.status, 409);
  EXPECT_EQ(late.at("/code"), "stale_lease");
  EXPECT_EQ(state_of(first), "delayed");
}

TEST_P(HttpTasks, AreReportedManyAtOnce) {
  const auto one = running();
  const auto two = running();
  const auto answer =
      post("/v1/tasks/report", R"({"reports":[)" + report_json("append", one, R"(,"text":"x")") + "," +
                                   report_json("complete", one) + "," + report_json("renew", one) + "," +
                                   report_json("nonsense", two) + "," + R"({"op":"complete"})" + "," +
                                   report_json("fail", two, R"(,"reason":5)") + "," +
                                   report_json("fail", two, R"(,"reason":"r")") + "]}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_EQ(answer.size("/results"), 7u);
  EXPECT_EQ(answer.at("/results/0/ok/frame_count"), "1");
  EXPECT_EQ(answer.at("/results/1/ok/outcome"), "completed");
  EXPECT_EQ(answer.at("/results/2/error/status"), "409");
  EXPECT_EQ(answer.at("/results/3/error/status"), "400");
  EXPECT_EQ(answer.at("/results/4/error/status"), "422");
  EXPECT_EQ(answer.at("/results/5/error/status"), "422");
  EXPECT_EQ(answer.at("/results/6/ok/outcome"), "failed");
  EXPECT_TRUE(answer.has("/results/2/error/request_id"));
  EXPECT_EQ(post("/v1/tasks/report", R"({"reports":[]})").status, 400);
  EXPECT_EQ(post("/v1/tasks/report", R"({"reports":{}})").status, 422);
}

TEST_P(HttpTasks, NeedAWholeLease) {
  const auto task = running();
  const auto with = [&](const std::string& lease) {
    return post("/v1/tasks/complete",
                R"({"execution_id":")" + task.execution_id + R"(","lease":)" + lease + "}");
  };
  EXPECT_EQ(with("{}").status, 422);
  EXPECT_EQ(with("null").status, 422);
  EXPECT_EQ(post("/v1/tasks/complete", R"({"execution_id":")" + task.execution_id + "\"}").status, 422);
  const auto stale = with(
      R"({"lease_id":"0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001","lease_epoch":1,"attempt_id":"0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001"})");
  EXPECT_EQ(stale.status, 409);
  EXPECT_EQ(stale.at("/code"), "stale_lease");
}

TEST_P(HttpTasks, SuspendAndAreResumedWithTheirSignals) {
  const auto task = running();
  const auto suspended = report(
      "suspend", task,
      R"(,"resume_condition":{"single":{"waitpoint_key":"ok","matcher":{"by_name":"approved"}}},"timeout_ms":60000,"reason_code":"WaitingForApproval")");
  ASSERT_EQ(suspended.status, 200) << suspended.body;
  EXPECT_EQ(suspended.at("/outcome"), "suspended");
  EXPECT_EQ(suspended.at("/waitpoints/0/waitpoint_key"), "ok");
  EXPECT_EQ(state_of(task), "suspended");
  EXPECT_EQ(get("/v1/executions/" + task.execution_id + "/suspension").at("/reason_code"),
            "waiting_for_approval");
  const auto signalled = post("/v1/executions/" + task.execution_id + "/signal",
                              R"({"waitpoint_id":")" + suspended.at("/waitpoints/0/waitpoint_id") +
                                  R"(","waitpoint_token":")" + suspended.at("/waitpoints/0/token") +
                                  R"(","signal_name":"approved","payload_json":{"by":"ann"}})");
  EXPECT_EQ(signalled.at("/Accepted/effect"), "resume_condition_satisfied") << signalled.body;
  const auto resumed = post("/v1/tasks/claim", R"({"worker_id":"w2","wait_ms":5000})");
  EXPECT_EQ(resumed.at("/tasks/0/claim"), "resumed");
  EXPECT_EQ(resumed.at("/tasks/0/resume_signals/0/signal_name"), "approved");
  EXPECT_EQ(resumed.at("/tasks/0/resume_signals/0/payload/by"), "ann");
}

TEST_P(HttpTasks, MakeWaitpointsAndReportUsage) {
  const auto task = running();
  const auto made = report("create_waitpoint", task, R"(,"waitpoint_key":"later")");
  EXPECT_EQ(made.at("/waitpoint_key"), "later") << made.body;
  EXPECT_FALSE(made.at("/token").empty());
  const std::string budget = "550e8400-e29b-41d4-a716-446655440000";
  ASSERT_EQ(post("/v1/budgets", R"({"budget_id":")" + budget +
                                    R"(","scope_type":"lane","scope_id":"default","dimensions":["tokens"],
                                      "hard_limits":[10],"soft_limits":[5]})")
                .status,
            201);
  const auto use = [&](int tokens) {
    return report(
        "usage", task,
        R"(,"budget_id":")" + budget + R"(","dimensions":{"tokens":)" + std::to_string(tokens) + "}");
  };
  EXPECT_EQ(use(5).body, R"({"outcome":"ok"})");
  EXPECT_EQ(use(1).at("/outcome"), "soft_breach");
  const auto hard = use(5);
  EXPECT_EQ(hard.at("/outcome"), "hard_breach");
  EXPECT_EQ(hard.at("/hard_limit"), "10");
}

TEST_P(HttpTasks, WorkersAreRegistered) {
  const auto first =
      put("/v1/workers/w-1", R"({"worker_id":"w","lanes":["default"],"capabilities":["gpu"]})");
  EXPECT_EQ(first.at("/outcome"), "registered") << first.body;
  EXPECT_TRUE(first.has("/expires_at"));
  EXPECT_EQ(put("/v1/workers/w-1", R"({"worker_id":"w"})").at("/outcome"), "refreshed");
  EXPECT_EQ(post("/v1/workers/w-1/heartbeat").status, 200);
  EXPECT_EQ(post("/v1/workers/w-2/heartbeat").at("/code"), "worker_not_found");
  EXPECT_EQ(get("/v1/workers").at("/workers/0/worker_instance_id"), "w-1");
  EXPECT_EQ(remove("/v1/workers/w-1").status, 200);
  EXPECT_EQ(get("/v1/workers").size("/workers"), 0u);
}

TEST_P(HttpTasks, LanesArePausedDrainedAndDisabled) {
  submitted(R"(,"lane_id":"side")");
  EXPECT_EQ(post("/v1/lanes/side/pause").body, R"({"lane_id":"side","state":"paused"})");
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w","lanes":["side"]})").size("/tasks"), 0u);
  EXPECT_EQ(post("/v1/lanes/side/drain").at("/state"), "draining");
  const auto refused = post("/v1/executions", R"({"execution_kind":"k","lane_id":"side"})");
  EXPECT_EQ(refused.status, 409);
  EXPECT_EQ(refused.at("/code"), "lane_not_accepting");
  EXPECT_EQ(post("/v1/lanes/side/disable").at("/state"), "disabled");
  EXPECT_EQ(post("/v1/lanes/side/resume").at("/state"), "active");
  const auto lanes = get("/v1/lanes");
  EXPECT_EQ(lanes.at("/lanes/0/lane_id"), "side");
  EXPECT_EQ(lanes.at("/lanes/0/counts/waiting"), "1");
  EXPECT_EQ(put("/v1/lanes/side/fairness", R"({"fair_by":"namespace"})").at("/fair_by"), "namespace");
}

TEST_P(HttpTasks, AreCancelledInBulk) {
  submitted();
  submitted();
  EXPECT_EQ(post("/v1/operations", R"({"action":"cancel","filter":{}})").status, 400);
  EXPECT_EQ(post("/v1/operations", R"({"action":"x","filter":{"lane":"default"}})").status, 422);
  const auto started =
      post("/v1/operations", R"({"action":"cancel","filter":{"lane":"default","state":["waiting"]}})");
  ASSERT_EQ(started.status, 202) << started.body;
  const auto path = "/v1/operations/" + started.at("/operation_id");
  while (get(path).at("/state") == "running") std::this_thread::sleep_for(std::chrono::milliseconds(10));
  const auto done = get(path);
  EXPECT_EQ(done.at("/state"), "finished");
  EXPECT_EQ(done.at("/matched"), "2");
  EXPECT_EQ(done.at("/done"), "2");
  EXPECT_EQ(remove(path).status, 200);
  EXPECT_EQ(get("/v1/operations/0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c001").status, 404);
}

// ---- the order of reports ----

// A report that passes the limit pauses its attempt: whether that happens before the attempt's end or after
// it shows in the answers.
TEST_P(HttpTasks, AreReportedInOrderWhateverIsSpentInBetween) {
  const std::string budget = "550e8400-e29b-41d4-a716-446655440000";
  post("/v1/budgets", R"({"budget_id":")" + budget +
                          R"(","scope_type":"lane","scope_id":"main","on_hard_limit":"suspend",)"
                          R"("dimensions":["t"],"hard_limits":[10],"soft_limits":[0]})");
  const auto one = [](const std::string& op, const Task& task, const std::string& more_keys = "") {
    return R"({"op":")" + op + R"(","execution_id":")" + task.execution_id + R"(","lease":)" + task.lease +
           more_keys + "}";
  };
  const std::string too_much = R"(,"budget_id":")" + budget + R"(","dimensions":{"t":20})";
  std::string reports;
  for (int i = 0; i < 40; ++i) {
    const auto task = running();
    const auto spends = one("usage", task, too_much);
    const auto ends = one("complete", task);
    reports += (i > 0 ? "," : "") + (i % 2 == 0 ? spends + "," + ends : ends + "," + spends);
  }
  const auto answer = post("/v1/tasks/report", R"({"reports":[)" + reports + "]}");
  ASSERT_EQ(answer.size("/results"), 80u) << answer.body;
  for (int i = 0; i < 40; ++i) {
    const auto ended = "/results/" + std::to_string(i % 2 == 0 ? 2 * i + 1 : 2 * i);
    EXPECT_EQ(answer.has(ended + "/ok"), i % 2 == 1)
        << i << (i % 2 == 1 ? ": it ended first" : ": it was paused");
  }
}

}  // namespace
}  // namespace flowfabric::tests
