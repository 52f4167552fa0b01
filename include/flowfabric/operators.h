// Calls of operators and schedulers, on one execution or on many at once.
#pragma once

#include "flowfabric/listing.h"

namespace flowfabric {

// ---- holding back -----------------------------------------------------------------------------------------

struct EligibilityChange {
  ExecutionId execution_id;
  PublicState public_state{};
  bool operator==(const EligibilityChange&) const = default;
};

// Takes a runnable execution out of the queue for one of the reasons waiting_for_budget, waiting_for_quota,
// waiting_for_capable_worker, paused_by_operator and paused_by_policy.
struct BlockExecution {
  using Answer = EligibilityChange;
  ExecutionId execution_id;
  BlockingReason reason{};
  std::string detail{};
};

// Puts the execution back, if it is still blocked for the expected reason. A delay that has not ended yet
// continues.
struct UnblockExecution {
  using Answer = EligibilityChange;
  ExecutionId execution_id;
  BlockingReason expected_reason{};
};

// Blocks an execution by hand, until it is released.
struct HoldExecution {
  using Answer = EligibilityChange;
  ExecutionId execution_id;
  std::string reason{};
};
struct ReleaseExecution {
  using Answer = EligibilityChange;
  ExecutionId execution_id;
};

// ---- interfering ------------------------------------------------------------------------------------------

enum class NotRevoked : std::uint8_t {
  no_active_lease,
  already_revoked,
  already_expired,
  different_worker_instance_id
};
BOOST_DESCRIBE_ENUM(NotRevoked, no_active_lease, already_revoked, already_expired,
                    different_worker_instance_id)

struct Revocation {
  std::optional<NotRevoked> already_satisfied;  // present: there was nothing to revoke
  LeaseId lease_id;
  std::int64_t lease_epoch{};
  bool operator==(const Revocation&) const = default;
};
// Takes the lease away from its holder; the execution is offered to workers again.
struct RevokeLease {
  using Answer = Revocation;
  ExecutionId execution_id;
  std::optional<LeaseId> expected_lease_id{};
  std::string worker_instance_id{};  // empty: any holder
  std::string reason{"operator_revoke"};
};

struct PriorityChanged {
  ExecutionId execution_id;
  bool operator==(const PriorityChanged&) const = default;
};
// Changes the priority of an execution that waits for a worker; clamped to 0…9000. Its age is unchanged.
struct ChangePriority {
  using Answer = PriorityChanged;
  ExecutionId execution_id;
  std::int32_t new_priority{};
};

struct Replayed {
  PublicState public_state{};
  bool operator==(const Replayed&) const = default;
};
// Runs an ended execution once more, as a new attempt.
struct ReplayExecution {
  using Answer = Replayed;
  ExecutionId execution_id;
  std::string reason{};
  std::string requested_by{};
};

struct TagsSet {
  std::uint32_t count{};  // tags in the request
  Tags tags;              // all tags of the execution now
  bool operator==(const TagsSet&) const = default;
};
// Sets the given tags and leaves the others; an absent value removes the tag. Keys are `caller.field`.
struct SetTags {
  using Answer = TagsSet;
  ExecutionId execution_id;
  std::map<std::string, std::optional<std::string>> tags;
};

// ---- many at once -----------------------------------------------------------------------------------------

// Up to 1 000 executions, each with its own answer, in the same order.
struct CreateExecutions {
  using Answer = std::vector<Result<Creation>>;
  std::vector<CreateExecution> executions;
};

enum class BulkAction : std::uint8_t { cancel, replay, change_priority };
BOOST_DESCRIBE_ENUM(BulkAction, cancel, replay, change_priority)
enum class BulkState : std::uint8_t { running, finished, cancelled };
BOOST_DESCRIBE_ENUM(BulkState, running, finished, cancelled)

struct BulkOperation {
  OperationId operation_id;
  BulkAction action{};
  BulkState state{};
  ExecutionFilter filter;
  std::uint64_t matched{};  // so far
  std::uint64_t done{};
  std::uint64_t failed{};
  std::string last_error;  // of the last failure
  std::int64_t created_at{};
  std::optional<std::int64_t> ended_at;
  bool operator==(const BulkOperation&) const = default;
};

// Applies one action to every execution that the filter matches, in the background and across restarts: to
// those that exist when it starts and, for a replay, to those that have ended by then.
struct StartBulkOperation {
  using Answer = BulkOperation;
  std::optional<OperationId> operation_id{};  // a repeated id names the operation that was started before
  BulkAction action{};
  ExecutionFilter filter;  // not empty
  std::string reason{};
  std::int32_t new_priority{};  // of change_priority
  std::optional<std::uint32_t>
      rate_per_second{};  // 1–100 000; absent: as fast as the rest of the work allows
};
struct ReadBulkOperation {
  using Answer = BulkOperation;
  OperationId operation_id;
};
// Stops the operation. Changes that it has made remain.
struct CancelBulkOperation {
  using Answer = BulkOperation;
  OperationId operation_id;
};

// ---- what operators did -----------------------------------------------------------------------------------

enum class OperatorEventType : std::uint8_t {
  priority_changed,
  replayed,
  flow_cancel_requested,
  suspension_escalated
};
BOOST_DESCRIBE_ENUM(OperatorEventType, priority_changed, replayed, flow_cancel_requested,
                    suspension_escalated)

struct OperatorEventView {
  std::int64_t event_id{};
  ExecutionId execution_id;
  EventWord<OperatorEventType> type;
  std::map<std::string, std::string> details;
  std::string namespace_;
  Tags tags;
  std::int64_t occurred_at{};
  bool operator==(const OperatorEventView&) const = default;
};
struct ReadOperatorEvents {
  using Answer = std::vector<OperatorEventView>;
  std::int64_t after{0};
  std::uint32_t limit{256};
};

}  // namespace flowfabric
