#include "core/flow/join.h"

namespace flowfabric::core {

GroupState decide(const JoinPolicy& policy, const JoinCounts& counts) {
  const auto lost = counts.failed + counts.skipped;
  if (policy.kind == JoinKind::all_of) {
    if (lost > 0) return GroupState::impossible;
    return counts.edges > 0 && counts.succeeded == counts.edges ? GroupState::satisfied : GroupState::pending;
  }
  const auto needed = policy.kind == JoinKind::any_of ? 1 : policy.k;
  if (counts.succeeded >= needed) return GroupState::satisfied;
  const bool enough_edges = counts.edges >= needed;
  return enough_edges && lost > counts.edges - needed ? GroupState::impossible : GroupState::pending;
}

JoinPolicy policy_of(const EdgeGroup& group) {
  return {group.policy_kind, group.k_target, group.on_satisfied};
}

JoinCounts counts_of(const EdgeGroup& group) {
  return {group.edge_count, group.success_count, group.fail_count, group.skip_count};
}

void count_in(JoinCounts& counts, const Edge& edge) {
  if (edge.edge_state != EdgeState::applied) return;
  ++counts.edges;
  if (edge.dependency_state == DependencyState::satisfied) ++counts.succeeded;
  if (edge.dependency_state == DependencyState::impossible) ++counts.failed;
}

bool covers(const EdgeGroup& group, const JoinCounts& counts) {
  return group.edge_count >= counts.edges && group.success_count >= counts.succeeded &&
         group.fail_count + group.skip_count >= counts.failed + counts.skipped;
}

bool is_undecided(const EdgeGroup& group) {
  return group.group_state == GroupState::pending && group.edge_count > 0;
}

std::uint32_t running_count(const EdgeGroup& group) {
  const auto ended = group.success_count + group.fail_count + group.skip_count;
  return group.edge_count > ended ? group.edge_count - ended : 0;
}

}  // namespace flowfabric::core
