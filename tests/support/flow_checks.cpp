#include "support/flow_checks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "support/flow_printing.h"

namespace flowfabric::tests {

namespace {

std::uint32_t needed(const JoinSnapshot& join) {
  if (join.policy.kind == JoinKind::all_of) return join.total_deps;
  return join.policy.kind == JoinKind::any_of ? 1 : join.policy.k;
}

// The rule of the specification (04 §5.2), for a join that is undecided.
GroupState decide(const JoinSnapshot& join) {
  const auto lost = join.failed_count + join.skipped_count;
  const auto total = join.total_deps;
  if (join.policy.kind == JoinKind::all_of && lost > 0) return GroupState::impossible;
  if (total > 0 && join.satisfied_count >= needed(join)) return GroupState::satisfied;
  if (total >= needed(join) && lost > total - needed(join)) return GroupState::impossible;
  return GroupState::pending;
}

void check_join(const JoinSnapshot& join, const std::vector<EdgeSnapshot>& into) {
  SCOPED_TRACE(::testing::PrintToString(join));
  const auto applied = [&](auto... states) {
    return static_cast<std::uint32_t>(std::ranges::count_if(into, [&](const EdgeSnapshot& edge) {
      return edge.edge_state == EdgeState::applied && (... || (edge.dependency_state == states));
    }));
  };
  const auto satisfied = applied(DependencyState::satisfied);
  const auto impossible = applied(DependencyState::impossible);
  const auto unsatisfied = applied(DependencyState::unsatisfied);
  EXPECT_EQ(join.total_deps, satisfied + impossible + unsatisfied);
  EXPECT_EQ(join.satisfied_count, satisfied);
  EXPECT_EQ(join.failed_count + join.skipped_count, impossible);
  EXPECT_EQ(join.running_count, unsatisfied);
  switch (join.group_state) {
    case GroupState::pending:
      EXPECT_EQ(decide(join), GroupState::pending) << "decided as soon as it is certain";
      break;
    case GroupState::satisfied:
      EXPECT_GE(join.satisfied_count, needed(join));
      EXPECT_TRUE(join.satisfied_at);
      break;
    case GroupState::impossible:
      EXPECT_GT(impossible, 0u);
      break;
    case GroupState::cancelled:
      break;
  }
  if (join.cancel_siblings_pending) {
    EXPECT_EQ(join.policy.on_satisfied, OnSatisfied::cancel_remaining);
    EXPECT_NE(join.cancel_siblings_reason, "");
  }
}

void check_edge(const EdgeSnapshot& edge) {
  SCOPED_TRACE(::testing::PrintToString(edge));
  EXPECT_EQ(edge.applied_at.has_value(), edge.edge_state == EdgeState::applied);
  EXPECT_EQ(edge.resolved_at.has_value(), edge.dependency_state != DependencyState::unsatisfied);
  EXPECT_EQ(edge.upstream_execution_id.partition, edge.downstream_execution_id.partition);
  if (edge.resolved_at) {
    EXPECT_EQ(edge.edge_state, EdgeState::applied);
  }
}

bool has_ended(PublicState state) {
  return state == PublicState::completed || state == PublicState::failed || state == PublicState::cancelled ||
         state == PublicState::expired || state == PublicState::skipped;
}

// The rule of the specification (04 §10). Absent where it leaves the answer open.
std::optional<FlowState> derived_state(const FlowSnapshot& flow, bool lost_a_member) {
  const auto has = [&](auto... states) { return (... || flow.counts.contains(states)); };
  const bool over =
      std::ranges::all_of(flow.counts, [](const auto& entry) { return has_ended(entry.first); });
  if (over && !flow.counts.empty()) {
    if (flow.public_flow_state != FlowState::open) return flow.public_flow_state;
    return lost_a_member ? FlowState::failed : FlowState::completed;
  }
  if (flow.public_flow_state != FlowState::open) return std::nullopt;
  if (has(PublicState::active)) return FlowState::running;
  if (has(PublicState::suspended, PublicState::delayed, PublicState::rate_limited,
          PublicState::waiting_children)) {
    return FlowState::blocked;
  }
  return FlowState::open;
}

// Losing to a sibling is no loss to the flow.
bool is_lost(const ExecutionSnapshot& member) {
  switch (member.state.public_state) {
    case PublicState::failed:
    case PublicState::expired:
      return true;
    case PublicState::cancelled:
      return member.cancellation_reason != kSiblingQuorumSatisfied &&
             member.cancellation_reason != kSiblingQuorumImpossible;
    default:
      return false;
  }
}

void check_counts(const FlowSnapshot& flow, const FlowGraph& graph) {
  std::map<PublicState, std::int64_t> counts;
  for (const auto& node : graph.nodes) ++counts[node.public_state];
  EXPECT_EQ(flow.counts, counts);
  EXPECT_LE(graph.nodes.size(), flow.node_count) << "retention may have removed some";
  EXPECT_EQ(graph.edges.size(), flow.edge_count);
}

void check_joins(const FlowSnapshot& flow, const FlowGraph& graph) {
  EXPECT_EQ(graph.groups, flow.edge_groups);
  EXPECT_TRUE(std::ranges::is_sorted(graph.edges, {}, &EdgeSnapshot::edge_id));
  EXPECT_TRUE(std::ranges::is_sorted(graph.groups, {}, &JoinSnapshot::downstream_execution_id));
  std::map<ExecutionId, std::vector<EdgeSnapshot>> into;
  for (const auto& edge : graph.edges) {
    check_edge(edge);
    into[edge.downstream_execution_id].push_back(edge);
  }
  for (const auto& group : graph.groups) check_join(group, into[group.downstream_execution_id]);
}

void check_member(const FlowSnapshot& flow, const ExecutionSnapshot& member) {
  SCOPED_TRACE(::testing::PrintToString(member));
  EXPECT_EQ(member.flow_id, flow.flow_id);
  const auto join =
      std::ranges::find(flow.edge_groups, member.execution_id, &JoinSnapshot::downstream_execution_id);
  const bool undecided = join != flow.edge_groups.end() && join->group_state == GroupState::pending;
  if (member.state.public_state == PublicState::waiting_children) {
    EXPECT_TRUE(undecided) << "it would wait for ever";
  }
  if (undecided && join->running_count > 0) {
    EXPECT_NE(member.state.eligibility_state, EligibilityState::eligible_now) << "too early";
  }
}

}  // namespace

void check_flow(const FlowSnapshot& flow, const FlowGraph& graph,
                const std::vector<ExecutionSnapshot>& members) {
  SCOPED_TRACE(::testing::PrintToString(flow));
  check_counts(flow, graph);
  check_joins(flow, graph);
  if (members.size() != graph.nodes.size()) return;
  for (const auto& member : members) check_member(flow, member);
  if (const auto derived = derived_state(flow, std::ranges::any_of(members, is_lost))) {
    EXPECT_EQ(flow.state, *derived);
  }
}

}  // namespace flowfabric::tests
