// Suspensions, waitpoints, their tokens and the secrets that sign them, over HTTP (07 §5.4, §5.13; 03 §3.4,
// §7, §9, §11; 09 §1, §5).
#include <algorithm>
#include <future>
#include <mutex>
#include <set>
#include <thread>

#include "suspension_support.h"

namespace flowfabric::tests {
namespace {

using Names = std::vector<std::string>;

constexpr const char* kNobody = "/v1/executions/{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff";

class HttpWaitpoints : public HttpSuspensionTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpWaitpoints, kHttpStores, http_store_name);

// ---- pending waitpoints ----

TEST_P(HttpWaitpoints, AreListed) {
  const auto waiting = suspended(under(by_name("approve")));
  const auto listed = get(waiting.path("/pending-waitpoints"));
  EXPECT_EQ(listed.status, 200);
  ASSERT_EQ(listed.size(""), 1u);
  EXPECT_EQ(listed.keys("/0"),
            (Names{"activated_at", "created_at", "execution_id", "required_signal_names", "state",
                   "token_fingerprint", "token_kid", "waitpoint_id", "waitpoint_key"}))
      << "no expires_at";
  EXPECT_EQ(listed.at("/0/waitpoint_id"), waiting.waitpoint_id);
  EXPECT_EQ(listed.at("/0/waitpoint_key"), "gate");
  EXPECT_EQ(listed.at("/0/state"), "active");
  EXPECT_EQ(listed.at("/0/required_signal_names"), R"(["approve"])");
  EXPECT_EQ(listed.at("/0/execution_id"), waiting.task.execution_id);
  const auto colon = waiting.token.find(':');
  EXPECT_EQ(listed.at("/0/token_kid"), waiting.token.substr(0, colon));
  EXPECT_EQ(listed.at("/0/token_fingerprint"), waiting.token.substr(colon + 1, 16));
  EXPECT_FALSE(contains(listed.body, waiting.token.substr(colon + 1))) << "never the token";
  for (const auto* time : {"created_at", "activated_at"}) {
    EXPECT_FALSE(contains(listed.body, "\"" + std::string(time) + "\":\"")) << "an integer";
    EXPECT_GT(std::stoll(listed.at("/0/" + std::string(time))), 0);
  }
  EXPECT_EQ(listed.header("deprecation"), "");
}

TEST_P(HttpWaitpoints, AreListedAsTheyAre) {
  const auto task = running();
  EXPECT_EQ(get("/v1/executions/" + task.execution_id + "/pending-waitpoints").body, "[]");
  const auto early = pending(task, R"(,"expires_in_ms":60000)");
  EXPECT_EQ(early.waitpoint_key, "wpk:" + early.waitpoint_id);
  const auto listed = get(early.path("/pending-waitpoints"));
  EXPECT_EQ(listed.at("/0/state"), "pending");
  EXPECT_EQ(listed.at("/0/required_signal_names"), "[]");
  EXPECT_FALSE(listed.has("/0/activated_at")) << "omitted";
  EXPECT_EQ(std::stoll(listed.at("/0/expires_at")) - std::stoll(listed.at("/0/created_at")), 60'000);
  const auto operator_only = suspended(under("\"OperatorOnly\""));
  EXPECT_EQ(get(operator_only.path("/pending-waitpoints")).at("/0/required_signal_names"),
            R"(["__operator_only__"])");
  const auto timed = suspended(under(any()) + R"(,"timeout_ms":3600000)");
  EXPECT_EQ(get(timed.path("/pending-waitpoints")).at("/0/required_signal_names"), "[]");
  EXPECT_TRUE(get(timed.path("/pending-waitpoints")).has("/0/expires_at"));
  deliver(timed);
  EXPECT_EQ(get(timed.path("/pending-waitpoints")).body, "[]") << "closed";
}

TEST_P(HttpWaitpoints, AreListedInOrderAndPageByPage) {
  const auto task = running();
  for (int i = 0; i < 3; ++i) pending(task, R"(,"expires_in_ms":60000)");
  const auto path = "/v1/executions/" + task.execution_id + "/pending-waitpoints";
  const auto all = get(path);
  ASSERT_EQ(all.size(""), 3u);
  EXPECT_LT(all.at("/0/waitpoint_id"), all.at("/1/waitpoint_id"));
  EXPECT_LT(all.at("/1/waitpoint_id"), all.at("/2/waitpoint_id"));
  const auto first = get(path + "?limit=2");
  EXPECT_EQ(first.size(""), 2u);
  EXPECT_TRUE(contains(first.header("link"), all.at("/1/waitpoint_id"))) << first.header("link");
  const auto rest = get(path + "?limit=2&after=" + all.at("/1/waitpoint_id"));
  ASSERT_EQ(rest.size(""), 1u);
  EXPECT_EQ(rest.at("/0/waitpoint_id"), all.at("/2/waitpoint_id"));
  EXPECT_EQ(rest.header("link"), "");
  EXPECT_EQ(get(path + "?after=x").status, 400);
  EXPECT_EQ(get(path + "?limit=x").status, 400);
}

TEST_P(HttpWaitpoints, OfNobodyAreNotFound) {
  EXPECT_EQ(said(get(std::string(kNobody) + "/pending-waitpoints")), "404 not found: execution");
  EXPECT_EQ(get("/v1/executions/nonsense/pending-waitpoints").status, 400);
}

// ---- tokens ----

TEST_P(HttpWaitpoints, TellTheirToken) {
  const auto waiting = suspended();
  const auto told = get(waiting.token_path());
  EXPECT_EQ(told.status, 200);
  EXPECT_EQ(told.body, R"({"token":")" + waiting.token + "\"}");
  EXPECT_EQ(told.header("cache-control"), "no-store");
  EXPECT_EQ(waiting.token.size() - waiting.token.find(':'), 65u) << "64 hex digits";
  const auto early = pending(running(), R"(,"expires_in_ms":60000)");
  EXPECT_EQ(get(early.token_path()).at("/token"), early.token) << "a pending one too";
}

TEST_P(HttpWaitpoints, TellNoTokenThatIsNotTheirs) {
  auto closed = suspended();
  auto theirs = suspended();
  const auto other = suspended();
  deliver(closed);
  theirs.waitpoint_id = other.waitpoint_id;
  const std::string unknown = "/waitpoints/22222222-2222-4222-8222-222222222222/token";
  for (const auto& path :
       {closed.token_path(), theirs.token_path(), other.path(unknown), kNobody + unknown}) {
    const auto missing = get(path);
    EXPECT_EQ(said(missing), "404 waitpoint token not found (consumed, expired, or unknown id)") << path;
    EXPECT_EQ(missing.header("cache-control"), "no-store") << path;
  }
  EXPECT_EQ(get(other.path("/waitpoints/nonsense/token")).status, 400);
  EXPECT_EQ(get("/v1/executions/nonsense" + unknown).status, 400);
}

TEST_P(HttpWaitpoints, ThatExpiredTellNoToken) {
  const auto early = pending(running(), R"(,"expires_in_ms":1)");
  EXPECT_TRUE(eventually([&] { return get(early.token_path()).status == 404; }));
}

// ---- suspending ----

TEST_P(HttpWaitpoints, AreMadeBySuspending) {
  const auto task = running();
  const auto answer =
      report("suspend", task,
             R"(,"reason_code":"WaitingForApproval","timeout_ms":3600000,"timeout_behavior":"escalate")" +
                 under(by_name("approve")));
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.keys(), (Names{"outcome", "suspension_id", "waitpoints"}));
  EXPECT_EQ(answer.at("/outcome"), "suspended");
  ASSERT_EQ(answer.size("/waitpoints"), 1u);
  EXPECT_EQ(answer.keys("/waitpoints/0"), (Names{"token", "waitpoint_id", "waitpoint_key"}));
  EXPECT_EQ(answer.at("/waitpoints/0/waitpoint_key"), "gate") << "as the condition names it";
  const auto again = report("suspend", task, under(by_name("approve")));
  EXPECT_EQ(again.body, answer.body) << "the lost answer";
  const auto seen = get("/v1/executions/" + task.execution_id);
  EXPECT_EQ(seen.at("/public_state"), "suspended");
  EXPECT_EQ(seen.at("/state_vector/blocking_reason"), "waiting_for_approval");
}

TEST_P(HttpWaitpoints, AreMintedWithTheirKey) {  // 03 §1
  for (const auto* nothing_named : {"", R"(,"waitpoints":[{}])"}) {
    const auto waiting = suspended(nothing_named);
    EXPECT_EQ(waiting.waitpoint_key, "wpk:" + waiting.waitpoint_id);
    EXPECT_EQ(effect(waiting, "anything"), "resume_condition_satisfied");
  }
  const auto task = running();
  const auto early = pending(task);
  const auto bound = report(
      "suspend", task, R"(,"waitpoints":[{"use_pending":{"waitpoint_id":")" + early.waitpoint_id + R"("}}])");
  ASSERT_EQ(bound.status, 200) << bound.body;
  EXPECT_EQ(effect(early, "anything"), "resume_condition_satisfied") << "any signal at the one made before";
  const auto several = report("suspend", running(), R"(,"waitpoints":[{"waitpoint_key":"a"},{}])");
  expect_shape_refused(several, "which of the two is waited for");
}

TEST_P(HttpWaitpoints, AreAsTheWorkerNamesThem) {
  const std::string id = "22222222-2222-4222-8222-222222222222";
  const auto answer = report(
      "suspend", running(),
      R"(,"suspension_id":"33333333-3333-4333-8333-333333333333","waitpoints":[{"Fresh":{"waitpoint_id":")" +
          id + R"(","waitpoint_key":"a"}},{"fresh":{"waitpoint_key":"b"}}],"reason_code":"step_boundary",)" +
          R"("requested_by":"Policy","resume_condition":{"Composite":{"kind":"AllOf","members":[)" +
          by_name("x", "a") + "," + by_name("y", "b") + "]}}");
  ASSERT_EQ(answer.status, 200) << answer.body;
  EXPECT_EQ(answer.at("/suspension_id"), "33333333-3333-4333-8333-333333333333");
  EXPECT_EQ(answer.at("/waitpoints/0/waitpoint_id"), id);
  EXPECT_EQ(answer.at("/waitpoints/1/waitpoint_key"), "b");
}

TEST_P(HttpWaitpoints, HaveTheirIdForGood) {
  const auto first = suspended();
  deliver(first);
  const auto used = report("suspend", claimed(),
                           R"(,"waitpoints":[{"waitpoint_id":")" + first.waitpoint_id +
                               R"(","waitpoint_key":"gate"}])" + under(any()));
  EXPECT_EQ(said(used),
            "409 waitpoint_already_exists: WaitpointAlreadyExists (waitpoint_already_exists, final)");
}

TEST_P(HttpWaitpoints, AreNotMadeForAConditionThatCannotBe) {
  const auto task = running();
  const auto composite = [](const std::string& body) { return under(R"({"Composite":)" + body + "}"); };
  for (const auto& [keys, text] : std::vector<std::pair<std::string, std::string>>{
           {R"(,"waitpoints":[{"waitpoint_key":"other"}])" + under(by_name("x")), "waitpoint_key_mismatch"},
           {under("\"TimeoutOnly\""), "timeout_only_without_deadline"},
           {under(by_name("")), "empty signal name"},
           {R"(,"timeout_at":1)", "timeout_at_in_past"},
           {composite(R"({"kind":"AllOf","members":[]})"), "allof_empty_members"},
           {composite(R"({"kind":"Count","n":0,"count_kind":"DistinctSignals","waitpoints":["a"]})"),
            "count_n_zero"}}) {
    const auto refused = report("suspend", task, keys);
    EXPECT_EQ(refused.status, 400) << keys << refused.body;
    EXPECT_EQ(refused.at("/code"), "invalid_input") << keys;
    EXPECT_TRUE(contains(refused.at("/error"), text)) << refused.body;
  }
  for (const auto* keys : {R"(,"reason_code":"Tired")", R"(,"timeout_ms":1,"timeout_at":1)",
                           R"(,"timeout_ms":"1")", R"(,"waitpoints":{})"}) {
    expect_shape_refused(report("suspend", task, keys), keys);
  }
  EXPECT_EQ(report("complete", task).status, 200) << "it still runs";
}

TEST_P(HttpWaitpoints, AreNeededBySuspending) {
  const auto refused = report("suspend", running(), R"(,"waitpoints":[])");
  EXPECT_EQ(said(refused), "400 invalid_input: waitpoints_empty");
}

// Longer than 32 bits of milliseconds can say.
TEST_P(HttpWaitpoints, MayLastForMonths) {
  const auto waiting = suspended(under(any()) + R"(,"timeout_ms":15552000000)");
  const auto seen = get(waiting.path("/suspension"));
  EXPECT_EQ(std::stoll(seen.at("/timeout_at")) - std::stoll(seen.at("/suspended_at")), 15'552'000'000);
}

TEST_P(HttpWaitpoints, EndWithTheirTime) {
  const auto fails = suspended(under(any()) + R"(,"timeout_ms":1)");
  EXPECT_EQ(get(fails.path("/wait?wait_ms=20000")).at("/public_state"), "failed");
  EXPECT_EQ(get(fails.path("/pending-waitpoints")).body, "[]");
  const auto resumes =
      suspended(under(any()) + R"(,"timeout_ms":1,"timeout_behavior":"AutoResumeWithTimeoutSignal")");
  const auto claim = post("/v1/tasks/claim", R"({"worker_id":"w","wait_ms":20000})");
  EXPECT_EQ(claim.at("/tasks/0/execution_id"), resumes.task.execution_id);
  EXPECT_EQ(claim.at("/tasks/0/resume_signals/0/signal_name"), "timeout");
  EXPECT_EQ(claim.at("/tasks/0/resume_signals/0/source_identity"), "suspension_timeout");
  EXPECT_EQ(claim.at("/tasks/0/resume_signals/0/payload"), "null");
  const auto named = suspended(
      under("\"TimeoutOnly\"") +
      R"(,"timeout_ms":1,"timeout_behavior":"auto_resume_with_timeout_signal","timeout_signal_name":"late")");
  const auto again = post("/v1/tasks/claim", R"({"worker_id":"w","wait_ms":20000})");
  EXPECT_EQ(again.at("/tasks/0/execution_id"), named.task.execution_id);
  EXPECT_EQ(again.at("/tasks/0/resume_signals/0/signal_name"), "late");
}

// The execution stays suspended, and its views show that it waits for an operator.
TEST_P(HttpWaitpoints, AreHandedToAnOperator) {
  const auto waiting =
      suspended(under(by_name("approve")) + R"(,"timeout_ms":1,"timeout_behavior":"Escalate")");
  const auto escalated = [&] { return get(waiting.path("/suspension")).at("/timeout_at") == "null"; };
  ASSERT_TRUE(eventually(escalated));
  const auto seen = get(waiting.path("/suspension"));
  EXPECT_EQ(seen.at("/reason_code"), "waiting_for_operator_review");
  EXPECT_EQ(seen.at("/timeout_behavior"), "null");
  const auto execution = get(waiting.path());
  EXPECT_EQ(execution.at("/public_state"), "suspended");
  EXPECT_EQ(execution.at("/state_vector/blocking_reason"), "paused_by_operator");
  EXPECT_TRUE(contains(execution.at("/blocking_detail"), "suspension escalated: timeout at "));
  const auto listed = get("/v1/suspensions");
  EXPECT_EQ(listed.at("/suspensions/0/execution_id"), waiting.task.execution_id);
  EXPECT_EQ(listed.at("/suspensions/0/reason_code"), "waiting_for_operator_review");
  EXPECT_EQ(listed.at("/suspensions/0/timeout_at"), "null");
  EXPECT_TRUE(contains(get(waiting.path("/events")).body, "suspension_escalated"));
  EXPECT_EQ(effect(waiting), "resume_condition_satisfied") << "late, and not too late";
}

// ---- suspensions ----

TEST_P(HttpWaitpoints, AreShownWithTheirSuspension) {
  const auto task = running();
  const auto answer =
      report("suspend", task,
             R"(,"reason_code":"waiting_for_callback","timeout_ms":3600000,"timeout_behavior":"Cancel")" +
                 under(by_name("approve")));
  const auto waiting = HttpSuspensionTest::waiting(task, answer, "/waitpoints/0");
  deliver(waiting, "other", R"(,"payload_json":{"n":1})");
  const auto seen = get(waiting.path("/suspension"));
  EXPECT_EQ(seen.status, 200);
  EXPECT_EQ(seen.at("/suspension_id"), answer.at("/suspension_id"));
  EXPECT_EQ(seen.at("/reason_code"), "waiting_for_callback");
  EXPECT_EQ(seen.at("/requested_by"), "worker");
  EXPECT_EQ(seen.at("/timeout_behavior"), "cancel");
  EXPECT_GT(std::stoll(seen.at("/timeout_at")), std::stoll(seen.at("/suspended_at")));
  EXPECT_EQ(seen.at("/resume_condition/Single/waitpoint_key"), "gate");
  EXPECT_EQ(seen.at("/resume_condition/Single/matcher/ByName"), "approve");
  EXPECT_EQ(seen.at("/waitpoints"), get(waiting.path("/pending-waitpoints")).at(""));
  ASSERT_EQ(seen.size("/signals"), 1u);
  EXPECT_EQ(seen.at("/signals/0/signal_name"), "other");
  EXPECT_EQ(seen.at("/signals/0/payload"), R"({"n":1})");
  EXPECT_EQ(seen.at("/signals/0/observed_effect"), "no_op");
  EXPECT_FALSE(contains(seen.body, waiting.token)) << "never the token";
  EXPECT_EQ(get(suspended().path("/suspension")).at("/timeout_at"), "null");
}

TEST_P(HttpWaitpoints, AreNotShownWhenNothingIsSuspended) {
  const auto waiting = suspended();
  deliver(waiting);
  for (const auto& path : {waiting.path("/suspension"), "/v1/executions/" + submitted() + "/suspension"}) {
    const auto missing = get(path);
    EXPECT_EQ(said(missing), "404 not found: suspension");
    EXPECT_EQ(missing.at("/code"), "suspension_not_found");
  }
  EXPECT_EQ(said(get(std::string(kNobody) + "/suspension")), "404 not found: execution");
}

TEST_P(HttpWaitpoints, AreListedWithAllSuspensions) {
  EXPECT_EQ(get("/v1/suspensions").body, R"({"suspensions":[],"next_cursor":null})");
  std::vector<Waiting> all;
  for (int i = 0; i < 3; ++i) all.push_back(suspended(under(any()) + R"(,"timeout_ms":3600000)"));
  deliver(suspended());
  const auto first = get("/v1/suspensions?limit=2");
  EXPECT_EQ(first.status, 200);
  EXPECT_EQ(first.keys(), (Names{"next_cursor", "suspensions"}));
  ASSERT_EQ(first.size("/suspensions"), 2u);
  EXPECT_EQ(first.keys("/suspensions/0"), (Names{"execution_id", "lane_id", "namespace", "reason_code",
                                                 "suspended_at", "timeout_at", "waitpoint_ids"}));
  EXPECT_EQ(first.at("/suspensions/0/lane_id"), "default");
  EXPECT_EQ(first.at("/suspensions/0/namespace"), "default");
  EXPECT_EQ(first.at("/suspensions/0/reason_code"), "waiting_for_signal");
  EXPECT_GT(std::stoll(first.at("/suspensions/0/timeout_at")),
            std::stoll(first.at("/suspensions/0/suspended_at")));
  const auto rest = get("/v1/suspensions?cursor=" + first.at("/next_cursor"));
  ASSERT_EQ(rest.size("/suspensions"), 1u) << rest.body;
  EXPECT_EQ(rest.at("/next_cursor"), "null");
  std::set<std::string> ids{rest.at("/suspensions/0/execution_id")};
  for (const auto* place : {"/suspensions/0", "/suspensions/1"}) {
    ids.insert(first.at(std::string(place) + "/execution_id"));
  }
  for (const auto& each : all) {
    EXPECT_TRUE(ids.contains(each.task.execution_id));
    EXPECT_FALSE(contains(first.body + rest.body, each.token.substr(3 + 16))) << "never the token";
  }
  for (const auto* query : {"limit=0", "limit=1001", "limit=x", "cursor=x", "cursor=12", "cursor=12:",
                            "cursor=:", "cursor=1x:%7Bfp:1%7D:22222222-2222-4222-8222-222222222222"}) {
    const auto refused = get(std::string("/v1/suspensions?") + query);
    EXPECT_EQ(refused.status, 400) << query;
    EXPECT_EQ(refused.at("/code"), "invalid_input") << query;
  }
}

// ---- operators ----

TEST_P(HttpWaitpoints, AreClosedByAnOperator) {
  const auto waiting = suspended(under("\"OperatorOnly\""));
  const auto resumed = post(waiting.path("/resume"), R"({"reason":"looked at it"})");
  EXPECT_EQ(resumed.status, 200);
  EXPECT_EQ(resumed.body,
            R"({"execution_id":")" + waiting.task.execution_id + R"(","public_state":"waiting"})");
  EXPECT_EQ(get(waiting.path("/pending-waitpoints")).body, "[]");
  EXPECT_EQ(deliver(waiting).status, 409) << "its token is of no use";
  EXPECT_TRUE(contains(get(waiting.path("/events")).body, "looked at it")) << "it is on record";
  const auto claim = post("/v1/tasks/claim", R"({"worker_id":"w"})");
  EXPECT_EQ(claim.at("/tasks/0/claim"), "resumed");
  EXPECT_EQ(claim.size("/tasks/0/resume_signals"), 0u);
  const auto again = post(waiting.path("/resume"), "{}");
  EXPECT_EQ(said(again), "409 state_conflict: ExecutionNotSuspended (state_conflict, final)");
  EXPECT_EQ(again.at("/code"), "execution_not_suspended");
  EXPECT_EQ(said(post(std::string(kNobody) + "/resume", "{}")), "404 not found: execution");
}

TEST_P(HttpWaitpoints, TellWhatAnAttemptWasSent) {
  const auto waiting = suspended(under(by_name("approve")));
  const auto observed = [&](const std::string& attempt) {
    return get(waiting.path("/attempts/" + attempt + "/signals"));
  };
  EXPECT_EQ(observed("0").body, R"({"signals":[]})") << "it is still suspended";
  deliver(waiting, "approve", R"(,"payload_json":{"by":"ann"})");
  const auto signals = observed("0");
  ASSERT_EQ(signals.size("/signals"), 1u) << signals.body;
  EXPECT_EQ(signals.at("/signals/0/signal_name"), "approve");
  EXPECT_EQ(signals.at("/signals/0/payload/by"), "ann");
  EXPECT_EQ(observed("1").body, R"({"signals":[]})");
  EXPECT_EQ(observed("x").status, 400);
  EXPECT_EQ(said(get(std::string(kNobody) + "/attempts/0/signals")), "404 not found: execution");
}

// ---- secrets ----

class HttpSecrets : public HttpSuspensionTest {
 protected:
  Reply rotate(const std::string& kid, const std::string& hex) {
    return post("/v1/admin/rotate-waitpoint-secret",
                R"({"new_kid":")" + kid + R"(","new_secret_hex":")" + hex + "\"}");
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpSecrets, kHttpStores, http_store_name);

const std::string kSecret = "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

TEST_P(HttpSecrets, AreRotated) {
  EXPECT_EQ(suspended().token.substr(0, 3), "k1:");
  for (int i = 0; i < 2; ++i) {
    const auto rotated = rotate("k2", kSecret);
    EXPECT_EQ(rotated.status, 200) << i;
    EXPECT_EQ(rotated.body, R"({"rotated":1,"failed":[],"new_kid":"k2"})") << i;
  }
  EXPECT_EQ(suspended().token.substr(0, 3), "k2:");
}

// One at a time, by who may; it is on record, and the secret is not.
TEST_P(HttpSecrets, AreRotatedOneAfterTheOther) {
  std::mutex mutex;
  std::vector<std::string> lines;
  std::promise<void> recording;
  std::promise<void> go_on;
  serve({.token = "t", .audit_log = [&, wait = go_on.get_future().share()](const std::string& line) {
           if (!line.contains("waitpoint_hmac_rotation")) return;
           std::lock_guard lock(mutex);
           lines.push_back(line);
           if (lines.size() > 1) return;
           recording.set_value();
           wait.wait();
         }});
  const auto ask = [&](const std::string& kid, const std::string& token) {
    std::vector<http::Header> headers{json_type()};
    if (!token.empty()) headers.push_back({"authorization", "Bearer " + token});
    return send({.method = "POST",
                 .path = "/v1/admin/rotate-waitpoint-secret",
                 .headers = std::move(headers),
                 .body = R"({"new_kid":")" + kid + R"(","new_secret_hex":")" + kSecret + "\"}"});
  };
  EXPECT_EQ(ask("k2", "").status, 401);
  EXPECT_EQ(ask("k2", "x").status, 401);
  std::jthread first([&] { EXPECT_EQ(ask("k2", "t").status, 200); });
  recording.get_future().wait();
  const auto second = ask("k3", "t");
  EXPECT_EQ(second.status, 429) << second.body;
  EXPECT_EQ(second.at("/retryable"), "true");
  go_on.set_value();
  first.join();
  EXPECT_EQ(ask(kSecret + ":", "t").status, 400);
  serve({});  // the one before has said all
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], R"({"log":"audit","event":"waitpoint_hmac_rotation_complete","new_kid":"k2",)"
                      R"("total_partitions":1,"rotated":1,"failed_count":0})");
  EXPECT_EQ(lines[1], R"({"log":"audit","event":"waitpoint_hmac_rotation_failed","new_kid":"<malformed>",)"
                      R"("partition":0,"err":"invalid_kid"})");
}

// The engine has it, and does not come to an end with it.
TEST_P(HttpSecrets, AreNotWaitedForWithoutEnd) {
  std::mutex mutex;
  std::vector<std::string> lines;
  std::promise<void> go_on;
  serve({.rotation_timeout = std::chrono::milliseconds(300),
         .audit_log = [&, wait = go_on.get_future().share()](const std::string& line) {
           {
             std::lock_guard lock(mutex);
             lines.push_back(line);
           }
           if (contains(line, "rotation_complete")) wait.wait();
         }});
  const auto late = rotate("k2", kSecret);
  EXPECT_EQ(late.status, 504) << late.body;
  EXPECT_EQ(late.at("/error"), "timeout: rotate_waitpoint_secret");
  EXPECT_EQ(late.at("/code"), "timeout");
  EXPECT_EQ(late.at("/retryable"), "true");
  EXPECT_TRUE(contains(late.at("/detail"), "repeat the call")) << late.body;
  go_on.set_value();
  EXPECT_TRUE(eventually([&] { return rotate("k2", kSecret).status == 200; })) << "repeating is safe";
  EXPECT_EQ(suspended().token.substr(0, 3), "k2:");
  serve({});  // the one before has said all
  const std::string timeout =
      R"({"log":"audit","event":"waitpoint_hmac_rotation_timeout_http_504","new_kid":"k2","timeout_s":1})";
  EXPECT_EQ(std::ranges::count(lines, timeout), 1);
  for (const auto& line : lines) EXPECT_FALSE(contains(line, kSecret)) << line;
}

TEST_P(HttpSecrets, AreListedByTheirKids) {
  const auto kids = [&] { return get("/v1/admin/waitpoint-kids"); };
  EXPECT_EQ(kids().body, R"({"current_kid":"k1","verifying":[]})");
  rotate("k2", kSecret);
  const auto two = kids();
  EXPECT_EQ(two.at("/current_kid"), "k2");
  ASSERT_EQ(two.size("/verifying"), 1u) << two.body;
  EXPECT_EQ(two.at("/verifying/0/kid"), "k1");
  EXPECT_GT(std::stoll(two.at("/verifying/0/expires_at_ms")), 1'700'000'000'000);
  EXPECT_FALSE(contains(two.body, kSecret));
}

TEST_P(HttpSecrets, KeepTheirName) {
  rotate("k2", kSecret);
  const auto conflict = rotate("k2", kSecret.substr(2));
  EXPECT_EQ(said(conflict), R"(409 rotation_conflict: RotationConflict("k2") (rotation_conflict, final))");
  EXPECT_FALSE(contains(conflict.body, kSecret.substr(2)));
  EXPECT_EQ(rotate("k2", kSecret).status, 200) << "the first stands";
}

// The token of a known secret, id and waitpoint can be computed elsewhere (03 §3.1).
TEST_P(HttpSecrets, SignAsTheReferenceDoes) {
  rotate("kid-x", std::string(62, '0') + "01");
  submitted(R"(,"execution_id":"{fp:12}:11111111-1111-4111-8111-111111111111")");
  const auto answer = report("suspend", claimed(),
                             R"(,"waitpoints":[{"waitpoint_id":"22222222-2222-4222-8222-222222222222"}])");
  EXPECT_EQ(answer.at("/waitpoints/0/token"),
            "kid-x:82a028aeaf8ee72bc645a74977bc3c479a00aeda94ac8ab08f8937db2d24e106");
}

TEST_P(HttpSecrets, ThatAreNoneAreRefused) {
  for (const auto* kid : {"", "a:b"}) {
    const auto refused = rotate(kid, kSecret);
    EXPECT_EQ(refused.status, 400) << kid;
    EXPECT_EQ(refused.at("/code"), "invalid_kid") << kid;
  }
  for (const auto* hex : {"", "abc", "zz11"}) {
    const auto refused = rotate("k2", hex);
    EXPECT_EQ(refused.status, 400) << hex;
    EXPECT_EQ(refused.at("/code"), "invalid_secret_hex") << hex;
  }
  for (const auto* body : {"{}", R"({"new_kid":"k2"})", R"({"new_kid":5,"new_secret_hex":"00"})", "[]"}) {
    expect_shape_refused(post("/v1/admin/rotate-waitpoint-secret", body), body);
  }
  EXPECT_EQ(suspended().token.substr(0, 3), "k1:");
}

}  // namespace
}  // namespace flowfabric::tests
