#include "core/flow/submit_flow.h"

#include <algorithm>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "core/execution/create.h"
#include "core/flow/flow.h"
#include "core/flow/join.h"
#include "core/limits/admission.h"
#include "core/limits/attachment.h"
#include "core/operation.h"
#include "core/registry/registration.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kMaxNameBytes = 256;

std::unexpected<Error> invalid(std::string detail, std::string advice) {
  return fail_with(ErrorCode::invalid_input, std::move(detail), std::move(advice));
}

// A submitted flow, by the places of its nodes.
class Plan {
 public:
  explicit Plan(const SubmitFlow& request) : request_(request) {}

  Result<void> check() {
    if (auto ok = check_flow(request_.flow_kind, request_.namespace_, request_.tags); !ok) return ok;
    if (request_.nodes.empty() || request_.nodes.size() > kMaxFlowNodes) {
      return invalid("nodes: out of range", "A flow has 1 to 10000 nodes.");
    }
    if (request_.edges.size() > kMaxFlowEdges) {
      return invalid("edges: out of range", "A flow has up to 100000 edges.");
    }
    if (auto ok = check_names(); !ok) return ok;
    if (auto ok = check_edges(); !ok) return ok;
    if (auto ok = check_joins(); !ok) return ok;
    return check_cycles();
  }

  const std::vector<std::pair<std::size_t, std::size_t>>& edges() const { return edges_; }
  std::uint32_t incoming(std::size_t node) const { return incoming_[node]; }

 private:
  Result<void> check_names() {
    for (std::size_t i = 0; i < request_.nodes.size(); ++i) {
      const auto& node = request_.nodes[i];
      if (node.name.empty() || node.name.size() > kMaxNameBytes) {
        return invalid("name: 1 to 256 bytes", "Node " + std::to_string(i) + " needs a name.");
      }
      if (auto ok = check_text("name", node.name); !ok) return ok;
      if (!places_.emplace(node.name, i).second) {
        return invalid("name: " + node.name, "Two nodes have this name; names are unique in a flow.");
      }
      if (node.execution.execution_id || !node.execution.idempotency_key.empty()) {
        return invalid(node.name + ": execution_id and idempotency_key",
                       "The flow names its members; give it a flow_id to make the call repeatable.");
      }
      const auto& name_space = node.execution.namespace_;
      if (!name_space.empty() && name_space != request_.namespace_) {
        return invalid(node.name + ": namespace", "Members have the namespace of their flow.");
      }
    }
    return {};
  }

  Result<void> check_edges() {
    incoming_.resize(request_.nodes.size());
    for (const auto& edge : request_.edges) {
      for (const auto& name : {edge.from, edge.to}) {
        if (!places_.contains(name))
          return invalid("edge: " + name, "The edge names a node that is not there.");
      }
      if (edge.from == edge.to) {
        return fail_with(ErrorCode::self_referencing_edge, edge.from, "A node cannot wait for itself.");
      }
      edges_.emplace_back(places_.at(edge.from), places_.at(edge.to));
      ++incoming_[edges_.back().second];
    }
    return {};
  }

  Result<void> check_joins() const {
    for (std::size_t i = 0; i < request_.nodes.size(); ++i) {
      const auto& [name, execution, join] = request_.nodes[i];
      if (auto ok = validate(join); !ok) {
        auto error = ok.error();
        error.detail = name + ": " + error.detail;
        return std::unexpected(std::move(error));
      }
      if (join.kind == JoinKind::quorum && join.k > incoming_[i]) {
        return invalid(
            name + ": quorum k is " + std::to_string(join.k) + " of " + std::to_string(incoming_[i]),
            "The node has fewer edges into it than its quorum needs.");
      }
    }
    return {};
  }

  // Takes away nodes that wait for nobody until none is left; what remains waits in a circle.
  Result<void> check_cycles() const {
    std::vector<std::vector<std::size_t>> outgoing(request_.nodes.size());
    for (const auto& [from, to] : edges_) outgoing[from].push_back(to);
    auto waiting = incoming_;
    std::vector<std::size_t> free;
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i] == 0) free.push_back(i);
    }
    std::size_t taken = 0;
    while (!free.empty()) {
      const auto node = free.back();
      free.pop_back();
      ++taken;
      for (const auto next : outgoing[node]) {
        if (--waiting[next] == 0) free.push_back(next);
      }
    }
    if (taken == waiting.size()) return {};
    for (std::size_t i = 0; i < waiting.size(); ++i) {
      if (waiting[i] == 0) continue;
      return fail_with(ErrorCode::cycle_detected, request_.nodes[i].name,
                       "The node waits, over other nodes, for itself.");
    }
    return {};
  }

  const SubmitFlow& request_;
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<std::pair<std::size_t, std::size_t>> edges_;
  std::vector<std::uint32_t> incoming_;
};

// Distinct, even if two names have the same hash. Equal names, which `Plan` refuses, count on from where the
// one before stopped: a request that is not checked yet costs no more than another.
std::vector<ExecutionId> member_ids(const SubmitFlow& request, std::uint16_t partition) {
  std::vector<ExecutionId> ids;
  std::unordered_set<ExecutionId> taken;
  std::unordered_map<std::string_view, std::uint64_t> numbers;
  for (const auto& node : request.nodes) {
    auto& number = numbers[node.name];
    ExecutionId id{partition, {}};
    do {
      id.uuid = id_within(*request.flow_id, node.name, number++);
    } while (!taken.insert(id).second);
    ids.push_back(id);
  }
  return ids;
}

FlowSubmission submission(const SubmitFlow& request, const std::vector<ExecutionId>& ids, bool existed) {
  FlowSubmission answer{.flow_id = *request.flow_id, .executions = {}, .already_existed = existed};
  for (std::size_t i = 0; i < ids.size(); ++i) answer.executions[request.nodes[i].name] = ids[i];
  return answer;
}

CreateExecution as_member(const SubmitFlow& request, const FlowNode& node, const ExecutionId& id) {
  auto execution = node.execution;
  execution.execution_id = id;
  execution.namespace_ = request.namespace_;
  return execution;
}

// The flow has these nodes; retention may have removed some of them since.
bool is_repeated(Unit& unit, const SubmitFlow& request, const std::vector<ExecutionId>& ids,
                 const Flow& known) {
  if (known.node_count < ids.size() || known.edge_count < request.edges.size()) return false;
  const auto missing = std::ranges::count_if(ids, [&](const ExecutionId& id) {
    const auto* member = unit.find<Execution>(id);
    return !member || member->flow_id != known.flow_id;
  });
  return missing <= known.removed_count;
}

Result<void> create_members(Unit& unit, const SubmitFlow& request, const Plan& plan,
                            const std::vector<ExecutionId>& ids, Context& at) {
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& node = request.nodes[i];
    const auto execution = as_member(request, node, ids[i]);
    const auto named = [&](Error error) {
      error.detail = node.name + (error.detail.empty() ? "" : ": " + error.detail);
      return std::unexpected(std::move(error));
    };
    if (auto ok = check_create(execution, at); !ok) return named(ok.error());
    const Membership member{*request.flow_id, node.name, plan.incoming(i)};
    if (auto created = create_new(unit, execution, member, at); !created) return named(created.error());
    if (plan.incoming(i) == 0) continue;
    unit.insert(EdgeGroup{.partition_key = ids[i].partition,
                          .flow_id = *request.flow_id,
                          .downstream_eid = ids[i].uuid,
                          .policy_kind = node.join.kind,
                          .k_target = node.join.k,
                          .on_satisfied = node.join.on_satisfied,
                          .staged_count = plan.incoming(i),
                          .edge_count = plan.incoming(i)});
    unit.note(Noted::join_policy, std::string(enum_name(node.join.kind)));
  }
  return {};
}

void create_edges(Unit& unit, const SubmitFlow& request, const Plan& plan,
                  const std::vector<ExecutionId>& ids, const Context& at) {
  for (std::size_t i = 0; i < request.edges.size(); ++i) {
    const auto& [from, to] = plan.edges()[i];
    unit.insert(Edge{.partition_key = ids[from].partition,
                     .flow_id = *request.flow_id,
                     .edge_id = EdgeId{id_within(*request.flow_id, "edge", i)},
                     .upstream_eid = ids[from].uuid,
                     .downstream_eid = ids[to].uuid,
                     .data_passing_ref = request.edges[i].pass_result ? "result" : "",
                     .edge_state = EdgeState::applied,
                     .created_at_ms = at.now_ms,
                     .applied_at_ms = at.now_ms});
  }
}

}  // namespace

Result<FlowSubmission> apply(Unit& unit, const SubmitFlow& request, Context& at) {
  Plan plan(request);
  if (auto ok = plan.check(); !ok) return std::unexpected(ok.error());
  const auto key = flow_key(*request.flow_id, at.partitions);
  const auto ids = member_ids(request, key.partition_key);
  unit.fetch<Execution>(ids);
  if (const auto* known = unit.find<Flow>(key)) {
    if (!is_repeated(unit, request, ids, *known)) {
      return invalid("flow_id: " + key.flow_id.to_string(),
                     "Another flow has this id: choose a new one, or repeat exactly the first call.");
    }
    return submission(request, ids, true);
  }
  for (const auto& id : ids) {
    if (unit.find<Execution>(id)) {
      return invalid("flow_id: " + key.flow_id.to_string(),
                     "An execution has the id of one of its members: choose another id for the flow.");
    }
  }
  const bool is_limited = has_limits(unit, key.flow_id);
  if (is_limited) {
    if (auto ok = check_takes_members(unit, key.flow_id, at); !ok) return std::unexpected(ok.error());
  }
  if (auto ok = create_members(unit, request, plan, ids, at); !ok) return std::unexpected(ok.error());
  create_edges(unit, request, plan, ids, at);
  const auto changes = request.nodes.size() + request.edges.size();
  unit.insert(Flow{.partition_key = key.partition_key,
                   .flow_id = key.flow_id,
                   .flow_kind = request.flow_kind,
                   .namespace_ = request.namespace_,
                   .failure_policy = request.failure_policy,
                   .graph_revision = changes,
                   .node_count = static_cast<std::uint32_t>(request.nodes.size()),
                   .edge_count = static_cast<std::uint32_t>(request.edges.size()),
                   .created_at_ms = at.now_ms,
                   .last_mutation_at_ms = at.now_ms,
                   .has_limits = is_limited,
                   .tags = request.tags});
  return submission(request, ids, false);
}

namespace {

void want(Unit& unit, const SubmitFlow& request, const PartitionCounts& partitions) {
  const auto key = flow_key(*request.flow_id, partitions);
  unit.want<Flow>(key);
  unit.want<ScopeLimits>({LimitScope::flow, request.flow_id->to_string()});
  for (const auto& id : member_ids(request, key.partition_key)) unit.want<Execution>(id);
  for (const auto& node : request.nodes) {
    const auto& execution = node.execution;
    unit.want<Lane>({execution.lane_id});
    if (const auto required = required_capabilities(execution.policy)) {
      want_registered(unit, execution.lane_id, request.namespace_, *required, execution.execution_kind);
    }
  }
}

bool take_id(SubmitFlow& request, const Uuid& minted, const PartitionCounts&) {
  if (request.flow_id) return false;
  request.flow_id = FlowId{minted};
  return true;
}

void expect_absent(Unit& unit, const SubmitFlow& request, const PartitionCounts& partitions) {
  const auto key = flow_key(*request.flow_id, partitions);
  unit.put<Flow>(key, nullptr);
  for (const auto& id : member_ids(request, key.partition_key)) unit.put<Execution>(id, nullptr);
}

std::size_t weight(const SubmitFlow& request) {
  auto bytes = sizeof(request) + request.edges.size() * sizeof(FlowEdge);
  for (const auto& node : request.nodes) bytes += sizeof(node) + node.execution.input.size();
  return bytes;
}

}  // namespace

FLOWFABRIC_OPERATION(SubmitFlow, .want = want, .take_id = take_id, .expect_absent = expect_absent,
                     .weight = weight)

}  // namespace flowfabric::core
