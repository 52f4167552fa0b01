// The engine's operations: one struct per request, each naming its answer.
//
//   auto created = engine.call(CreateExecution{.execution_kind = "resize", .input = "{…}"});
//
// Times are milliseconds since the Unix epoch on the store's clock. An empty string means "none".
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/error.h"
#include "flowfabric/event_word.h"
#include "flowfabric/ids.h"
#include "flowfabric/policy.h"
#include "flowfabric/state.h"

namespace flowfabric {

using Tags = std::map<std::string, std::string>;
// Limits of the tags of an execution or a flow. Every event of an execution carries its tags, so they are
// kept small.
inline constexpr std::size_t kMaxTags = 64;
inline constexpr std::size_t kMaxTagKeyBytes = 256;
inline constexpr std::size_t kMaxTagValueBytes = 1024;
inline constexpr std::size_t kMaxTagsBytes = 16u << 10;  // keys and values of all of them

// How many executions one call may create.
inline constexpr std::size_t kMaxCreates = 1000;

// ---- submitting ----------------------------------------------------------------------------------------

struct Creation {
  ExecutionId execution_id;
  bool duplicate{false};  // the id, or a live idempotency key, is in use already; nothing was written
  std::optional<PublicState> public_state;  // absent for a duplicate that is no longer stored
  bool operator==(const Creation&) const = default;
};

struct CreateExecution {
  using Answer = Creation;
  std::optional<ExecutionId> execution_id{};  // minted in the lane's partition when absent
  std::string namespace_{};
  std::string lane_id{"default"};
  std::string execution_kind{};
  std::string input{};  // any bytes
  std::string payload_encoding{};
  std::int32_t priority{0};  // clamped to 0…9000; 0 falls back to the policy's
  std::string creator_identity{};
  std::string idempotency_key{};
  Tags tags{};
  ExecutionPolicy policy{};
  std::optional<std::int64_t> delay_until{};
  std::optional<std::int64_t> execution_deadline_at{};
  std::string trace_context{};  // a W3C `traceparent`, passed on to the worker; up to 256 bytes
};

// ---- working -------------------------------------------------------------------------------------------

// Proof of holding the current lease: all three or none.
struct LeaseFence {
  std::optional<LeaseId> lease_id{};
  std::optional<std::int64_t> lease_epoch{};
  std::optional<AttemptId> attempt_id{};
  bool operator==(const LeaseFence&) const = default;
};

// The source of an operator's call, the only one that may end another's lease without a fence.
inline constexpr const char* kOperatorOverride = "operator_override";
inline constexpr const char* kLeaseHolder = "lease_holder";

enum class ClaimKind : std::uint8_t { fresh, resumed, reclaimed };
BOOST_DESCRIBE_ENUM(ClaimKind, fresh, resumed, reclaimed)

// One tier of the fallback policy, by its place in the list.
struct Fallback {
  std::uint32_t tier{};
  std::string provider;
  std::string model;
  bool operator==(const Fallback&) const = default;
};

// A signal as a resumed worker sees it.
struct ResumeSignal {
  SignalId signal_id;
  std::string signal_name;
  std::string signal_category;
  WaitpointId waitpoint_id;
  std::string waitpoint_key;
  std::string source_type;
  std::string source_identity;
  std::string correlation_id;
  std::int64_t accepted_at{};
  std::string payload_encoding;
  std::optional<std::string> payload;
  bool operator==(const ResumeSignal&) const = default;
};

struct ClaimedTask {
  ExecutionId execution_id;
  ClaimKind claim{};
  LeaseFence fence;
  std::int64_t lease_expires_at{};
  std::uint32_t attempt_index{};
  AttemptType attempt_type{};
  std::string namespace_;
  std::string lane_id;
  std::optional<FlowId> flow_id;
  std::string execution_kind;
  std::string input;
  std::string payload_encoding;
  Tags tags;
  std::int32_t priority{};
  std::optional<std::int64_t> deadline_at;
  std::optional<std::int64_t> attempt_timeout_at;
  // The signals that resumed a suspended attempt, in the order of acceptance.
  std::vector<ResumeSignal> resume_signals;
  std::optional<Fallback> fallback;  // the tier of the policy to use; absent: the work as submitted
  std::string trace_context;
  bool operator==(const ClaimedTask&) const = default;
};

// Takes up to `max_tasks` executions that are offered on the lanes: highest priority first, then oldest.
// Executions with a lost lease come after the others of their priority. Waits up to `wait_ms` for the first
// one.
struct ClaimTasks {
  using Answer = std::vector<ClaimedTask>;
  std::string worker_id{};
  std::string worker_instance_id{};           // = worker_id when empty
  std::optional<std::string> namespace_{};    // absent: any
  std::vector<std::string> lanes{"default"};  // 1–64
  std::vector<std::string> capabilities{};
  std::uint32_t max_tasks{1};         // 1–256
  std::int64_t lease_ttl_ms{30'000};  // 1 000–3 600 000
  std::int64_t wait_ms{0};            // 0–30 000
  // Becomes true when the caller is gone. The claim then takes nothing any more.
  std::shared_ptr<const std::atomic<bool>> abandoned{};
};

struct Renewal {
  std::int64_t expires_at{};
  std::int64_t lease_epoch{};
  bool operator==(const Renewal&) const = default;
};
struct RenewLease {
  using Answer = Renewal;
  ExecutionId execution_id;
  LeaseFence fence;
  std::optional<std::uint32_t> attempt_index{};  // checked when given
  std::optional<std::int64_t> lease_ttl_ms{};    // absent: the same as last time
};

struct ProgressUpdated {
  bool operator==(const ProgressUpdated&) const = default;
};
struct UpdateProgress {
  using Answer = ProgressUpdated;
  ExecutionId execution_id;
  LeaseFence fence;
  std::optional<std::int32_t> percent{};  // 0–100; absent leaves the value
  std::optional<std::string> message{};
};

struct Completed {
  bool operator==(const Completed&) const = default;
};
struct CompleteExecution {
  using Answer = Completed;
  ExecutionId execution_id;
  LeaseFence fence{};
  std::string result{};  // any bytes; empty: none
  std::string source{kLeaseHolder};
};

struct Failed {
  bool retry_scheduled{false};  // false: the execution has failed for good
  std::int64_t delay_until{};
  std::uint32_t next_attempt_index{};
  bool operator==(const Failed&) const = default;
};
struct FailExecution {
  using Answer = Failed;
  ExecutionId execution_id;
  LeaseFence fence{};
  std::string reason{};
  std::string category{"transient"};  // `permanent` and `cancelled` never retry
  std::string source{kLeaseHolder};
};

struct Delayed {
  std::int64_t delay_until{};
  bool operator==(const Delayed&) const = default;
};
// Gives the lease back; the same attempt continues after the delay.
struct DelayExecution {
  using Answer = Delayed;
  ExecutionId execution_id;
  LeaseFence fence{};
  std::int64_t delay_until{};
  std::string source{kLeaseHolder};
  std::optional<std::int64_t> delay_ms{};  // instead of `delay_until`: from the store's time on
};

// ---- stopping ------------------------------------------------------------------------------------------

struct Cancelled {
  ExecutionId execution_id;
  PublicState public_state{PublicState::cancelled};
  bool operator==(const Cancelled&) const = default;
};
// `operator_override`, `flow_cascade` and `system_timeout` cancel whatever the state; any other source must
// present the fence of a running execution. A fence that is given must match the current lease, whatever the
// source. The holder of the last lease gets the answer of its cancel again.
struct CancelExecution {
  using Answer = Cancelled;
  ExecutionId execution_id;
  std::string reason{};
  std::string source{kOperatorOverride};
  LeaseFence fence{};
};

// ---- reading -------------------------------------------------------------------------------------------

struct LeaseSnapshot {
  LeaseId lease_id;
  std::int64_t lease_epoch{};
  std::string worker_id;
  std::string worker_instance_id;
  std::int64_t expires_at{};
  std::uint32_t attempt_index{};
  std::optional<std::int64_t> last_heartbeat_at;
  bool operator==(const LeaseSnapshot&) const = default;
};

struct ExecutionSnapshot {
  ExecutionId execution_id;
  std::optional<FlowId> flow_id;
  std::string lane_id;
  std::string namespace_;
  std::string execution_kind;
  StateVector state;
  std::string blocking_detail;
  std::int32_t priority{};
  std::optional<AttemptId> attempt_id;
  std::uint32_t current_attempt_index{};
  std::uint32_t total_attempt_count{};
  std::uint32_t retry_count{};
  std::uint32_t replay_count{};
  std::uint32_t lease_reclaim_count{};
  std::int64_t lease_epoch{};
  std::optional<LeaseSnapshot> lease;
  std::optional<WaitpointId> current_waitpoint;  // while suspended: the first of its waitpoints
  std::int64_t created_at{};
  std::optional<std::int64_t> started_at;
  std::optional<std::int64_t> completed_at;
  std::optional<std::int64_t> delay_until;
  std::optional<std::int64_t> deadline_at;
  std::int64_t last_transition_at{};
  std::int64_t last_mutation_at{};
  std::string failure_reason;
  std::string last_failure_message;  // of a timeout, also when a retry follows
  std::string cancellation_reason;
  std::string cancelled_by;
  std::optional<std::int32_t> progress_percent;
  std::string progress_message;
  std::string trace_context;
  Tags tags;
  // The execution's own limits, beside those of its flow, lane and namespace.
  std::vector<BudgetId> budget_ids;
  std::optional<QuotaPolicyId> quota_policy_id;
  std::optional<std::int64_t>
      last_capability_mismatch_at;  // a grant was refused because a capability is missing
  std::optional<std::int64_t> last_hmac_validation_failed_at;  // a wrong token was refused; to the minute
  bool operator==(const ExecutionSnapshot&) const = default;
};
struct DescribeExecution {
  using Answer = ExecutionSnapshot;
  ExecutionId execution_id;
};

struct ReadState {
  using Answer = PublicState;
  ExecutionId execution_id;
};

// The work itself, as a worker needs it.
struct ExecutionContext {
  std::string execution_kind;
  std::string input;
  std::string payload_encoding;
  Tags tags;
  bool operator==(const ExecutionContext&) const = default;
};
struct ReadContext {
  using Answer = ExecutionContext;
  ExecutionId execution_id;
};

struct ReadTags {
  using Answer = Tags;
  ExecutionId execution_id;
};

// The bytes of the latest completion; absent while there is none.
struct ReadResult {
  using Answer = std::optional<std::string>;
  ExecutionId execution_id;
};

struct ExecutionEnd {
  bool ended{false};  // false: the wait timed out
  ExecutionId execution_id;
  PublicState public_state{};
  std::string result;
  std::string failure_reason;  // or the reason of the cancel
  bool operator==(const ExecutionEnd&) const = default;
};
// Waits until the execution has ended.
struct AwaitExecution {
  using Answer = ExecutionEnd;
  ExecutionId execution_id;
  std::int64_t wait_ms{0};  // 0–30 000
};

struct AttemptSnapshot {
  std::uint32_t attempt_index{};
  AttemptId attempt_id;
  AttemptType attempt_type{};
  AttemptLifecycle attempt_state{};
  std::string worker_id;
  std::string worker_instance_id;
  std::int64_t lease_epoch{};
  std::int64_t started_at{};
  std::optional<std::int64_t> ended_at;
  std::optional<std::uint32_t> previous_attempt_index;
  std::string reason;        // of the retry, replay or reclaim that started it
  std::string requested_by;  // of a replay
  std::optional<std::uint32_t> fallback_tier;
  std::string failure_reason;
  std::string failure_category;
  std::string result;
  bool operator==(const AttemptSnapshot&) const = default;
};
// Oldest first, the running one included.
struct ListAttempts {
  using Answer = std::vector<AttemptSnapshot>;
  ExecutionId execution_id;
};

// The number of executions of a lane in each public state. The counts are maintained by deltas: no table is
// counted.
struct CountLane {
  using Answer = std::map<PublicState, std::int64_t>;
  std::string lane_id{"default"};
};

enum class LeaseEventType : std::uint8_t {
  acquired,
  renewed,
  released,
  expired,
  reclaimed,
  revoked,
  replay_initiated
};
BOOST_DESCRIBE_ENUM(LeaseEventType, acquired, renewed, released, expired, reclaimed, revoked,
                    replay_initiated)

struct LeaseEventView {
  std::int64_t event_id{};
  ExecutionId execution_id;
  EventWord<LeaseEventType> type;
  LeaseId lease_id;
  std::int64_t lease_epoch{};
  AttemptId attempt_id;
  std::uint32_t attempt_index{};
  std::string worker_id;
  std::string worker_instance_id;
  std::string reason;
  std::string namespace_;
  Tags tags;
  std::int64_t occurred_at{};
  bool operator==(const LeaseEventView&) const = default;
};
// Events after a position, oldest first, at most 1 000.
struct ReadLeaseEvents {
  using Answer = std::vector<LeaseEventView>;
  std::int64_t after{0};
  std::uint32_t limit{256};
};

struct CompletionEventView {
  std::int64_t event_id{};
  ExecutionId execution_id;
  std::optional<FlowId> flow_id;
  EventWord<TerminalOutcome> outcome;
  std::string namespace_;
  Tags tags;
  std::int64_t occurred_at{};
  bool operator==(const CompletionEventView&) const = default;
};
struct ReadCompletions {
  using Answer = std::vector<CompletionEventView>;
  std::int64_t after{0};
  std::uint32_t limit{256};
};

}  // namespace flowfabric
