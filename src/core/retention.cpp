#include "core/retention.h"

#include "core/dependency.h"
#include "core/tags.h"

namespace flowfabric::core {

namespace {

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

void purge(Unit& unit, const Execution& execution) {
  if (execution.flow_id) leave_flow(unit, execution.key(), {execution.partition_key, *execution.flow_id});
  unit.count(execution.lane_id, execution.state.public_state, -1);
  erase_tag_rows(unit, execution);
  unit.purge(execution.key());
}

}  // namespace flowfabric::core
