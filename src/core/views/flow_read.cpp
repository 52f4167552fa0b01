#include "core/views/flow_read.h"

#include <algorithm>

#include "core/flow/join.h"
#include "model/text.h"

namespace flowfabric::core {

EdgeSnapshot view(const Edge& edge) {
  return {.edge_id = edge.edge_id,
          .flow_id = edge.flow_id,
          .upstream_execution_id = edge.upstream(),
          .downstream_execution_id = edge.downstream(),
          .dependency_kind = kSuccessOnly,
          .data_passing_ref = edge.data_passing_ref,
          .edge_state = edge.edge_state,
          .dependency_state = edge.dependency_state,
          .created_at = edge.created_at_ms,
          .applied_at = edge.applied_at_ms,
          .resolved_at = edge.resolved_at_ms};
}

JoinSnapshot view(const EdgeGroup& group) {
  return {.downstream_execution_id = group.downstream(),
          .policy = policy_of(group),
          .total_deps = group.edge_count,
          .satisfied_count = group.success_count,
          .failed_count = group.fail_count,
          .skipped_count = group.skip_count,
          .running_count = running_count(group),
          .group_state = group.group_state,
          .satisfied_at = group.satisfied_at_ms,
          .cancel_siblings_pending = group.cancel_siblings_pending_flag,
          .cancel_siblings_reason = group.cancel_siblings_reason};
}

FlowSnapshot view(const Flow& flow) {
  return {.flow_id = flow.flow_id,
          .flow_kind = flow.flow_kind,
          .namespace_ = flow.namespace_,
          .public_flow_state = flow.public_flow_state,
          .state = flow.public_flow_state,
          .failure_policy = flow.failure_policy,
          .graph_revision = flow.graph_revision,
          .node_count = flow.node_count,
          .edge_count = flow.edge_count,
          .created_at = flow.created_at_ms,
          .last_mutation_at = flow.last_mutation_at_ms,
          .cancelled_at = flow.cancelled_at_ms,
          .cancel_reason = flow.cancel_reason,
          .cancellation_policy = flow.cancellation_policy,
          .tags = flow.tags,
          .counts = {},
          .edge_groups = {}};
}

const std::vector<std::string>& harmless_reasons() {
  static const std::vector<std::string> reasons{kSiblingQuorumSatisfied, kSiblingQuorumImpossible};
  return reasons;
}

FlowState derived_state(FlowState stored, const std::map<PublicState, std::int64_t>& counts,
                        std::int64_t without_harm) {
  const auto count = [&](std::initializer_list<PublicState> states) {
    std::int64_t sum = 0;
    for (const auto state : states) {
      const auto it = counts.find(state);
      if (it != counts.end()) sum += it->second;
    }
    return sum;
  };
  using enum PublicState;
  const auto ended = count({completed, failed, cancelled, expired, skipped});
  std::int64_t all = 0;
  for (const auto& [state, members] : counts) all += members;
  const bool over = all == ended;
  if (over && stored != FlowState::open) return stored;
  if (over && all > 0) {
    return count({failed, cancelled, expired}) > without_harm ? FlowState::failed : FlowState::completed;
  }
  if (count({active}) > 0) return FlowState::running;
  if (count({suspended, delayed, rate_limited, waiting_children}) > 0) return FlowState::blocked;
  return FlowState::open;
}

bool matches(const FlowFilter& filter, const Flow& flow) {
  return (!filter.namespace_ || *filter.namespace_ == flow.namespace_) &&
         (!filter.flow_kind || *filter.flow_kind == flow.flow_kind) &&
         std::ranges::all_of(filter.tags,
                             [&](const auto& tag) {
                               const auto it = flow.tags.find(tag.first);
                               return it != flow.tags.end() && it->second == tag.second;
                             }) &&
         (!filter.created_after || flow.created_at_ms > *filter.created_after) &&
         (!filter.created_before || flow.created_at_ms < *filter.created_before);
}

Result<void> check_filter(const FlowFilter& filter) {
  if (filter.namespace_) {
    if (auto ok = check_namespace(*filter.namespace_); !ok) return ok;
  }
  if (filter.flow_kind) {
    if (auto ok = check_text("flow_kind", *filter.flow_kind, kMaxKeyBytes); !ok) return ok;
  }
  return check_create_tags(filter.tags);
}

FlowEligibility eligibility(const Execution& execution, const EdgeGroup* group) {
  const auto& state = execution.state;
  if (state.lifecycle_phase != LifecyclePhase::runnable) return FlowEligibility::not_runnable;
  if (state.ownership_state != OwnershipState::unowned) return FlowEligibility::owned;
  if (state.terminal_outcome != TerminalOutcome::none) return FlowEligibility::terminal;
  if (group && group->edge_count > 0 && group->group_state == GroupState::impossible) {
    return FlowEligibility::impossible;
  }
  if (group && group->edge_count > 0 && group->group_state == GroupState::pending) {
    return FlowEligibility::blocked_by_dependencies;
  }
  return FlowEligibility::eligible;
}

}  // namespace flowfabric::core
