#include "support/flow_printing.h"

namespace flowfabric {

std::ostream& operator<<(std::ostream& out, const JoinPolicy& policy) {
  out << policy.kind;
  if (policy.kind == JoinKind::quorum) out << ' ' << policy.k;
  return print_optional(out << ' ', policy.on_satisfied);
}

std::ostream& operator<<(std::ostream& out, const FlowCreation& creation) {
  return out << creation.flow_id << (creation.already_existed ? " existed" : " created");
}

std::ostream& operator<<(std::ostream& out, const MemberAdded& added) {
  return out << added.execution_id << (added.already_member ? " was" : " is now") << " one of "
             << added.node_count;
}

std::ostream& operator<<(std::ostream& out, const EdgeApplied& applied) {
  return out << (applied.already_applied ? "was applied, " : "applied, ") << applied.unsatisfied_count
             << " unsatisfied";
}

std::ostream& operator<<(std::ostream& out, const FlowSubmission& submission) {
  out << submission.flow_id << (submission.already_existed ? " existed" : " created");
  for (const auto& [name, id] : submission.executions) out << ' ' << name << '=' << id;
  return out;
}

std::ostream& operator<<(std::ostream& out, const FlowCancellation& cancellation) {
  return out << cancellation.outcome << " by " << cancellation.cancellation_policy << " members "
             << cancellation.member_execution_ids.size() << " failed "
             << cancellation.failed_member_execution_ids.size()
             << (cancellation.already_terminal ? " already terminal" : "");
}

std::ostream& operator<<(std::ostream& out, const JoinSnapshot& join) {
  out << join.downstream_execution_id << ' ' << join.policy << ' ' << join.total_deps << " edges "
      << join.satisfied_count << ',' << join.failed_count << ',' << join.skipped_count << ','
      << join.running_count << ' ' << join.group_state;
  print_optional(out << " satisfied at ", join.satisfied_at);
  return out << (join.cancel_siblings_pending ? " siblings pending '" : " siblings '")
             << join.cancel_siblings_reason << '\'';
}

std::ostream& operator<<(std::ostream& out, const EdgeSnapshot& edge) {
  out << edge.edge_id << " of " << edge.flow_id << ": " << edge.upstream_execution_id << " > "
      << edge.downstream_execution_id << ' ' << edge.dependency_kind << '/' << edge.satisfaction_condition
      << " '" << edge.data_passing_ref << "' " << edge.edge_state << '/' << edge.dependency_state
      << " created " << edge.created_at << " by " << edge.created_by;
  print_optional(out << " applied ", edge.applied_at);
  return print_optional(out << " resolved ", edge.resolved_at);
}

std::ostream& operator<<(std::ostream& out, const FlowSnapshot& flow) {
  out << flow.flow_id << " '" << flow.flow_kind << "' in '" << flow.namespace_ << "' "
      << flow.public_flow_state << '/' << flow.state << ' ' << flow.failure_policy << " revision "
      << flow.graph_revision << " nodes " << flow.node_count << " edges " << flow.edge_count << " created "
      << flow.created_at << " mutated " << flow.last_mutation_at;
  print_optional(out << " cancelled ", flow.cancelled_at);
  print_optional(out << " '" << flow.cancel_reason << "' ", flow.cancellation_policy);
  for (const auto& [key, value] : flow.tags) out << ' ' << key << '=' << value;
  for (const auto& [state, count] : flow.counts) out << ' ' << state << ':' << count;
  for (const auto& group : flow.edge_groups) out << "\n  " << group;
  return out;
}

std::ostream& operator<<(std::ostream& out, const FlowSummary& flow) {
  out << flow.flow_id << " '" << flow.flow_kind << "' in '" << flow.namespace_ << "' " << flow.state
      << " created " << flow.created_at << " nodes " << flow.node_count;
  for (const auto& [key, value] : flow.tags) out << ' ' << key << '=' << value;
  return out;
}

std::ostream& operator<<(std::ostream& out, const FlowGraph::Node& node) {
  return out << node.execution_id << " '" << node.name << "' " << node.execution_kind << ' '
             << node.public_state;
}

std::ostream& operator<<(std::ostream& out, const FlowGraph& graph) {
  for (const auto& node : graph.nodes) out << "\n  " << node;
  for (const auto& edge : graph.edges) out << "\n  " << edge;
  for (const auto& group : graph.groups) out << "\n  " << group;
  return out;
}

}  // namespace flowfabric
