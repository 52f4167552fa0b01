#include "core/flow/dependency.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/flow/cancel_flow.h"
#include "core/flow/flow.h"
#include "core/flow/join.h"
#include "core/operation.h"
#include "core/transition.h"

namespace flowfabric::core {

namespace {

// Hops that one operation goes along the edges; the rest goes on by the clock.
constexpr int kHopsPerStep = 12;
constexpr std::uint32_t kAllEdges = std::numeric_limits<std::int32_t>::max();

// Whoever adds an edge counts it on the flow.
bool may_have_new_edges(Unit& unit, const ExecutionId& member) {
  const auto* execution = unit.find<Execution>(member);
  return execution && execution->flow_id &&
         unit.is_changed<Flow>({execution->partition_key, *execution->flow_id});
}

// The store's answer, and what this batch has added.
template <class Question, class Matches>
std::vector<EdgeKey> edges_of(Unit& unit, const Question& question, const ExecutionId& member,
                              Matches matches) {
  auto keys = unit.ask(question);
  if (may_have_new_edges(unit, member)) {
    // What comes behind a full page belongs to the next one.
    const auto last = keys.size() >= question.limit ? std::optional(keys.back().edge_id) : std::nullopt;
    unit.for_each_dirty<Edge>([&](const Slot<Edge>& slot) {
      if (!slot.changed || slot.stored || !matches(*slot.changed)) return;
      const auto& id = slot.key.edge_id;
      if ((!question.after || id > *question.after) && (!last || id < *last)) keys.push_back(slot.key);
    });
  }
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  unit.fetch<Edge>(keys);
  // What this batch has removed.
  std::erase_if(keys, [&](const EdgeKey& key) { return unit.find<Edge>(key) == nullptr; });
  return keys;
}

std::vector<EdgeKey> edges_from(Unit& unit, const EdgesFrom& question) {
  return edges_of(unit, question, question.upstream,
                  [&](const Edge& edge) { return edge.upstream() == question.upstream; });
}

// One that has ended, or is about to, and its edges that are to be resolved.
struct Ended {
  EdgesFrom asked;
  std::vector<EdgeKey> edges;
};

// Without those that nobody waits for.
std::vector<Ended> with_edges(Unit& unit, const std::vector<EdgesFrom>& all) {
  unit.fetch_answers(all);
  std::vector<Ended> found;
  for (const auto& asked : all) {
    auto edges = edges_from(unit, asked);
    if (!edges.empty()) found.push_back({asked, std::move(edges)});
  }
  return found;
}

// Everything that resolving their edges needs.
void fetch_downstreams(Unit& unit, const std::vector<Ended>& all) {
  std::vector<ExecutionId> downstreams;
  std::vector<EdgeGroupKey> groups;
  std::vector<ExecutionId> receivers;
  std::vector<CancelBacklogMemberKey> owed;
  bool may_skip = false;
  for (const auto& ended : all) {
    const auto outcome = unit.require<Execution>(ended.asked.upstream).state.terminal_outcome;
    may_skip = may_skip || outcome != TerminalOutcome::success;
    for (const auto& key : ended.edges) {
      const auto& edge = unit.require<Edge>(key);
      downstreams.push_back(edge.downstream());
      if (!edge.data_passing_ref.empty()) receivers.push_back(edge.downstream());
      groups.push_back({key.partition_key, key.flow_id, edge.downstream_eid});
      owed.push_back({key.partition_key, key.flow_id, edge.downstream_eid});
    }
  }
  unit.fetch<Execution, EdgeGroup>(downstreams, groups);
  unit.fetch<ExecutionSpec>(receivers);
  if (owed.empty() || !may_skip) return;
  // In a flow that was cancelled, those that would be skipped may be owed a cancel.
  const auto* flow = unit.find<Flow>({owed[0].partition_key, owed[0].flow_id});
  if (flow && flow->public_flow_state != FlowState::open) unit.fetch<CancelBacklogMember>(owed);
}

// Resolves edges one by one, and with them the edges of what that skips.
class Resolution {
 public:
  Resolution(Unit& unit, const Context& at) : unit_(unit), at_(at) {}

  void dependents_of(const ExecutionId& ended, std::optional<EdgeId> after) {
    ended_.push_back({ended, after, kEdgesPerStep});
  }

  // Hop by hop, so that a store across a network is asked once per hop.
  void run() {
    for (int hop = 0; !ended_.empty(); ++hop) {
      const auto now = with_edges(unit_, std::exchange(ended_, {}));
      const bool goes_on = hop < kHopsPerStep && budget_ > 0;
      if (goes_on)
        fetch_downstreams(unit_, now);
      else
        fetch_written(now);
      for (const auto& ended : now) {
        if (goes_on && budget_ > 0)
          resolve_some(ended);
        else
          write_down(ended.asked.upstream, ended.asked.after);
      }
    }
  }

  void resolve(const EdgeKey& key, TerminalOutcome outcome) {
    const auto& found = unit_.require<Edge>(key);
    if (found.edge_state != EdgeState::applied || found.dependency_state != DependencyState::unsatisfied)
      return;
    const bool success = outcome == TerminalOutcome::success;
    auto& edge = unit_.edit<Edge>(key);
    edge.dependency_state = success ? DependencyState::satisfied : DependencyState::impossible;
    edge.resolved_at_ms = at_.now_ms;
    const EdgeGroupKey group_key{key.partition_key, key.flow_id, edge.downstream_eid};
    unit_.require<EdgeGroup>(group_key);
    auto& group = unit_.edit<EdgeGroup>(group_key);
    if (success)
      ++group.success_count;
    else if (outcome == TerminalOutcome::skipped)
      ++group.skip_count;
    else
      ++group.fail_count;
    if (group.group_state != GroupState::pending) return;
    const auto decision = decide(policy_of(group), counts_of(group));
    const bool passes = success && !edge.data_passing_ref.empty() &&
                        (group.policy_kind == JoinKind::all_of || decision == GroupState::satisfied);
    if (passes) pass_result(edge);
    if (decision != GroupState::pending) settle(group, decision);
  }

  void ended_upstreams_of(const ExecutionId& downstream) {
    for (const auto& key : edges_into(unit_, downstream)) {
      const auto* upstream = unit_.find<Execution>(unit_.require<Edge>(key).upstream());
      if (upstream && upstream->state.lifecycle_phase == LifecyclePhase::terminal) {
        resolve(key, upstream->state.terminal_outcome);
      }
    }
  }

  void settle_if_decided(EdgeGroup& group) {
    if (group.group_state != GroupState::pending) return;
    const auto decision = decide(policy_of(group), counts_of(group));
    if (decision != GroupState::pending) settle(group, decision);
  }

  // The join is decided, once and for all.
  void settle(EdgeGroup& group, GroupState decision) {
    group.group_state = decision;
    if (decision == GroupState::satisfied) group.satisfied_at_ms = at_.now_ms;
    if (group.policy_kind != JoinKind::all_of && group.on_satisfied == OnSatisfied::cancel_remaining) {
      enqueue_siblings(group, decision);
    }
    const auto id = group.downstream();
    if (!unit_.find<Execution>(id)) return;  // removed by retention
    auto& execution = unit_.edit<Execution>(id);
    execution.dependencies_pending = false;
    if (execution.state.lifecycle_phase == LifecyclePhase::terminal) return;
    if (decision == GroupState::satisfied)
      let_go(execution);
    else
      skip(execution);
  }

 private:
  void resolve_some(const Ended& ended) {
    const auto count = std::min<std::size_t>(ended.edges.size(), budget_);
    budget_ -= static_cast<std::uint32_t>(count);
    const auto outcome = unit_.require<Execution>(ended.asked.upstream).state.terminal_outcome;
    for (std::size_t i = 0; i < count; ++i) resolve(ended.edges[i], outcome);
    const bool more = count < ended.edges.size() || count >= ended.asked.limit;
    if (more) write_down(ended.asked.upstream, ended.edges[count - 1].edge_id);
  }

  void fetch_written(const std::vector<Ended>& all) {
    std::vector<DependencyDispatchKey> keys;
    for (const auto& [asked, edges] : all) keys.push_back({asked.upstream.partition, asked.upstream.uuid});
    unit_.fetch<DependencyDispatch>(keys);
  }

  void write_down(const ExecutionId& ended, const std::optional<EdgeId>& after) {
    const DependencyDispatchKey key{ended.partition, ended.uuid};
    if (unit_.find<DependencyDispatch>(key)) {
      auto& dispatch = unit_.edit<DependencyDispatch>(key);
      dispatch.after_edge_id = after;
      dispatch.next_due_at_ms = at_.now_ms;
    } else {
      unit_.insert(DependencyDispatch{key.partition_key, key.execution_id, after, at_.now_ms});
    }
  }

  void pass_result(const Edge& edge) {
    const auto& upstream = unit_.require<Execution>(edge.upstream());
    const auto* downstream = unit_.find<Execution>(edge.downstream());
    if (!downstream || downstream->state.lifecycle_phase == LifecyclePhase::terminal) return;
    const auto* attempt =
        unit_.find<Attempt>({edge.partition_key, edge.upstream_eid, upstream.attempt.attempt_index});
    if (!attempt || attempt->result.data.empty()) return;
    unit_.require<ExecutionSpec>(edge.downstream());
    unit_.edit<ExecutionSpec>(edge.downstream()).payload = attempt->result;
    // Stores may keep what was submitted as long as the execution stays the same: it does not.
    auto& receiver = unit_.edit<Execution>(edge.downstream());
    receiver.last_mutation_at_ms = std::max(at_.now_ms, receiver.last_mutation_at_ms + 1);
  }

  void enqueue_siblings(EdgeGroup& group, GroupState decision) {
    group.cancel_siblings_pending_flag = true;
    group.cancel_siblings_reason =
        decision == GroupState::satisfied ? kSiblingQuorumSatisfied : kSiblingQuorumImpossible;
    const PendingCancelGroup entry{.partition_key = group.partition_key,
                                   .flow_id = group.flow_id,
                                   .downstream_eid = group.downstream_eid,
                                   .reason = group.cancel_siblings_reason,
                                   .enqueued_at_ms = at_.now_ms,
                                   .next_due_at_ms = at_.now_ms};
    if (unit_.find<PendingCancelGroup>(entry.key()))
      unit_.edit<PendingCancelGroup>(entry.key()) = entry;
    else
      unit_.insert(entry);
  }

  void let_go(Execution& execution) {
    if (execution.state.eligibility_state == EligibilityState::blocked_by_dependencies) {
      back_in_line(unit_, execution, at_);
    } else {
      renew_offer(execution, at_);  // a lost one may be taken over now
    }
  }

  void skip(Execution& execution) {
    // What its flow has cancelled is not skipped; what waits for its cancel has not ended yet.
    const auto owed = cancel_if_owed(unit_, execution, at_);
    if (owed == OwedCancel::parked) return;
    if (owed == OwedCancel::none) {
      stop_attempt(unit_, execution, kDependencyImpossible, LeaseEnd::other, kDependencyImpossible, at_);
      execution.failure_reason = kDependencyImpossible;
      end_execution(unit_, execution, TerminalOutcome::skipped, at_);
    }
    dependents_of(execution.key(), std::nullopt);
  }

  Unit& unit_;
  const Context& at_;
  std::uint32_t budget_{kEdgesPerStep};
  std::vector<EdgesFrom> ended_;
};

}  // namespace

std::vector<EdgeKey> edges_from(Unit& unit, const ExecutionId& upstream) {
  return edges_from(unit, EdgesFrom{upstream, std::nullopt, kAllEdges});
}

std::vector<EdgeKey> edges_into(Unit& unit, const ExecutionId& downstream) {
  return edges_of(unit, EdgesInto{downstream, std::nullopt, kAllEdges}, downstream,
                  [&](const Edge& edge) { return edge.downstream() == downstream; });
}

Result<void> check_open(const EdgeGroup& group, const Execution& downstream) {
  const bool open = group.group_state == GroupState::pending ||
                    (group.group_state == GroupState::satisfied && group.policy_kind == JoinKind::all_of);
  if (open && downstream.state.lifecycle_phase != LifecyclePhase::terminal) return {};
  return fail_with(ErrorCode::group_already_terminal, std::string(enum_name(group.group_state)),
                   "The downstream has ended, or its join is decided already; it takes no more edges.");
}

void follow_end_of_member(Unit& unit, const Execution& ended, const Context& at) {
  const auto outcome = ended.state.terminal_outcome;
  if (outcome == TerminalOutcome::failed || outcome == TerminalOutcome::expired) fail_fast(unit, ended, at);
  resolve_dependents(unit, ended.key(), at);
}

void resolve_dependents(Unit& unit, const ExecutionId& ended, const Context& at) {
  Resolution resolution(unit, at);
  resolution.dependents_of(ended, std::nullopt);
  resolution.run();
}

void want_edge(Unit& unit, const EdgeKey& edge, const ExecutionId& upstream, const ExecutionId& downstream) {
  unit.want<Execution>(upstream);
  unit.want<Execution>(downstream);
  unit.want<Edge>(edge);
  unit.want<EdgeGroup>({edge.partition_key, edge.flow_id, downstream.uuid});
}

void fetch_dependents(Unit& unit, const std::vector<ExecutionId>& ending) {
  std::vector<EdgesFrom> questions;
  for (const auto& id : ending) questions.push_back({id, std::nullopt, kEdgesPerStep});
  fetch_downstreams(unit, with_edges(unit, questions));
}

Rule run_dependency_clock(Unit& unit, const DependencyDispatchKey& key, Context& at) {
  const ExecutionId id{key.partition_key, key.execution_id};
  const auto* execution = unit.find<Execution>(id);
  const auto* dispatch = unit.find<DependencyDispatch>(key);
  if (!dispatch) return Rule::none;
  const auto after = dispatch->after_edge_id;
  unit.erase<DependencyDispatch>(key);
  // Replayed since: its next end counts.
  if (!execution || execution->state.lifecycle_phase != LifecyclePhase::terminal) return Rule::none;
  Resolution resolution(unit, at);
  resolution.dependents_of(id, after);
  resolution.run();
  return Rule::dependency_reconciler;
}

void block_on_dependencies(Unit& unit, Execution& execution, const EdgeGroup& group, const EdgeId& latest,
                           const Context& at) {
  execution.dependencies_pending = true;
  // What an operator holds, or a cancel of the flow has parked, stays so; it waits when it is released.
  const bool is_held = execution.state.eligibility_state == EligibilityState::blocked_by_operator;
  if (execution.state.lifecycle_phase != LifecyclePhase::runnable || is_held) {
    renew_offer(execution, at);  // a lost one is not offered while it waits
    return;
  }
  move_to(unit, execution,
          vectors::blocked(BlockingReason::waiting_for_children, execution.state.attempt_state),
          std::to_string(running_count(group)) + " dep(s) unresolved incl " + latest.to_string(), at);
}

Result<EdgeApplied> apply(Unit& unit, const ApplyEdge& request, Context& at) {
  const auto flow = flow_key(request.flow_id, at.partitions);
  if (!unit.find<Flow>(flow)) return std::unexpected(no_such_flow(request.flow_id));
  const auto* upstream = unit.find<Execution>(request.upstream_execution_id);
  const auto* downstream = unit.find<Execution>(request.downstream_execution_id);
  const EdgeKey key{flow.partition_key, request.flow_id, request.edge_id};
  const auto* staged = unit.find<Edge>(key);
  if (!staged) {
    return fail_with(ErrorCode::edge_not_found, request.edge_id.to_string(),
                     "No such edge was staged in this flow: stage it first.");
  }
  if (staged->upstream() != request.upstream_execution_id ||
      staged->downstream() != request.downstream_execution_id) {
    return fail_with(ErrorCode::invalid_dependency, request.edge_id.to_string(),
                     "The edge was staged between other executions.");
  }
  if (!downstream) return std::unexpected(not_found(request.downstream_execution_id));
  if (!upstream) return std::unexpected(not_found(request.upstream_execution_id));
  const EdgeGroupKey group_key{key.partition_key, key.flow_id, staged->downstream_eid};
  const auto& known = unit.require<EdgeGroup>(group_key);
  if (staged->edge_state == EdgeState::applied) {
    return EdgeApplied{.already_applied = true, .unsatisfied_count = running_count(known)};
  }
  if (auto ok = check_open(known, *downstream); !ok) return std::unexpected(ok.error());

  auto& edge = unit.edit<Edge>(key);
  edge.edge_state = EdgeState::applied;
  edge.applied_at_ms = at.now_ms;
  auto& group = unit.edit<EdgeGroup>(group_key);
  ++group.edge_count;
  group.group_state = GroupState::pending;
  group.satisfied_at_ms.reset();
  block_on_dependencies(unit, unit.edit<Execution>(request.downstream_execution_id), group, request.edge_id,
                        at);
  Resolution resolution(unit, at);
  if (upstream->state.lifecycle_phase == LifecyclePhase::terminal) {
    resolution.resolve(key, upstream->state.terminal_outcome);
  }
  // A quorum may have waited for edges only to find that it cannot be reached.
  resolution.settle_if_decided(group);
  resolution.run();
  return EdgeApplied{.already_applied = false, .unsatisfied_count = running_count(group)};
}

void reopen_join(Unit& unit, Execution& execution) {
  const auto id = execution.key();
  const EdgeGroupKey group_key{id.partition, *execution.flow_id, id.uuid};
  if (!unit.find<EdgeGroup>(group_key)) return;
  const auto keys = edges_into(unit, id);
  // Their locks come before what their edges say.
  std::vector<ExecutionId> upstreams;
  for (const auto& key : keys) upstreams.push_back(unit.require<Edge>(key).upstream());
  unit.fetch<Execution>(upstreams);

  auto& group = unit.edit<EdgeGroup>(group_key);
  group.edge_count = group.success_count = group.fail_count = group.skip_count = 0;
  group.group_state = GroupState::pending;
  group.satisfied_at_ms.reset();
  group.cancel_siblings_pending_flag = false;
  group.cancel_siblings_reason.clear();
  if (unit.find<PendingCancelGroup>(group_key)) unit.erase<PendingCancelGroup>(group_key);
  for (const auto& key : keys) {
    const auto& edge = unit.require<Edge>(key);
    if (edge.edge_state != EdgeState::applied) continue;
    ++group.edge_count;
    if (edge.dependency_state == DependencyState::satisfied) ++group.success_count;
    if (edge.dependency_state != DependencyState::impossible) continue;
    auto& reset = unit.edit<Edge>(key);
    reset.dependency_state = DependencyState::unsatisfied;
    reset.resolved_at_ms.reset();
  }
  execution.dependencies_pending = true;
  execution.blocking_detail = std::to_string(running_count(group)) + " dep(s) unsatisfied after replay";
}

void resolve_again(Unit& unit, const ExecutionId& id, const Context& at) {
  const auto& execution = unit.require<Execution>(id);
  const EdgeGroupKey group_key{id.partition, *execution.flow_id, id.uuid};
  Resolution resolution(unit, at);
  resolution.ended_upstreams_of(id);
  // Upstreams that retention has removed are not waited for.
  const auto& group = unit.require<EdgeGroup>(group_key);
  if (group.group_state == GroupState::pending && running_count(group) == 0) {
    resolution.settle(unit.edit<EdgeGroup>(group_key), GroupState::satisfied);
  }
  resolution.run();
}

void repair_join(Unit& unit, const FlowKey& flow, const ExecutionId& member, const Context& at) {
  const EdgeGroupKey group_key{flow.partition_key, flow.flow_id, member.uuid};
  // Its lock comes before its join.
  if (!unit.find<Execution>(member) || !unit.find<EdgeGroup>(group_key)) return;
  JoinCounts counted;
  for (const auto& key : edges_into(unit, member)) count_in(counted, unit.require<Edge>(key));
  auto& group = unit.edit<EdgeGroup>(group_key);
  group.edge_count = std::max(group.edge_count, counted.edges);
  group.success_count = std::max(group.success_count, counted.succeeded);
  if (!covers(group, counted)) group.fail_count = counted.failed - group.skip_count;
  Resolution resolution(unit, at);
  resolution.ended_upstreams_of(member);
  resolution.settle_if_decided(group);
  unit.edit<Execution>(member).dependencies_pending = is_undecided(group);
  resolution.run();
}

Result<EligibilityChange> apply(Unit& unit, const PromoteBlocked& request, Context& at) {
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  const auto& state = found->state;
  if (state.lifecycle_phase == LifecyclePhase::terminal) {
    return fail_with(ErrorCode::terminal, "", "The execution has already ended.");
  }
  if (state.lifecycle_phase != LifecyclePhase::runnable) {
    return fail_with(ErrorCode::not_runnable, std::string(enum_name(state.lifecycle_phase)),
                     "Only an execution that waits can be promoted.");
  }
  if (state.eligibility_state != EligibilityState::blocked_by_dependencies) {
    return fail_with(ErrorCode::not_blocked_by_deps, std::string(enum_name(state.eligibility_state)),
                     "The execution does not wait for others.");
  }
  const auto* group =
      unit.find<EdgeGroup>({found->partition_key, *found->flow_id, request.execution_id.uuid});
  if (group && group->group_state == GroupState::pending) {
    const auto needed = group->policy_kind == JoinKind::all_of   ? group->edge_count
                        : group->policy_kind == JoinKind::any_of ? 1
                                                                 : group->k_target;
    return fail_with(
        ErrorCode::deps_not_satisfied,
        std::to_string(needed - group->success_count) + "," + std::to_string(running_count(*group)),
        "Its join is undecided: upstreams are still running, or more edges are needed.");
  }
  auto& execution = unit.edit<Execution>(request.execution_id);
  execution.dependencies_pending = false;
  back_in_line(unit, execution, at);
  return EligibilityChange{request.execution_id, execution.state.public_state};
}

namespace {

void want(Unit& unit, const ApplyEdge& request, const PartitionCounts& partitions) {
  const auto flow = flow_key(request.flow_id, partitions);
  unit.want<Flow>(flow);
  want_edge(unit, {flow.partition_key, flow.flow_id, request.edge_id}, request.upstream_execution_id,
            request.downstream_execution_id);
}

}  // namespace

FLOWFABRIC_OPERATION(ApplyEdge, .want = want)
FLOWFABRIC_OPERATION(PromoteBlocked)

}  // namespace flowfabric::core
