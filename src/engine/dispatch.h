// Which rule of the core answers which request.
#pragma once

#include "core/flow/cancel_flow.h"
#include "core/flow/dependency.h"
#include "core/flow/flow.h"
#include "core/flow/submit_flow.h"
#include "core/lifecycle/block.h"
#include "core/lifecycle/bulk.h"
#include "core/lifecycle/cancel.h"
#include "core/lifecycle/claim.h"
#include "core/lifecycle/create.h"
#include "core/lifecycle/grant.h"
#include "core/lifecycle/lease.h"
#include "core/lifecycle/priority.h"
#include "core/lifecycle/replay.h"
#include "core/lifecycle/report.h"
#include "core/lifecycle/tags.h"
#include "core/limits/attachment.h"
#include "core/limits/budget.h"
#include "core/limits/fairness.h"
#include "core/limits/quota.h"
#include "core/registry/lane.h"
#include "core/registry/worker.h"
#include "core/stream/stream.h"
#include "core/suspension/keystore.h"
#include "core/suspension/signal.h"
#include "core/suspension/suspend.h"
#include "core/suspension/suspension.h"
#include "core/suspension/waitpoint.h"

namespace flowfabric::engine {

inline auto apply(core::Unit& unit, const CreateExecution& request, core::Context& at) {
  return core::create(unit, request, at);
}
inline auto apply(core::Unit& unit, const ClaimTasks& request, core::Context& at) {
  return core::claim(unit, request, at);
}
inline auto apply(core::Unit& unit, const RenewLease& request, core::Context& at) {
  return core::renew(unit, request, at);
}
inline auto apply(core::Unit& unit, const UpdateProgress& request, core::Context& at) {
  return core::update_progress(unit, request, at);
}
inline auto apply(core::Unit& unit, const CompleteExecution& request, core::Context& at) {
  return core::complete(unit, request, at);
}
inline auto apply(core::Unit& unit, const FailExecution& request, core::Context& at) {
  return core::fail(unit, request, at);
}
inline auto apply(core::Unit& unit, const DelayExecution& request, core::Context& at) {
  return core::delay(unit, request, at);
}
inline auto apply(core::Unit& unit, const CancelExecution& request, core::Context& at) {
  return core::cancel(unit, request, at);
}
inline auto apply(core::Unit& unit, const IssueClaimGrant& request, core::Context& at) {
  return core::issue_claim_grant(unit, request, at);
}
inline auto apply(core::Unit& unit, const ClaimForWorker& request, core::Context& at) {
  return core::claim_for_worker(unit, request, at);
}
inline auto apply(core::Unit& unit, const ClaimExecution& request, core::Context& at) {
  return core::claim_execution(unit, request, at);
}
inline auto apply(core::Unit& unit, const ClaimResumedExecution& request, core::Context& at) {
  return core::claim_resumed(unit, request, at);
}
inline auto apply(core::Unit& unit, const ClaimGranted& request, core::Context& at) {
  return core::claim_granted(unit, request, at);
}
inline auto apply(core::Unit& unit, const IssueGrantAndClaim& request, core::Context& at) {
  return core::issue_grant_and_claim(unit, request, at);
}
inline auto apply(core::Unit& unit, const IssueReclaimGrant& request, core::Context& at) {
  return core::issue_reclaim_grant(unit, request, at);
}
inline auto apply(core::Unit& unit, const ReclaimExecution& request, core::Context& at) {
  return core::reclaim(unit, request, at);
}
inline auto apply(core::Unit& unit, const BlockExecution& request, core::Context& at) {
  return core::block(unit, request, at);
}
inline auto apply(core::Unit& unit, const UnblockExecution& request, core::Context& at) {
  return core::unblock(unit, request, at);
}
inline auto apply(core::Unit& unit, const HoldExecution& request, core::Context& at) {
  return core::hold(unit, request, at);
}
inline auto apply(core::Unit& unit, const ReleaseExecution& request, core::Context& at) {
  return core::release(unit, request, at);
}
inline auto apply(core::Unit& unit, const RevokeLease& request, core::Context& at) {
  return core::revoke(unit, request, at);
}
inline auto apply(core::Unit& unit, const ChangePriority& request, core::Context& at) {
  return core::change_priority(unit, request, at);
}
inline auto apply(core::Unit& unit, const ReplayExecution& request, core::Context& at) {
  return core::replay(unit, request, at);
}
inline auto apply(core::Unit& unit, const SetTags& request, core::Context& at) {
  return core::set_tags(unit, request, at);
}
inline auto apply(core::Unit& unit, const StartBulkOperation& request, core::Context& at) {
  return core::start_bulk(unit, request, at);
}
inline auto apply(core::Unit& unit, const CancelBulkOperation& request, core::Context& at) {
  return core::cancel_bulk(unit, request, at);
}
inline auto apply(core::Unit& unit, const RegisterLane& request, core::Context& at) {
  return core::register_lane(unit, request, at);
}
inline auto apply(core::Unit& unit, const SetLaneState& request, core::Context& at) {
  return core::set_lane_state(unit, request, at);
}
inline auto apply(core::Unit& unit, const SetLaneFairness& request, core::Context& at) {
  return core::set_fairness(unit, request, at);
}
inline auto apply(core::Unit& unit, const RegisterWorker& request, core::Context& at) {
  return core::register_worker(unit, request, at);
}
inline auto apply(core::Unit& unit, const HeartbeatWorker& request, core::Context& at) {
  return core::heartbeat(unit, request, at);
}
inline auto apply(core::Unit& unit, const MarkWorkerDead& request, core::Context& at) {
  return core::mark_worker_dead(unit, request, at);
}

inline auto apply(core::Unit& unit, const CreateFlow& request, core::Context& at) {
  return core::create_flow(unit, request, at);
}
inline auto apply(core::Unit& unit, const AddFlowMember& request, core::Context& at) {
  return core::add_member(unit, request, at);
}
inline auto apply(core::Unit& unit, const StageEdge& request, core::Context& at) {
  return core::stage_edge(unit, request, at);
}
inline auto apply(core::Unit& unit, const ApplyEdge& request, core::Context& at) {
  return core::apply_edge(unit, request, at);
}
inline auto apply(core::Unit& unit, const SetJoinPolicy& request, core::Context& at) {
  return core::set_join_policy(unit, request, at);
}
inline auto apply(core::Unit& unit, const SetFlowTags& request, core::Context& at) {
  return core::set_flow_tags(unit, request, at);
}
inline auto apply(core::Unit& unit, const SubmitFlow& request, core::Context& at) {
  return core::submit_flow(unit, request, at);
}
inline auto apply(core::Unit& unit, const CancelFlow& request, core::Context& at) {
  return core::cancel_flow(unit, request, at);
}
inline auto apply(core::Unit& unit, const AckCancelMember& request, core::Context& at) {
  return core::acknowledge(unit, request, at);
}
inline auto apply(core::Unit& unit, const WaitForChildren& request, core::Context& at) {
  return core::wait_for_children(unit, request, at);
}
inline auto apply(core::Unit& unit, const PromoteBlocked& request, core::Context& at) {
  return core::promote_blocked(unit, request, at);
}
inline auto apply(core::Unit& unit, const SuspendExecution& request, core::Context& at) {
  return core::suspend(unit, request, at);
}
inline auto apply(core::Unit& unit, const CreateWaitpoint& request, core::Context& at) {
  return core::create_waitpoint(unit, request, at);
}
inline auto apply(core::Unit& unit, const CloseWaitpoint& request, core::Context& at) {
  return core::close_waitpoint(unit, request, at);
}
inline auto apply(core::Unit& unit, const DeliverSignal& request, core::Context& at) {
  return core::deliver_signal(unit, request, at);
}
inline auto apply(core::Unit& unit, const DeliverApprovalSignal& request, core::Context& at) {
  return core::deliver_approval(unit, request, at);
}
inline auto apply(core::Unit& unit, const ResumeExecution& request, core::Context& at) {
  return core::resume_by_operator(unit, request, at);
}
inline auto apply(core::Unit& unit, const SeedWaitpointSecret& request, core::Context& at) {
  return core::seed_secret(unit, request, at);
}
inline auto apply(core::Unit& unit, const RotateWaitpointSecret& request, core::Context& at) {
  return core::rotate_secret(unit, request, at);
}
inline auto apply(core::Unit& unit, const AppendFrame& request, core::Context& at) {
  return core::append_frame(unit, request, at);
}
inline auto apply(core::Unit& unit, const CreateBudget& request, core::Context& at) {
  return core::create_budget(unit, request, at);
}
inline auto apply(core::Unit& unit, const ReportUsage& request, core::Context& at) {
  return core::report_usage(unit, request, at);
}
inline auto apply(core::Unit& unit, const RecordSpend& request, core::Context& at) {
  return core::record_spend(unit, request, at);
}
inline auto apply(core::Unit& unit, const ReleaseBudget& request, core::Context& at) {
  return core::release_budget(unit, request, at);
}
inline auto apply(core::Unit& unit, const ResetBudget& request, core::Context& at) {
  return core::reset_budget(unit, request, at);
}
inline auto apply(core::Unit& unit, const SetBudgetLimits& request, core::Context& at) {
  return core::set_limits(unit, request, at);
}
inline auto apply(core::Unit& unit, const DeleteBudget& request, core::Context& at) {
  return core::delete_budget(unit, request, at);
}
inline auto apply(core::Unit& unit, const DeleteQuotaPolicy& request, core::Context& at) {
  return core::delete_quota_policy(unit, request, at);
}
inline auto apply(core::Unit& unit, const AttachBudget& request, core::Context& at) {
  return core::attach(unit, request, at);
}
inline auto apply(core::Unit& unit, const DetachBudget& request, core::Context& at) {
  return core::detach(unit, request, at);
}
inline auto apply(core::Unit& unit, const CreateQuotaPolicy& request, core::Context& at) {
  return core::create_quota_policy(unit, request, at);
}
inline auto apply(core::Unit& unit, const CheckAdmission& request, core::Context& at) {
  return core::check_admission(unit, request, at);
}
inline auto apply(core::Unit& unit, const ReleaseAdmission& request, core::Context& at) {
  return core::release_admission(unit, request, at);
}
inline auto apply(core::Unit& unit, const AttachQuotaPolicy& request, core::Context& at) {
  return core::attach(unit, request, at);
}
inline auto apply(core::Unit& unit, const DetachQuotaPolicy& request, core::Context& at) {
  return core::detach(unit, request, at);
}

// Names what a request will need, so that a store across a network fetches it in its first round trip.
inline void want(core::Unit& unit, const CreateExecution& request, const PartitionCounts&) {
  core::want_for(unit, request);
}
inline void want(core::Unit& unit, const ClaimTasks& request, const PartitionCounts&) {
  core::want_for(unit, request);
}
inline void want(core::Unit& unit, const ClaimForWorker& request, const PartitionCounts&) {
  unit.want<Lane>({request.lane_id});
  unit.want_routes(request.lane_id);
}
inline void want(core::Unit& unit, const RegisterWorker& request, const PartitionCounts&) {
  unit.want<Worker>({request.namespace_, request.worker_instance_id});
  for (const auto& lane : request.lanes) unit.want_routes(lane);
}
inline void want(core::Unit& unit, const MarkWorkerDead& request, const PartitionCounts&) {
  unit.want_lock<Worker>({request.namespace_, request.worker_instance_id});
  unit.want<DeadWorker>({request.namespace_, request.worker_instance_id});
}
// An execution that may end, and then its dependents move.
template <class Request>
requires(std::is_same_v<Request, CompleteExecution> || std::is_same_v<Request, FailExecution> ||
         std::is_same_v<Request, CancelExecution>) void want(core::Unit& unit, const Request& request,
                                                             const PartitionCounts&) {
  unit.want<Execution>(request.execution_id);
  core::want_dependents(unit, request.execution_id);
}
inline void want(core::Unit& unit, const SuspendExecution& request, const PartitionCounts&) {
  core::want_for(unit, request);
}
inline void want(core::Unit& unit, const DeliverSignal& request, const PartitionCounts&) {
  core::want_for(unit, request);
}
inline void want(core::Unit& unit, const SeedWaitpointSecret&, const PartitionCounts&) {
  unit.want<Keystore>({});
}
inline FlowKey flow_key(const FlowId& id, const PartitionCounts& partitions) {
  return {partition_of(id.uuid, partitions.flow), id};
}
inline void want(core::Unit& unit, const CreateFlow& request, const PartitionCounts& partitions) {
  unit.want<Flow>(flow_key(*request.flow_id, partitions));
  unit.want<ScopeLimits>({LimitScope::flow, request.flow_id->to_string()});
}
inline void want(core::Unit& unit, const SubmitFlow& request, const PartitionCounts& partitions) {
  core::want_for(unit, request, partitions.flow);
}
inline void want(core::Unit& unit, const AddFlowMember& request, const PartitionCounts& partitions) {
  unit.want_lock<Flow>(flow_key(request.flow_id, partitions));
  unit.want<Execution>(request.execution_id);
}
inline void want_edge(core::Unit& unit, const FlowKey& flow, const EdgeId& edge, const ExecutionId& upstream,
                      const ExecutionId& downstream) {
  unit.want<Execution>(upstream);
  unit.want<Execution>(downstream);
  unit.want<Edge>({flow.partition_key, flow.flow_id, edge});
  unit.want<EdgeGroup>({flow.partition_key, flow.flow_id, downstream.uuid});
}
inline void want(core::Unit& unit, const StageEdge& request, const PartitionCounts& partitions) {
  const auto flow = flow_key(request.flow_id, partitions);
  unit.want_lock<Flow>(flow);
  want_edge(unit, flow, *request.edge_id, request.upstream_execution_id, request.downstream_execution_id);
  unit.want_answer(core::Descendants{request.downstream_execution_id});
}
inline void want(core::Unit& unit, const ApplyEdge& request, const PartitionCounts& partitions) {
  const auto flow = flow_key(request.flow_id, partitions);
  unit.want<Flow>(flow);
  want_edge(unit, flow, request.edge_id, request.upstream_execution_id, request.downstream_execution_id);
}
inline void want(core::Unit& unit, const SetFlowTags& request, const PartitionCounts& partitions) {
  unit.want_lock<Flow>(flow_key(request.flow_id, partitions));
}
inline void want(core::Unit& unit, const CancelFlow& request, const PartitionCounts& partitions) {
  unit.want_lock<Flow>(flow_key(request.flow_id, partitions));
  unit.want_answer(core::MembersOf{request.flow_id});
}
inline void want(core::Unit& unit, const AckCancelMember& request, const PartitionCounts& partitions) {
  unit.want<Flow>(flow_key(request.flow_id, partitions));
  unit.want<CancelBacklog>(flow_key(request.flow_id, partitions));
}
// Whoever spends changes the budget, and what else it needs it may only read once that is locked.
inline BudgetKey budget_key(const BudgetId& id, const PartitionCounts& partitions) {
  return {partition_of(id.uuid, partitions.budget), id};
}
inline QuotaPolicyKey quota_key(const QuotaPolicyId& id, const PartitionCounts& partitions) {
  return {partition_of(id.uuid, partitions.quota), id};
}
inline void want(core::Unit& unit, const AppendFrame& request, const PartitionCounts&) {
  core::want_for(unit, request);
}
template <class Request>
void want(core::Unit& unit, const Request& request, const PartitionCounts& partitions) {
  if constexpr (requires { request.budget_id; }) {
    unit.want_lock<Budget>(budget_key(request.budget_id, partitions));
  } else if constexpr (requires { request.quota_policy_id; }) {
    unit.want<QuotaPolicy>(quota_key(request.quota_policy_id, partitions));
  } else if constexpr (requires { request.execution_id; }) {
    unit.want<Execution>(request.execution_id);
  } else if constexpr (requires { request.lane_id; }) {
    unit.want<Lane>({request.lane_id});
  } else if constexpr (requires { request.worker_instance_id; }) {
    unit.want<Worker>({request.namespace_, request.worker_instance_id});
  }
}

// Puts down that what a request with a new id makes is not there, so that nobody looks for it.
inline void expect_new(core::Unit& unit, const CreateExecution& request, const PartitionCounts&) {
  unit.put<Execution>(*request.execution_id, nullptr);
}
inline void expect_new(core::Unit& unit, const CreateFlow& request, const PartitionCounts& partitions) {
  unit.put<Flow>(flow_key(*request.flow_id, partitions), nullptr);
}
inline void expect_new(core::Unit& unit, const SubmitFlow& request, const PartitionCounts& partitions) {
  core::expect_new(unit, request, partitions.flow);
}
template <class Request>
void expect_new(core::Unit&, const Request&, const PartitionCounts&) {}

// Which operations should share a committer: those on one execution; those that build one flow; and a
// worker's claims, so that those of different workers are spread.
inline std::size_t affinity(const CreateExecution& request) {
  // Of several with the same key, the first is to be the one that counts.
  if (!request.idempotency_key.empty()) return std::hash<std::string>{}(request.idempotency_key);
  return affinity_of(*request.execution_id);
}
inline std::size_t affinity(const ClaimTasks& request) {
  return std::hash<std::string>{}(request.worker_id);
}
inline std::size_t affinity(const CreateFlow& request) {
  return affinity_of(*request.flow_id);
}
inline std::size_t affinity(const SubmitFlow& request) {
  return affinity_of(*request.flow_id);
}
template <class Request>
std::size_t affinity(const Request& request) {
  if constexpr (requires { request.budget_id; })
    return std::hash<BudgetId>{}(request.budget_id);
  else if constexpr (requires { request.quota_policy_id; })
    return std::hash<QuotaPolicyId>{}(request.quota_policy_id);
  else if constexpr (requires { affinity_of(request.flow_id); })
    return affinity_of(request.flow_id);
  else if constexpr (requires { affinity_of(request.execution_id); })
    return affinity_of(request.execution_id);
  else
    return 0;
}

// How much memory a queued request holds, roughly.
inline std::size_t weight(const CreateExecution& request) {
  return sizeof(request) + request.input.size();
}
inline std::size_t weight(const SubmitFlow& request) {
  auto bytes = sizeof(request) + request.edges.size() * sizeof(FlowEdge);
  for (const auto& node : request.nodes) bytes += sizeof(node) + node.execution.input.size();
  return bytes;
}
inline std::size_t weight(const DeliverSignal& request) {
  return sizeof(request) + request.payload.value_or("").size();
}
inline std::size_t weight(const AppendFrame& request) {
  return sizeof(request) + request.payload.size();
}
inline std::size_t weight(const CompleteExecution& request) {
  return sizeof(request) + request.result.size();
}
template <class Request>
std::size_t weight(const Request& request) {
  return sizeof(request);
}

}  // namespace flowfabric::engine
