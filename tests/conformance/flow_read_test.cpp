// Reading flows (04 §4.8–4.10, §10): snapshots, edges, graphs, tags, the derived state, and how long they are
// kept.
#include <algorithm>

#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;
using Direction = ListEdges::Direction;

class FlowRead : public FlowTest {
 protected:
  std::vector<EdgeId> edges(const std::string& name, Direction direction) {
    std::vector<EdgeId> ids;
    for (const auto& edge : must(ListEdges{id(name), direction})) {
      EXPECT_EQ(edge, edge_of(edge.edge_id));
      ids.push_back(edge.edge_id);
    }
    return ids;
  }
  FlowEligibility eligibility(const std::string& name) { return must(EvaluateFlowEligibility{id(name)}); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowRead, kStores, store_name);

// ---- what is not there ----

TEST_P(FlowRead, TheUnknownIsNotFound) {
  submit(graph("a>b"));
  const auto nowhere = neighbour(flow_id());
  const auto edge_id = drawn().edges.at(0).edge_id;
  expect_error(DescribeFlow{nowhere}, ErrorCode::flow_not_found);
  expect_error(ReadFlowGraph{nowhere}, ErrorCode::flow_not_found);
  expect_error(SetFlowTags{nowhere, {{"a.b", "c"}}}, ErrorCode::flow_not_found);

  EXPECT_EQ(must(DescribeEdge{nowhere, edge_id}), std::nullopt);
  EXPECT_EQ(must(DescribeEdge{flow_id(), EdgeId{uuid_of(999)}}), std::nullopt);
  EXPECT_TRUE(must(DescribeEdge{flow_id(), edge_id}));
}

TEST_P(FlowRead, AnEdgeBelongsToItsFlow) {
  submit(graph("a>b"));
  const auto edge_id = drawn().edges.at(0).edge_id;
  submit(graph("x>y"));

  EXPECT_EQ(must(DescribeEdge{flow_id(), edge_id}), std::nullopt);
}

TEST_P(FlowRead, WhoHasNoEdgesListsNone) {
  submit(graph("a>b alone"));
  const auto standalone = create();
  for (const auto direction : {Direction::outgoing, Direction::incoming}) {
    EXPECT_EQ(must(ListEdges{standalone, direction}), std::vector<EdgeSnapshot>{});
    EXPECT_EQ(must(ListEdges{id("alone"), direction}), std::vector<EdgeSnapshot>{});
    EXPECT_EQ(must(ListEdges{ExecutionId{1, {}}, direction}), std::vector<EdgeSnapshot>{});
  }
}

// ---- edges and graphs ----

TEST_P(FlowRead, EdgesAreListedByTheirIds) {
  start_flow();
  add_all({"a", "b", "c", "d"});
  const auto between = [&](const char* from, const char* to, std::uint16_t number) {
    auto request = edge(from, to);
    request.edge_id = EdgeId{uuid_of(number)};
    return must(request).edge_id;
  };
  const auto a_d = between("a", "d", 9);
  const auto a_b = between("a", "b", 300);
  const auto a_c = between("a", "c", 1);
  const auto b_d = between("b", "d", 5);

  EXPECT_EQ(edges("a", Direction::outgoing), (std::vector{a_c, a_d, a_b}));
  EXPECT_EQ(edges("a", Direction::incoming), std::vector<EdgeId>{});
  EXPECT_EQ(edges("d", Direction::incoming), (std::vector{b_d, a_d}));
  EXPECT_EQ(edges("b", Direction::outgoing), std::vector{b_d});
}

TEST_P(FlowRead, AGraphHasWhatADrawingNeeds) {
  start_flow();
  add("a", {.execution_kind = "first"});
  tick(1);
  add("b", {.execution_kind = "second"});
  const auto edge_id = connect("a", "b");
  take("a");
  const auto seen = drawn();

  ASSERT_EQ(seen.nodes.size(), 2u);
  EXPECT_EQ(seen.nodes[0].execution_id, id("a")) << "oldest first";
  EXPECT_EQ(seen.nodes[0].execution_kind, "first");
  EXPECT_EQ(seen.nodes[0].public_state, PublicState::active);
  EXPECT_EQ(seen.nodes[1].execution_kind, "second");
  EXPECT_EQ(seen.nodes[1].public_state, PublicState::waiting_children);
  EXPECT_EQ(seen.edges, std::vector{edge_of(edge_id)});
  EXPECT_EQ(seen.groups, std::vector{join("b")});
}

TEST_P(FlowRead, ANodeOfASubmittedFlowHasItsName) {
  auto request = graph("a>b größe");
  node(request, "größe").execution.lane_id = "any";
  submit(request);
  for (const auto& seen : drawn().nodes) EXPECT_EQ(id(seen.name), seen.execution_id);
}

TEST_P(FlowRead, JoinsAreThoseWithEdges) {
  submit(graph("a>b a>c b>d c>d", {{"d", quorum(2, OnSatisfied::let_run)}}));
  std::vector<ExecutionId> expected{id("b"), id("c"), id("d")};
  std::ranges::sort(expected);
  std::vector<ExecutionId> seen;
  for (const auto& group : flow().edge_groups) seen.push_back(group.downstream_execution_id);
  EXPECT_EQ(seen, expected);
  succeeds("a");
  succeeds("b");

  const JoinSnapshot d{.downstream_execution_id = id("d"),
                       .policy = quorum(2, OnSatisfied::let_run),
                       .total_deps = 2,
                       .satisfied_count = 1,
                       .running_count = 1,
                       .group_state = GroupState::pending};
  EXPECT_EQ(join("d"), d);
}

// ---- the derived state ----

TEST_P(FlowRead, AnEmptyFlowIsOpen) {
  start_flow();
  run_due();

  EXPECT_EQ(flow().state, FlowState::open);
  EXPECT_EQ(flow().counts, StateCounts{});
}

TEST_P(FlowRead, TheStateFollowsFromTheMembers) {
  auto request = graph("a>b c");
  node(request, "c").execution.delay_until = now() + 10;
  submit(request);
  EXPECT_EQ(flow().counts,
            (StateCounts{
                {PublicState::waiting, 1}, {PublicState::waiting_children, 1}, {PublicState::delayed, 1}}));
  EXPECT_EQ(flow().state, FlowState::blocked);
  const auto task = take("a");
  EXPECT_EQ(flow().state, FlowState::running);
  complete(task);
  EXPECT_EQ(flow().state, FlowState::blocked) << "c is delayed";
  advance(10);
  EXPECT_EQ(flow().state, FlowState::open);
  succeeds("b");
  EXPECT_EQ(flow().state, FlowState::open);
  succeeds("c");

  EXPECT_EQ(flow().state, FlowState::completed);
  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::completed, 3}}));
  EXPECT_EQ(flow().public_flow_state, FlowState::open);
}

TEST_P(FlowRead, OneLossIsAFailure) {
  auto request = graph("a late");
  node(request, "late").execution.execution_deadline_at = now() + 10;
  submit(request);
  succeeds("a");
  advance(10);
  EXPECT_EQ(flow().state, FlowState::failed) << "expired";
  submit(graph("b>c"));
  fails("b");
  EXPECT_EQ(flow().state, FlowState::failed) << "failed and skipped";
  submit(graph("d e"));
  succeeds("d");
  cancel(id("e"));

  EXPECT_EQ(flow().state, FlowState::failed) << "cancelled";
}

TEST_P(FlowRead, AReplayBringsAFlowBack) {
  submit(graph("a"));
  fails("a");
  EXPECT_EQ(flow().state, FlowState::failed);
  must(ReplayExecution{.execution_id = id("a")});
  EXPECT_EQ(flow().state, FlowState::open);
  succeeds("a");

  EXPECT_EQ(flow().state, FlowState::completed);
}

// ---- tags ----

TEST_P(FlowRead, TagsAreSetAndRemoved) {
  start_flow({.tags = {{"a.keep", "1"}, {"a.change", "2"}, {"a.drop", "3"}}});
  tick(5);
  const Tags all{{"a.keep", "1"}, {"a.change", "new"}, {"cairn.task_id", ""}};
  EXPECT_EQ(
      must(SetFlowTags{flow_id(), {{"a.change", "new"}, {"cairn.task_id", ""}, {"a.drop", std::nullopt}}}),
      (TagsSet{3, all}));

  EXPECT_EQ(flow().tags, all);
  EXPECT_EQ(flow().last_mutation_at, now());
}

TEST_P(FlowRead, TagKeysAreCallerDotField) {
  start_flow();
  for (const char* key : {"nodot", "Cairn.x", "cairn.", "cairn..x", "", ".x"}) {
    const auto error = refuse(SetFlowTags{flow_id(), {{"a.good", "v"}, {key, "v"}, {"z.good", "v"}}},
                              ErrorCode::invalid_tag_key);
    EXPECT_EQ(error.detail, key);
  }
  refuse(SetFlowTags{flow_id(), {}}, ErrorCode::invalid_input);
  refuse(SetFlowTags{flow_id(), {{"a.b", "a\0b"s}}}, ErrorCode::invalid_input);
}

// ---- eligibility ----

TEST_P(FlowRead, EligibilityIsThatOfTheJoin) {
  submit(graph("a>b any1>any any2>any bad>skipped", {{"any", any_of(OnSatisfied::let_run)}}));
  EXPECT_EQ(eligibility("a"), FlowEligibility::eligible);
  EXPECT_EQ(eligibility("b"), FlowEligibility::blocked_by_dependencies);
  const auto task = take("a");
  EXPECT_EQ(eligibility("a"), FlowEligibility::not_runnable);
  complete(task);
  EXPECT_EQ(eligibility("a"), FlowEligibility::not_runnable);
  EXPECT_EQ(eligibility("b"), FlowEligibility::eligible);
  succeeds("any1");
  EXPECT_EQ(eligibility("any"), FlowEligibility::eligible) << "any2 is not needed";
  fails("bad");

  EXPECT_EQ(eligibility("skipped"), FlowEligibility::not_runnable);
  EXPECT_EQ(must(EvaluateFlowEligibility{create()}), FlowEligibility::eligible);
  EXPECT_EQ(must(EvaluateFlowEligibility{ExecutionId{1, {}}}), FlowEligibility::not_found);
}

TEST_P(FlowRead, OnlyWhatWaitsForNobodyCanBePromoted) {
  submit(graph("a>b"));
  expect_error(PromoteBlocked{ExecutionId{1, {}}}, ErrorCode::execution_not_found);
  refuse(PromoteBlocked{id("a")}, ErrorCode::not_blocked_by_deps);
  refuse(PromoteBlocked{id("b")}, ErrorCode::deps_not_satisfied);
  const auto task = take("a");
  refuse(PromoteBlocked{id("a")}, ErrorCode::not_runnable);
  complete(task);
  refuse(PromoteBlocked{id("a")}, ErrorCode::terminal);
  refuse(PromoteBlocked{id("b")}, ErrorCode::not_blocked_by_deps);
}

TEST_P(FlowRead, AQuorumThatLacksEdgesWaitsForThem) {
  start_flow();
  add_all({"a", "b"});
  set_join("b", quorum(2));
  connect("a", "b");
  refuse(PromoteBlocked{id("b")}, ErrorCode::deps_not_satisfied);
  succeeds("a");
  EXPECT_EQ(state_of("b"), expected::waiting_children());

  const auto error = refuse(PromoteBlocked{id("b")}, ErrorCode::deps_not_satisfied);
  EXPECT_EQ(error.detail, "1,0") << "one more must succeed, and none is running";
}

// ---- retention ----

class FlowRetention : public FlowTest {
 protected:
  static ExecutionPolicy kept_for(std::uint64_t ms) {
    ExecutionPolicy policy;
    policy.stream_policy = StreamPolicy{.retention_ttl_ms = ms};
    return policy;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowRetention, kStores, store_name);

TEST_P(FlowRetention, AFlowGoesWithItsLastMember) {
  auto request = graph("a>b");
  request.tags = {{"a.b", "c"}};
  node(request, "a").execution.policy = kept_for(1000);
  node(request, "b").execution.policy = kept_for(2000);
  submit(request);
  const auto edge_id = drawn().edges.at(0).edge_id;
  succeeds("a");
  succeeds("b");
  advance(1999);
  EXPECT_EQ(flow().node_count, 2u);
  EXPECT_EQ(flow().state, FlowState::completed);
  EXPECT_EQ(flow().edge_count, 1u);
  advance(1);

  expect_error(DescribeFlow{flow_id()}, ErrorCode::flow_not_found);
  expect_error(ReadFlowGraph{flow_id()}, ErrorCode::flow_not_found);
  EXPECT_EQ(must(DescribeEdge{flow_id(), edge_id}), std::nullopt);
  EXPECT_EQ(must(ListFlows{}), FlowPage{});
  EXPECT_EQ(must(ListEdges{id("b"), Direction::incoming}), std::vector<EdgeSnapshot>{});
  forget_flow(flow_id());
  forget(id("a"));
  forget(id("b"));
}

TEST_P(FlowRetention, AFlowWithoutMembersStays) {
  start_flow();
  advance(100 * kHour);

  EXPECT_EQ(flow().state, FlowState::open);
}

// 08 §5.17: what still may be needed is not removed, however long ago it ended.
TEST_P(FlowRetention, AMemberStaysUntilItsFlowIsOver) {
  auto request = graph("a b");
  node(request, "a").execution.policy = kept_for(1000);
  submit(request);
  succeeds("a", "still needed");
  advance(100 * kHour);
  EXPECT_EQ(result(id("a")), "still needed");
  EXPECT_EQ(flow().state, FlowState::open);
  succeeds("b");
  EXPECT_EQ(flow().state, FlowState::completed);
  advance(200 * kHour);

  expect_error(DescribeExecution{id("a")}, ErrorCode::execution_not_found);
  expect_error(DescribeFlow{flow_id()}, ErrorCode::flow_not_found);
  forget_flow(flow_id());
  forget(id("a"));
  forget(id("b"));
}

TEST_P(FlowRetention, AFanOutOutlivesItsUpstream) {
  auto request = fan_out(1000);
  node(request, "root").execution.policy = kept_for(0);
  submit_many(std::move(request));
  complete(claim_one({.lanes = {"many"}}));
  run_due();

  EXPECT_EQ(flow().counts[PublicState::waiting], 1000);
}

TEST_P(FlowRetention, WhatIsOwedToSiblingsOutlivesTheirJoin) {
  constexpr std::uint32_t kMany = 1500;
  auto request = fan_out(kMany);
  for (auto& edge : request.edges) std::swap(edge.from, edge.to);
  node(request, "root").join = quorum(kMany);
  node(request, "root").execution.policy = kept_for(0);
  submit_many(std::move(request));
  fail(claim_one({.lanes = {"many"}}), "boom", "permanent");
  run_due();

  EXPECT_EQ(flow().counts[PublicState::cancelled], kMany - 1);
}

}  // namespace
}  // namespace flowfabric
