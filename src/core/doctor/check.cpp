#include "core/doctor/check.h"

#include <algorithm>

#include "core/doctor/suspension_check.h"
#include "core/execution/tags.h"
#include "core/flow/cancel_flow.h"
#include "core/flow/dependency.h"
#include "core/flow/join.h"
#include "core/invariants.h"
#include "core/registry/lane.h"
#include "core/registry/registration.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

// Every attempt but the one in progress has a history row.
std::vector<std::uint32_t> expected_attempts(const Execution& execution) {
  std::vector<std::uint32_t> expected;
  for (std::uint32_t index = 0; index < execution.total_attempt_count; ++index) {
    const bool in_progress = has_live_attempt(execution) && index == execution.attempt.attempt_index;
    if (!in_progress) expected.push_back(index);
  }
  return expected;
}

std::vector<std::string> required_by(const ExecutionSpec& spec) {
  const auto& routing = spec.policy.routing_requirements;
  return routing ? *normalize_capabilities("required", routing->required_capabilities)
                 : std::vector<std::string>();
}

bool is_route_of(const Route& route, const Execution& execution, const ExecutionSpec* spec) {
  return route.lane_id == execution.lane_id && route.namespace_ == execution.namespace_ &&
         (!spec || route.required_capabilities == join_capabilities(required_by(*spec)));
}

using CountedJoins = std::map<EdgeGroupKey, JoinCounts>;

// What the edges say.
CountedJoins count_joins(const std::vector<Edge>& edges) {
  CountedJoins joins;
  for (const auto& edge : edges) {
    count_in(joins[{edge.partition_key, edge.flow_id, edge.downstream_eid}], edge);
  }
  return joins;
}

bool is_group_of(const Group& group, const Execution& execution, const ExecutionSpec* spec) {
  const bool is_of_its_route = !group.route_id || *group.route_id == execution.route_id;
  return is_of_its_route && group.lane_id == execution.lane_id && group.namespace_ == execution.namespace_ &&
         (!spec || group.execution_kind == spec->execution_kind);
}

}  // namespace

std::vector<std::string> faults(const Neighbourhood& found) {
  const auto& execution = *found.execution;
  auto wrong = broken_invariants(nullptr, execution);
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) wrong.push_back(what);
  };
  const bool terminal = execution.state.lifecycle_phase == LifecyclePhase::terminal;
  require(terminal == execution.terminal_at_ms.has_value(), "an end time iff terminal");
  require(found.spec, "what was submitted is missing");
  require(found.lane, "its lane is not registered");
  require(found.route && is_route_of(*found.route, execution, found.spec), "its route is not the right one");
  require(found.group && is_group_of(*found.group, execution, found.spec), "its group is not the right one");
  const bool waits_for_capable = execution.state.eligibility_state == EligibilityState::blocked_by_route;
  require(!waits_for_capable || (found.route && found.route->next_due_at_ms),
          "somebody looks for a capable worker");
  require(execution.grant_expires_at_ms.has_value() == (found.grant != nullptr),
          "granted iff there is a grant");
  require(found.attempts == expected_attempts(execution), "one history row per ended attempt");
  for (const auto& tag : found.untagged) require(false, "tag " + tag + " has no row");
  return wrong;
}

void repair(Unit& unit, const ExecutionId& id, Context& at) {
  const auto& spec = unit.require<ExecutionSpec>(id);
  auto& execution = unit.edit<Execution>(id);
  ensure_lane(unit, execution.lane_id, "doctor", at);
  const auto registration = ensure_registered(unit, execution.lane_id, execution.namespace_,
                                              required_by(spec), spec.execution_kind, at);
  execution.route_id = registration.route_id;
  execution.group_id = registration.group_id;
  execution.state.public_state = derive_public_state(execution.state);
  if (execution.grant_expires_at_ms && !unit.find<Grant>(id)) execution.grant_expires_at_ms.reset();
  renew_offer(execution, at);
  if (execution.state.eligibility_state == EligibilityState::blocked_by_route) {
    unit.edit<Route>({execution.route_id}).next_due_at_ms = at.now_ms;
  }
  if (execution.terminal_at_ms && execution.retention_ms) {
    execution.purge_at_ms =
        saturating_add(*execution.terminal_at_ms, static_cast<std::uint64_t>(*execution.retention_ms));
  }
  for (const auto& row : tag_rows(execution)) {
    if (!unit.find<ExecutionTag>(row)) unit.insert(ExecutionTag{row});
  }
  repair_suspension(unit, id, at);
}

std::vector<std::string> faults(const FlowNeighbourhood& found) {
  std::vector<std::string> wrong;
  const auto& flow = *found.flow;
  const auto kept = flow.node_count - flow.removed_count;
  if (kept != found.members.size()) {
    wrong.push_back("it counts " + std::to_string(kept) + " members and has " +
                    std::to_string(found.members.size()));
  }
  if (flow.public_flow_state != FlowState::open && flow.node_count == 0 && !found.backlog) {
    wrong.push_back("it was cancelled without a member, and nothing removes it");
  }
  const auto counted = count_joins(found.edges);
  for (const auto& edge : found.edges) {
    const auto name = "edge " + edge.edge_id.to_string();
    const auto upstream = found.members.find(edge.upstream());
    if (upstream == found.members.end() || !found.members.contains(edge.downstream())) {
      wrong.push_back(name + " belongs to no members");
      continue;
    }
    const bool waits =
        edge.edge_state == EdgeState::applied && edge.dependency_state == DependencyState::unsatisfied;
    const bool over = upstream->second->state.lifecycle_phase == LifecyclePhase::terminal;
    if (waits && over && !found.going_on.contains(edge.upstream())) {
      wrong.push_back(name + " waits for an upstream that has ended");
    }
  }
  for (const auto& join : found.joins) {
    const auto name = "the join of " + join.downstream().to_string();
    const auto edges = counted.find(join.key());
    if (edges != counted.end() && !covers(join, edges->second)) {
      wrong.push_back(name + " counts too few of its edges");
    }
    if (is_undecided(join) && decide(policy_of(join), counts_of(join)) != GroupState::pending) {
      wrong.push_back(name + " is decided and does not know it");
    }
    const auto member = found.members.find(join.downstream());
    if (member != found.members.end() && member->second->dependencies_pending != is_undecided(join)) {
      wrong.push_back(name + " is not what its member waits for");
    }
  }
  return wrong;
}

void repair(Unit& unit, const FlowKey& key, Context& at) {
  unit.require<Flow>(key);
  auto& flow = unit.edit<Flow>(key);
  const auto members = members_of(unit, key);
  flow.node_count = flow.removed_count + static_cast<std::uint32_t>(members.size());
  const bool is_over = flow.public_flow_state != FlowState::open;
  if (is_over && flow.node_count == 0 && !unit.find<CancelBacklog>(key)) keep_empty(unit, flow, at);
  for (const auto& member : members) repair_join(unit, key, member.execution_id, at);
}

}  // namespace flowfabric::core
