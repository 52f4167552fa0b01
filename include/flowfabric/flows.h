// Flows: executions that depend on each other.
//
// A flow is a container. Its members are executions, and its edges say which member waits for which. Each
// member with incoming edges has one join (an edge group), which counts the upstreams that succeeded and
// decides whether the member may run. A whole flow is submitted in one call (`SubmitFlow`), or built step by
// step: create the flow, add members, stage edges, apply them. A flow and all of its members share a
// partition.
#pragma once

#include "flowfabric/listing.h"
#include "flowfabric/operations.h"
#include "flowfabric/operators.h"

namespace flowfabric {

// ---- joins ------------------------------------------------------------------------------------------------

enum class JoinKind : std::uint8_t { all_of, any_of, quorum };
BOOST_DESCRIBE_ENUM(JoinKind, all_of, any_of, quorum)
// The fate of the upstreams that are still running when a join is decided.
enum class OnSatisfied : std::uint8_t { cancel_remaining, let_run };
BOOST_DESCRIBE_ENUM(OnSatisfied, cancel_remaining, let_run)
enum class GroupState : std::uint8_t { pending, satisfied, impossible, cancelled };
BOOST_DESCRIBE_ENUM(GroupState, pending, satisfied, impossible, cancelled)

struct JoinPolicy {
  JoinKind kind{JoinKind::all_of};
  std::uint32_t k{};                          // the number that must succeed, for a quorum
  std::optional<OnSatisfied> on_satisfied{};  // required for any_of and quorum
  bool operator==(const JoinPolicy&) const = default;
};
Result<void> validate(const JoinPolicy& policy);
// `{"kind":"quorum","k":2,"on_satisfied":"cancel_remaining"}`
Result<JoinPolicy> parse_join_policy(std::string_view json);
std::string to_json(const JoinPolicy& policy);

// Reasons for which losing siblings are cancelled. Such a cancel does not make the flow fail.
inline constexpr const char* kSiblingQuorumSatisfied = "sibling_quorum_satisfied";
inline constexpr const char* kSiblingQuorumImpossible = "sibling_quorum_impossible";

// ---- building ---------------------------------------------------------------------------------------------

// The effect of a member's failure: its dependents are skipped and other branches continue, or the whole flow
// is cancelled.
enum class FailurePolicy : std::uint8_t { isolate_failures, fail_fast };
BOOST_DESCRIBE_ENUM(FailurePolicy, isolate_failures, fail_fast)

struct FlowCreation {
  FlowId flow_id;
  bool already_existed{false};  // nothing was written
  bool operator==(const FlowCreation&) const = default;
};
struct CreateFlow {
  using Answer = FlowCreation;
  std::optional<FlowId> flow_id{};  // minted when absent
  std::string flow_kind{};          // not empty
  std::string namespace_{};
  FailurePolicy failure_policy{};
  Tags tags{};
};

struct MemberAdded {
  ExecutionId execution_id;
  std::uint32_t node_count{};
  bool already_member{false};
  bool operator==(const MemberAdded&) const = default;
};
// The execution must have been created in the flow's partition (`execution_id_for`).
struct AddFlowMember {
  using Answer = MemberAdded;
  FlowId flow_id;
  ExecutionId execution_id;
};

inline constexpr const char* kSuccessOnly = "success_only";

struct EdgeStaged {
  EdgeId edge_id;
  std::uint64_t new_graph_revision{};  // to be expected by the next edge
  bool operator==(const EdgeStaged&) const = default;
};
// Declares an edge. It has no effect until it is applied.
struct StageEdge {
  using Answer = EdgeStaged;
  FlowId flow_id;
  std::optional<EdgeId> edge_id{};  // minted when absent
  ExecutionId upstream_execution_id;
  ExecutionId downstream_execution_id;
  std::string dependency_kind{kSuccessOnly};
  std::string data_passing_ref{};  // not empty: the upstream's result becomes the downstream's input
  std::uint64_t expected_graph_revision{};
};

struct EdgeApplied {
  bool already_applied{false};
  std::uint32_t unsatisfied_count{};  // unresolved edges into the downstream
  bool operator==(const EdgeApplied&) const = default;
};
// Makes the downstream wait for the upstream.
struct ApplyEdge {
  using Answer = EdgeApplied;
  FlowId flow_id;
  EdgeId edge_id;
  ExecutionId upstream_execution_id;
  ExecutionId downstream_execution_id;
};

struct JoinPolicySet {
  bool already_set{false};
  bool operator==(const JoinPolicySet&) const = default;
};
// Must come before the first edge into the downstream is staged. The default of a join is all_of.
struct SetJoinPolicy {
  using Answer = JoinPolicySet;
  FlowId flow_id;
  ExecutionId downstream_execution_id;
  JoinPolicy policy;
};

// Sets the given tags and leaves the others; an absent value removes the tag. Keys are `caller.field`.
struct SetFlowTags {
  using Answer = TagsSet;
  FlowId flow_id;
  std::map<std::string, std::optional<std::string>> tags;
};

// ---- the whole at once ------------------------------------------------------------------------------------

struct FlowNode {
  std::string name;
  // The flow gives the id and the namespace. An idempotency key is not allowed here; use a `flow_id`.
  CreateExecution execution;
  JoinPolicy join{};
};
struct FlowEdge {
  std::string from;
  std::string to;
  bool pass_result{false};  // the result of `from` becomes the input of `to`
};
struct FlowSubmission {
  FlowId flow_id;
  std::map<std::string, ExecutionId> executions;  // by name
  bool already_existed{false};
  bool operator==(const FlowSubmission&) const = default;
};
inline constexpr std::size_t kMaxFlowNodes = 10'000;
inline constexpr std::size_t kMaxFlowEdges = 100'000;

// Creates the whole flow or nothing. No member can be claimed before all are there. With a `flow_id`, a
// repeated call gets the same answer.
struct SubmitFlow {
  using Answer = FlowSubmission;
  std::optional<FlowId> flow_id{};
  std::string flow_kind{};
  std::string namespace_{};
  FailurePolicy failure_policy{};
  Tags tags{};
  std::vector<FlowNode> nodes;  // 1 to kMaxFlowNodes
  std::vector<FlowEdge> edges;  // up to kMaxFlowEdges
};

// ---- stopping ---------------------------------------------------------------------------------------------

enum class CancellationPolicy : std::uint8_t {
  cancel_all,               // every member that has not ended
  cancel_pending,           // members that are neither running nor suspended
  cancel_unscheduled_only,  // members that are not running
  flow_only,                // none
  let_active_finish         // no new claims; when no member runs any more, the waiting ones are cancelled
};
BOOST_DESCRIBE_ENUM(CancellationPolicy, cancel_all, cancel_pending, cancel_unscheduled_only, flow_only,
                    let_active_finish)
// Accepts `cancel_flow_only` for `flow_only`, too.
Result<CancellationPolicy> parse_cancellation_policy(std::string_view text);

enum class CancelOutcome : std::uint8_t { cancelled, scheduled, partially_cancelled };
BOOST_DESCRIBE_ENUM(CancelOutcome, cancelled, scheduled, partially_cancelled)

struct FlowCancellation {
  CancelOutcome outcome{};
  CancellationPolicy cancellation_policy{};
  std::vector<ExecutionId> member_execution_ids;         // all; up to 1 000 of a flow that had ended before
  std::vector<ExecutionId> failed_member_execution_ids;  // still owed a cancel
  bool already_terminal{false};  // it had ended before; the stored policy is unchanged
  bool operator==(const FlowCancellation&) const = default;
};
// From the answer on, no member that the policy cancels can be claimed. The cancels themselves follow in the
// background, or while the caller waits. A caller that waits is answered when all of them are done; with
// let_active_finish that is after the running members have finished.
struct CancelFlow {
  using Answer = FlowCancellation;
  FlowId flow_id;
  std::string reason{};
  CancellationPolicy cancellation_policy{CancellationPolicy::cancel_all};
  bool wait{false};
  std::int64_t wait_ms{30'000};  // up to 300'000; then `timeout`, and the cancels continue
  bool partial_when_late{
      false};  // answers `partially_cancelled`, with the members still owed a cancel, instead of `timeout`
  std::int64_t grace_ms{30'000};  // how long the clock leaves the cancels to a waiting caller
};

struct CancelAcknowledged {
  bool operator==(const CancelAcknowledged&) const = default;
};
// Confirms that this member of a cancelled flow needs no cancel any more.
struct AckCancelMember {
  using Answer = CancelAcknowledged;
  FlowId flow_id;
  ExecutionId execution_id;
};

// ---- waiting for children ---------------------------------------------------------------------------------

struct WaitingForChildren {
  bool operator==(const WaitingForChildren&) const = default;
};
// A running execution gives its lease back until its own upstreams have ended, which it has added to its flow
// while running. Then the same attempt continues; at once, if there are none.
struct WaitForChildren {
  using Answer = WaitingForChildren;
  ExecutionId execution_id;
  LeaseFence fence{};
  std::string source{kLeaseHolder};
};

enum class FlowEligibility : std::uint8_t {
  not_found,
  not_runnable,
  owned,
  terminal,
  impossible,
  blocked_by_dependencies,
  eligible
};
BOOST_DESCRIBE_ENUM(FlowEligibility, not_found, not_runnable, owned, terminal, impossible,
                    blocked_by_dependencies, eligible)
struct EvaluateFlowEligibility {
  using Answer = FlowEligibility;
  ExecutionId execution_id;
};
// Unblocks an execution that is blocked by dependencies although none is left.
struct PromoteBlocked {
  using Answer = EligibilityChange;
  ExecutionId execution_id;
};

// ---- reading ----------------------------------------------------------------------------------------------

// `open`, `cancelled` and `failed` (by fail_fast) are stored and guard changes; the others follow from the
// members.
enum class FlowState : std::uint8_t { open, running, blocked, completed, failed, cancelled };
BOOST_DESCRIBE_ENUM(FlowState, open, running, blocked, completed, failed, cancelled)

struct JoinSnapshot {
  ExecutionId downstream_execution_id;
  JoinPolicy policy;
  std::uint32_t total_deps{};
  std::uint32_t satisfied_count{};
  std::uint32_t failed_count{};
  std::uint32_t skipped_count{};
  std::uint32_t running_count{};
  GroupState group_state{};
  std::optional<std::int64_t> satisfied_at;
  bool cancel_siblings_pending{false};
  std::string cancel_siblings_reason;
  bool operator==(const JoinSnapshot&) const = default;
};
struct FlowSnapshot {
  FlowId flow_id;
  std::string flow_kind;
  std::string namespace_;
  FlowState public_flow_state{};  // the stored one
  FlowState state{};              // derived from the members
  FailurePolicy failure_policy{};
  std::uint64_t graph_revision{};
  std::uint32_t node_count{};
  std::uint32_t edge_count{};
  std::int64_t created_at{};
  std::int64_t last_mutation_at{};
  std::optional<std::int64_t> cancelled_at;
  std::string cancel_reason;
  std::optional<CancellationPolicy> cancellation_policy;
  Tags tags;
  std::map<PublicState, std::int64_t> counts;  // of its members
  std::vector<JoinSnapshot> edge_groups;       // by downstream id
  bool operator==(const FlowSnapshot&) const = default;
};
struct DescribeFlow {
  using Answer = FlowSnapshot;
  FlowId flow_id;
};

enum class EdgeState : std::uint8_t { pending, applied };
BOOST_DESCRIBE_ENUM(EdgeState, pending, applied)
// The state of an applied edge: whether its upstream has ended, and how.
enum class DependencyState : std::uint8_t { unsatisfied, satisfied, impossible };
BOOST_DESCRIBE_ENUM(DependencyState, unsatisfied, satisfied, impossible)

struct EdgeSnapshot {
  EdgeId edge_id;
  FlowId flow_id;
  ExecutionId upstream_execution_id;
  ExecutionId downstream_execution_id;
  std::string dependency_kind;
  std::string satisfaction_condition{"all_required"};
  std::string data_passing_ref;
  EdgeState edge_state{};
  DependencyState dependency_state{};
  std::int64_t created_at{};
  std::optional<std::int64_t> applied_at;
  std::optional<std::int64_t> resolved_at;
  std::string created_by{"engine"};
  bool operator==(const EdgeSnapshot&) const = default;
};
struct DescribeEdge {
  using Answer = std::optional<EdgeSnapshot>;
  FlowId flow_id;
  EdgeId edge_id;
};
// The edges of one member, by edge id; none for an execution without a flow.
struct ListEdges {
  using Answer = std::vector<EdgeSnapshot>;
  enum class Direction : std::uint8_t { outgoing, incoming };
  ExecutionId execution_id;
  Direction direction{Direction::outgoing};
};

struct FlowSummary {
  FlowId flow_id;
  std::string flow_kind;
  std::string namespace_;
  FlowState state{};  // derived
  std::int64_t created_at{};
  std::uint32_t node_count{};
  Tags tags;
  bool operator==(const FlowSummary&) const = default;
};
struct FlowPage {
  std::vector<FlowSummary> flows;
  std::optional<std::string> next_cursor;
  bool operator==(const FlowPage&) const = default;
};
// The flows of one partition, by id.
struct ListFlowPartition {
  using Answer = FlowPage;
  std::uint16_t partition{};
  std::uint32_t limit{50};  // 0–1 000
  std::string cursor{};     // the last id of the page before
};
struct FlowFilter {
  std::optional<std::string> namespace_{};
  std::optional<std::string> flow_kind{};
  std::vector<FlowState> states{};  // derived; any of them; empty: all
  Tags tags{};
  std::optional<std::int64_t> created_after{};   // exclusive
  std::optional<std::int64_t> created_before{};  // exclusive
};
struct ListFlows {
  using Answer = FlowPage;
  FlowFilter filter{};
  ListOrder order{ListOrder::newest};  // by time of creation
  std::uint32_t limit{50};             // 1–1 000
  std::string cursor{};
};

// Nodes, edges and joins, as a drawing needs them.
struct FlowGraph {
  struct Node {
    ExecutionId execution_id;
    std::string name;
    std::string execution_kind;
    PublicState public_state{};
    bool operator==(const Node&) const = default;
  };
  std::vector<Node> nodes;           // oldest first
  std::vector<EdgeSnapshot> edges;   // by edge id
  std::vector<JoinSnapshot> groups;  // by downstream id
  bool operator==(const FlowGraph&) const = default;
};
struct ReadFlowGraph {
  using Answer = FlowGraph;
  FlowId flow_id;
};

// An id in the flow's partition, for `CreateExecution` of a future member.
ExecutionId execution_id_for(const FlowId& flow_id, const Uuid& uuid, std::uint16_t flow_partitions = 256);

}  // namespace flowfabric
