// The records of a flow: the flow itself, its edges, the join of each downstream member, and what is still
// owed to members: cancels, and the consequences of an upstream's end.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "flowfabric/flows.h"

namespace flowfabric {

struct FlowKey {
  std::uint16_t partition_key{};
  FlowId flow_id;
  auto operator<=>(const FlowKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(FlowKey, (), (partition_key, flow_id))

struct Flow {
  static constexpr const char* table = "ff_flow_core";
  using Key = FlowKey;
  Key key() const { return {partition_key, flow_id}; }

  std::uint16_t partition_key{};
  FlowId flow_id;
  std::string flow_kind;
  std::string namespace_;
  FailurePolicy failure_policy{};
  std::uint64_t graph_revision{};
  std::uint32_t node_count{};
  std::uint32_t edge_count{};
  std::uint32_t removed_count{};  // of its members, by retention; it goes with the last
  FlowState public_flow_state{FlowState::open};
  std::int64_t created_at_ms{};
  std::int64_t last_mutation_at_ms{};
  std::optional<std::int64_t> cancelled_at_ms;
  std::string cancel_reason;
  std::optional<CancellationPolicy> cancellation_policy;
  bool has_limits{false};  // a budget or quota policy is, or was, attached to it (ScopeLimits)
  Tags tags;
  bool operator==(const Flow&) const = default;
};
BOOST_DESCRIBE_STRUCT(Flow, (),
                      (partition_key, flow_id, flow_kind, namespace_, failure_policy, graph_revision,
                       node_count, edge_count, removed_count, public_flow_state, created_at_ms,
                       last_mutation_at_ms, cancelled_at_ms, cancel_reason, cancellation_policy, has_limits,
                       tags))

struct EdgeKey {
  std::uint16_t partition_key{};
  FlowId flow_id;
  EdgeId edge_id;
  auto operator<=>(const EdgeKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(EdgeKey, (), (partition_key, flow_id, edge_id))

// Who waits for whom. `dependency_state` is what keeps an upstream's end from counting twice. Whoever reads
// or changes an edge holds the lock of its upstream.
struct Edge {
  static constexpr const char* table = "ff_edge";
  using Key = EdgeKey;
  Key key() const { return {partition_key, flow_id, edge_id}; }

  std::uint16_t partition_key{};
  FlowId flow_id;
  EdgeId edge_id;
  Uuid upstream_eid;
  Uuid downstream_eid;
  std::string data_passing_ref;
  EdgeState edge_state{EdgeState::pending};
  DependencyState dependency_state{DependencyState::unsatisfied};
  std::int64_t created_at_ms{};
  std::optional<std::int64_t> applied_at_ms;
  std::optional<std::int64_t> resolved_at_ms;
  bool operator==(const Edge&) const = default;

  ExecutionId upstream() const { return {partition_key, upstream_eid}; }
  ExecutionId downstream() const { return {partition_key, downstream_eid}; }
};
BOOST_DESCRIBE_STRUCT(Edge, (),
                      (partition_key, flow_id, edge_id, upstream_eid, downstream_eid, data_passing_ref,
                       edge_state, dependency_state, created_at_ms, applied_at_ms, resolved_at_ms))

struct EdgeGroupKey {
  std::uint16_t partition_key{};
  FlowId flow_id;
  Uuid downstream_eid;
  auto operator<=>(const EdgeGroupKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(EdgeGroupKey, (), (partition_key, flow_id, downstream_eid))

// The join of one downstream: its policy, and how many of its applied edges have ended how.
struct EdgeGroup {
  static constexpr const char* table = "ff_edge_group";
  using Key = EdgeGroupKey;
  Key key() const { return {partition_key, flow_id, downstream_eid}; }

  std::uint16_t partition_key{};
  FlowId flow_id;
  Uuid downstream_eid;
  JoinKind policy_kind{JoinKind::all_of};
  std::uint32_t k_target{};
  std::optional<OnSatisfied> on_satisfied;
  std::uint32_t staged_count{};  // edges, applied or not; the policy is fixed by the first
  std::uint32_t edge_count{};    // applied edges
  std::uint32_t success_count{};
  std::uint32_t fail_count{};
  std::uint32_t skip_count{};
  GroupState group_state{GroupState::pending};
  std::optional<std::int64_t> satisfied_at_ms;
  bool cancel_siblings_pending_flag{false};
  std::string cancel_siblings_reason;
  bool operator==(const EdgeGroup&) const = default;

  ExecutionId downstream() const { return {partition_key, downstream_eid}; }
};
BOOST_DESCRIBE_STRUCT(EdgeGroup, (),
                      (partition_key, flow_id, downstream_eid, policy_kind, k_target, on_satisfied,
                       staged_count, edge_count, success_count, fail_count, skip_count, group_state,
                       satisfied_at_ms, cancel_siblings_pending_flag, cancel_siblings_reason))

// A decided join whose losing siblings are still to be cancelled.
struct PendingCancelGroup {
  static constexpr const char* table = "ff_pending_cancel_groups";
  using Key = EdgeGroupKey;
  Key key() const { return {partition_key, flow_id, downstream_eid}; }

  std::uint16_t partition_key{};
  FlowId flow_id;
  Uuid downstream_eid;
  std::string reason;
  std::int64_t enqueued_at_ms{};
  std::optional<EdgeId> after_edge_id;  // how far it has come
  std::optional<std::int64_t> next_due_at_ms;
  bool operator==(const PendingCancelGroup&) const = default;
};
BOOST_DESCRIBE_STRUCT(PendingCancelGroup, (),
                      (partition_key, flow_id, downstream_eid, reason, enqueued_at_ms, after_edge_id,
                       next_due_at_ms))

enum class BacklogState : std::uint8_t {
  parking,             // let_active_finish: members are taken out of the line
  waiting_for_active,  // and wait until nothing runs any more
  cancelling,
  kept  // it never had a member: nobody is owed anything, and the flow is removed when this is due
};
BOOST_DESCRIBE_ENUM(BacklogState, parking, waiting_for_active, cancelling, kept)

// A cancelled flow with members that are still to be cancelled, or one that has none and is to be removed.
struct CancelBacklog {
  static constexpr const char* table = "ff_cancel_backlog";
  using Key = FlowKey;
  Key key() const { return {partition_key, flow_id}; }

  std::uint16_t partition_key{};
  FlowId flow_id;
  std::int64_t requested_at_ms{};
  std::string reason;
  CancellationPolicy cancellation_policy{};
  BacklogState status{BacklogState::cancelling};
  std::optional<Uuid> parked_up_to;
  std::optional<std::int64_t> next_due_at_ms;
  bool operator==(const CancelBacklog&) const = default;
};
BOOST_DESCRIBE_STRUCT(CancelBacklog, (),
                      (partition_key, flow_id, requested_at_ms, reason, cancellation_policy, status,
                       parked_up_to, next_due_at_ms))

struct CancelBacklogMemberKey {
  std::uint16_t partition_key{};
  FlowId flow_id;
  Uuid execution_id;
  auto operator<=>(const CancelBacklogMemberKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(CancelBacklogMemberKey, (), (partition_key, flow_id, execution_id))

// There: this member is still owed its cancel.
struct CancelBacklogMember {
  static constexpr const char* table = "ff_cancel_backlog_member";
  using Key = CancelBacklogMemberKey;
  Key key() const { return entry; }

  CancelBacklogMemberKey entry;
  bool operator==(const CancelBacklogMember&) const = default;
};
BOOST_DESCRIBE_STRUCT(CancelBacklogMember, (), (entry))

struct DependencyDispatchKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  auto operator<=>(const DependencyDispatchKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(DependencyDispatchKey, (), (partition_key, execution_id))

// A member has ended and has more dependents than one transaction should touch: the rest.
struct DependencyDispatch {
  static constexpr const char* table = "ff_dependency_dispatch";
  using Key = DependencyDispatchKey;
  Key key() const { return {partition_key, execution_id}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::optional<EdgeId> after_edge_id;
  std::optional<std::int64_t> next_due_at_ms;
  bool operator==(const DependencyDispatch&) const = default;
};
BOOST_DESCRIBE_STRUCT(DependencyDispatch, (), (partition_key, execution_id, after_edge_id, next_due_at_ms))

}  // namespace flowfabric
