// Lanes and workers: where work is offered, and who does it.
#pragma once

#include "flowfabric/operations.h"

namespace flowfabric {

// ---- lanes ------------------------------------------------------------------------------------------------

// A paused lane accepts work and hands out none. A draining lane refuses new work and hands out the old. A
// disabled lane does neither.
enum class LaneState : std::uint8_t { active, paused, draining, disabled };
BOOST_DESCRIBE_ENUM(LaneState, active, paused, draining, disabled)

struct LaneStatus {
  std::string lane_id;
  LaneState state{};
  bool operator==(const LaneStatus&) const = default;
};
// The first execution that names a lane registers it, too.
struct RegisterLane {
  using Answer = LaneStatus;
  std::string lane_id{};
  std::string registered_by{"operator"};
};
struct SetLaneState {
  using Answer = LaneStatus;
  std::string lane_id{};
  LaneState state{};
};

struct LaneFairness {
  std::string lane_id;
  std::string fair_by;
  std::uint32_t max_concurrent_per_key{};
  bool operator==(const LaneFairness&) const = default;
};
// The key by which executions share a lane fairly: their namespace (`namespace`), or the value of a tag
// (`tag:<key>`). Within a priority, keys with waiting work take turns, however much each has. Empty: first
// come, first served. Applies to executions that are created from now on.
struct SetLaneFairness {
  using Answer = LaneFairness;
  std::string lane_id{};
  std::string fair_by{};
  std::uint64_t max_concurrent_per_key{0};  // executions of one key that may run at once; 0: any number
};

struct LaneView {
  std::string lane_id;
  LaneState state{};
  std::map<PublicState, std::int64_t> counts;
  std::optional<std::int64_t> oldest_waiting_at;
  std::int64_t registered_at{};
  std::string registered_by;
  std::string fair_by;                     // empty: in the order of submission
  std::uint64_t max_concurrent_per_key{};  // 0: any number
  bool operator==(const LaneView&) const = default;
};
struct LanePage {
  std::vector<LaneView> lanes;
  std::optional<std::string> next_cursor;  // a lane id
  bool operator==(const LanePage&) const = default;
};
// In byte order.
struct ListLanes {
  using Answer = LanePage;
  std::string cursor{};
  std::uint32_t limit{100};  // up to 1 000; 0: an empty page
};

// ---- workers ----------------------------------------------------------------------------------------------

struct WorkerRegistration {
  bool refreshed{false};  // it was registered and alive before
  std::int64_t expires_at{};
  bool operator==(const WorkerRegistration&) const = default;
};
// Registers a worker instance with the lanes and capabilities it serves; unique within its namespace.
struct RegisterWorker {
  using Answer = WorkerRegistration;
  std::string worker_id{};
  std::string worker_instance_id{};
  std::string namespace_{};
  std::vector<std::string> lanes{"default"};  // 1–64
  std::vector<std::string> capabilities{};
  std::int64_t liveness_ttl_ms{60'000};  // 1 000–3 600 000
};

struct Heartbeat {
  std::int64_t expires_at{};
  bool operator==(const Heartbeat&) const = default;
};
// Refused with `worker_not_found` if the instance is not, or no longer, registered: it must register again.
struct HeartbeatWorker {
  using Answer = Heartbeat;
  std::string worker_instance_id{};
  std::string namespace_{};
};

struct MarkedDead {
  bool was_registered{false};
  bool operator==(const MarkedDead&) const = default;
};
// Takes the instance out of the registry and offers its executions to other workers at once (if there are
// very many, the first part at once and the rest within moments). When the instance calls again, it is
// refused with `lease_expired`.
struct MarkWorkerDead {
  using Answer = MarkedDead;
  std::string worker_instance_id{};
  std::string namespace_{};
  std::string reason{};  // up to 256 bytes, no control characters
};

struct WorkerView {
  std::string worker_id;
  std::string worker_instance_id;
  std::string namespace_;
  std::vector<std::string> lanes;
  std::vector<std::string> capabilities;
  std::int64_t last_heartbeat_at{};
  std::int64_t liveness_ttl_ms{};
  std::int64_t registered_at{};
  // The number of executions it runs now. A worker without a namespace is counted for all namespaces in which
  // no instance of its name is registered.
  std::uint64_t leases{};
  bool operator==(const WorkerView&) const = default;
};
struct WorkerPage {
  std::vector<WorkerView> workers;
  std::optional<std::string> next_cursor;
  bool operator==(const WorkerPage&) const = default;
};
// Live workers, by (namespace, instance id).
struct ListWorkers {
  using Answer = WorkerPage;
  std::optional<std::string> namespace_{};  // absent: all
  std::string cursor{};
  std::uint32_t limit{1000};  // 1–10 000
};

enum class WorkerEventKind : std::uint8_t { registered, heartbeat, marked_dead, ttl_swept };
BOOST_DESCRIBE_ENUM(WorkerEventKind, registered, heartbeat, marked_dead, ttl_swept)

struct WorkerEventView {
  std::int64_t event_id{};
  std::string namespace_;
  std::string worker_instance_id;
  std::string worker_id;
  EventWord<WorkerEventKind> kind;
  std::string reason;
  std::int64_t occurred_at{};
  bool operator==(const WorkerEventView&) const = default;
};
struct ReadWorkerEvents {
  using Answer = std::vector<WorkerEventView>;
  std::int64_t after{0};
  std::uint32_t limit{256};
};

}  // namespace flowfabric
