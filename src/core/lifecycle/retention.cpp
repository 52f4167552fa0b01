#include "core/lifecycle/retention.h"

#include <algorithm>
#include <set>

#include "core/execution/tags.h"
#include "core/flow/dependency.h"

namespace flowfabric::core {

namespace {

constexpr std::int64_t kSoonestNextLookMs = 1000;

bool has_ended(const MemberPhase& member) {
  return member.phase == LifecyclePhase::terminal;
}

// By the store's answer and what this batch has changed.
bool has_ended(Unit& unit, const FlowId& flow) {
  const auto& members = unit.ask(MembersOf{flow});
  const bool all_had = std::ranges::all_of(members, [](const auto& member) { return has_ended(member); });
  bool goes_on = false;
  std::set<ExecutionId> changed;
  unit.for_each_dirty<Execution>([&](const Slot<Execution>& slot) {
    if (!all_had) changed.insert(slot.key);
    const auto* member = slot.changed;
    goes_on = goes_on || (member && member->flow_id == flow &&
                          member->state.lifecycle_phase != LifecyclePhase::terminal);
  });
  if (goes_on || all_had) return !goes_on;
  return std::ranges::all_of(members, [&](const auto& member) {
    return has_ended(member) || changed.contains(member.execution_id);
  });
}

// Its edges and its join go with it, and the flow with its last member.
void leave_flow(Unit& unit, const ExecutionId& id, const FlowKey& key) {
  auto edges = edges_from(unit, id);
  const auto incoming = edges_into(unit, id);
  edges.insert(edges.end(), incoming.begin(), incoming.end());
  for (const auto& edge : edges) unit.erase<Edge>(edge);
  const EdgeGroupKey group{key.partition_key, key.flow_id, id.uuid};
  if (unit.find<EdgeGroup>(group)) unit.erase<EdgeGroup>(group);
  if (!unit.find<Flow>(key)) return;
  auto& flow = unit.edit<Flow>(key);
  if (++flow.removed_count == flow.node_count) unit.erase<Flow>(key);
}

}  // namespace

Rule purge(Unit& unit, const ExecutionId& id, const Context& at) {
  const auto& execution = unit.require<Execution>(id);
  if (execution.flow_id && !has_ended(unit, *execution.flow_id)) {
    // As long again as it has been kept: a flow may go on for a year.
    const auto kept_for = at.now_ms - execution.terminal_at_ms.value_or(at.now_ms);
    unit.edit<Execution>(id).purge_at_ms = at.now_ms + std::max(kept_for, kSoonestNextLookMs);
    return Rule::none;
  }
  if (execution.flow_id) leave_flow(unit, id, {execution.partition_key, *execution.flow_id});
  unit.count(execution.lane_id, execution.state.public_state, -1);
  erase_tag_rows(unit, execution);
  unit.purge(id);
  return Rule::retention_trimmer;
}

}  // namespace flowfabric::core
