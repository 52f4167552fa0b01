// The records that many executions share: lanes with their counts, routes, groups, workers (dead ones, too),
// bulk operations.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/ids.h"
#include "flowfabric/operations.h"
#include "flowfabric/operators.h"
#include "flowfabric/registry.h"

namespace flowfabric {

struct LaneKey {
  std::string lane_id;
  auto operator<=>(const LaneKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(LaneKey, (), (lane_id))

struct Lane {
  static constexpr const char* table = "ff_lane_registry";
  using Key = LaneKey;
  Key key() const { return {lane_id}; }

  std::string lane_id;
  std::int64_t registered_at_ms{};
  std::string registered_by;
  LaneState state{LaneState::active};
  std::string fair_by;                     // what its fair key is (core/limits/fairness.h); empty: nothing
  std::uint32_t max_concurrent_per_key{};  // 0: any number
  bool operator==(const Lane&) const = default;
};
BOOST_DESCRIBE_STRUCT(Lane, (),
                      (lane_id, registered_at_ms, registered_by, state, fair_by, max_concurrent_per_key))

// The virtual time of a lane that shares fairly. Apart from the lane: every claim moves it.
struct LaneClock {
  static constexpr const char* table = "ff_lane_clock";
  using Key = LaneKey;
  Key key() const { return {lane_id}; }

  std::string lane_id;
  std::int64_t virtual_time{};
  bool operator==(const LaneClock&) const = default;
};
BOOST_DESCRIBE_STRUCT(LaneClock, (), (lane_id, virtual_time))

struct RouteKey {
  std::int64_t route_id{};
  auto operator<=>(const RouteKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(RouteKey, (), (route_id))

// A distinct combination of lane, namespace and required capabilities: few, registered once, and the unit in
// which work is offered (core/offer.h). Removed when it has long had no group
// (core/registry/registration.h).
struct Route {
  static constexpr const char* table = "ff_route";
  using Key = RouteKey;
  Key key() const { return {route_id}; }

  std::int64_t route_id{};
  std::string lane_id;
  std::string namespace_;
  std::string required_capabilities;           // sorted, comma-joined
  std::optional<std::int64_t> next_due_at_ms;  // when to look for a capable worker for what is blocked on it
  std::int64_t purge_at_ms{};                  // when to look whether it is still needed
  bool operator==(const Route&) const = default;
};
BOOST_DESCRIBE_STRUCT(Route, (),
                      (route_id, lane_id, namespace_, required_capabilities, next_due_at_ms, purge_at_ms))

struct GroupKey {
  std::int64_t group_id{};
  auto operator<=>(const GroupKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(GroupKey, (), (group_id))

// A distinct combination of route (and so of lane and namespace) and kind: few, registered once. Listings
// walk the executions of a group and state by age, and merge the groups that a filter matches
// (engine/listing.h). Removed when it has long had no execution (core/registry/registration.h).
struct Group {
  static constexpr const char* table = "ff_exec_group";
  using Key = GroupKey;
  Key key() const { return {group_id}; }

  std::int64_t group_id{};
  std::string lane_id;
  std::string namespace_;
  std::string execution_kind;
  // Absent: an older version made it, which put executions of all routes of its lane and namespace into it.
  std::optional<std::int64_t> route_id;
  std::int64_t purge_at_ms{};  // when to look whether it is still needed
  bool operator==(const Group&) const = default;
};
BOOST_DESCRIBE_STRUCT(Group, (), (group_id, lane_id, namespace_, execution_kind, route_id, purge_at_ms))

struct WorkerKey {
  std::string namespace_;
  std::string worker_instance_id;
  auto operator<=>(const WorkerKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(WorkerKey, (), (namespace_, worker_instance_id))

struct Worker {
  static constexpr const char* table = "ff_worker_registry";
  using Key = WorkerKey;
  Key key() const { return {namespace_, worker_instance_id}; }

  std::string namespace_;
  std::string worker_instance_id;
  std::string worker_id;
  std::vector<std::string> lanes;  // sorted
  std::string capabilities_csv;    // sorted
  std::int64_t last_heartbeat_ms{};
  std::int64_t liveness_ttl_ms{};
  std::int64_t registered_at_ms{};
  std::optional<std::int64_t> next_due_at_ms;  // when it is swept, unless it is heard of again
  bool operator==(const Worker&) const = default;
};
BOOST_DESCRIBE_STRUCT(Worker, (),
                      (namespace_, worker_instance_id, worker_id, lanes, capabilities_csv, last_heartbeat_ms,
                       liveness_ttl_ms, registered_at_ms, next_due_at_ms))

struct DeadWorkerKey {
  std::string namespace_;
  std::string worker_instance_id;
  auto operator<=>(const DeadWorkerKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(DeadWorkerKey, (), (namespace_, worker_instance_id))

// A worker that was taken out of the registry, until the leases that it held then are offered again. Apart
// from its registration: it may come back meanwhile.
struct DeadWorker {
  static constexpr const char* table = "ff_dead_worker";
  using Key = DeadWorkerKey;
  Key key() const { return {namespace_, worker_instance_id}; }

  std::string namespace_;
  std::string worker_instance_id;
  std::int64_t died_at_ms{};
  std::string looked_up_to;  // executions up to this one are done
  std::optional<std::int64_t> next_due_at_ms;
  bool operator==(const DeadWorker&) const = default;
};
BOOST_DESCRIBE_STRUCT(DeadWorker, (),
                      (namespace_, worker_instance_id, died_at_ms, looked_up_to, next_due_at_ms))

struct BulkJobKey {
  OperationId operation_id;
  auto operator<=>(const BulkJobKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(BulkJobKey, (), (operation_id))

// What the filter of a bulk operation asks for, in columns.
struct BulkFilter {
  std::optional<std::string> filter_lane;
  std::string filter_states;  // comma-joined
  std::optional<std::string> filter_namespace;
  std::optional<std::string> filter_kind;
  std::optional<FlowId> filter_flow_id;
  Tags filter_tags;
  std::optional<std::int64_t> filter_created_after_ms;
  std::optional<std::int64_t> filter_created_before_ms;
  bool operator==(const BulkFilter&) const = default;
};
BOOST_DESCRIBE_STRUCT(BulkFilter, (),
                      (filter_lane, filter_states, filter_namespace, filter_kind, filter_flow_id, filter_tags,
                       filter_created_after_ms, filter_created_before_ms))

// A bulk operation, and how far it has come.
struct BulkJob {
  static constexpr const char* table = "ff_bulk_operation";
  using Key = BulkJobKey;
  Key key() const { return {operation_id}; }

  OperationId operation_id;
  BulkAction action{};
  BulkState state{};
  BulkFilter filter;
  std::string reason;
  std::int32_t new_priority{};
  std::optional<std::uint32_t> rate_per_second;
  std::string cursor;  // of the listing: everything before it is done
  std::uint64_t matched{};
  std::uint64_t done{};
  std::uint64_t failed{};
  std::string last_error;
  std::int64_t created_at_ms{};
  std::optional<std::int64_t> ended_at_ms;
  std::optional<std::int64_t> next_due_at_ms;  // of its next step, while it runs; of its removal afterwards
  bool operator==(const BulkJob&) const = default;
};
BOOST_DESCRIBE_STRUCT(BulkJob, (),
                      (operation_id, action, state, filter, reason, new_priority, rate_per_second, cursor,
                       matched, done, failed, last_error, created_at_ms, ended_at_ms, next_due_at_ms))

// Live counts by (lane, public state): only ever changed by deltas.
struct LaneCountKey {
  std::string lane_id;
  PublicState public_state{};
  auto operator<=>(const LaneCountKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(LaneCountKey, (), (lane_id, public_state))

}  // namespace flowfabric
