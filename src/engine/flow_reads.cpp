#include "engine/flow_reads.h"

#include <algorithm>
#include <unordered_map>

#include "core/flow/flow.h"
#include "core/views/flow_read.h"
#include "core/views/listing.h"
#include "engine/listing.h"

namespace flowfabric::engine {

namespace {

constexpr std::uint32_t kMaxPage = 1000;
// Flows that a page may look at.
constexpr std::size_t kMaxLooks = 2000;
constexpr std::size_t kMembersPerRead = 1000;

FlowKey key_of(const Readers& readers, const FlowId& id) {
  return {partition_of(id.uuid, readers.partitions().flow), id};
}

std::vector<JoinSnapshot> joins_of(store::Session& session, const FlowKey& flow) {
  std::vector<JoinSnapshot> joins;
  for (const auto& group : session.joins_of(flow)) {
    if (group.staged_count > 0) joins.push_back(core::view(group));
  }
  return joins;
}

FlowState state_of(store::Session& session, const Flow& flow) {
  const auto counts = session.count_flow(flow.flow_id, core::harmless_reasons());
  return core::derived_state(flow.public_flow_state, counts.by_state, counts.without_harm);
}

FlowSummary summary(store::Session& session, const Flow& flow) {
  return {.flow_id = flow.flow_id,
          .flow_kind = flow.flow_kind,
          .namespace_ = flow.namespace_,
          .state = state_of(session, flow),
          .created_at = flow.created_at_ms,
          .node_count = flow.node_count,
          .tags = flow.tags};
}

Result<void> check_limit(std::uint32_t limit, std::uint32_t least) {
  if (limit >= least && limit <= kMaxPage) return {};
  return fail_with(ErrorCode::invalid_input, "limit: out of range",
                   "Ask for " + std::to_string(least) + " to 1000 flows per page.");
}

// The members of a flow, oldest first.
std::vector<FlowGraph::Node> nodes_of(Reading& reading, const FlowId& flow) {
  std::unordered_map<Uuid, std::string> names;
  for (auto& node : reading.session.node_names(flow)) names[node.execution_id] = std::move(node.node_name);
  std::vector<FlowGraph::Node> nodes;
  ListQuery query{.filter = {.flow_id = flow},
                  .order = ListOrder::oldest,
                  .after = std::nullopt,
                  .limit = kMembersPerRead};
  do {
    const auto page = list(reading.session, reading.unit, query);
    for (const auto& [execution, group] : page.found) {
      nodes.push_back({.execution_id = execution.key(),
                       .name = names[execution.execution_id],
                       .execution_kind = group->execution_kind,
                       .public_state = execution.public_state});
    }
    query.after = page.next;
  } while (query.after);
  return nodes;
}

}  // namespace

Result<FlowSnapshot> answer(Readers& readers, const DescribeFlow& request) {
  return readers.read([&](Reading& reading) -> Result<FlowSnapshot> {
    const auto key = key_of(readers, request.flow_id);
    const auto* flow = reading.find<Flow>(key);
    if (!flow) return std::unexpected(core::no_such_flow(request.flow_id));
    auto snapshot = core::view(*flow);
    const auto counts = reading.session.count_flow(request.flow_id, core::harmless_reasons());
    snapshot.counts = counts.by_state;
    snapshot.state = core::derived_state(flow->public_flow_state, counts.by_state, counts.without_harm);
    snapshot.edge_groups = joins_of(reading.session, key);
    return snapshot;
  });
}

Result<std::optional<EdgeSnapshot>> answer(Readers& readers, const DescribeEdge& request) {
  return readers.read([&](Reading& reading) -> Result<std::optional<EdgeSnapshot>> {
    const auto flow = key_of(readers, request.flow_id);
    const auto* edge = reading.find<Edge>({flow.partition_key, flow.flow_id, request.edge_id});
    if (!edge) return std::nullopt;
    return core::view(*edge);
  });
}

Result<std::vector<EdgeSnapshot>> answer(Readers& readers, const ListEdges& request) {
  return readers.read([&](Reading& reading) -> Result<std::vector<EdgeSnapshot>> {
    std::vector<EdgeSnapshot> edges;
    const auto* execution = reading.find<Execution>(request.execution_id);
    if (!execution || !execution->flow_id) return edges;
    const bool outgoing = request.direction == ListEdges::Direction::outgoing;
    for (const auto& edge : reading.session.edges_of({execution->partition_key, *execution->flow_id})) {
      const auto end = outgoing ? edge.upstream() : edge.downstream();
      if (end == request.execution_id) edges.push_back(core::view(edge));
    }
    return edges;
  });
}

Result<FlowGraph> answer(Readers& readers, const ReadFlowGraph& request) {
  return readers.read([&](Reading& reading) -> Result<FlowGraph> {
    const auto key = key_of(readers, request.flow_id);
    if (!reading.find<Flow>(key)) return std::unexpected(core::no_such_flow(request.flow_id));
    FlowGraph graph{
        .nodes = nodes_of(reading, request.flow_id), .edges = {}, .groups = joins_of(reading.session, key)};
    for (const auto& edge : reading.session.edges_of(key)) graph.edges.push_back(core::view(edge));
    return graph;
  });
}

Result<FlowEligibility> answer(Readers& readers, const EvaluateFlowEligibility& request) {
  return readers.read([&](Reading& reading) -> Result<FlowEligibility> {
    const auto* execution = reading.find<Execution>(request.execution_id);
    if (!execution) return FlowEligibility::not_found;
    if (!execution->flow_id) return core::eligibility(*execution, nullptr);
    return core::eligibility(
        *execution,
        reading.find<EdgeGroup>({execution->partition_key, *execution->flow_id, execution->execution_id}));
  });
}

Result<FlowPage> answer(Readers& readers, const ListFlowPartition& request) {
  if (auto ok = check_limit(request.limit, 0); !ok) return std::unexpected(ok.error());
  if (request.partition >= readers.partitions().flow) {
    return fail_with(ErrorCode::invalid_input, "partition: out of range",
                     "This store has partitions 0 to " + std::to_string(readers.partitions().flow - 1) + ".");
  }
  std::optional<FlowKey> after;
  if (!request.cursor.empty()) {
    const auto last = FlowId::parse(request.cursor);
    if (!last) return core::bad_cursor(request.cursor);
    after = FlowKey{request.partition, *last};
  }
  if (request.limit == 0) return FlowPage{};
  return readers.read([&](Reading& reading) -> Result<FlowPage> {
    // Before the first of a partition comes the nil id, which may itself be there.
    if (!after && request.partition > 0) {
      FlowId greatest;
      greatest.uuid.bytes.fill(0xFF);
      after = FlowKey{static_cast<std::uint16_t>(request.partition - 1), greatest};
    }
    auto keys = reading.session.keys_after<Flow>(after, request.limit + std::size_t{1});
    std::erase_if(keys, [&](const FlowKey& key) { return key.partition_key != request.partition; });
    FlowPage page;
    const bool more = keys.size() > request.limit;
    if (more) keys.pop_back();
    for (const auto& key : keys) reading.unit.want<Flow>(key);
    for (const auto& key : keys) {
      page.flows.push_back(summary(reading.session, reading.require<Flow>(key)));
    }
    if (more) page.next_cursor = keys.back().flow_id.to_string();
    return page;
  });
}

Result<FlowPage> answer(Readers& readers, const ListFlows& request) {
  if (auto ok = check_limit(request.limit, 1); !ok) return std::unexpected(ok.error());
  if (auto ok = core::check_filter(request.filter); !ok) return std::unexpected(ok.error());
  store::ListScan scan{
      .of = store::ListScan::Flows{}, .order = request.order, .after = std::nullopt, .limit = request.limit};
  if (!request.cursor.empty()) {
    const auto position = core::position_of(request.cursor, request.order);
    if (!position) return std::unexpected(position.error());
    scan.after = *position;
  }
  return readers.read([&](Reading& reading) -> Result<FlowPage> {
    FlowPage page;
    auto walk = scan;
    for (std::size_t looks = 0; looks < kMaxLooks;) {
      const auto positions = reading.session.scan(walk);
      for (const auto& [created_at, id] : positions) reading.unit.want<Flow>({id.partition, FlowId{id.uuid}});
      for (const auto& position : positions) {
        if (page.flows.size() == request.limit) {
          page.next_cursor = core::cursor_of(*walk.after, request.order);
          return page;
        }
        walk.after = position;
        ++looks;
        const auto& [partition, uuid] = position.execution_id;
        const auto& flow = reading.require<Flow>({partition, FlowId{uuid}});
        if (!core::matches(request.filter, flow)) continue;
        auto shown = summary(reading.session, flow);
        const auto& states = request.filter.states;
        if (!states.empty() && std::ranges::find(states, shown.state) == states.end()) continue;
        page.flows.push_back(std::move(shown));
      }
      if (positions.size() < walk.limit) return page;
    }
    page.next_cursor = core::cursor_of(*walk.after, request.order);
    return page;
  });
}

}  // namespace flowfabric::engine
