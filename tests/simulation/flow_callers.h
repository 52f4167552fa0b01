// Makes random flows, and does to them what people do: mostly sensible, often late, repeated or malformed.
#pragma once

#include "simulation/steps.h"
#include "simulation/submitter.h"

namespace flowfabric::simulation {

class FlowCallers {
 public:
  FlowCallers(Dice& dice, Submitter& submitter, const std::int64_t& now_ms)
      : dice_(dice), submitter_(submitter), now_(now_ms) {}

  // A random graph; edges go from earlier nodes to later ones.
  Request submit() {
    SubmitFlow request{
        .flow_id = flow_id(),
        .flow_kind = dice_.pick<std::string>({"dag", "chain"}),
        .namespace_ = dice_.pick<std::string>({"", "", "team"}),
        .failure_policy = dice_.chance(15) ? FailurePolicy::fail_fast : FailurePolicy::isolate_failures,
        .tags = {},
        .nodes = {},
        .edges = {}};
    const auto count = dice_.between(1, 7);
    std::vector<std::uint32_t> incoming(static_cast<std::size_t>(count));
    for (std::int64_t to = 0; to < count; ++to) {
      request.nodes.push_back(node(to));
      for (std::int64_t from = 0; from < to; ++from) {
        if (!dice_.chance(35)) continue;
        request.edges.push_back({name(from), name(to), dice_.chance(30)});
        ++incoming[static_cast<std::size_t>(to)];
      }
    }
    for (std::size_t i = 0; i < incoming.size(); ++i) {
      if (incoming[i] > 0) request.nodes[i].join = join(incoming[i]);
    }
    if (dice_.chance(5)) spoil(request);
    return request;
  }

  Request create() {
    return CreateFlow{
        .flow_id = flow_id(),
        .flow_kind = dice_.chance(97) ? "built" : "",
        .namespace_ = dice_.pick<std::string>({"", "team"}),
        .failure_policy = dice_.chance(20) ? FailurePolicy::fail_fast : FailurePolicy::isolate_failures};
  }

  Request add(const std::deque<ExecutionId>& ids) {
    const auto flow = some_flow();
    auto id = ids.empty() ? ExecutionId{} : dice_.pick_late(ids, 80);
    // Most executions live in the partition of another flow, and are refused; so look for one that does not.
    for (int tries = 0; tries < 40 && !ids.empty() && id.partition != partition_of(flow.uuid, 256); ++tries) {
      id = dice_.pick(ids);
    }
    return AddFlowMember{flow, id};
  }

  Request set_policy() {
    const auto flow = some_flow();
    auto policy = join(3);
    if (dice_.chance(5)) policy = {JoinKind::quorum, 0, OnSatisfied::let_run};
    return SetJoinPolicy{flow, some_member(flow), policy};
  }

  Request stage() {
    const auto flow = some_flow();
    auto& known = flows_[flow];
    StageEdge request{.flow_id = flow,
                      .edge_id = EdgeId{dice_.uuid(now_)},
                      .upstream_execution_id = some_member(flow),
                      .downstream_execution_id = some_member(flow),
                      .dependency_kind = dice_.chance(98) ? kSuccessOnly : "never",
                      .data_passing_ref = dice_.chance(30) ? "result" : "",
                      .expected_graph_revision = known.revision};
    if (dice_.chance(5) && !known.edges.empty()) request.edge_id = dice_.pick(known.edges).edge_id;
    if (dice_.chance(4)) ++request.expected_graph_revision;
    return request;
  }

  Request apply() {
    const auto flow = some_flow();
    const auto& edges = flows_[flow].edges;
    if (edges.empty()) return ApplyEdge{flow, EdgeId{dice_.uuid(now_)}, some_member(flow), some_member(flow)};
    const auto& edge = edges[static_cast<std::size_t>(dice_.below(static_cast<std::int64_t>(edges.size())))];
    ApplyEdge request{flow, edge.edge_id, edge.upstream, edge.downstream};
    if (dice_.chance(3)) request.upstream_execution_id = some_member(flow);
    return request;
  }

  Request set_tags() {
    std::map<std::string, std::optional<std::string>> tags{{dice_.chance(95) ? "test.flow" : "Bad", "x"}};
    if (dice_.chance(50))
      tags["test.flow"] = dice_.chance(50) ? std::nullopt : std::optional(dice_.name("v", 3));
    return SetFlowTags{some_flow(), std::move(tags)};
  }

  Request cancel() {
    using enum CancellationPolicy;
    return CancelFlow{
        .flow_id = some_flow(),
        .reason = dice_.pick<std::string>({"", "no longer wanted"}),
        .cancellation_policy = dice_.pick(
            {cancel_all, cancel_all, cancel_pending, cancel_unscheduled_only, flow_only, let_active_finish}),
        .wait = dice_.chance(20),
        .grace_ms = dice_.chance(95) ? dice_.below(3000) : -1};
  }

  Request acknowledge() {
    const auto flow = some_flow();
    return AckCancelMember{flow, some_member(flow)};
  }

  // A member of a flow that is known.
  std::optional<ExecutionId> member() {
    if (latest_.empty()) return std::nullopt;
    const auto& members = flows_[dice_.pick_late(latest_, 10)].members;
    if (members.empty()) return std::nullopt;
    return dice_.pick(members);
  }

  // ---- learning ----

  void learn(const SubmitFlow& request, const FlowSubmission& answer) {
    if (answer.already_existed) return;
    auto& known = remember(answer.flow_id);
    known.revision = request.nodes.size() + request.edges.size();
    for (const auto& [name, id] : answer.executions) known.members.push_back(id);
  }
  void learn(const CreateFlow&, const FlowCreation& answer) {
    if (!answer.already_existed) remember(answer.flow_id);
  }
  void learn(const AddFlowMember& request, const MemberAdded& answer) {
    auto& known = flows_[request.flow_id];
    if (answer.already_member) return;
    ++known.revision;
    known.members.push_back(request.execution_id);
  }
  void learn(const StageEdge& request, const EdgeStaged& answer) {
    auto& known = flows_[request.flow_id];
    known.revision = answer.new_graph_revision;
    known.edges.push_back({answer.edge_id, request.upstream_execution_id, request.downstream_execution_id});
  }

 private:
  struct KnownEdge {
    EdgeId edge_id;
    ExecutionId upstream;
    ExecutionId downstream;
  };
  struct Known {
    std::uint64_t revision{};
    std::vector<ExecutionId> members;
    std::vector<KnownEdge> edges;
  };

  Known& remember(const FlowId& flow) {
    latest_.push_front(flow);
    if (latest_.size() > 60) latest_.pop_back();
    return flows_[flow] = Known{};
  }

  static std::string name(std::int64_t number) { return "n" + std::to_string(number); }

  FlowNode node(std::int64_t number) {
    auto execution = submitter_.create({});
    execution.execution_id.reset();
    execution.idempotency_key.clear();
    execution.namespace_.clear();
    return {.name = name(number), .execution = std::move(execution), .join = {}};
  }

  JoinPolicy join(std::uint32_t incoming) {
    const auto then = dice_.chance(60) ? OnSatisfied::cancel_remaining : OnSatisfied::let_run;
    if (dice_.chance(40)) return {};
    if (dice_.chance(50)) return {JoinKind::any_of, 0, then};
    return {JoinKind::quorum, static_cast<std::uint32_t>(dice_.between(1, incoming)), then};
  }

  void spoil(SubmitFlow& request) {
    switch (dice_.below(5)) {
      case 0:
        request.edges.push_back({"n0", "nobody"});
        return;
      case 1:
        request.edges.push_back({"n0", "n0"});
        return;
      case 2:
        request.edges.push_back({name(static_cast<std::int64_t>(request.nodes.size()) - 1), "n0"});
        request.edges.push_back({"n0", name(static_cast<std::int64_t>(request.nodes.size()) - 1)});
        return;
      case 3:
        request.nodes.push_back(request.nodes.front());
        return;
      default:
        request.nodes.front().join = {JoinKind::quorum, 100, OnSatisfied::let_run};
        return;
    }
  }

  // In the partition of a lane, so that executions made alone can join it.
  FlowId flow_id() {
    if (dice_.chance(4) && !latest_.empty()) return dice_.pick(latest_);
    const auto wanted = partition_of_lane(dice_.pick<std::string>({"a", "b", "default"}), 256);
    for (;;) {
      const FlowId id{dice_.uuid(now_)};
      if (partition_of(id.uuid, 256) == wanted) return id;
    }
  }
  FlowId some_flow() {
    if (latest_.empty() || dice_.chance(2)) return FlowId{dice_.uuid(now_)};
    return dice_.pick_late(latest_, 12);
  }
  ExecutionId some_member(const FlowId& flow) {
    const auto& members = flows_[flow].members;
    if (members.empty() || dice_.chance(3)) return {partition_of(flow.uuid, 256), dice_.uuid(now_)};
    return dice_.pick(members);
  }

  Dice& dice_;
  Submitter& submitter_;
  const std::int64_t& now_;
  std::deque<FlowId> latest_;  // the latest first
  std::map<FlowId, Known> flows_;
};

}  // namespace flowfabric::simulation
