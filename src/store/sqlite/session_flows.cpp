// What a session answers about flows.
#include <algorithm>

#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

template <class Question>
std::vector<EdgeKey> SqliteSession::edges_by(const std::string& column, const ExecutionId& end,
                                             const Question& question) {
  std::string sql =
      "select partition_key,flow_id,edge_id from ff_edge where partition_key=?1 and " + column + "=?2";
  if (question.after) sql += " and edge_id>?4";
  auto& query = statement(sql + " order by edge_id limit ?3");
  bind_all(query.get(), 1, end);
  bind(query.get(), 3, question.limit);
  if (question.after) bind(query.get(), 4, *question.after);
  return rows<EdgeKey>(query);
}

// Asked whenever a member of a flow ends: so it is answered without waiting for what is being written.
std::vector<EdgeKey> SqliteSession::answer(const core::EdgesFrom& question) {
  if (!recent_) return edges_by("upstream_eid", question.upstream, question);
  const auto* all = recent_->edges_from(question.upstream);
  auto keys = all ? *all : edges_by("upstream_eid", question.upstream, question);
  if (!all) {
    const auto added = recent_->new_edges_from(question.upstream);
    keys.insert(keys.end(), added.begin(), added.end());
  }
  if (question.after) {
    std::erase_if(keys, [&](const EdgeKey& key) { return key.edge_id <= *question.after; });
  }
  std::ranges::sort(keys);
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  if (keys.size() > question.limit) keys.resize(question.limit);
  return keys;
}

std::vector<EdgeKey> SqliteSession::answer(const core::EdgesInto& question) {
  return edges_by("downstream_eid", question.downstream, question);
}

std::vector<ExecutionId> SqliteSession::answer(const core::Descendants& question) {
  auto& query = statement(
      "with recursive reached(id) as ("
      "select downstream_eid from ff_edge where partition_key=?1 and upstream_eid=?2 "
      "union select e.downstream_eid from reached r join ff_edge e "
      "on e.partition_key=?1 and e.upstream_eid=r.id) "
      "select ?1,id from reached");
  bind_all(query.get(), 1, question.of);
  return rows<ExecutionId>(query);
}

std::vector<core::MemberPhase> SqliteSession::answer(const core::MembersOf& question) {
  auto& query =
      statement("select partition_key,execution_id,lifecycle_phase from ff_exec_core where flow_id=?1");
  bind(query.get(), 1, question.flow_id);
  return rows<core::MemberPhase>(query);
}

std::vector<ExecutionId> SqliteSession::answer(const core::OwedCancels& question) {
  std::string sql =
      "select partition_key,execution_id from ff_cancel_backlog_member where partition_key=?1 and flow_id=?2";
  if (question.after) sql += " and execution_id>?4";
  auto& query = statement(sql + " order by execution_id limit ?3");
  bind_all(query.get(), 1, question.flow);
  bind(query.get(), 3, question.limit);
  if (question.after) bind(query.get(), 4, *question.after);
  return rows<ExecutionId>(query);
}

FlowCounts SqliteSession::count_flow(const FlowId& flow, const std::vector<std::string>& harmless_reasons) {
  auto& query = statement(
      "select public_state,count(*),sum(cancellation_reason in (select value from json_each(?2))) "
      "from ff_exec_core where flow_id=?1 group by public_state");
  const ResetAfterUse reset(query);
  bind(query.get(), 1, flow);
  bind(query.get(), 2, harmless_reasons);
  FlowCounts counts;
  while (query.step()) {
    PublicState state{};
    std::int64_t harmless = 0;
    read(query.get(), 0, state);
    read(query.get(), 1, counts.by_state[state]);
    read(query.get(), 2, harmless);
    counts.without_harm += harmless;
  }
  return counts;
}

template <class Record>
std::vector<Record> SqliteSession::all_of_flow(const FlowKey& flow, const std::string& order) {
  auto& query = statement("select " + column_list<Record>() + " from " + Record::table +
                          " where partition_key=?1 and flow_id=?2 order by " + order);
  bind_all(query.get(), 1, flow);
  return rows<Record>(query);
}

std::vector<Edge> SqliteSession::edges_of(const FlowKey& flow) {
  return all_of_flow<Edge>(flow, "edge_id");
}

std::vector<EdgeGroup> SqliteSession::joins_of(const FlowKey& flow) {
  return all_of_flow<EdgeGroup>(flow, "downstream_eid");
}

std::vector<NodeName> SqliteSession::node_names(const FlowId& flow) {
  auto& query = statement(
      "select s.partition_key,s.execution_id,s.node_name from ff_exec_core c join ff_exec_spec s "
      "on s.partition_key=c.partition_key and s.execution_id=c.execution_id "
      "where c.flow_id=?1 and s.node_name is not null");
  bind(query.get(), 1, flow);
  return rows<NodeName>(query);
}

}  // namespace flowfabric::store::sqlite
