// Checks of a store that hold after any operation.
#pragma once

#include <gtest/gtest.h>

#include "core/invariants.h"
#include "simulation/limit_checks.h"
#include "simulation/replica.h"
#include "simulation/state.h"
#include "simulation/stream_checks.h"
#include "simulation/suspension_checks.h"

namespace flowfabric::simulation {

inline void check_execution(const State& state, const Execution& execution) {
  const auto id = execution.key();
  const auto name = id.to_string();
  const auto broken = core::broken_invariants(nullptr, execution);
  EXPECT_TRUE(broken.empty()) << name << ": " << broken.front();
  EXPECT_TRUE(state.rows<ExecutionSpec>().contains(id)) << name << " has no spec";
  EXPECT_TRUE(state.rows<Lane>().contains({execution.lane_id})) << name << " has no lane";
  EXPECT_TRUE(state.rows<Group>().contains({execution.group_id})) << name << " has no group";

  const auto grant = state.rows<Grant>().find(id);
  ASSERT_EQ(grant != state.rows<Grant>().end(), execution.grant_expires_at_ms.has_value()) << name;
  if (execution.grant_expires_at_ms) {
    EXPECT_EQ(grant->second.expires_at_ms, *execution.grant_expires_at_ms) << name;
    EXPECT_FALSE(execution.offer_order) << name << " is offered while it is granted";
  }

  const auto route = state.rows<Route>().find({execution.route_id});
  ASSERT_NE(route, state.rows<Route>().end()) << name << " has no route";
  if (execution.state.blocking_reason == BlockingReason::waiting_for_capable_worker) {
    EXPECT_TRUE(route->second.next_due_at_ms) << name << " waits for a worker that nobody looks for";
  }

  // Every attempt but one in progress has its row.
  const bool in_progress = execution.state.attempt_state == AttemptState::running_attempt ||
                           execution.state.attempt_state == AttemptState::attempt_interrupted;
  const auto rows = execution.total_attempt_count - (in_progress ? 1 : 0);
  for (std::uint32_t index = 0; index < execution.total_attempt_count; ++index) {
    const bool ended = index < rows;
    EXPECT_EQ(state.rows<Attempt>().contains({id.partition, id.uuid, index}), ended) << name << ' ' << index;
  }
}

// Routes and groups that nothing needs are gone once their time has come.
inline void check_registrations(const State& state, std::int64_t now) {
  std::set<std::int64_t> groups, routes;
  for (const auto& [id, execution] : state.rows<Execution>()) groups.insert(execution.group_id);
  for (const auto& [key, group] : state.rows<Group>()) {
    routes.insert(group.route_id.value_or(0));
    EXPECT_TRUE(groups.contains(key.group_id) || group.purge_at_ms > now) << "group " << key.group_id;
  }
  for (const auto& [key, route] : state.rows<Route>()) {
    EXPECT_TRUE(routes.contains(key.route_id) || route.purge_at_ms > now) << "route " << key.route_id;
  }
}

inline void check_tag_rows(const State& state) {
  std::set<ExecutionTagKey> expected, stored;
  for (const auto& [id, execution] : state.rows<Execution>()) {
    for (const auto& [key, value] : execution.tags) {
      expected.insert({key, value, execution.created_at_ms, id.partition, id.uuid});
    }
  }
  for (const auto& [key, tag] : state.rows<ExecutionTag>()) stored.insert(key);
  EXPECT_TRUE(stored == expected) << "the rows of tags are not those of the executions";
}

// Joins say what their edges say, and members what their joins say.
inline void check_flows(const State& state) {
  std::map<EdgeGroupKey, EdgeGroup> recounted;
  for (const auto& [key, edge] : state.rows<Edge>()) {
    auto& group = recounted[{key.partition_key, key.flow_id, edge.downstream_eid}];
    if (edge.edge_state != EdgeState::applied) {
      EXPECT_EQ(edge.dependency_state, DependencyState::unsatisfied)
          << "an edge counts before it is in force";
      continue;
    }
    ++group.edge_count;
    if (edge.dependency_state == DependencyState::satisfied) ++group.success_count;
    if (edge.dependency_state == DependencyState::impossible) ++group.fail_count;
    for (const auto& end : {edge.upstream(), edge.downstream()}) {
      ASSERT_TRUE(state.rows<Execution>().contains(end)) << end.to_string() << " is gone, its edge is not";
      EXPECT_EQ(state.rows<Execution>().at(end).flow_id, key.flow_id) << end.to_string();
    }
    const auto& upstream = state.rows<Execution>().at(edge.upstream());
    const bool written_down =
        state.rows<DependencyDispatch>().contains({edge.partition_key, edge.upstream_eid});
    const bool waits = edge.dependency_state == DependencyState::unsatisfied;
    const bool over = upstream.state.lifecycle_phase == LifecyclePhase::terminal;
    EXPECT_FALSE(waits && over && !written_down) << edge.downstream().to_string() << " waits for nothing";
  }
  for (const auto& [key, group] : state.rows<EdgeGroup>()) {
    const auto& counted = recounted[key];
    const auto name = group.downstream().to_string();
    // Upstreams that retention has removed have taken their edges with them.
    EXPECT_GE(group.edge_count, counted.edge_count) << name;
    EXPECT_GE(group.success_count, counted.success_count) << name;
    EXPECT_GE(group.fail_count + group.skip_count, counted.fail_count) << name;
    const auto member = state.rows<Execution>().find(group.downstream());
    if (member == state.rows<Execution>().end() || member->second.flow_id != key.flow_id) continue;
    const bool undecided = group.group_state == GroupState::pending && group.edge_count > 0;
    EXPECT_EQ(member->second.dependencies_pending, undecided) << name;
  }
  for (const auto& [key, row] : state.rows<CancelBacklogMember>()) {
    const FlowKey flow{key.partition_key, key.flow_id};
    EXPECT_TRUE(state.rows<CancelBacklog>().contains(flow)) << "a cancel is owed that nobody will pay";
  }
  std::map<FlowId, std::uint32_t> members;
  for (const auto& [id, execution] : state.rows<Execution>()) {
    if (!execution.flow_id) continue;
    ++members[*execution.flow_id];
    EXPECT_TRUE(state.rows<Flow>().contains({id.partition, *execution.flow_id})) << id.to_string();
  }
  for (const auto& [key, flow] : state.rows<Flow>()) {
    EXPECT_EQ(flow.node_count - flow.removed_count, members[key.flow_id]) << key.flow_id.to_string();
  }
}

inline void check_state(const State& state) {
  check_flows(state);
  for (const auto& [id, execution] : state.rows<Execution>()) check_execution(state, execution);
  check_suspensions(state);
  check_limits(state);
  check_streams(state);
  check_tag_rows(state);
  LaneCounts counted;
  for (const auto& [id, execution] : state.rows<Execution>()) {
    ++counted[{execution.lane_id, execution.state.public_state}];
  }
  EXPECT_TRUE(counted == state.counts) << "the counts of lanes are not those of the executions";
  EXPECT_TRUE(counted == state.recounted) << "the executions were miscounted";
}

}  // namespace flowfabric::simulation
