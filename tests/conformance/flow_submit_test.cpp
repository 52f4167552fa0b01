// A whole flow in one call (09 §3): all of it, or nothing.
#include <functional>

#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class FlowSubmit : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowSubmit, kStores, store_name);

// ---- what comes of it ----

TEST_P(FlowSubmit, NamesBecomeMembers) {
  const auto answer = submit(graph("fetch>a fetch>b a>pick b>pick", {{"pick", quorum(1)}}));
  EXPECT_FALSE(answer.already_existed);
  EXPECT_EQ(answer.executions.size(), 4u);
  for (const auto& [name, execution_id] : answer.executions) {
    EXPECT_EQ(execution_id.partition, execution_id_for(answer.flow_id, {}).partition);
    EXPECT_EQ(describe(execution_id).flow_id, answer.flow_id);
    EXPECT_EQ(describe(execution_id).lane_id, name);
  }

  EXPECT_EQ(members(), "a:waiting_children b:waiting_children fetch:waiting pick:waiting_children");
  EXPECT_EQ(state_of("fetch"), expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(state_of("pick"), expected::waiting_children());
  EXPECT_EQ(join("pick").policy, quorum(1));
  EXPECT_EQ(join("a").policy, JoinPolicy{});
  EXPECT_EQ(tally("pick"), "0,0,0,2 pending");
  expect_not_offered("a b pick");
}

// The ids of members follow from the flow's id.
TEST_P(FlowSubmit, TakesNobodysPlace) {
  auto request = graph("a b");
  request.flow_id = flow_of(9);
  auto elsewhere = open("memory:");
  const auto ids = elsewhere.call(request).value().executions;
  create({.execution_id = ids.at("b"), .execution_kind = "was there before"});
  const auto before = story(ids.at("b"));
  expect_error(request, ErrorCode::invalid_input);
  EXPECT_EQ(story(ids.at("b")), before);
  expect_error(DescribeExecution{ids.at("a")}, ErrorCode::execution_not_found);
  expect_error(DescribeFlow{*request.flow_id}, ErrorCode::flow_not_found);
}

TEST_P(FlowSubmit, TheFlowIsAsItWasAsked) {
  tick(5);
  SubmitFlow request = graph("a>b c");
  request.flow_id = flow_of(7);
  request.flow_kind = "pipeline";
  request.namespace_ = "acme";
  request.tags = {{"a.b", "c"}};
  EXPECT_EQ(submit(request).flow_id, flow_of(7));
  const auto seen = flow();

  EXPECT_EQ(seen.flow_kind, "pipeline");
  EXPECT_EQ(seen.namespace_, "acme");
  EXPECT_EQ(seen.tags, (Tags{{"a.b", "c"}}));
  EXPECT_EQ(seen.public_flow_state, FlowState::open);
  EXPECT_EQ(seen.failure_policy, FailurePolicy::isolate_failures);
  EXPECT_EQ(seen.node_count, 3u);
  EXPECT_EQ(seen.edge_count, 1u);
  EXPECT_EQ(seen.created_at, now());
  EXPECT_EQ(seen.counts, (StateCounts{{PublicState::waiting, 2}, {PublicState::waiting_children, 1}}));
}

TEST_P(FlowSubmit, EdgesAreInForceAtOnce) {
  tick(5);
  submit(graph("a=>b b>c"));
  const auto edges = drawn().edges;

  ASSERT_EQ(edges.size(), 2u);
  for (const auto& edge : edges) {
    const bool first = edge.upstream_execution_id == id("a");
    EXPECT_EQ(edge.downstream_execution_id, id(first ? "b" : "c"));
    EXPECT_EQ(edge.data_passing_ref.empty(), !first);
    EXPECT_EQ(edge.dependency_kind, kSuccessOnly);
    EXPECT_EQ(edge.edge_state, EdgeState::applied);
    EXPECT_EQ(edge.dependency_state, DependencyState::unsatisfied);
    EXPECT_EQ(edge.created_at, now());
    EXPECT_EQ(edge.applied_at, now());
  }
}

TEST_P(FlowSubmit, MembersInheritTheNamespace) {
  auto request = graph("a>b");
  request.namespace_ = "acme";
  submit(request);
  EXPECT_EQ(member("a").namespace_, "acme");
  EXPECT_EQ(member("b").namespace_, "acme");
  EXPECT_TRUE(claim({.namespace_ = "other", .lanes = {"a"}}).empty());
  complete(claim_one({.namespace_ = "acme", .lanes = {"a"}}));

  EXPECT_EQ(claim_one({.namespace_ = "acme", .lanes = {"b"}}).namespace_, "acme");
}

TEST_P(FlowSubmit, ANodeTakesEverythingThatACreateDoes) {
  auto request = graph("a b");
  node(request, "a").execution = {.lane_id = "fast",
                                  .execution_kind = "resize",
                                  .input = "{}",
                                  .payload_encoding = "json",
                                  .priority = 7,
                                  .creator_identity = "alice",
                                  .tags = {{"a.b", "c"}},
                                  .policy = attempt_timeout(500),
                                  .execution_deadline_at = now() + kHour};
  node(request, "b").execution.delay_until = now() + 10;
  submit(request);
  const auto task = claim_one({.lanes = {"fast"}});

  EXPECT_EQ(task.execution_id, id("a"));
  EXPECT_EQ(task.execution_kind, "resize");
  EXPECT_EQ(task.input, "{}");
  EXPECT_EQ(task.payload_encoding, "json");
  EXPECT_EQ(task.priority, 7);
  EXPECT_EQ(task.tags, (Tags{{"a.b", "c"}}));
  EXPECT_EQ(task.deadline_at, now() + kHour);
  EXPECT_EQ(task.attempt_timeout_at, now() + 500);
  EXPECT_EQ(state_of("b"),
            expected::delayed(BlockingReason::waiting_for_delay, AttemptState::pending_first_attempt));
}

TEST_P(FlowSubmit, ANodeMayNeedCapabilities) {
  auto request = graph("a>b");
  node(request, "b").execution.policy = needs({"gpu"});
  submit(request);
  succeeds("a");
  expect_not_offered("b");

  EXPECT_EQ(claim_one({.lanes = {"b"}, .capabilities = {"gpu"}}).execution_id, id("b"));
}

TEST_P(FlowSubmit, NoEdgesAreNeeded) {
  submit(graph("a b c"));

  EXPECT_EQ(members(), "a:waiting b:waiting c:waiting");
  EXPECT_EQ(drawn().groups, std::vector<JoinSnapshot>{});
}

TEST_P(FlowSubmit, SeveralEdgesBetweenTwoCountEach) {
  auto request = graph("a>b");
  request.edges.push_back(request.edges.front());
  submit(request);
  EXPECT_EQ(tally("b"), "0,0,0,2 pending");
  succeeds("a");

  EXPECT_EQ(tally("b"), "2,0,0,0 satisfied");
}

TEST_P(FlowSubmit, AThousandNodesAreOneCall) {
  auto request = fan_out(998);
  request.nodes.push_back({.name = "sink", .execution = request.nodes.front().execution});
  for (std::size_t i = 1; i <= 998; ++i) request.edges.push_back({"n" + std::to_string(i), "sink"});
  EXPECT_EQ(submit_many(std::move(request)).executions.size(), 1000u);
  complete(claim_one({.lanes = {"many"}}));
  run_due();
  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::completed, 1},
                                        {PublicState::waiting, 998},
                                        {PublicState::waiting_children, 1}}));
  for (auto tasks = claim({.lanes = {"many"}, .max_tasks = 256}); !tasks.empty();
       tasks = claim({.lanes = {"many"}, .max_tasks = 256})) {
    for (const auto& task : tasks) complete(task);
  }

  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::completed, 1000}}))
      << "the sink was claimed as the last";
  EXPECT_EQ(flow().state, FlowState::completed);
}

TEST_P(FlowSubmit, WhatWasSubmittedCanStillGrow) {
  submit(graph("a"));
  const auto b = create({.execution_id = execution_id_for(flow_id(), uuid_of(777)), .lane_id = "b"});
  must(AddFlowMember{flow_id(), b});
  const auto staged = must(StageEdge{.flow_id = flow_id(),
                                     .upstream_execution_id = id("a"),
                                     .downstream_execution_id = b,
                                     .expected_graph_revision = flow().graph_revision});
  must(ApplyEdge{flow_id(), staged.edge_id, id("a"), b});
  EXPECT_EQ(state(b), expected::waiting_children());
  succeeds("a");

  EXPECT_EQ(state(b), expected::waiting(AttemptState::pending_first_attempt));
}

// ---- again ----

TEST_P(FlowSubmit, TheSameIdIsTheSameFlow) {
  auto request = graph("a>b c");
  request.flow_id = flow_of(7);
  auto first = submit(request);
  succeeds("a");
  tick(5);
  const auto before = flow_story();

  const auto again = must(request);
  EXPECT_TRUE(again.already_existed);
  first.already_existed = true;
  EXPECT_EQ(again, first);
  EXPECT_EQ(flow_story(), before);
}

TEST_P(FlowSubmit, AnotherFlowWithTheSameIdIsRefused) {
  auto request = graph("a>b c");
  request.flow_id = flow_of(7);
  submit(request);
  for (auto other : {graph("a>b d"), graph("a>b c d"), graph("a>b>c a>c")}) {
    other.flow_id = flow_of(7);
    refuse(std::move(other), ErrorCode::invalid_input, "flow_id");
  }
}

TEST_P(FlowSubmit, WithoutAnIdEachIsAFlowOfItsOwn) {
  const auto first = submit(graph("a"));
  const auto second = submit(graph("a"));

  EXPECT_NE(first.flow_id, second.flow_id);
  EXPECT_NE(first.executions.at("a"), second.executions.at("a"));
  EXPECT_EQ(count("a"), (StateCounts{{PublicState::waiting, 2}}));
}

// ---- bad input ----

struct BadFlow {
  std::string name;
  std::function<void(SubmitFlow&)> spoil;
  ErrorCode code{ErrorCode::invalid_input};
  std::string names{};  // what the error has to name
};
void PrintTo(const BadFlow& given, std::ostream* out) {
  *out << given.name;
}

// Of "a>b b>c".
std::vector<BadFlow> bad_flows() {
  const auto join = [](const char* name, JoinPolicy policy) {
    return [=](SubmitFlow& r) { node(r, name).join = policy; };
  };
  const auto edge = [](const char* from, const char* to) {
    return [=](SubmitFlow& r) { r.edges.push_back({from, to}); };
  };
  return {
      {"NoNodes",
       [](auto& r) {
         r.nodes.clear();
         r.edges.clear();
       }},
      {"TooManyNodes",
       [](auto& r) {
         r = fan_out(10'000);
         r.edges.clear();
       }},
      {"TooManyEdges", [](auto& r) { r.edges.assign(100'001, r.edges.front()); }},
      {"NameEmpty", [](auto& r) { r.nodes.push_back({.execution = r.nodes[0].execution}); }},
      {"NameRepeated", [](auto& r) { r.nodes.push_back(node(r, "b")); }, ErrorCode::invalid_input, "b"},
      {"NameWithNul", [](auto& r) { r.nodes[2].name = "a\0b"s; }},
      {"EdgeFromNowhere", edge("nowhere", "c"), ErrorCode::invalid_input, "nowhere"},
      {"EdgeToNowhere", edge("a", "nowhere"), ErrorCode::invalid_input, "nowhere"},
      {"EdgeToItself", edge("b", "b"), ErrorCode::self_referencing_edge, "b"},
      {"Cycle", edge("c", "a"), ErrorCode::cycle_detected},
      {"CycleOfTwo", edge("b", "a"), ErrorCode::cycle_detected},
      {"QuorumOfNone", join("b", quorum(0)), ErrorCode::invalid_input, "b"},
      {"QuorumOfMoreThanThereAre", join("b", quorum(2)), ErrorCode::invalid_input, "b"},
      {"QuorumWithoutEdges", join("a", quorum(1)), ErrorCode::invalid_input, "a"},
      {"AnyOfWithoutTheRest", join("b", {.kind = JoinKind::any_of}), ErrorCode::invalid_input, "b"},
      {"QuorumWithoutTheRest", join("b", {.kind = JoinKind::quorum, .k = 1}), ErrorCode::invalid_input, "b"},
      {"KindEmpty", [](auto& r) { r.flow_kind = ""; }},
      {"NamespaceWithTab", [](auto& r) { r.namespace_ = "a\tb"; }},
      {"TagKeyEmpty",
       [](auto& r) {
         r.tags = {{"", "x"}};
       },
       ErrorCode::invalid_tag_key},
      {"NodeWithAnId", [](auto& r) { node(r, "b").execution.execution_id = ExecutionId{}; }},
      {"NodeWithAKey", [](auto& r) { node(r, "b").execution.idempotency_key = "key"; }},
      {"NodeOfAnotherNamespace", [](auto& r) { node(r, "b").execution.namespace_ = "other"; }},
      {"LaneTooLong", [](auto& r) { node(r, "c").execution.lane_id = std::string(65, 'x'); }},
      {"CapabilityEmpty", [](auto& r) { node(r, "c").execution.policy = needs({""}); },
       ErrorCode::invalid_capabilities},
      {"DelayNegative", [](auto& r) { node(r, "c").execution.delay_until = -1; }},
  };
}

class BadFlowSubmit : public FlowCaseTest<BadFlow> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, BadFlowSubmit, on_every_store(bad_flows()), case_name<BadFlow>);

TEST_P(BadFlowSubmit, IsRefusedWithoutATrace) {
  auto request = graph("a>b b>c");
  given().spoil(request);
  request.flow_id = flow_of(7);
  const auto error = expect_error(request, given().code);

  EXPECT_NE((error.detail + error.advice).find(given().names), std::string::npos) << error.to_string();
  expect_error(DescribeFlow{flow_of(7)}, ErrorCode::flow_not_found);
  EXPECT_EQ(must(ListExecutions{}), ExecutionPage{});
  EXPECT_EQ(must(ListFlows{}), FlowPage{});
  expect_not_offered("a b c");
  submit(graph("a>b b>c"));
}

TEST_P(FlowSubmit, ALaneThatTakesNothingRefusesTheWholeFlow) {
  for (const auto lane_state : {LaneState::draining, LaneState::disabled}) {
    must(SetLaneState{"c", lane_state});
    auto request = graph("a>b b>c");
    request.flow_id = flow_of(7);
    expect_error(request, ErrorCode::lane_not_accepting);
    expect_error(DescribeFlow{flow_of(7)}, ErrorCode::flow_not_found);
    EXPECT_EQ(must(ListExecutions{}), ExecutionPage{});
  }
  must(SetLaneState{"c", LaneState::paused});
  submit(graph("a>b b>c"));
}

// ---- failing fast ----

class FailFast : public FlowTest {
 protected:
  void submit_fast(SubmitFlow request) {
    request.failure_policy = FailurePolicy::fail_fast;
    submit(std::move(request));
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FailFast, kStores, store_name);

TEST_P(FailFast, TheFirstFailureEndsTheFlow) {
  submit_fast(graph("a b c>d done"));
  succeeds("done");
  const auto task = take("b");
  fails("a");
  EXPECT_EQ(flow().public_flow_state, FlowState::failed);
  run_due();

  EXPECT_EQ(members(), "a:failed b:cancelled c:cancelled d:cancelled done:completed");
  EXPECT_EQ(flow().state, FlowState::failed);
  expect_refused(completion(task), ErrorCode::execution_not_active);
  make("e");
  refuse(AddFlowMember{flow_id(), id("e")}, ErrorCode::flow_already_terminal);
  EXPECT_TRUE(cancel_flow().already_terminal);
}

TEST_P(FailFast, AnExpiryIsAFailure) {
  auto request = graph("a b");
  node(request, "a").execution.execution_deadline_at = now() + 10;
  submit_fast(request);
  advance(10);

  EXPECT_EQ(members(), "a:expired b:cancelled");
  EXPECT_EQ(flow().public_flow_state, FlowState::failed);
}

TEST_P(FailFast, ARetryOrACancelIsNone) {
  auto request = graph("a b c");
  node(request, "a").execution.policy = retries(1, FixedBackoff{0});
  submit_fast(request);
  fail(take("a"));
  cancel(id("b"));
  run_due();

  EXPECT_EQ(flow().public_flow_state, FlowState::open);
  EXPECT_EQ(members(), "a:waiting b:cancelled c:waiting");
}

TEST_P(FailFast, IsAskedFor) {
  submit(graph("a b"));
  fails("a");
  run_due();

  EXPECT_EQ(members(), "a:failed b:waiting");
  EXPECT_EQ(flow().public_flow_state, FlowState::open);
}

TEST_P(FailFast, AlsoOfAFlowBuiltStepByStep) {
  start_flow({.failure_policy = FailurePolicy::fail_fast});
  add_all({"a", "b"});
  fails("a");
  run_due();

  EXPECT_EQ(members(), "a:failed b:cancelled");
}

}  // namespace
}  // namespace flowfabric
