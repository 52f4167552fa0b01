// The policies of joins (04 §4.6, §5.1), edges that come late (§4.5), and the words for both.
#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;

// ---- policies ----

class JoinPolicies : public FlowTest {
 protected:
  SetJoinPolicy policy(const std::string& name, const JoinPolicy& wanted) {
    return {flow_id(), id(name), wanted};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, JoinPolicies, kStores, store_name);

TEST_P(JoinPolicies, WithoutOneAllAreNeeded) {
  start_flow();
  add_all({"a", "b"});
  connect("a", "b");

  EXPECT_EQ(join("b").policy, JoinPolicy{});
}

TEST_P(JoinPolicies, AreKept) {
  for (const auto& wanted : {any_of(), any_of(OnSatisfied::let_run), quorum(2), quorum(2'147'483'647)}) {
    start_flow();
    add_all({"a", "b"});
    set_join("b", wanted);
    stage("a", "b");
    EXPECT_EQ(join("b").policy, wanted);
  }
}

TEST_P(JoinPolicies, TheSameAgainChangesNothingAndAnotherReplacesIt) {
  start_flow();
  add_all({"a", "b"});
  EXPECT_EQ(set_join("b", quorum(2)), JoinPolicySet{false});
  EXPECT_EQ(set_join("b", quorum(2)), JoinPolicySet{true});
  EXPECT_EQ(set_join("b", quorum(3)), JoinPolicySet{false});
  EXPECT_EQ(set_join("b", quorum(3, OnSatisfied::let_run)), JoinPolicySet{false});
  EXPECT_EQ(set_join("b", any_of()), JoinPolicySet{false});
  stage("a", "b");

  EXPECT_EQ(join("b").policy, any_of());
}

TEST_P(JoinPolicies, TheFirstStagedEdgeFixesThem) {
  start_flow();
  add_all({"a", "b", "c"});
  set_join("b", any_of());
  stage("a", "b");
  stage("a", "c");

  refuse(policy("b", quorum(1)), ErrorCode::invalid_input, "edge_group_policy_already_fixed");
  refuse(policy("c", any_of()), ErrorCode::invalid_input, "edge_group_policy_already_fixed");
}

TEST_P(JoinPolicies, WhatMakesNoSenseIsRefused) {
  start_flow();
  add("a");
  refuse(policy("a", quorum(0)), ErrorCode::invalid_input, "quorum k must be >= 1");
  refuse(policy("a", quorum(2'147'483'648)), ErrorCode::invalid_input, "quorum k exceeds supported maximum");
  refuse(policy("a", {.kind = JoinKind::any_of}), ErrorCode::invalid_input, "on_satisfied");
  refuse(policy("a", {.kind = JoinKind::quorum, .k = 1}), ErrorCode::invalid_input, "on_satisfied");
}

TEST_P(JoinPolicies, TheFlowMustExistAndItsMemberNeedNot) {
  start_flow();
  add("a");
  make("b");
  refuse(SetJoinPolicy{neighbour(flow_id()), id("a"), any_of()}, ErrorCode::flow_not_found);
  EXPECT_EQ(set_join("b", any_of()), JoinPolicySet{false});
  must(AddFlowMember{flow_id(), id("b")});
  stage("a", "b");

  EXPECT_EQ(join("b").policy, any_of());
}

// ---- late edges ----

class LateEdge : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, LateEdge, kStores, store_name);

TEST_P(LateEdge, ReopensAJoinOfAllWhileNobodyHasTakenItsMember) {
  start_flow();
  add_all({"a", "b", "late"});
  connect("a", "b");
  succeeds("a");
  EXPECT_EQ(tally("b"), "1,0,0,0 satisfied");
  connect("late", "b");
  EXPECT_EQ(tally("b"), "1,0,0,1 pending");
  EXPECT_EQ(state_of("b"), expected::waiting_children());
  expect_not_offered("b");
  succeeds("late");

  EXPECT_EQ(tally("b"), "2,0,0,0 satisfied");
  succeeds("b");
}

TEST_P(LateEdge, MakesAFreeMemberWait) {
  start_flow();
  add_all({"a", "b"});
  EXPECT_EQ(state_of("b"), expected::waiting(AttemptState::pending_first_attempt));
  connect("a", "b");

  expect_not_offered("b");
}

TEST_P(LateEdge, CountsAtOnceIfItsUpstreamHasSucceeded) {
  start_flow();
  add_all({"a", "done", "b"});
  succeeds("done");
  EXPECT_EQ(apply(stage("done", "b")), (EdgeApplied{false, 0}));
  EXPECT_EQ(members(), "a:waiting b:waiting done:completed");
  connect("a", "b");
  EXPECT_EQ(apply(stage("done", "b")), (EdgeApplied{false, 1}));

  EXPECT_EQ(tally("b"), "2,0,0,1 pending");
  EXPECT_EQ(members(), "a:waiting b:waiting_children done:completed");
}

TEST_P(LateEdge, SkipsAtOnceIfItsUpstreamHasFailed) {
  start_flow();
  add_all({"bad", "b", "c"});
  connect("b", "c");
  fails("bad");
  EXPECT_EQ(apply(stage("bad", "b")), (EdgeApplied{false, 0}));

  EXPECT_EQ(members(), "b:skipped bad:failed c:skipped");
  EXPECT_EQ(tally("b"), "0,1,0,0 impossible");
  EXPECT_EQ(tally("c"), "0,0,1,0 impossible");
}

TEST_P(LateEdge, CountsHoweverItsUpstreamHasEnded) {
  start_flow();
  add_all({"bad", "cancelled", "skipped", "d", "other"});
  add("expired", {.execution_deadline_at = now() + 1});
  connect("bad", "skipped");
  fails("bad");
  cancel(id("cancelled"));
  advance(1);
  set_join("d", any_of(OnSatisfied::let_run));
  for (const char* name : {"other", "cancelled", "expired", "skipped"}) connect(name, "d");

  EXPECT_EQ(tally("d"), "0,2,1,1 pending");
}

TEST_P(LateEdge, ComesTooLateForAnyOfThatHasFired) {
  start_flow();
  add_all({"a", "b", "late", "later"});
  set_join("b", any_of(OnSatisfied::let_run));
  connect("a", "b");
  const auto staged = stage("late", "b");
  succeeds("a");

  refuse(application(staged), ErrorCode::group_already_terminal);
  refuse(edge("later", "b"), ErrorCode::group_already_terminal);
  EXPECT_EQ(state_of("b"), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(LateEdge, ComesTooLateForAJoinThatIsImpossible) {
  start_flow();
  add_all({"a", "b", "late", "later"});
  connect("a", "b");
  const auto staged = stage("late", "b");
  fails("a");

  refuse(application(staged), ErrorCode::group_already_terminal);
  refuse(edge("later", "b"), ErrorCode::group_already_terminal);
}

TEST_P(LateEdge, ComesTooLateForAMemberThatHasEnded) {
  start_flow();
  add_all({"a", "b", "late"});
  succeeds("b");
  refuse(edge("late", "b"), ErrorCode::group_already_terminal);
  const auto staged = stage("late", "a");
  cancel(id("a"));

  refuse(application(staged), ErrorCode::group_already_terminal);
}

TEST_P(LateEdge, IsWhatAQuorumLargerThanItsEdgesWaitsFor) {
  start_flow();
  add_all({"d", "u1", "u2", "u3"});
  set_join("d", quorum(3));
  connect("u1", "d");
  connect("u2", "d");
  succeeds("u1");
  EXPECT_EQ(tally("d"), "1,0,0,1 pending");
  connect("u3", "d");
  succeeds("u2");
  EXPECT_EQ(tally("d"), "2,0,0,1 pending");
  succeeds("u3");

  EXPECT_EQ(tally("d"), "3,0,0,0 satisfied");
  EXPECT_EQ(state_of("d"), expected::waiting(AttemptState::pending_first_attempt));
}

// ---- words ----

TEST(JoinPolicyWords, AreReadAndWritten) {
  const std::vector<std::pair<JoinPolicy, std::string>> words{
      {{}, R"({"kind":"all_of"})"},
      {any_of(), R"({"kind":"any_of","on_satisfied":"cancel_remaining"})"},
      {any_of(OnSatisfied::let_run), R"({"kind":"any_of","on_satisfied":"let_run"})"},
      {quorum(2), R"({"kind":"quorum","k":2,"on_satisfied":"cancel_remaining"})"},
      {quorum(2'147'483'647, OnSatisfied::let_run),
       R"({"kind":"quorum","k":2147483647,"on_satisfied":"let_run"})"}};
  for (const auto& [policy, json] : words) {
    EXPECT_EQ(to_json(policy), json);
    const auto read = parse_join_policy(json);
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, policy);
  }
  EXPECT_EQ(parse_join_policy(R"( { "on_satisfied" : "let_run", "k" : 3, "kind" : "quorum" } )").value(),
            quorum(3, OnSatisfied::let_run));
}

TEST(JoinPolicyWords, AreRefusedWhereTheyMakeNoSense) {
  for (const char* json :
       {"", "nonsense", "[]", "null", "\"all_of\"", "{}", R"({"kind":1})", R"({"kind":"all_of")",
        R"({"kind":"any_of"})", R"({"kind":"any_of","on_satisfied":"explode"})",
        R"({"kind":"any_of","on_satisfied":1})", R"({"kind":"quorum","on_satisfied":"let_run"})",
        R"({"kind":"quorum","k":2})", R"({"kind":"quorum","k":"2","on_satisfied":"let_run"})",
        R"({"kind":"quorum","k":-1,"on_satisfied":"let_run"})",
        R"({"kind":"quorum","k":1.5,"on_satisfied":"let_run"})",
        R"({"kind":"quorum","k":99999999999999999999,"on_satisfied":"let_run"})"}) {
    const auto read = parse_join_policy(json);
    ASSERT_FALSE(read) << json;
    EXPECT_EQ(error_info(read.error().code).kind, ErrorKind::validation) << json;
    EXPECT_FALSE(read.error().advice.empty()) << json;
  }
}

TEST(JoinPolicyWords, TheSpecificationWordsSomeRefusals) {
  const auto detail = [](const char* json) { return parse_join_policy(json).error().detail; };

  EXPECT_EQ(detail(R"({"kind":"quorum","k":0,"on_satisfied":"let_run"})"), "quorum k must be >= 1");
  EXPECT_EQ(detail(R"({"kind":"quorum","k":2147483648,"on_satisfied":"let_run"})"),
            "quorum k exceeds supported maximum");
  EXPECT_EQ(detail(R"({"kind":"most_of"})"), "unsupported_policy_variant: most_of");
}

TEST(CancellationPolicyWords, AreTheNamesAndOneMore) {
  for (const auto policy : {CancellationPolicy::cancel_all, CancellationPolicy::cancel_pending,
                            CancellationPolicy::cancel_unscheduled_only, CancellationPolicy::flow_only,
                            CancellationPolicy::let_active_finish}) {
    EXPECT_EQ(parse_cancellation_policy(enum_name(policy)).value(), policy);
  }
  EXPECT_EQ(parse_cancellation_policy("cancel_flow_only").value(), CancellationPolicy::flow_only);
  for (const char* bad : {"", "all", "CANCEL_ALL", "cancel_all "}) {
    const auto read = parse_cancellation_policy(bad);
    ASSERT_FALSE(read) << bad;
    EXPECT_EQ(error_info(read.error().code).kind, ErrorKind::validation) << bad;
  }
}

}  // namespace
}  // namespace flowfabric
