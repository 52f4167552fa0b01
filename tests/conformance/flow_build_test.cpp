// Building a flow step by step (04 §4.1–4.4, 4.6): the flow, its members, its edges, its joins. What is
// refused leaves no trace.
#include <algorithm>
#include <future>

#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class FlowBuild : public FlowTest {
 protected:
  AddFlowMember addition(const ExecutionId& execution_id) { return {flow_id(), execution_id}; }
  static EdgeId some_edge() { return {uuid_of(999)}; }
  static ExecutionId elsewhere(ExecutionId id) {
    id.partition ^= 1;
    return id;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowBuild, kStores, store_name);

// ---- the flow ----

TEST_P(FlowBuild, ANewFlowIsOpenAndEmpty) {
  tick(5);
  start_flow({.flow_id = flow_of(7),
              .flow_kind = "dag",
              .namespace_ = "acme",
              .failure_policy = FailurePolicy::fail_fast,
              .tags = {{"a.b", "c"}}});

  FlowSnapshot expected{.flow_id = flow_of(7), .flow_kind = "dag", .namespace_ = "acme"};
  expected.failure_policy = FailurePolicy::fail_fast;
  expected.created_at = expected.last_mutation_at = now();
  expected.tags = {{"a.b", "c"}};
  EXPECT_EQ(flow(), expected);
  EXPECT_EQ(drawn(), FlowGraph{});
}

TEST_P(FlowBuild, CreatedAgainItStaysAsItWas) {
  start_flow({.flow_id = flow_of(7), .flow_kind = "dag", .namespace_ = "acme"});
  add("a");
  const auto before = flow_story();
  tick(5);

  EXPECT_EQ(must(CreateFlow{.flow_id = flow_of(7), .flow_kind = "other"}), (FlowCreation{flow_of(7), true}));
  EXPECT_EQ(flow_story(), before);
}

TEST_P(FlowBuild, IdsAreMintedWhereNoneIsGiven) {
  const auto first = must(CreateFlow{.flow_kind = "dag"});
  const auto second = must(CreateFlow{.flow_kind = "dag"});

  EXPECT_FALSE(first.already_existed);
  EXPECT_NE(first.flow_id, second.flow_id);
}

TEST_P(FlowBuild, ABadFlowIsRefused) {
  const auto refuse_flow = [&](CreateFlow request, ErrorCode code = ErrorCode::invalid_input) {
    request.flow_id = flow_of(7);
    expect_error(std::move(request), code);
    expect_error(DescribeFlow{flow_of(7)}, ErrorCode::flow_not_found);
  };
  refuse_flow({.flow_kind = ""});
  refuse_flow({.flow_kind = "a\0b"s});
  refuse_flow({.flow_kind = "\xff"});
  refuse_flow({.flow_kind = "dag", .namespace_ = "a\tb"});
  refuse_flow({.flow_kind = "dag", .namespace_ = std::string(257, 'x')});
  refuse_flow({.flow_kind = "dag", .tags = {{"a.b", "a\0b"s}}});
  refuse_flow({.flow_kind = "dag", .tags = {{"", "x"}}}, ErrorCode::invalid_tag_key);
}

// ---- its members ----

TEST_P(FlowBuild, EachMemberCountsOnce) {
  start_flow();
  add_all({"a", "b", "c"});
  tick(5);
  const auto before = flow_story();
  EXPECT_EQ(before.flow.node_count, 3u);
  EXPECT_EQ(before.flow.graph_revision, 3u);

  EXPECT_EQ(must(addition(id("b"))), (MemberAdded{id("b"), 3, true}));
  EXPECT_EQ(flow_story(), before);
}

TEST_P(FlowBuild, AddingTellsHowManyThereAre) {
  start_flow();
  const auto a = make("a");
  EXPECT_EQ(must(addition(a)), (MemberAdded{a, 1, false}));
  tick(5);
  const auto b = make("b");
  EXPECT_EQ(must(addition(b)), (MemberAdded{b, 2, false}));

  EXPECT_EQ(flow().last_mutation_at, now());
}

TEST_P(FlowBuild, AMemberKnowsItsFlowAndIsOtherwiseAsBefore) {
  start_flow();
  auto expected = describe(make("a"));
  tick(5);
  must(addition(id("a")));

  expected.flow_id = flow_id();
  auto seen = member("a");
  expected.last_mutation_at = seen.last_mutation_at;
  EXPECT_EQ(seen, expected);
  const auto listed = must(ListExecutions{.filter = {.flow_id = flow_id()}}).executions;
  ASSERT_EQ(listed.size(), 1u);
  EXPECT_EQ(listed[0].execution_id, id("a"));
  succeeds("a");
}

TEST_P(FlowBuild, NoneOfManyAddedAtOnceIsLost) {
  start_flow();
  std::vector<std::future<Result<MemberAdded>>> answers;
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) make(name);
  for (const char* name : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    answers.push_back(engine().submit(addition(id(name))));
  }
  std::vector<std::uint32_t> counts;
  for (auto& answer : answers) counts.push_back(answer.get().value().node_count);
  std::ranges::sort(counts);

  EXPECT_EQ(counts, (std::vector<std::uint32_t>{1, 2, 3, 4, 5, 6, 7, 8}));
  EXPECT_EQ(flow().node_count, 8u);
}

TEST_P(FlowBuild, WhatDoesNotExistCannotBeAdded) {
  start_flow();
  make("a");
  refuse(addition(execution_id_for(flow_id(), uuid_of(777))), ErrorCode::execution_not_found);
  refuse(AddFlowMember{neighbour(flow_id()), id("a")}, ErrorCode::flow_not_found);

  EXPECT_EQ(member("a").flow_id, std::nullopt);
}

TEST_P(FlowBuild, AMemberLivesInThePartitionOfItsFlow) {
  start_flow();
  const auto stranger = create({.execution_id = elsewhere(execution_id_for(flow_id(), uuid_of(777)))});
  refuse(addition(stranger), ErrorCode::invalid_input, "partition_mismatch");

  EXPECT_EQ(describe(stranger).flow_id, std::nullopt);
}

TEST_P(FlowBuild, AMemberBelongsToOneFlowOnly) {
  const auto first = start_flow();
  const auto a = add("a");
  start_flow({.flow_id = neighbour(first)});
  const auto error = refuse(addition(a), ErrorCode::execution_already_in_flow);

  EXPECT_NE(error.detail.find(first.to_string()), std::string::npos) << error.detail;
  EXPECT_EQ(describe(a).flow_id, first);
}

TEST_P(FlowBuild, ACancelledFlowTakesNothingMore) {
  start_flow();
  add_all({"a", "b"});
  make("c");
  cancel_flow(CancellationPolicy::flow_only);

  refuse(addition(id("c")), ErrorCode::flow_already_terminal);
  refuse(edge("a", "b"), ErrorCode::flow_already_terminal);
  EXPECT_EQ(member("c").flow_id, std::nullopt);
}

TEST_P(FlowBuild, AFlowWhoseMembersHaveEndedTakesMore) {
  start_flow();
  add("a");
  succeeds("a");
  EXPECT_EQ(flow().state, FlowState::completed);
  add("b");

  EXPECT_EQ(flow().state, FlowState::open);
  EXPECT_EQ(flow().node_count, 2u);
}

TEST_P(FlowBuild, TheFirstObstacleToAMemberIsTold) {
  start_flow();
  add("a");
  const auto unknown = execution_id_for(flow_id(), uuid_of(777));
  cancel_flow(CancellationPolicy::flow_only);

  refuse(AddFlowMember{neighbour(flow_id()), elsewhere(unknown)}, ErrorCode::invalid_input, "partition");
  refuse(AddFlowMember{neighbour(flow_id()), unknown}, ErrorCode::flow_not_found);
  refuse(addition(unknown), ErrorCode::flow_already_terminal);
  refuse(addition(id("a")), ErrorCode::flow_already_terminal);
}

// ---- staging edges ----

TEST_P(FlowBuild, AStagedEdgeIsKeptAndHasNoEffect) {
  start_flow();
  add_all({"a", "b"});
  const auto before = story(id("b"));
  tick(5);
  auto request = edge("a", "b", "result");
  request.edge_id = some_edge();
  EXPECT_EQ(must(request).new_graph_revision, 3u);

  EdgeSnapshot expected{some_edge(), flow_id(), id("a"), id("b"), kSuccessOnly};
  expected.data_passing_ref = "result";
  expected.created_at = now();
  EXPECT_EQ(edge_of(some_edge()), expected);
  EXPECT_EQ(expected.satisfaction_condition, "all_required");
  EXPECT_EQ(flow().edge_count, 1u);
  EXPECT_EQ(flow().graph_revision, 3u);
  EXPECT_EQ(flow().last_mutation_at, now());
  EXPECT_EQ(story(id("b")), before);
}

TEST_P(FlowBuild, AnEdgeNeedsTheRevisionOfTheMoment) {
  start_flow();
  add_all({"a", "b", "c", "d"});
  auto stale = edge("a", "b");
  for (const std::uint64_t revision : {3u, 5u, 0u}) {
    stale.expected_graph_revision = revision;
    refuse(stale, ErrorCode::stale_graph_revision);
  }
  stale.expected_graph_revision = 4;
  EXPECT_EQ(must(stale).new_graph_revision, 5u);
  refuse(stale, ErrorCode::stale_graph_revision);
}

TEST_P(FlowBuild, ACycleIsRefused) {
  start_flow();
  add_all({"a", "b", "c"});
  stage("a", "b");
  stage("b", "c");
  refuse(edge("c", "a"), ErrorCode::cycle_detected);
  refuse(edge("b", "a"), ErrorCode::cycle_detected);

  stage("a", "c");
}

TEST_P(FlowBuild, ACycleIsFoundHoweverLongAndNoneIsImagined) {
  auto request = fan_out(1500);
  for (std::size_t i = 2; i <= 1500; ++i) {
    request.edges[i - 1].from = "n" + std::to_string(i - 1);
  }
  submit_many(std::move(request));
  refuse(edge("n1500", "root"), ErrorCode::cycle_detected);

  must(edge("root", "n1500"));
}

TEST_P(FlowBuild, NothingWaitsForItself) {
  start_flow();
  add("a");
  refuse(edge("a", "a"), ErrorCode::self_referencing_edge);
  auto nowhere = edge("a", "a");
  nowhere.flow_id = neighbour(flow_id());

  refuse(nowhere, ErrorCode::self_referencing_edge);
}

TEST_P(FlowBuild, BothEndsAreMembers) {
  start_flow();
  add("a");
  make("outsider");
  refuse(edge("a", "outsider"), ErrorCode::execution_not_in_flow);
  refuse(edge("outsider", "a"), ErrorCode::execution_not_in_flow);
}

TEST_P(FlowBuild, AnEdgeIdIsUsedOncePerFlow) {
  start_flow();
  add_all({"a", "b", "c"});
  auto request = edge("a", "b");
  request.edge_id = some_edge();
  must(request);
  auto again = edge("b", "c");
  again.edge_id = some_edge();
  const auto error = refuse(again, ErrorCode::dependency_already_exists);
  EXPECT_EQ(error.detail, id("a").to_string() + " -> " + id("b").to_string()) << "the edge that has it";

  start_flow();
  add_all({"x", "y"});
  auto in_another_flow = edge("x", "y");
  in_another_flow.edge_id = some_edge();
  EXPECT_EQ(must(in_another_flow).edge_id, some_edge());
}

TEST_P(FlowBuild, TheFirstObstacleToAnEdgeIsTold) {
  start_flow();
  add_all({"a", "b"});
  make("outsider");
  auto request = edge("a", "b");
  request.edge_id = some_edge();
  must(request);

  refuse(request, ErrorCode::stale_graph_revision);
  request.downstream_execution_id = id("outsider");
  refuse(request, ErrorCode::stale_graph_revision);
  request.expected_graph_revision = flow().graph_revision;
  refuse(request, ErrorCode::execution_not_in_flow);
  request = edge("b", "a");
  request.edge_id = some_edge();
  refuse(request, ErrorCode::cycle_detected);
  cancel_flow(CancellationPolicy::flow_only);
  request.expected_graph_revision = 0;
  refuse(request, ErrorCode::flow_already_terminal);
  request.flow_id = neighbour(flow_id());
  refuse(request, ErrorCode::flow_not_found);
}

TEST_P(FlowBuild, OnlySuccessIsADependency) {
  start_flow();
  add_all({"a", "b"});
  for (const char* kind : {"", "terminal_any", "SUCCESS_ONLY"}) {
    auto request = edge("a", "b");
    request.dependency_kind = kind;
    refuse(request, ErrorCode::invalid_dependency);
  }
  refuse(edge("a", "b", "a\0b"s), ErrorCode::invalid_input);
}

// ---- applying edges ----

TEST_P(FlowBuild, FromTheApplyOnTheDownstreamWaits) {
  start_flow();
  add_all({"a", "b"});
  const auto edge_id = stage("a", "b");
  tick(5);
  EXPECT_EQ(apply(edge_id), (EdgeApplied{false, 1}));

  EXPECT_EQ(state_of("b"), expected::waiting_children());
  EXPECT_EQ(member("b").blocking_detail, "1 dep(s) unresolved incl " + edge_id.to_string());
  EXPECT_EQ(edge_of(edge_id).edge_state, EdgeState::applied);
  EXPECT_EQ(edge_of(edge_id).applied_at, now());
  EXPECT_EQ(edge_of(edge_id).dependency_state, DependencyState::unsatisfied);
  EXPECT_EQ(flow().graph_revision, 3u);
  expect_not_offered("b");
}

// An operator's word outlasts the join.
TEST_P(FlowBuild, WhatIsHeldStaysHeld) {
  start_flow();
  add_all({"a", "b"});
  must(HoldExecution{.execution_id = id("b")});
  const auto held = state_of("b");
  connect("a", "b");
  EXPECT_EQ(state_of("b"), held);
  must(ReleaseExecution{id("b")});
  EXPECT_EQ(state_of("b"), expected::waiting_children());

  add("c");
  must(HoldExecution{.execution_id = id("c")});
  connect("a", "c");
  succeeds("a");
  EXPECT_EQ(state_of("c"), held);
  expect_not_offered("c");
  must(ReleaseExecution{id("c")});
  succeeds("b");
  succeeds("c");
}

TEST_P(FlowBuild, AppliedAgainItCountsOnce) {
  start_flow();
  add_all({"a", "b"});
  const auto edge_id = connect("a", "b");
  tick(5);
  const auto before = flow_story();

  EXPECT_TRUE(apply(edge_id).already_applied);
  EXPECT_EQ(flow_story(), before);
  EXPECT_EQ(tally("b"), "0,0,0,1 pending");
}

TEST_P(FlowBuild, SeveralEdgesBetweenTwoCountEach) {
  start_flow();
  add_all({"a", "b"});
  connect("a", "b");
  EXPECT_EQ(apply(stage("a", "b")), (EdgeApplied{false, 2}));
  EXPECT_EQ(tally("b"), "0,0,0,2 pending");
  succeeds("a");

  EXPECT_EQ(tally("b"), "2,0,0,0 satisfied");
  EXPECT_EQ(members(), "a:completed b:waiting");
}

TEST_P(FlowBuild, OnlyWhatWasStagedCanBeApplied) {
  start_flow();
  add_all({"a", "b", "c"});
  const auto staged = application(stage("a", "b"));
  auto request = staged;
  request.edge_id = some_edge();
  refuse(request, ErrorCode::edge_not_found);
  request = staged;
  request.flow_id = neighbour(flow_id());
  refuse(request, ErrorCode::flow_not_found);
  must(CreateFlow{.flow_id = neighbour(flow_id()), .flow_kind = "test"});
  refuse(request, ErrorCode::edge_not_found);
  request = staged;
  request.upstream_execution_id = id("c");
  refuse(request, ErrorCode::invalid_dependency);
  request = staged;
  request.downstream_execution_id = id("c");
  refuse(request, ErrorCode::invalid_dependency);
}

TEST_P(FlowBuild, AnEdgeThatIsNotAppliedDoesNotCount) {
  start_flow();
  add_all({"a", "b"});
  const auto edge_id = stage("a", "b");
  succeeds("a");
  EXPECT_EQ(tally("b"), "0,0,0,0 pending");

  EXPECT_EQ(apply(edge_id), (EdgeApplied{false, 0}));
  EXPECT_EQ(tally("b"), "1,0,0,0 satisfied");
  EXPECT_EQ(state_of("b"), expected::waiting(AttemptState::pending_first_attempt));
}

}  // namespace
}  // namespace flowfabric
