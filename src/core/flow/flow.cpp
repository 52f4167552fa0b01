#include "core/flow/flow.h"

#include <set>

#include "core/execution/lease.h"
#include "core/execution/tags.h"
#include "core/flow/dependency.h"
#include "core/flow/join.h"
#include "core/limits/admission.h"
#include "core/limits/attachment.h"
#include "core/operation.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

void note_change(Flow& flow, const Context& at) {
  ++flow.graph_revision;
  flow.last_mutation_at_ms = at.now_ms;
}

Result<void> check_partition(const ExecutionId& id, const FlowKey& flow) {
  if (id.partition == flow.partition_key) return {};
  return fail_with(
      ErrorCode::invalid_input,
      "partition_mismatch: expected " + std::to_string(flow.partition_key) + ", got " +
          std::to_string(id.partition),
      "Members live in their flow's partition: create the execution with an id made for the flow.");
}

// Over any number of edges, those of this batch included.
bool leads_to(Unit& unit, const ExecutionId& from, const ExecutionId& to) {
  std::set<ExecutionId> reached;
  const auto reach = [&](const ExecutionId& id) {
    if (!reached.insert(id).second) return;
    const auto& known = unit.ask(Descendants{id});
    reached.insert(known.begin(), known.end());
  };
  reach(from);
  for (bool grew = true; grew && !reached.contains(to);) {
    const auto before = reached.size();
    std::vector<ExecutionId> next;
    unit.for_each_dirty<Edge>([&](const Slot<Edge>& slot) {
      if (slot.changed && !slot.stored && reached.contains(slot.changed->upstream())) {
        next.push_back(slot.changed->downstream());
      }
    });
    for (const auto& id : next) reach(id);
    grew = reached.size() > before;
  }
  return reached.contains(to);
}

Result<void> check_member(Unit& unit, const ExecutionId& id, const FlowId& flow) {
  const auto* execution = unit.find<Execution>(id);
  if (execution && execution->flow_id == flow) return {};
  return fail_with(ErrorCode::execution_not_in_flow, id.to_string(),
                   "Both ends of an edge must be members of the flow: add the execution first.");
}

}  // namespace

Error no_such_flow(const FlowId& flow_id) {
  return {ErrorCode::flow_not_found, flow_id.to_string(),
          "No such flow: check the id; it may have been removed after its retention."};
}

Result<void> check_open(const Flow& flow) {
  if (flow.public_flow_state == FlowState::open) return {};
  return fail_with(ErrorCode::flow_already_terminal, std::string(enum_name(flow.public_flow_state)),
                   "The flow is over and cannot be changed any more: create a new one.");
}

Result<void> check_flow(const std::string& flow_kind, const std::string& namespace_, const Tags& tags) {
  if (flow_kind.empty()) {
    return fail_with(ErrorCode::invalid_input, "flow_kind: empty",
                     "Say what kind of flow it is, in any words: pipeline, dag, incident.");
  }
  if (auto ok = check_text("flow_kind", flow_kind, kMaxKeyBytes); !ok) return ok;
  if (auto ok = check_namespace(namespace_); !ok) return ok;
  return check_create_tags(tags);
}

Result<FlowCreation> apply(Unit& unit, const CreateFlow& request, Context& at) {
  if (auto ok = check_flow(request.flow_kind, request.namespace_, request.tags); !ok) {
    return std::unexpected(ok.error());
  }
  const auto key = flow_key(*request.flow_id, at.partitions);
  if (unit.find<Flow>(key)) return FlowCreation{key.flow_id, true};
  unit.insert(Flow{.partition_key = key.partition_key,
                   .flow_id = key.flow_id,
                   .flow_kind = request.flow_kind,
                   .namespace_ = request.namespace_,
                   .failure_policy = request.failure_policy,
                   .created_at_ms = at.now_ms,
                   .last_mutation_at_ms = at.now_ms,
                   .has_limits = has_limits(unit, key.flow_id),
                   .tags = request.tags});
  return FlowCreation{key.flow_id, false};
}

Result<MemberAdded> apply(Unit& unit, const AddFlowMember& request, Context& at) {
  const auto key = flow_key(request.flow_id, at.partitions);
  if (auto ok = check_partition(request.execution_id, key); !ok) return std::unexpected(ok.error());
  const auto* known = unit.find<Flow>(key);
  if (!known) return std::unexpected(no_such_flow(request.flow_id));
  if (auto ok = check_open(*known); !ok) return std::unexpected(ok.error());
  const auto* execution = unit.find<Execution>(request.execution_id);
  if (!execution) return std::unexpected(not_found(request.execution_id));
  if (execution->flow_id == request.flow_id) {
    return MemberAdded{request.execution_id, known->node_count, true};
  }
  if (execution->flow_id) {
    return fail_with(ErrorCode::execution_already_in_flow, execution->flow_id->to_string(),
                     "An execution belongs to one flow, for good.");
  }
  if (known->has_limits) {
    if (auto ok = check_takes_members(unit, key.flow_id, at); !ok) return std::unexpected(ok.error());
  }
  auto& flow = unit.edit<Flow>(key);
  ++flow.node_count;
  note_change(flow, at);
  auto& member = unit.edit<Execution>(request.execution_id);
  member.flow_id = request.flow_id;
  note_mutation(member, at);
  return MemberAdded{request.execution_id, flow.node_count, false};
}

Result<JoinPolicySet> apply(Unit& unit, const SetJoinPolicy& request, Context& at) {
  const auto flow = flow_key(request.flow_id, at.partitions);
  if (!unit.find<Flow>(flow)) return std::unexpected(no_such_flow(request.flow_id));
  if (auto ok = check_partition(request.downstream_execution_id, flow); !ok) {
    return std::unexpected(ok.error());
  }
  if (auto ok = validate(request.policy); !ok) return std::unexpected(ok.error());
  const EdgeGroupKey key{flow.partition_key, flow.flow_id, request.downstream_execution_id.uuid};
  const auto* known = unit.find<EdgeGroup>(key);
  if (known && known->staged_count > 0) {
    return fail_with(ErrorCode::invalid_input, "edge_group_policy_already_fixed: dependencies already staged",
                     "Set the policy of a join before its first edge.");
  }
  if (known && policy_of(*known) == request.policy) return JoinPolicySet{.already_set = true};
  auto& group = known ? unit.edit<EdgeGroup>(key)
                      : unit.insert(EdgeGroup{.partition_key = key.partition_key,
                                              .flow_id = key.flow_id,
                                              .downstream_eid = key.downstream_eid});
  group.policy_kind = request.policy.kind;
  group.k_target = request.policy.k;
  group.on_satisfied = request.policy.on_satisfied;
  unit.note(Noted::join_policy, std::string(enum_name(request.policy.kind)));
  return JoinPolicySet{};
}

Result<EdgeStaged> apply(Unit& unit, const StageEdge& request, Context& at) {
  const auto& upstream = request.upstream_execution_id;
  const auto& downstream = request.downstream_execution_id;
  if (upstream == downstream) {
    return fail_with(ErrorCode::self_referencing_edge, upstream.to_string(),
                     "An execution cannot wait for itself.");
  }
  if (request.dependency_kind != kSuccessOnly) {
    return fail_with(ErrorCode::invalid_dependency, "dependency_kind: " + request.dependency_kind,
                     "The one kind of dependency there is: success_only.");
  }
  if (auto ok = check_text("data_passing_ref", request.data_passing_ref); !ok) {
    return std::unexpected(ok.error());
  }
  const auto in_flow = flow_key(request.flow_id, at.partitions);
  const auto* known = unit.find<Flow>(in_flow);
  if (!known) return std::unexpected(no_such_flow(request.flow_id));
  if (auto ok = check_open(*known); !ok) return std::unexpected(ok.error());
  if (known->graph_revision != request.expected_graph_revision) {
    return fail_with(ErrorCode::stale_graph_revision, std::to_string(known->graph_revision),
                     "The flow has changed since: read its graph_revision, and repeat with that.");
  }
  for (const auto& end : {upstream, downstream}) {
    if (auto ok = check_member(unit, end, request.flow_id); !ok) return std::unexpected(ok.error());
  }
  if (leads_to(unit, downstream, upstream)) {
    return fail_with(ErrorCode::cycle_detected, downstream.to_string() + " leads to " + upstream.to_string(),
                     "An execution cannot wait for what waits for it.");
  }
  const EdgeKey key{in_flow.partition_key, request.flow_id, *request.edge_id};
  if (const auto* existing = unit.find<Edge>(key)) {
    return fail_with(ErrorCode::dependency_already_exists,
                     existing->upstream().to_string() + " -> " + existing->downstream().to_string(),
                     "The edge id is in use in this flow: choose another.");
  }
  const EdgeGroupKey group_key{key.partition_key, key.flow_id, downstream.uuid};
  if (const auto* group = unit.find<EdgeGroup>(group_key)) {
    if (auto ok = check_open(*group, unit.require<Execution>(downstream)); !ok) {
      return std::unexpected(ok.error());
    }
    ++unit.edit<EdgeGroup>(group_key).staged_count;
  } else {
    const EdgeGroup fresh{.partition_key = key.partition_key,
                          .flow_id = key.flow_id,
                          .downstream_eid = downstream.uuid,
                          .staged_count = 1};
    if (auto ok = check_open(fresh, unit.require<Execution>(downstream)); !ok) {
      return std::unexpected(ok.error());
    }
    unit.insert(fresh);
  }
  unit.insert(Edge{.partition_key = key.partition_key,
                   .flow_id = key.flow_id,
                   .edge_id = key.edge_id,
                   .upstream_eid = upstream.uuid,
                   .downstream_eid = downstream.uuid,
                   .data_passing_ref = request.data_passing_ref,
                   .created_at_ms = at.now_ms});
  auto& flow = unit.edit<Flow>(in_flow);
  ++flow.edge_count;
  note_change(flow, at);
  return EdgeStaged{key.edge_id, flow.graph_revision};
}

Result<TagsSet> apply(Unit& unit, const SetFlowTags& request, Context& at) {
  if (auto ok = check_changes(request.tags); !ok) return std::unexpected(ok.error());
  const auto key = flow_key(request.flow_id, at.partitions);
  if (!unit.find<Flow>(key)) return std::unexpected(no_such_flow(request.flow_id));
  auto tags = changed(unit.find<Flow>(key)->tags, request.tags);
  if (!tags) return std::unexpected(tags.error());
  auto& flow = unit.edit<Flow>(key);
  flow.tags = *std::move(tags);
  flow.last_mutation_at_ms = at.now_ms;
  return TagsSet{static_cast<std::uint32_t>(request.tags.size()), flow.tags};
}

namespace {

void want(Unit& unit, const CreateFlow& request, const PartitionCounts& partitions) {
  unit.want<Flow>(flow_key(*request.flow_id, partitions));
  unit.want<ScopeLimits>({LimitScope::flow, request.flow_id->to_string()});
}

bool take_id(CreateFlow& request, const Uuid& minted, const PartitionCounts&) {
  if (request.flow_id) return false;
  request.flow_id = FlowId{minted};
  return true;
}

void expect_absent(Unit& unit, const CreateFlow& request, const PartitionCounts& partitions) {
  unit.put<Flow>(flow_key(*request.flow_id, partitions), nullptr);
}

void want(Unit& unit, const AddFlowMember& request, const PartitionCounts& partitions) {
  unit.want_lock<Flow>(flow_key(request.flow_id, partitions));
  unit.want<Execution>(request.execution_id);
}

void want(Unit& unit, const StageEdge& request, const PartitionCounts& partitions) {
  const auto flow = flow_key(request.flow_id, partitions);
  unit.want_lock<Flow>(flow);
  want_edge(unit, {flow.partition_key, flow.flow_id, *request.edge_id}, request.upstream_execution_id,
            request.downstream_execution_id);
  unit.want_answer(Descendants{request.downstream_execution_id});
}

bool take_id(StageEdge& request, const Uuid& minted, const PartitionCounts&) {
  if (request.edge_id) return false;
  request.edge_id = EdgeId{minted};
  return true;
}

void want(Unit& unit, const SetFlowTags& request, const PartitionCounts& partitions) {
  unit.want_lock<Flow>(flow_key(request.flow_id, partitions));
}

}  // namespace

FLOWFABRIC_OPERATION(CreateFlow, .want = want, .take_id = take_id, .expect_absent = expect_absent)
FLOWFABRIC_OPERATION(AddFlowMember, .want = want)
FLOWFABRIC_OPERATION(SetJoinPolicy)
FLOWFABRIC_OPERATION(StageEdge, .want = want, .take_id = take_id)
FLOWFABRIC_OPERATION(SetFlowTags, .want = want)

}  // namespace flowfabric::core
