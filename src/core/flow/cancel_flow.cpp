#include "core/flow/cancel_flow.h"

#include <algorithm>

#include "core/execution/cancel.h"
#include "core/flow/dependency.h"
#include "core/flow/flow.h"
#include "core/operation.h"
#include "core/suspension/suspension.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::uint32_t kMembersPerStep = 500;
constexpr std::uint32_t kSiblingsPerStep = 1024;
constexpr std::size_t kMaxShownMembers = 1000;
constexpr std::int64_t kMaxGraceMs = std::int64_t{1} << 53;  // exclusive
// How long after a look the next one comes, while members of a flow that lets them finish still run.
constexpr std::int64_t kActiveCheckMs = 250;

bool is_cancelled_by(CancellationPolicy policy, LifecyclePhase phase) {
  switch (policy) {
    case CancellationPolicy::cancel_all:
      return phase != LifecyclePhase::terminal;
    case CancellationPolicy::cancel_pending:
    case CancellationPolicy::let_active_finish:
      return phase == LifecyclePhase::submitted || phase == LifecyclePhase::runnable;
    case CancellationPolicy::cancel_unscheduled_only:
      return phase == LifecyclePhase::submitted || phase == LifecyclePhase::runnable ||
             phase == LifecyclePhase::suspended;
    case CancellationPolicy::flow_only:
      return false;
  }
  return false;
}

std::vector<ExecutionId> ids_of(const std::vector<MemberPhase>& members) {
  std::vector<ExecutionId> ids;
  for (const auto& member : members) ids.push_back(member.execution_id);
  return ids;
}

// No member will take it along at the end of its retention.
void remove_empty(Unit& unit, const FlowKey& key) {
  const auto* flow = unit.find<Flow>(key);
  if (flow && flow->node_count == 0) unit.erase<Flow>(key);
  unit.erase<CancelBacklog>(key);
}

// Ends the flow, and writes down who is owed a cancel: how many.
std::size_t begin_cancel(Unit& unit, Flow& flow, FlowState state, const std::string& reason,
                         CancellationPolicy policy, std::int64_t due_ms,
                         const std::vector<MemberPhase>& members, const Context& at) {
  flow.public_flow_state = state;
  flow.cancelled_at_ms = at.now_ms;
  flow.last_mutation_at_ms = at.now_ms;
  flow.cancel_reason = reason;
  flow.cancellation_policy = policy;
  std::size_t owed = 0;
  for (const auto& member : members) {
    if (!is_cancelled_by(policy, member.phase)) continue;
    unit.insert(CancelBacklogMember{{flow.partition_key, flow.flow_id, member.execution_id.uuid}});
    ++owed;
  }
  if (owed > 0) {
    const bool lets_finish = policy == CancellationPolicy::let_active_finish;
    unit.insert(CancelBacklog{.partition_key = flow.partition_key,
                              .flow_id = flow.flow_id,
                              .requested_at_ms = at.now_ms,
                              .reason = reason,
                              .cancellation_policy = policy,
                              .status = lets_finish ? BacklogState::parking : BacklogState::cancelling,
                              .next_due_at_ms = due_ms});
  }
  if (flow.node_count == 0) keep_empty(unit, flow, at);
  unit.append(OperatorEvent{.partition_key = flow.partition_key,
                            .execution_id = flow.flow_id.uuid,
                            .event_type = OperatorEventType::flow_cancel_requested,
                            .details = {{"flow_id", flow.flow_id.to_string()},
                                        {"cancellation_policy", std::string(enum_name(policy))},
                                        {"reason", reason},
                                        {"member_count", std::to_string(members.size())}},
                            .occurred_at_ms = at.now_ms,
                            .namespace_ = flow.namespace_,
                            .instance_tag = instance_tag(flow.tags),
                            .tags = flow.tags,
                            .lane_id = "",
                            .flow_id = flow.flow_id});
  return owed;
}

std::string reason_of(const CancelBacklog& backlog) {
  return backlog.reason.empty() ? "flow_cancelled" : backlog.reason;
}

void park(Unit& unit, Execution& execution, const Context& at) {
  if (execution.state.lifecycle_phase != LifecyclePhase::runnable) return;
  move_to(unit, execution, parked(execution.state), parked_detail(execution), at);
}

struct OwedPage {
  std::vector<ExecutionId> members;
  std::optional<Uuid> next;  // absent: there is no more
};

// The store's answer, with what this batch has added and taken away.
OwedPage owed_cancels(Unit& unit, const FlowKey& key, const std::optional<Uuid>& after) {
  OwedPage page{unit.ask(OwedCancels{key, after, kMembersPerStep}), std::nullopt};
  auto& members = page.members;
  if (members.size() >= kMembersPerStep) page.next = members.back().uuid;
  unit.for_each_dirty<CancelBacklogMember>([&](const Slot<CancelBacklogMember>& slot) {
    const auto& [partition, flow, id] = slot.key;
    if (!slot.changed || slot.stored || flow != key.flow_id) return;
    if ((!after || id > *after) && (!page.next || id < *page.next)) members.push_back({partition, id});
  });
  std::ranges::sort(members);
  std::vector<CancelBacklogMemberKey> rows;
  for (const auto& id : members) rows.push_back({key.partition_key, key.flow_id, id.uuid});
  unit.fetch<Execution, CancelBacklogMember>(members, rows);
  std::erase_if(members, [&](const ExecutionId& id) {
    return !unit.find<CancelBacklogMember>({key.partition_key, key.flow_id, id.uuid});
  });
  return page;
}

bool is_owed(Unit& unit, const FlowKey& key, const ExecutionId& id) {
  return unit.find<CancelBacklogMember>({key.partition_key, key.flow_id, id.uuid}) != nullptr;
}

void settle(Unit& unit, const FlowKey& key, const ExecutionId& id) {
  const CancelBacklogMemberKey row{key.partition_key, key.flow_id, id.uuid};
  if (unit.find<CancelBacklogMember>(row)) unit.erase<CancelBacklogMember>(row);
}

// A member that was cancelled with an earlier one's dependents is not owed any more.
void cancel_one(Unit& unit, const FlowKey& key, const ExecutionId& id, const std::string& reason,
                Context& at) {
  if (!is_owed(unit, key, id)) return;
  const auto* member = unit.find<Execution>(id);
  if (member && member->state.lifecycle_phase != LifecyclePhase::terminal) {
    static_cast<void>(apply(unit, CancelExecution{.execution_id = id, .reason = reason}, at));
  }
  settle(unit, key, id);
}

bool has_active_members(Unit& unit, const FlowKey& key) {
  for (const auto& member : members_of(unit, key)) {
    if (member.phase == LifecyclePhase::active) return true;
  }
  return false;
}

// let_active_finish: members are taken out of the line, a page at a time; then what runs is waited for.
CancelStep park_members(Unit& unit, const FlowKey& key, const Context& at) {
  const auto backlog = unit.require<CancelBacklog>(key);
  if (backlog.status == BacklogState::waiting_for_active) {
    const bool active = has_active_members(unit, key);
    auto& waiting = unit.edit<CancelBacklog>(key);
    if (!active) waiting.status = BacklogState::cancelling;
    waiting.next_due_at_ms = active ? at.now_ms + kActiveCheckMs : at.now_ms;
    return {.finished = false, .waits_for_active = active};
  }
  const auto page = owed_cancels(unit, key, backlog.parked_up_to);
  for (const auto& id : page.members) {
    if (unit.find<Execution>(id)) park(unit, unit.edit<Execution>(id), at);
  }
  auto& parking = unit.edit<CancelBacklog>(key);
  if (page.next)
    parking.parked_up_to = page.next;
  else
    parking.status = BacklogState::waiting_for_active;
  parking.next_due_at_ms = at.now_ms;
  return {};
}

}  // namespace

void keep_empty(Unit& unit, const Flow& flow, const Context& at) {
  std::optional<std::int64_t> until;
  if (at.retention_ms > 0) {
    until =
        saturating_add(flow.cancelled_at_ms.value_or(at.now_ms), static_cast<std::uint64_t>(at.retention_ms));
  }
  unit.insert(CancelBacklog{.partition_key = flow.partition_key,
                            .flow_id = flow.flow_id,
                            .requested_at_ms = flow.cancelled_at_ms.value_or(at.now_ms),
                            .reason = flow.cancel_reason,
                            .cancellation_policy = flow.cancellation_policy.value_or(CancellationPolicy{}),
                            .status = BacklogState::kept,
                            .next_due_at_ms = until});
}

std::vector<MemberPhase> members_of(Unit& unit, const FlowKey& flow) {
  std::map<ExecutionId, LifecyclePhase> phases;
  for (const auto& member : unit.ask(MembersOf{flow.flow_id})) phases[member.execution_id] = member.phase;
  unit.for_each_dirty<Execution>([&](const Slot<Execution>& slot) {
    if (slot.changed && slot.changed->flow_id == flow.flow_id)
      phases[slot.key] = slot.changed->state.lifecycle_phase;
    else
      phases.erase(slot.key);
  });
  std::vector<MemberPhase> members;
  for (const auto& [id, phase] : phases) members.push_back({id, phase});
  return members;
}

Result<FlowCancellation> apply(Unit& unit, const CancelFlow& request, Context& at) {
  if (auto ok = check_text("reason", request.reason, kAnyLength); !ok) return std::unexpected(ok.error());
  if (request.grace_ms < 0 || request.grace_ms >= kMaxGraceMs) {
    return fail_with(ErrorCode::invalid_grace_ms, std::to_string(request.grace_ms),
                     "Give a number of milliseconds from 0 to 2^53-1.");
  }
  if (request.wait_ms < 0) {
    return fail_with(ErrorCode::invalid_input, "wait_ms: negative", "Give a number of milliseconds.");
  }
  const auto key = flow_key(request.flow_id, at.partitions);
  const auto* known = unit.find<Flow>(key);
  if (!known) return std::unexpected(no_such_flow(request.flow_id));
  FlowCancellation answer{.outcome = CancelOutcome::cancelled,
                          .cancellation_policy = request.cancellation_policy,
                          .member_execution_ids = {},
                          .failed_member_execution_ids = {},
                          .already_terminal = known->public_flow_state != FlowState::open};
  if (answer.already_terminal) {
    answer.cancellation_policy = known->cancellation_policy.value_or(request.cancellation_policy);
    answer.member_execution_ids = ids_of(members_of(unit, key));
    if (answer.member_execution_ids.size() > kMaxShownMembers) {
      answer.member_execution_ids.resize(kMaxShownMembers);
    }
    return answer;
  }
  // Locked before its members are looked at.
  auto& flow = unit.edit<Flow>(key);
  const auto members = members_of(unit, key);
  answer.member_execution_ids = ids_of(members);
  const auto due =
      request.wait ? saturating_add(at.now_ms, static_cast<std::uint64_t>(request.grace_ms)) : at.now_ms;
  const auto owed =
      begin_cancel(unit, flow, FlowState::cancelled, truncate_utf8(request.reason, kMaxTextBytes),
                   request.cancellation_policy, due, members, at);
  if (owed > 0) answer.outcome = CancelOutcome::scheduled;
  return answer;
}

Result<CancelAcknowledged> apply(Unit& unit, const AckCancelMember& request, Context& at) {
  const auto key = flow_key(request.flow_id, at.partitions);
  if (!unit.find<Flow>(key)) return std::unexpected(no_such_flow(request.flow_id));
  if (!unit.find<CancelBacklog>(key)) return CancelAcknowledged{};
  settle(unit, key, request.execution_id);
  const bool is_kept = unit.require<CancelBacklog>(key).status == BacklogState::kept;
  const auto left = owed_cancels(unit, key, std::nullopt);
  if (!is_kept && left.members.empty() && !left.next) unit.erase<CancelBacklog>(key);
  return CancelAcknowledged{};
}

void fail_fast(Unit& unit, const Execution& failed, const Context& at) {
  const FlowKey key{failed.partition_key, *failed.flow_id};
  const auto* known = unit.find<Flow>(key);
  if (!known || known->failure_policy != FailurePolicy::fail_fast) return;
  if (known->public_flow_state != FlowState::open) return;
  auto& flow = unit.edit<Flow>(key);
  begin_cancel(
      unit, flow, FlowState::failed,
      "fail_fast: " + failed.key().to_string() + " " + std::string(enum_name(failed.state.public_state)),
      CancellationPolicy::cancel_all, at.now_ms, members_of(unit, key), at);
}

OwedCancel owed_to(Unit& unit, const Execution& execution) {
  if (!execution.flow_id) return OwedCancel::none;
  const FlowKey key{execution.partition_key, *execution.flow_id};
  const auto* flow = unit.find<Flow>(key);
  if (!flow || flow->public_flow_state == FlowState::open) return OwedCancel::none;
  if (!is_owed(unit, key, execution.key())) return OwedCancel::none;
  const auto status = unit.require<CancelBacklog>(key).status;
  return status == BacklogState::cancelling ? OwedCancel::cancelled : OwedCancel::parked;
}

StateVector parked(const StateVector& state) {
  return vectors::blocked(BlockingReason::paused_by_flow_cancel, state.attempt_state);
}

std::string parked_detail(const Execution& execution) {
  return "flow " + execution.flow_id->to_string() + " cancellation: let_active_finish";
}

OwedCancel cancel_if_owed(Unit& unit, Execution& execution, const Context& at) {
  const auto owed = owed_to(unit, execution);
  if (owed == OwedCancel::parked) park(unit, execution, at);
  if (owed == OwedCancel::cancelled) {
    const FlowKey key{execution.partition_key, *execution.flow_id};
    stop(unit, execution, reason_of(unit.require<CancelBacklog>(key)), kOperatorOverride, at);
    settle(unit, key, execution.key());
  }
  return owed;
}

void cancel_member(Unit& unit, const FlowKey& key, const ExecutionId& id, Context& at) {
  const auto* backlog = unit.find<CancelBacklog>(key);
  if (backlog) cancel_one(unit, key, id, reason_of(*backlog), at);
}

void give_up_member(Unit& unit, const FlowKey& key, const ExecutionId& id) {
  settle(unit, key, id);
}

OwedCancels next_page(const FlowKey& key) {
  return {key, std::nullopt, kMembersPerStep};
}

CancelStep cancel_members(Unit& unit, const FlowKey& key, Context& at) {
  const auto* found = unit.find<CancelBacklog>(key);
  if (!found) return {.finished = true, .waits_for_active = false};
  if (found->status != BacklogState::cancelling) return park_members(unit, key, at);
  const auto reason = reason_of(*found);
  const auto owed = owed_cancels(unit, key, std::nullopt);
  fetch_dependents(unit, owed.members);
  fetch_suspensions(unit, owed.members);
  for (const auto& id : owed.members) cancel_one(unit, key, id, reason, at);
  if (owed.next) {
    unit.edit<CancelBacklog>(key).next_due_at_ms = at.now_ms;
    return {};
  }
  unit.erase<CancelBacklog>(key);
  return {.finished = true, .waits_for_active = false};
}

Rule run_cancel_backlog_clock(Unit& unit, const FlowKey& key, Context& at) {
  const auto* backlog = unit.find<CancelBacklog>(key);
  if (!backlog || !backlog->next_due_at_ms || *backlog->next_due_at_ms > at.now_ms) return Rule::none;
  if (backlog->status == BacklogState::kept) {
    remove_empty(unit, key);
    return Rule::retention_trimmer;
  }
  cancel_members(unit, key, at);
  return Rule::cancel_reconciler;
}

namespace {

// How many were cancelled. Those that had ended before the join was decided are nobody's business here.
std::size_t cancel_siblings(Unit& unit, const std::vector<ExecutionId>& siblings,
                            const PendingCancelGroup& entry, Context& at) {
  std::size_t cancelled = 0;
  const auto note = [&](const char* disposition) {
    unit.note(Noted::sibling_dispatched, entry.reason);
    unit.note(Noted::sibling_disposition, disposition);
  };
  for (const auto& id : siblings) {
    const auto* sibling = unit.find<Execution>(id);
    if (!sibling) {
      note("not_found");
    } else if (sibling->state.lifecycle_phase == LifecyclePhase::terminal) {
      if (sibling->terminal_at_ms.value_or(0) > entry.enqueued_at_ms) note("already_terminal");
    } else {
      note("cancelled");
      ++cancelled;
      static_cast<void>(apply(unit, CancelExecution{.execution_id = id, .reason = entry.reason}, at));
    }
  }
  return cancelled;
}

bool have_ended(Unit& unit, const std::vector<ExecutionId>& siblings) {
  return std::ranges::all_of(siblings, [&](const ExecutionId& id) {
    const auto* sibling = unit.find<Execution>(id);
    return !sibling || sibling->state.lifecycle_phase == LifecyclePhase::terminal;
  });
}

// Nothing is owed to its siblings any more.
void drain(Unit& unit, const EdgeGroupKey& key) {
  unit.erase<PendingCancelGroup>(key);
  unit.edit<EdgeGroup>(key).cancel_siblings_pending_flag = false;
}

}  // namespace

Rule run_sibling_cancel_clock(Unit& unit, const EdgeGroupKey& key, Context& at) {
  const auto* found = unit.find<PendingCancelGroup>(key);
  if (!found) {
    unit.note(Noted::sibling_reconciliation, "no_op");
    return Rule::edge_cancel_skipped_locked;  // another server was faster
  }
  const auto entry = *found;
  const EdgesInto siblings{{key.partition_key, key.downstream_eid}, entry.after_edge_id, kSiblingsPerStep};
  const auto page = unit.ask(siblings);
  unit.fetch<Edge>(page);
  // Siblings are locked before the downstream, whose lock guards the join, as by whoever completes one.
  std::vector<ExecutionId> upstreams;
  for (const auto& edge_key : page) {
    const auto* edge = unit.find<Edge>(edge_key);
    if (edge && edge->edge_state == EdgeState::applied) upstreams.push_back(edge->upstream());
  }
  unit.fetch<Execution>(upstreams);
  fetch_dependents(unit, upstreams);
  fetch_suspensions(unit, upstreams);
  unit.find<Execution>(siblings.downstream);
  const auto* group = unit.find<EdgeGroup>(key);
  const bool may_reconcile = !at.off.has(Rule::edge_cancel_reconciler);
  if (!group || !group->cancel_siblings_pending_flag) {
    // One that is gone is anybody's to forget.
    if (group && !may_reconcile) return Rule::none;
    unit.erase<PendingCancelGroup>(key);
    unit.note(Noted::sibling_reconciliation, "sremmed_stale");
    return group ? Rule::edge_cancel_reconciler : Rule::edge_cancel_orphaned;
  }
  if (at.off.has(Rule::edge_cancel_dispatcher)) {
    const bool is_last = page.size() < kSiblingsPerStep;
    if (!may_reconcile || !is_last || !have_ended(unit, upstreams)) return Rule::none;
    drain(unit, key);
    unit.note(Noted::sibling_reconciliation, "completed_drain");
    return Rule::edge_cancel_reconciler;
  }
  const auto cancelled = cancel_siblings(unit, upstreams, entry, at);
  if (page.size() == kSiblingsPerStep) {
    auto& rest = unit.edit<PendingCancelGroup>(key);
    rest.after_edge_id = page.back().edge_id;
    rest.next_due_at_ms = at.now_ms;
    return Rule::edge_cancel_dispatcher;
  }
  if (cancelled == 0) unit.note(Noted::sibling_reconciliation, "completed_drain");
  drain(unit, key);
  return Rule::edge_cancel_dispatcher;
}

namespace {

void want(Unit& unit, const CancelFlow& request, const PartitionCounts& partitions) {
  unit.want_lock<Flow>(flow_key(request.flow_id, partitions));
  unit.want_answer(MembersOf{request.flow_id});
}

void want(Unit& unit, const AckCancelMember& request, const PartitionCounts& partitions) {
  unit.want<Flow>(flow_key(request.flow_id, partitions));
  unit.want<CancelBacklog>(flow_key(request.flow_id, partitions));
}

}  // namespace

FLOWFABRIC_OPERATION(CancelFlow, .want = want)
FLOWFABRIC_OPERATION(AckCancelMember, .want = want)

}  // namespace flowfabric::core
