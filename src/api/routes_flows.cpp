// Flows: built step by step as the reference does, or submitted as a whole; read, listed, stopped.
#include "api/routes.h"
#include "api/shapes.h"

namespace flowfabric::api {

namespace {

constexpr std::int64_t kDefaultCancelWaitMs = 60'000;

FlowId id_of(const CallPtr& call) {
  return path_id<FlowId>("flow_id", call->segments[0]);
}

// The flow of the path; a flow in the body must be the same.
FlowId id_of(const CallPtr& call, const std::optional<FlowId>& named) {
  const auto id = id_of(call);
  if (named && *named != id) refuse_input("path flow_id does not match body flow_id", kPathAdvice);
  return id;
}

// ---- step by step -----------------------------------------------------------------------------------------

void create(const CallPtr& call) {
  const auto fields = call->fields();
  CreateFlow request{
      .flow_id = fields.maybe_id<FlowId>("flow_id"),
      .flow_kind = fields.text("flow_kind"),
      .namespace_ = fields.text_or("namespace", "default"),
      .failure_policy = fields.maybe_word<FailurePolicy>("failure_policy").value_or(FailurePolicy{}),
      .tags = fields.tags()};
  fields.maybe_number<std::int64_t>("now");
  call->run(std::move(request), [](Call& self, const FlowCreation& made) {
    JsonWriter out;
    out.object()
        .key(made.already_existed ? "AlreadySatisfied" : "Created")
        .object()
        .field("flow_id", made.flow_id)
        .end()
        .end();
    self.reply(made.already_existed ? 200 : 201, out.take());
  });
}

void add_member(const CallPtr& call) {
  const auto fields = call->fields();
  const auto named = fields.maybe_id<FlowId>("flow_id");
  const auto member = fields.id<ExecutionId>("execution_id");
  fields.maybe_number<std::int64_t>("now");
  call->run(AddFlowMember{.flow_id = id_of(call, named), .execution_id = member},
            [](Call& self, const MemberAdded& added) {
              JsonWriter out;
              out.object()
                  .key(added.already_member ? "AlreadyMember" : "Added")
                  .object()
                  .field("execution_id", added.execution_id)
                  .field(added.already_member ? "node_count" : "new_node_count", added.node_count)
                  .end()
                  .end();
              self.reply(added.already_member ? 200 : 201, out.take());
            });
}

void stage_edge(const CallPtr& call) {
  const auto fields = call->fields();
  const auto named = fields.maybe_id<FlowId>("flow_id");
  StageEdge request{.flow_id = {},
                    .edge_id = fields.maybe_id<EdgeId>("edge_id"),
                    .upstream_execution_id = fields.id<ExecutionId>("upstream_execution_id"),
                    .downstream_execution_id = fields.id<ExecutionId>("downstream_execution_id")};
  if (fields.find_any("dependency_kind")) request.dependency_kind = fields.text("dependency_kind");
  request.data_passing_ref = fields.text_or("data_passing_ref", "");
  request.expected_graph_revision = fields.number<std::uint64_t>("expected_graph_revision");
  fields.maybe_number<std::int64_t>("now");
  request.flow_id = id_of(call, named);
  call->run(std::move(request), [](Call& self, const EdgeStaged& staged) {
    JsonWriter out;
    out.object()
        .key("Staged")
        .object()
        .field("edge_id", staged.edge_id)
        .field("new_graph_revision", staged.new_graph_revision)
        .end()
        .end();
    self.reply(201, out.take());
  });
}

void apply_edge(const CallPtr& call) {
  const auto fields = call->fields();
  const auto named = fields.maybe_id<FlowId>("flow_id");
  ApplyEdge request{.flow_id = {},
                    .edge_id = fields.id<EdgeId>("edge_id"),
                    .upstream_execution_id = fields.id<ExecutionId>("upstream_execution_id"),
                    .downstream_execution_id = fields.id<ExecutionId>("downstream_execution_id")};
  // Accepted and ignored: the edge has them since it was staged.
  fields.maybe_number<std::uint64_t>("graph_revision");
  if (fields.find_any("dependency_kind")) fields.text("dependency_kind");
  fields.maybe_text("data_passing_ref");
  fields.maybe_number<std::int64_t>("now");
  request.flow_id = id_of(call, named);
  call->run(std::move(request), [](Call& self, const EdgeApplied& applied) {
    JsonWriter out;
    if (applied.already_applied) {
      out.value("AlreadyApplied");
    } else {
      out.object().key("Applied").object().field("unsatisfied_count", applied.unsatisfied_count).end().end();
    }
    self.reply(200, out.take());
  });
}

// `given` is the policy in the caller's words, which the answer repeats.
void reply_cancellation(Call& self, const FlowCancellation& cancelled, const std::string& given) {
  JsonWriter out;
  out.object();
  switch (cancelled.outcome) {
    case CancelOutcome::cancelled:
      out.key("Cancelled");
      break;
    case CancelOutcome::scheduled:
      out.key("CancellationScheduled");
      break;
    case CancelOutcome::partially_cancelled:
      out.key("PartiallyCancelled");
      break;
  }
  const bool is_given = parse_cancellation_policy(given) == cancelled.cancellation_policy;
  out.object().field("cancellation_policy", is_given ? given : enum_name(cancelled.cancellation_policy));
  const auto& members = cancelled.member_execution_ids;
  if (cancelled.outcome == CancelOutcome::scheduled) {
    out.field("member_count", static_cast<std::uint64_t>(members.size()));
  }
  out.field("member_execution_ids", members);
  if (cancelled.outcome == CancelOutcome::partially_cancelled) {
    out.field("failed_member_execution_ids", cancelled.failed_member_execution_ids);
  }
  self.reply(200, out.end().end().take());
}

void cancel(const CallPtr& call) {
  const auto wait = call->query.text("wait").value_or("");
  const auto wait_ms = call->query.number<std::int64_t>("wait_timeout_ms").value_or(kDefaultCancelWaitMs);
  const auto fields = call->fields();
  const auto named = fields.maybe_id<FlowId>("flow_id");
  CancelFlow request{.flow_id = {}, .reason = fields.text("reason")};
  const auto policy = fields.text_or("cancellation_policy", "cancel_all");
  request.cancellation_policy = unwrap(parse_cancellation_policy(policy));
  fields.maybe_number<std::int64_t>("now");
  request.wait = wait == "true" || wait == "1";
  request.wait_ms = wait_ms;
  request.partial_when_late = true;
  request.flow_id = id_of(call, named);
  call->run(std::move(request), [policy](Call& self, const FlowCancellation& cancelled) {
    reply_cancellation(self, cancelled, policy);
  });
}

// ---- as a whole -------------------------------------------------------------------------------------------

FlowNode read_node(JsonView item, std::size_t place, const std::string& flow_namespace) {
  const Fields fields(item, "nodes[" + std::to_string(place) + "]");
  const auto name = fields.text("name");
  try {
    FlowNode node{.name = name, .execution = read_create(fields, flow_namespace)};
    if (const auto join = fields.find("join")) node.join = unwrap(parse_join_policy(join->compact()));
    return node;
  } catch (Error& error) {
    error.advice = "Node " + name + ": " + error.advice;
    throw error;
  }
}

void submit(const CallPtr& call) {
  const auto fields = call->fields();
  SubmitFlow request{
      .flow_id = fields.maybe_id<FlowId>("flow_id"),
      .flow_kind = fields.text("flow_kind"),
      .namespace_ = fields.text_or("namespace", "default"),
      .failure_policy = fields.maybe_word<FailurePolicy>("failure_policy").value_or(FailurePolicy{}),
      .tags = fields.tags()};
  for (const auto item : fields.array("nodes", 1, kMaxFlowNodes)) {
    request.nodes.push_back(read_node(item, request.nodes.size(), request.namespace_));
    request.nodes.back().execution.trace_context = call->trace_context;
  }
  if (fields.has("edges")) {
    for (const auto item : fields.array("edges", 0, kMaxFlowEdges)) {
      const Fields edge(item, "edges[" + std::to_string(request.edges.size()) + "]");
      request.edges.push_back({.from = edge.text("from"),
                               .to = edge.text("to"),
                               .pass_result = edge.flag_or("pass_result", false)});
    }
  }
  call->run_long(std::move(request), [](Call& self, const FlowSubmission& submitted) {
    JsonWriter out;
    out.object().field("flow_id", submitted.flow_id).field("executions", submitted.executions).end();
    self.reply(submitted.already_existed ? 200 : 201, out.take());
  });
}

// ---- reading ----------------------------------------------------------------------------------------------

void write_policy(JsonWriter& out, std::string_view name, const JoinPolicy& policy) {
  out.key(name).raw(to_json(policy));
}

void write_group(JsonWriter& out, const JoinSnapshot& group) {
  out.object().field("execution_id", group.downstream_execution_id);
  write_policy(out, "policy", group.policy);
  const auto needed = group.policy.kind == JoinKind::quorum   ? group.policy.k
                      : group.policy.kind == JoinKind::any_of ? 1
                                                              : group.total_deps;
  out.field("n", group.total_deps)
      .field("k", needed)
      .field("succeeded", group.satisfied_count)
      .field("failed", group.failed_count)
      .field("skipped", group.skipped_count)
      .field("running", group.running_count);
  write_word(out, "group_state", group.group_state);
  out.field("satisfied_at", group.satisfied_at).end();
}

// The same, in the form of the reference's snapshot.
void write_edge_group(JsonWriter& out, const JoinSnapshot& group) {
  out.object().field("downstream_execution_id", group.downstream_execution_id);
  write_policy(out, "policy", group.policy);
  out.field("total_deps", group.total_deps)
      .field("satisfied_count", group.satisfied_count)
      .field("failed_count", group.failed_count)
      .field("skipped_count", group.skipped_count)
      .field("running_count", group.running_count);
  write_word(out, "group_state", group.group_state);
  out.end();
}

void read(const CallPtr& call) {
  call->read(DescribeFlow{id_of(call)}, [](Call& self, const FlowSnapshot& flow) {
    JsonWriter out;
    out.object()
        .field("flow_id", flow.flow_id)
        .field("flow_kind", flow.flow_kind)
        .field("namespace", flow.namespace_);
    write_word(out, "public_flow_state", flow.public_flow_state);
    write_word(out, "state", flow.state);
    write_word(out, "failure_policy", flow.failure_policy);
    out.field("graph_revision", flow.graph_revision)
        .field("node_count", flow.node_count)
        .field("edge_count", flow.edge_count)
        .field("created_at", flow.created_at)
        .field("last_mutation_at", flow.last_mutation_at)
        .field("cancelled_at", flow.cancelled_at);
    write_text_or_null(out, "cancel_reason", flow.cancel_reason);
    write_word(out, "cancellation_policy", flow.cancellation_policy);
    out.field("tags", flow.tags);
    write_counts(out.key("counts"), flow.counts);
    out.key("edge_groups").array();
    for (const auto& group : flow.edge_groups) write_edge_group(out, group);
    self.reply(200, out.end().end().take());
  });
}

void read_graph(const CallPtr& call) {
  call->read(ReadFlowGraph{id_of(call)}, [](Call& self, const FlowGraph& graph) {
    JsonWriter out;
    out.object().key("nodes").array();
    for (const auto& node : graph.nodes) {
      out.object().field("execution_id", node.execution_id);
      write_text_or_null(out, "name", node.name);
      out.field("execution_kind", node.execution_kind);
      write_word(out, "public_state", node.public_state);
      out.end();
    }
    out.end().key("edges").array();
    for (const auto& edge : graph.edges) {
      out.object()
          .field("edge_id", edge.edge_id)
          .field("from", edge.upstream_execution_id)
          .field("to", edge.downstream_execution_id);
      // An edge that is not applied is shown as pending.
      if (edge.edge_state == EdgeState::pending)
        write_word(out, "state", edge.edge_state);
      else
        write_word(out, "state", edge.dependency_state);
      write_text_or_null(out, "data_passing_ref", edge.data_passing_ref);
      out.end();
    }
    out.end().key("groups").array();
    for (const auto& group : graph.groups) write_group(out, group);
    self.reply(200, out.end().end().take());
  });
}

FlowFilter read_flow_filter(const Query& query) {
  FlowFilter filter{.namespace_ = query.text("namespace"), .flow_kind = query.text("kind")};
  for (const auto& word : query.all("state")) {
    const auto state = enum_from_name<FlowState>(word);
    if (!state)
      refuse_input("query parameter state: no flow is ever " + word,
                   "Give open, completed, failed or cancelled.");
    if (std::ranges::find(filter.states, *state) == filter.states.end()) filter.states.push_back(*state);
  }
  for (const auto& word : query.all("tag")) {
    const auto equals = word.find('=');
    if (equals == std::string::npos) refuse_input("query parameter tag must be key=value", kTagAdvice);
    filter.tags.insert_or_assign(word.substr(0, equals), word.substr(equals + 1));
  }
  filter.created_after = query.number<std::int64_t>("created_after");
  filter.created_before = query.number<std::int64_t>("created_before");
  return filter;
}

void reply_page(Call& self, const FlowPage& page) {
  JsonWriter out;
  out.object().key("flows").array();
  for (const auto& flow : page.flows) {
    out.object()
        .field("flow_id", flow.flow_id)
        .field("flow_kind", flow.flow_kind)
        .field("namespace", flow.namespace_);
    write_word(out, "state", flow.state);
    out.field("created_at", flow.created_at)
        .field("node_count", flow.node_count)
        .field("tags", flow.tags)
        .end();
  }
  self.reply(200, out.end().field("next_cursor", page.next_cursor).end().take());
}

void list(const CallPtr& call) {
  const auto& query = call->query;
  ListFlows request{.filter = read_flow_filter(query)};
  if (const auto order = query.text("order")) {
    const auto known = enum_from_name<ListOrder>(*order);
    if (!known) refuse_input("query parameter order must be newest or oldest", kOrderAdvice);
    request.order = *known;
  }
  request.limit = read_limit(query, 50, 1, 1000);
  request.cursor = query.text("cursor").value_or("");
  call->read(std::move(request), reply_page);
}

// ---- changing ---------------------------------------------------------------------------------------------

void reply_tags(Call& self, const Tags& tags) {
  JsonWriter out;
  self.reply(200, out.object().field("tags", tags).end().take());
}

void read_tags(const CallPtr& call) {
  call->read(DescribeFlow{id_of(call)},
             [](Call& self, const FlowSnapshot& flow) { reply_tags(self, flow.tags); });
}

void set_tags(const CallPtr& call) {
  auto changes = read_tag_changes(call->fields());
  call->run(SetFlowTags{.flow_id = id_of(call), .tags = std::move(changes)},
            [](Call& self, const TagsSet& set) { reply_tags(self, set.tags); });
}

void set_policy(const CallPtr& call) {
  const auto fields = call->fields();
  if (fields.text("kind") == "quorum") fields.number<std::int64_t>("k");
  fields.maybe_text("on_satisfied");
  const auto policy = unwrap(parse_join_policy(call->body->root().compact()));
  const auto member = path_id<ExecutionId>("execution_id", call->segments[1]);
  const auto flow_id = id_of(call);
  call->run_long(SetJoinPolicy{.flow_id = flow_id, .downstream_execution_id = member, .policy = policy},
                 [flow_id, member, policy](Call& self, const JoinPolicySet&) {
                   const auto flow = unwrap(self.engine().call(DescribeFlow{flow_id}));
                   for (const auto& group : flow.edge_groups) {
                     if (group.downstream_execution_id != member) continue;
                     JsonWriter out;
                     write_group(out, group);
                     return self.reply(200, out.take());
                   }
                   // No member waits there yet.
                   JsonWriter out;
                   write_group(out, JoinSnapshot{.downstream_execution_id = member, .policy = policy});
                   self.reply(200, out.take());
                 });
}

// ---- edges ------------------------------------------------------------------------------------------------

void write_edge(JsonWriter& out, const EdgeSnapshot& edge) {
  out.object()
      .field("edge_id", edge.edge_id)
      .field("flow_id", edge.flow_id)
      .field("upstream_execution_id", edge.upstream_execution_id)
      .field("downstream_execution_id", edge.downstream_execution_id)
      .field("dependency_kind", edge.dependency_kind)
      .field("satisfaction_condition", edge.satisfaction_condition);
  write_text_or_null(out, "data_passing_ref", edge.data_passing_ref);
  write_word(out, "edge_state", edge.edge_state);
  write_word(out, "dependency_state", edge.dependency_state);
  out.field("created_at", edge.created_at)
      .field("applied_at", edge.applied_at)
      .field("resolved_at", edge.resolved_at)
      .field("created_by", edge.created_by)
      .end();
}

void describe_edge(const CallPtr& call) {
  const auto flow_id = path_id<FlowId>("flow_id", call->segments[0]);
  const auto edge_id = path_id<EdgeId>("edge_id", call->segments[1]);
  call->read(DescribeEdge{.flow_id = flow_id, .edge_id = edge_id},
             [](Call& self, const std::optional<EdgeSnapshot>& edge) {
               if (!edge)
                 return self.reply(Error{ErrorCode::edge_not_found, "", "The flow has no such edge."});
               JsonWriter out;
               write_edge(out, *edge);
               self.reply(200, out.take());
             });
}

void list_edges(const CallPtr& call) {
  const auto direction = call->query.text("direction").value_or("outgoing");
  if (direction != "outgoing" && direction != "incoming") {
    refuse_input("query parameter direction must be outgoing or incoming", "Give one of them.");
  }
  ListEdges request{.execution_id = path_id<ExecutionId>("execution_id", call->segments[0])};
  if (direction == "incoming") request.direction = ListEdges::Direction::incoming;
  call->read(std::move(request), [](Call& self, const std::vector<EdgeSnapshot>& edges) {
    JsonWriter out;
    out.object().key("edges").array();
    for (const auto& edge : edges) write_edge(out, edge);
    self.reply(200, out.end().end().take());
  });
}

constexpr Route kRoutes[] = {
    {"POST", "/v1/flows", "create_flow", Body::json, kSmallBody, create},
    {"POST", "/v1/flows/{id}/members", "add_execution_to_flow", Body::json, kSmallBody, add_member},
    {"POST", "/v1/flows/{id}/cancel", "cancel_flow", Body::json, kSmallBody, cancel},
    {"POST", "/v1/flows/{id}/edges", "stage_dependency_edge", Body::json, kSmallBody, stage_edge},
    {"POST", "/v1/flows/{id}/edges/apply", "apply_dependency_to_child", Body::json, kSmallBody, apply_edge},
    {"POST", "/v1/flows/submit", "submit_flow", Body::json, kBulkBody, submit},
    {"GET", "/v1/flows", "list_flows", Body::none, kSmallBody, list},
    {"GET", "/v1/flows/{id}", "describe_flow", Body::none, kSmallBody, read},
    {"GET", "/v1/flows/{id}/graph", "read_flow_graph", Body::none, kSmallBody, read_graph},
    {"GET", "/v1/flows/{id}/edges/{edge_id}", "describe_edge", Body::none, kSmallBody, describe_edge},
    {"GET", "/v1/executions/{id}/edges", "list_edges", Body::none, kSmallBody, list_edges},
    {"GET", "/v1/flows/{id}/tags", "read_flow_tags", Body::none, kSmallBody, read_tags},
    {"PUT", "/v1/flows/{id}/tags", "set_flow_tags", Body::json, kSmallBody, set_tags},
    {"PUT", "/v1/flows/{id}/groups/{execution_id}", "set_join_policy", Body::json, kSmallBody, set_policy},
};

}  // namespace

std::span<const Route> flow_routes() {
  return kRoutes;
}

}  // namespace flowfabric::api
