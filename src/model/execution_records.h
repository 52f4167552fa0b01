// The records of an execution: the hot row, what was submitted, its ended attempts, its tags, its grant, and
// the idempotency key that made it.
#pragma once

#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/grants.h"
#include "flowfabric/ids.h"
#include "flowfabric/operations.h"
#include "flowfabric/policy.h"
#include "flowfabric/state.h"

namespace flowfabric {

// Bytes of a caller: stored as they are, never read as text.
struct Bytes {
  std::string data;
  bool operator==(const Bytes&) const = default;
};

// The last lease that ended by a call of its holder, and what that call was answered: a repeated call whose
// answer was lost gets the same answer again.
enum class LeaseEnd : std::uint8_t { none, complete, fail, delay, cancel, other, wait_children, suspend };
BOOST_DESCRIBE_ENUM(LeaseEnd, none, complete, fail, delay, cancel, other, wait_children, suspend)

struct LastLeaseEnd {
  LeaseEnd ended_by{LeaseEnd::none};
  std::optional<LeaseId> ended_lease_id;
  std::int64_t ended_lease_epoch{0};
  std::optional<AttemptId> ended_attempt_id;
  std::optional<std::int64_t> ended_delay_until_ms;
  std::optional<std::uint32_t> ended_next_attempt_index;
  bool operator==(const LastLeaseEnd&) const = default;
};
BOOST_DESCRIBE_STRUCT(LastLeaseEnd, (),
                      (ended_by, ended_lease_id, ended_lease_epoch, ended_attempt_id, ended_delay_until_ms,
                       ended_next_attempt_index))

// The lease in force. Cleared when it ends, except for the epoch, which only ever grows.
struct Lease {
  std::optional<LeaseId> lease_id;
  std::string worker_id;
  std::string worker_instance_id;
  std::optional<std::int64_t> lease_acquired_at_ms;
  std::optional<std::int64_t> lease_expires_at_ms;
  std::optional<std::int64_t> lease_last_renewed_at_ms;
  std::optional<std::int64_t> lease_renewal_deadline_ms;
  std::optional<std::int64_t> lease_expired_at_ms;
  std::optional<std::int64_t> lease_revoked_at_ms;
  std::string lease_revoke_reason;
  bool operator==(const Lease&) const = default;
};
BOOST_DESCRIBE_STRUCT(Lease, (),
                      (lease_id, worker_id, worker_instance_id, lease_acquired_at_ms, lease_expires_at_ms,
                       lease_last_renewed_at_ms, lease_renewal_deadline_ms, lease_expired_at_ms,
                       lease_revoked_at_ms, lease_revoke_reason))

// Why the next attempt will be made (while one is pending), or why the current one was.
struct Lineage {
  std::optional<std::uint32_t> previous_attempt_index;
  std::string lineage_reason;
  std::string lineage_requested_by;
  bool operator==(const Lineage&) const = default;
};
BOOST_DESCRIBE_STRUCT(Lineage, (), (previous_attempt_index, lineage_reason, lineage_requested_by))

// The attempt in progress, running or paused. Its history row (`Attempt`) is written once, when it ends.
struct CurrentAttempt {
  std::uint32_t attempt_index{0};
  std::optional<AttemptId> attempt_id;
  AttemptType attempt_type{AttemptType::initial};
  std::optional<std::int64_t> attempt_started_at_ms;
  std::optional<std::int64_t> attempt_resumed_at_ms;
  std::optional<std::int64_t> attempt_suspended_at_ms;
  std::string attempt_suspension;                     // a suspension id, or `worker_delay`
  std::optional<std::int64_t> attempt_timeout_at_ms;  // armed while leased
  // Kept while paused. While a budget has set the clock (core/limits/breach.h): how much later its own would
  // be.
  std::optional<std::int64_t> attempt_timeout_left_ms;
  std::optional<std::uint32_t> fallback_tier;  // of the policy; absent: the work as submitted
  Lineage lineage;
  bool operator==(const CurrentAttempt&) const = default;
};
BOOST_DESCRIBE_STRUCT(CurrentAttempt, (),
                      (attempt_index, attempt_id, attempt_type, attempt_started_at_ms, attempt_resumed_at_ms,
                       attempt_suspended_at_ms, attempt_suspension, attempt_timeout_at_ms,
                       attempt_timeout_left_ms, fallback_tier, lineage))

// The hot row: everything that changes while an execution lives.
struct Execution {
  static constexpr const char* table = "ff_exec_core";
  using Key = ExecutionId;
  Key key() const { return {partition_key, execution_id}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::string lane_id;
  std::string namespace_;
  std::int64_t route_id{};
  std::int64_t group_id{};
  std::int64_t created_at_ms{};
  // Of the policy: every lost lease asks for the one, every end for the other.
  std::uint32_t max_reclaim_count{kDefaultMaxReclaimCount};
  std::optional<std::int64_t> retention_ms;

  StateVector state;
  std::string blocking_detail;
  std::optional<FlowId> flow_id;
  // Its join is undecided: whatever happens to it, it is not offered before that.
  bool dependencies_pending{false};
  std::int32_t priority{};
  // Its own limits; those of its flow, lane and tenant count as well (core/limits/admission.h).
  std::string budget_ids;  // comma-joined
  std::optional<QuotaPolicyId> quota_policy_id;
  // What it gives back when its lease ends, comma-joined: quota policies of which it holds a slot, and (after
  // `b:`) budgets of which something is set aside for it.
  std::string admitted_by;
  std::optional<Uuid> blocked_on;  // the budget or quota policy that holds it back
  // In a lane that shares fairly (core/limits/fairness.h): its key, and its place in line while it has one.
  std::optional<std::string> fair_key;
  std::optional<std::int64_t> fair_rank;
  // Set while workers may take it; smaller is taken first (core/offer.h). Absent: not offered.
  std::optional<std::int64_t> offer_order;
  // Reserved by a grant (ff_claim_grant) until then, and so not offered.
  std::optional<std::int64_t> grant_expires_at_ms;
  // The earliest of its deadlines, while it lives. May be early, never late.
  std::optional<std::int64_t> next_due_at_ms;
  // When it is removed, once it has ended; absent: never. Apart from the clock above, so that what waits to
  // be removed never stands in the way of what is due.
  std::optional<std::int64_t> purge_at_ms;

  CurrentAttempt attempt;
  std::uint32_t total_attempt_count{};
  std::uint32_t retry_count{};
  std::uint32_t replay_count{};
  std::uint32_t lease_reclaim_count{};
  std::int64_t lease_epoch{};
  Lease lease;
  LastLeaseEnd last_end;

  std::optional<std::int64_t> delay_until_ms;
  std::optional<std::int64_t> deadline_at_ms;
  std::optional<std::int64_t> started_at_ms;
  std::optional<std::int64_t> terminal_at_ms;
  std::int64_t last_transition_at_ms{};
  std::int64_t last_mutation_at_ms{};

  std::string failure_reason;
  std::string last_failure_message;
  std::string cancellation_reason;
  std::string cancelled_by;
  std::optional<std::int64_t> last_capability_mismatch_at_ms;
  std::optional<std::int32_t> progress_pct;
  std::string progress_message;
  std::optional<std::int64_t> progress_updated_at_ms;
  Tags tags;

  bool operator==(const Execution&) const = default;
};
BOOST_DESCRIBE_STRUCT(Execution, (),
                      (partition_key, execution_id, lane_id, namespace_, route_id, group_id, created_at_ms,
                       max_reclaim_count, retention_ms, state, blocking_detail, flow_id, dependencies_pending,
                       priority, budget_ids, quota_policy_id, admitted_by, blocked_on, fair_key, fair_rank,
                       offer_order, grant_expires_at_ms, next_due_at_ms, purge_at_ms, attempt,
                       total_attempt_count, retry_count, replay_count, lease_reclaim_count, lease_epoch,
                       lease, last_end, delay_until_ms, deadline_at_ms, started_at_ms, terminal_at_ms,
                       last_transition_at_ms, last_mutation_at_ms, failure_reason, last_failure_message,
                       cancellation_reason, cancelled_by, last_capability_mismatch_at_ms, progress_pct,
                       progress_message, progress_updated_at_ms, tags))

// What a listing needs of an execution: some columns of the hot row.
struct ListedExecution {
  static constexpr const char* table = Execution::table;
  using Key = ExecutionId;
  Key key() const { return {partition_key, execution_id}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::string lane_id;
  std::string namespace_;
  std::int64_t group_id{};
  std::int64_t created_at_ms{};
  PublicState public_state{};
  std::optional<FlowId> flow_id;
  std::int32_t priority{};
  std::uint32_t total_attempt_count{};
  std::optional<std::int64_t> started_at_ms;
  std::optional<std::int64_t> terminal_at_ms;
  Tags tags;
  std::string worker_instance_id;
};
BOOST_DESCRIBE_STRUCT(ListedExecution, (),
                      (partition_key, execution_id, lane_id, namespace_, group_id, created_at_ms,
                       public_state, flow_id, priority, total_attempt_count, started_at_ms, terminal_at_ms,
                       tags, worker_instance_id))
inline ListedExecution listed(const Execution& execution) {
  return {.partition_key = execution.partition_key,
          .execution_id = execution.execution_id,
          .lane_id = execution.lane_id,
          .namespace_ = execution.namespace_,
          .group_id = execution.group_id,
          .created_at_ms = execution.created_at_ms,
          .public_state = execution.state.public_state,
          .flow_id = execution.flow_id,
          .priority = execution.priority,
          .total_attempt_count = execution.total_attempt_count,
          .started_at_ms = execution.started_at_ms,
          .terminal_at_ms = execution.terminal_at_ms,
          .tags = execution.tags,
          .worker_instance_id = execution.lease.worker_instance_id};
}

// What the caller submitted. Never changes, but for an input that is an upstream's result.
struct ExecutionSpec {
  static constexpr const char* table = "ff_exec_spec";
  using Key = ExecutionId;
  Key key() const { return {partition_key, execution_id}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::string execution_kind;
  std::string creator_identity;
  std::string idempotency_key;
  std::string node_name;  // in a flow that was submitted as a whole
  std::string trace_context;
  ExecutionPolicy policy;
  std::string payload_encoding;
  Bytes payload;

  bool operator==(const ExecutionSpec&) const = default;
};
BOOST_DESCRIBE_STRUCT(ExecutionSpec, (),
                      (partition_key, execution_id, execution_kind, creator_identity, idempotency_key,
                       node_name, trace_context, policy, payload_encoding, payload))

struct AttemptKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t attempt_index{};
  auto operator<=>(const AttemptKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(AttemptKey, (), (partition_key, execution_id, attempt_index))

// The history of one ended attempt, with its result.
struct Attempt {
  static constexpr const char* table = "ff_attempt";
  using Key = AttemptKey;
  Key key() const { return {partition_key, execution_id, attempt_index}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  std::uint32_t attempt_index{};
  AttemptId attempt_id;
  AttemptType attempt_type{};
  AttemptLifecycle attempt_state{};
  std::optional<LeaseId> lease_id;
  std::int64_t lease_epoch{};
  std::string worker_id;
  std::string worker_instance_id;
  std::int64_t started_at_ms{};
  std::optional<std::int64_t> resumed_at_ms;
  std::int64_t terminal_at_ms{};
  std::string failure_reason;
  std::string failure_category;
  std::optional<std::uint32_t> fallback_tier;
  Lineage lineage;
  Bytes result;

  bool operator==(const Attempt&) const = default;
};
BOOST_DESCRIBE_STRUCT(Attempt, (),
                      (partition_key, execution_id, attempt_index, attempt_id, attempt_type, attempt_state,
                       lease_id, lease_epoch, worker_id, worker_instance_id, started_at_ms, resumed_at_ms,
                       terminal_at_ms, failure_reason, failure_category, fallback_tier, lineage, result))

struct ExecutionTagKey {
  std::string tag_key;
  std::string tag_value;
  std::int64_t created_at_ms{};  // of the execution: a listing walks one tag's executions by age
  std::uint16_t partition_key{};
  Uuid execution_id;
  auto operator<=>(const ExecutionTagKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(ExecutionTagKey, (), (tag_key, tag_value, created_at_ms, partition_key, execution_id))

// One tag of an execution, for looking it up; the execution's own `tags` say the same.
struct ExecutionTag {
  static constexpr const char* table = "ff_exec_tag";
  using Key = ExecutionTagKey;
  Key key() const { return entry; }

  ExecutionTagKey entry;
  bool operator==(const ExecutionTag&) const = default;
};
BOOST_DESCRIBE_STRUCT(ExecutionTag, (), (entry))

// The live grant of an execution.
struct Grant {
  static constexpr const char* table = "ff_claim_grant";
  using Key = ExecutionId;
  Key key() const { return {partition_key, execution_id}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  Uuid grant_id;
  GrantKind kind{};
  std::string worker_id;
  std::string worker_instance_id;
  std::string lane_id;
  std::string worker_capabilities;  // sorted, comma-joined
  std::string capability_hash;
  std::string route_snapshot_json;
  std::string admission_summary;
  std::int64_t issued_at_ms{};
  std::int64_t expires_at_ms{};
  bool operator==(const Grant&) const = default;
};
BOOST_DESCRIBE_STRUCT(Grant, (),
                      (partition_key, execution_id, grant_id, kind, worker_id, worker_instance_id, lane_id,
                       worker_capabilities, capability_hash, route_snapshot_json, admission_summary,
                       issued_at_ms, expires_at_ms))

struct CreateDedupKey {
  std::string namespace_;
  std::string idempotency_key;
  auto operator<=>(const CreateDedupKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(CreateDedupKey, (), (namespace_, idempotency_key))

// An idempotency key inside its window, and the execution it made.
struct CreateDedup {
  static constexpr const char* table = "ff_create_dedup";
  using Key = CreateDedupKey;
  Key key() const { return {namespace_, idempotency_key}; }

  std::string namespace_;
  std::string idempotency_key;
  std::uint16_t partition_key{};
  Uuid execution_id;
  std::optional<std::int64_t> next_due_at_ms;  // when the window ends
  bool operator==(const CreateDedup&) const = default;
};
BOOST_DESCRIBE_STRUCT(CreateDedup, (),
                      (namespace_, idempotency_key, partition_key, execution_id, next_due_at_ms))

}  // namespace flowfabric
