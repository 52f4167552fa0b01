// Signals over HTTP (07 §5.6; 03 §3.2, §4, §8; 09, "Common" and §1).
#include "suspension_support.h"

namespace flowfabric::tests {
namespace {

class HttpSignals : public HttpSuspensionTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, HttpSignals, kHttpStores, http_store_name);

// ---- what they do ----

TEST_P(HttpSignals, ResumeWhatWaitsForThem) {
  const auto to = suspended(under(by_name("approve")));
  EXPECT_EQ(state(to), "suspended");
  const auto delivered = deliver(to);
  EXPECT_EQ(delivered.status, 200) << delivered.body;
  EXPECT_EQ(delivered.body, R"({"Accepted":{"signal_id":")" + last_signal_id() +
                                R"(","effect":"resume_condition_satisfied"}})");
  EXPECT_EQ(state(to), "waiting");
  const auto claim = post("/v1/tasks/claim", R"({"worker_id":"w"})");
  EXPECT_EQ(claim.at("/tasks/0/claim"), "resumed");
  EXPECT_EQ(claim.at("/tasks/0/attempt_index"), "0");
  EXPECT_EQ(claim.at("/tasks/0/lease/lease_epoch"), "2");
  ASSERT_EQ(claim.size("/tasks/0/resume_signals"), 1u);
  const std::string signal = "/tasks/0/resume_signals/0";
  EXPECT_EQ(claim.at(signal + "/signal_id"), last_signal_id());
  EXPECT_EQ(claim.at(signal + "/signal_name"), "approve");
  EXPECT_EQ(claim.at(signal + "/waitpoint_id"), to.waitpoint_id);
  EXPECT_EQ(claim.at(signal + "/waitpoint_key"), "gate");
  EXPECT_EQ(claim.at(signal + "/source_type"), "human");
  EXPECT_EQ(claim.at(signal + "/source_identity"), "ann");
  EXPECT_EQ(claim.at(signal + "/payload"), "null");
  EXPECT_GT(std::stoll(claim.at(signal + "/accepted_at")), 1767225603000) << "by the store's clock";
}

TEST_P(HttpSignals, OfAnotherNameDoNothing) {
  const auto to = suspended(under(by_name("approve")));
  EXPECT_EQ(effect(to, "reject"), "no_op");
  EXPECT_EQ(effect(to, "Approve"), "no_op");
  EXPECT_EQ(state(to), "suspended");
}

TEST_P(HttpSignals, OfAnyNameWillDoWhenNoneIsNamed) {
  EXPECT_EQ(effect(suspended(under(any())), "whatever"), "resume_condition_satisfied");
}

// 09 §1: one fresh waitpoint, and the matcher `Wildcard`.
TEST_P(HttpSignals, OfAnyNameWillDoWithoutACondition) {
  const auto to = suspended("");
  EXPECT_EQ(effect(to, "whatever"), "resume_condition_satisfied");
}

TEST_P(HttpSignals, AreCollectedUntilAllAreThere) {
  const auto to = suspended(
      under(R"({"Composite":{"kind":"AllOf","members":[)" + by_name("a") + "," + by_name("b") + "]}}"));
  EXPECT_EQ(effect(to, "c"), "signal_ignored_matcher_failed");
  EXPECT_EQ(effect(to, "a"), "appended_to_waitpoint");
  EXPECT_EQ(effect(to, "a"), "appended_to_waitpoint_duplicate");
  EXPECT_EQ(state(to), "suspended");
  EXPECT_EQ(effect(to, "b"), "resume_condition_satisfied");
  EXPECT_EQ(post("/v1/tasks/claim", R"({"worker_id":"w"})").size("/tasks/0/resume_signals"), 2u);
}

TEST_P(HttpSignals, AreCountedBySource) {
  const auto to = suspended(under(R"({"composite":{"kind":"count","n":2,"count_kind":"distinct_sources",)"
                                  R"("waitpoints":["gate"]}})"));
  EXPECT_EQ(effect(to), "appended_to_waitpoint");
  EXPECT_EQ(effect(to), "appended_to_waitpoint_duplicate") << "ann again";
  auto bob = signal(to, "approve");
  bob.replace(bob.find("\"ann\""), 5, "\"bob\"");
  EXPECT_EQ(post(to.path("/signal"), bob).at("/Accepted/effect"), "resume_condition_satisfied");
}

TEST_P(HttpSignals, WaitForTheSuspensionOfAPendingWaitpoint) {
  const auto task = running();
  const auto early = pending(task, R"(,"waitpoint_key":"gate","expires_in_ms":60000)");
  EXPECT_EQ(effect(early), "buffered_for_pending_waitpoint");
  const auto answer = report("suspend", task,
                             R"(,"waitpoints":[{"UsePending":{"waitpoint_id":")" + early.waitpoint_id +
                                 R"("}}])" + under(by_name("approve")));
  EXPECT_EQ(answer.at("/outcome"), "already_satisfied") << answer.body;
  ASSERT_EQ(answer.size("/signals"), 1u);
  EXPECT_EQ(answer.at("/signals/0/signal_name"), "approve");
  EXPECT_EQ(answer.at("/waitpoints/0/token"), early.token);
  EXPECT_EQ(report("complete", task).body, R"({"outcome":"completed"})") << "the lease stayed";
}

TEST_P(HttpSignals, CanResumeLater) {
  const auto to = suspended();
  EXPECT_EQ(effect(to, "approve", R"(,"resume_delay_ms":3600000)"), "resume_condition_satisfied");
  EXPECT_EQ(state(to), "delayed");
}

// ---- payloads ----

TEST_P(HttpSignals, CarryAPayload) {
  for (const auto& [keys, pointer, value] : std::vector<std::array<std::string, 3>>{
           {R"(,"payload":[123,34,111,107,34,58,116,114,117,101,125],"payload_encoding":"json")", "/payload",
            R"({"ok":true})"},
           {R"(,"payload":[0,255])", "/payload_base64", "AP8="},
           {R"(,"payload":[])", "/payload", "null"},
           {R"(,"payload":null)", "/payload", "null"},
           {R"(,"payload_json":{"ok":true})", "/payload", R"({"ok":true})"},
           {R"(,"payload_base64":"AP8=")", "/payload_base64", "AP8="}}) {
    const auto to = suspended();
    ASSERT_EQ(deliver(to, "approve", keys).status, 200) << keys;
    const auto claim = post("/v1/tasks/claim", R"({"worker_id":"w"})");
    EXPECT_EQ(claim.at("/tasks/0/resume_signals/0" + pointer), value) << keys << claim.body;
  }
}

TEST_P(HttpSignals, OfWrongShapeAreRefused) {
  const auto to = suspended();
  for (const auto* keys :
       {R"(,"payload":"text")", R"(,"payload":[256])", R"(,"payload":[-1])", R"(,"payload":[1.0])",
        R"(,"payload":[1],"payload_json":1)", R"(,"payload_json":1,"payload_base64":"YQ==")",
        R"(,"payload_base64":"?")", R"(,"dedup_ttl_ms":-1)", R"(,"resume_delay_ms":"1")",
        R"(,"created_at":"x")", R"(,"idempotency_key":5)", R"(,"signal_name":"approve")"}) {
    expect_shape_refused(deliver(to, "approve", keys), keys);
  }
  for (const auto* missing : {"waitpoint_id", "signal_name", "waitpoint_token"}) {
    auto body = signal(to, "approve");
    body.replace(body.find(missing), 1, "_");
    expect_shape_refused(post(to.path("/signal"), body), missing);
  }
  auto bad_id = signal(to, "approve");
  bad_id.replace(bad_id.find(to.waitpoint_id), 1, "x");
  expect_shape_refused(post(to.path("/signal"), bad_id), "a bad id");
  EXPECT_EQ(state(to), "suspended");
}

TEST_P(HttpSignals, AreOfLimitedSize) {
  const auto to = suspended(under(by_name("approve")));
  const auto of_size = [&](std::size_t quads) {  // each is three bytes
    return deliver(to, "other", R"(,"payload_base64":")" + std::string(quads * 4, 'A') + "\"");
  };
  EXPECT_EQ(of_size(21845).at("/Accepted/effect"), "no_op") << "65535 bytes";
  const auto too_large = of_size(21846);
  EXPECT_EQ(too_large.status, 400) << too_large.body;
  EXPECT_EQ(too_large.at("/code"), "payload_too_large");
  const auto refused = deliver(to, "approve", R"(,"payload_json":")" + std::string(262'144, 'x') + "\"");
  EXPECT_EQ(refused.status, 413);
  EXPECT_EQ(refused.at("/error"), "payload_too_large");
  EXPECT_EQ(refused.at("/limit_bytes"), "262144");
  EXPECT_EQ(refused.at("/route"), "/v1/executions/{id}/signal");
}

// ---- again ----

TEST_P(HttpSignals, WithTheSameKeyAreTakenOnce) {
  const auto to = suspended(under(by_name("approve")));
  const auto key = R"(,"idempotency_key":"approve/1")";
  EXPECT_EQ(effect(to, "other", key), "no_op");
  const auto first = last_signal_id();
  const auto again = deliver(to, "approve", key);
  EXPECT_EQ(again.status, 200);
  EXPECT_EQ(again.body, R"({"Duplicate":{"existing_signal_id":")" + first + "\"}}");
  EXPECT_EQ(state(to), "suspended");
  EXPECT_EQ(effect(to, "other", R"(,"idempotency_key":"")"), "no_op");
  EXPECT_EQ(effect(to, "other", R"(,"idempotency_key":"")"), "no_op") << "an empty key is none";
}

TEST_P(HttpSignals, ThatResumedCanBeSentAgain) {
  const auto to = suspended();
  const auto key = R"(,"idempotency_key":"approve/1")";
  EXPECT_EQ(effect(to, "approve", key), "resume_condition_satisfied");
  const auto first = last_signal_id();
  EXPECT_EQ(deliver(to, "approve", key).at("/Duplicate/existing_signal_id"), first);
  EXPECT_EQ(said(deliver(to)), "409 state_conflict: TargetNotSignalable (state_conflict, final)")
      << "without a key";
}

// ---- tokens ----

TEST_P(HttpSignals, NeedTheTokenOfTheWaitpoint) {
  const auto to = suspended();
  const auto other = suspended();
  const auto colon = to.token.find(':');
  auto flipped = to.token;
  flipped.back() = flipped.back() == '0' ? '1' : '0';
  for (const auto& token : {flipped, std::string("nonsense"), to.token.substr(colon),
                            to.token.substr(0, colon + 1), "k9" + to.token.substr(colon), to.token + "00",
                            other.token, to.token.substr(0, colon + 1) + std::string(64, 'g')}) {
    auto forged = to;
    forged.token = token;
    const auto refused = deliver(forged);
    EXPECT_EQ(said(refused), "400 invalid_token") << token;
    EXPECT_EQ(refused.at("/code"), "invalid_token");
    EXPECT_FALSE(contains(refused.body, to.token)) << "it does not tell the right one";
  }
  auto without = to;
  without.token = "";
  EXPECT_EQ(said(deliver(without)), "400 missing_token");
  EXPECT_EQ(state(to), "suspended");
}

// The answer does not tell whether there is such a waitpoint, and in which state.
TEST_P(HttpSignals, TellNothingWithoutTheToken) {
  auto to = suspended();
  const auto other = suspended();
  to.waitpoint_id = "22222222-2222-4222-8222-222222222222";
  EXPECT_EQ(said(deliver(to)), "400 invalid_token") << "no such waitpoint";
  to.waitpoint_id = other.waitpoint_id;
  to.token = other.token;
  EXPECT_EQ(said(deliver(to)), "400 invalid_token") << "another execution's waitpoint";
  const auto active = running();
  EXPECT_EQ(said(deliver({active, other.waitpoint_id, "", other.token})), "400 invalid_token")
      << "not suspended";
}

TEST_P(HttpSignals, ToNobodyAreNotFound) {
  auto to = suspended();
  to.task.execution_id = "{fp:16}:0b6d7a52-6f0e-4c1e-9f5e-2b9a64d1c0ff";
  EXPECT_EQ(said(deliver(to)), "404 not found: execution");
  to.token = "";
  EXPECT_EQ(said(deliver(to)), "404 not found: execution") << "before the token";
  EXPECT_EQ(post("/v1/executions/nonsense/signal", signal(to, "approve")).status, 400);
  EXPECT_EQ(said(post(suspended().path("/signal"), signal(to, "approve"))),
            "400 path execution_id does not match body execution_id");
}

TEST_P(HttpSignals, WithATokenOfAnOldSecretAreTakenForAWhile) {
  const auto to = suspended(under(by_name("approve")));
  const auto rotate = R"({"new_kid":"k2","new_secret_hex":"00112233445566778899aabbccddeeff"})";
  ASSERT_EQ(post("/v1/admin/rotate-waitpoint-secret", rotate).status, 200);
  EXPECT_EQ(effect(to, "other"), "no_op");
  EXPECT_EQ(suspended().token.substr(0, 3), "k2:");
  EXPECT_EQ(effect(to, "approve"), "resume_condition_satisfied");
}

TEST_P(HttpSignals, WithATokenThatIsTooOldAreRefused) {
  serve({.secret_grace_ms = 1});
  const auto to = suspended(under(by_name("approve")));
  const auto rotate = R"({"new_kid":"k2","new_secret_hex":"00112233445566778899aabbccddeeff"})";
  ASSERT_EQ(post("/v1/admin/rotate-waitpoint-secret", rotate).status, 200);
  EXPECT_TRUE(eventually([&] { return deliver(to, "other").status == 400; }));
  const auto refused = deliver(to);
  EXPECT_EQ(said(refused), "400 token_expired: k1");
  EXPECT_EQ(refused.at("/code"), "token_expired");
}

// ---- when nobody waits ----

TEST_P(HttpSignals, AreRefusedWhenTheExecutionIsOver) {
  const auto to = suspended();
  post(to.path("/cancel"), R"({"reason":"r"})");
  EXPECT_EQ(said(deliver(to)), "409 state_conflict: TargetNotSignalable (state_conflict, final)");
}

TEST_P(HttpSignals, AreRefusedByAWaitpointThatNobodyUsed) {
  const auto task = running();
  const auto early = pending(task, R"(,"expires_in_ms":1)");
  EXPECT_TRUE(eventually([&] { return deliver(early).status != 200; }));
  EXPECT_EQ(said(deliver(early)), "409 state_conflict: WaitpointClosed (state_conflict, final)");
}

TEST_P(HttpSignals, AreOfALimitedNumber) {
  const auto to = suspend(running(R"(,"policy":{"max_signals_per_execution":2})"), under(by_name("approve")));
  EXPECT_EQ(effect(to, "a", R"(,"max_signals_per_execution":100)"), "no_op");
  EXPECT_EQ(effect(to, "b"), "no_op");
  const auto refused = deliver(to, "approve", R"(,"max_signals_per_execution":100)");
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.at("/code"), "signal_limit_exceeded");
  EXPECT_EQ(state(to), "suspended");
}

TEST_P(HttpSignals, MayNotHaveAReservedName) {
  const auto to = suspended(under("\"OperatorOnly\""));
  for (const auto* name : {"__operator_only__", "__x", ""}) {
    const auto refused = deliver(to, name);
    EXPECT_EQ(refused.status, 400) << name;
    EXPECT_EQ(refused.at("/code"), "invalid_input") << name;
  }
  EXPECT_EQ(effect(to, "approve"), "no_op");
  EXPECT_EQ(state(to), "suspended");
}

}  // namespace
}  // namespace flowfabric::tests
