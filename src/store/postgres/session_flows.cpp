// What a session answers about flows.
#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

using core::Unit;

namespace {

// Whoever asks for more is not about to resolve them.
constexpr std::uint32_t kMostResolved = 1000;

// The edges out of each of $1, $2, behind $3 and at most $4 of them.
const std::string kEdgesAsked =
    " from unnest($1::int4[],$2::uuid[],$3::uuid[],$4::int8[]) with ordinality "
    "as k(partition_key,upstream_eid,after,most,asked) cross join lateral ("
    "select * from ff_edge t where t.partition_key=k.partition_key and t.upstream_eid=k.upstream_eid "
    "and (k.after is null or t.edge_id>k.after) order by t.edge_id limit k.most) as e";

Parameters parameters_of(const std::vector<core::EdgesFrom>& questions) {
  Parameters parameters;
  const auto array = [&]<class Field>(auto get) {
    parameters.add_array<Field>(questions, [&](std::string& bytes, const core::EdgesFrom& question) {
      append_value(bytes, get(question));
    });
  };
  array.operator()<std::uint16_t>([](const auto& asked) { return asked.upstream.partition; });
  array.operator()<Uuid>([](const auto& asked) { return asked.upstream.uuid; });
  array.operator()<std::optional<EdgeId>>([](const auto& asked) { return asked.after; });
  array.operator()<std::uint32_t>([](const auto& asked) { return asked.limit; });
  return parameters;
}

}  // namespace

// All of them together. Edges and joins come along, and downstreams: whoever asks is about to resolve them.
void PostgresSession::post_edges_from(Unit& unit) {
  static const std::string sql = "select k.asked," + columns_of<Edge>("e") + "," +
                                 columns_of<EdgeGroup>("g") + kEdgesAsked + " left join ff_edge_group g on " +
                                 same_key<EdgeGroup>("g", "e") + " order by k.asked,e.edge_id";
  constexpr int after_edge = 1 + static_cast<int>(column_count<Edge>());
  const auto questions = std::exchange(unit.wanted_answers<core::EdgesFrom>(), {});
  // Their locks come before what their joins say.
  if (access_ == Access::write) post_downstreams(unit, questions);
  connection_->post(sql, parameters_of(questions), [&unit, questions](const Rows& found) {
    std::vector<std::vector<EdgeKey>> answers(questions.size());
    for (int row = 0; row < found.size(); ++row) {
      auto edge = std::make_shared<const Edge>(found.get_struct<Edge>(row, 1));
      const auto key = edge->key();
      answers[static_cast<std::size_t>(found.get<std::int64_t>(row, 0)) - 1].push_back(key);
      unit.put<Edge>(key, std::move(edge));
      if (found.is_null(row, after_edge)) continue;
      auto join = std::make_shared<const EdgeGroup>(found.get_struct<EdgeGroup>(row, after_edge));
      const auto join_key = join->key();
      unit.put<EdgeGroup>(join_key, std::move(join));
    }
    for (std::size_t i = 0; i < questions.size(); ++i) unit.put_answer(questions[i], std::move(answers[i]));
  });
}

void PostgresSession::post_downstreams(Unit& unit, std::vector<core::EdgesFrom> questions) {
  static const std::string sql = std::string("select ") + kVersionColumns + kEdgesAsked +
                                 " join ff_exec_core t on t.partition_key=e.partition_key and "
                                 "t.execution_id=e.downstream_eid "
                                 "order by t.partition_key,t.execution_id for update of t";
  std::erase_if(questions, [](const auto& question) { return question.limit > kMostResolved; });
  if (questions.empty()) return;
  connection_->post(sql, parameters_of(questions), [this, &unit](const Rows& found) {
    std::vector<ExecutionId> ids;
    for (int row = 0; row < found.size(); ++row) ids.push_back(found.get_struct<ExecutionId>(row));
    take_cached(unit, ids, found);
  });
}

void PostgresSession::post_answer(Unit& unit, const core::EdgesInto& question) {
  connection_->post(
      "select partition_key,flow_id,edge_id from ff_edge where partition_key=$1::int4 "
      "and downstream_eid=$2::uuid and ($3::uuid is null or edge_id>$3::uuid) order by edge_id limit "
      "$4::int8",
      Parameters()
          .add_fields(question.downstream)
          .add(question.after)
          .add(static_cast<std::int64_t>(question.limit)),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<EdgeKey>()); });
}

void PostgresSession::post_answer(Unit& unit, const core::Descendants& question) {
  connection_->post(
      "with recursive reached(id) as ("
      "select downstream_eid from ff_edge where partition_key=$1::int4 and upstream_eid=$2::uuid "
      "union select e.downstream_eid from reached r join ff_edge e "
      "on e.partition_key=$1::int4 and e.upstream_eid=r.id) "
      "select $1::int4,id from reached",
      Parameters().add_fields(question.of),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<ExecutionId>()); });
}

void PostgresSession::post_answer(Unit& unit, const core::MembersOf& question) {
  connection_->post(
      "select partition_key,execution_id,lifecycle_phase from ff_exec_core where flow_id=$1::uuid",
      Parameters().add(question.flow_id),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<core::MemberPhase>()); });
}

void PostgresSession::post_answer(Unit& unit, const core::OwedCancels& question) {
  connection_->post(
      "select partition_key,execution_id from ff_cancel_backlog_member "
      "where partition_key=$1::int4 and flow_id=$2::uuid and ($3::uuid is null or execution_id>$3::uuid) "
      "order by execution_id limit $4::int8",
      Parameters()
          .add_fields(question.flow)
          .add(question.after)
          .add(static_cast<std::int64_t>(question.limit)),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<ExecutionId>()); });
}

std::optional<FlowId> PostgresSession::remembered_flow(const ExecutionId& id) const {
  const auto cached = settings_.cache->find(id);
  return cached ? cached->execution->flow_id : std::nullopt;
}

FlowCounts PostgresSession::count_flow(const FlowId& flow, const std::vector<std::string>& harmless_reasons) {
  FlowCounts counts;
  static const std::string sql =
      "select public_state,count(*),count(*) filter (where cancellation_reason=any($2::text[])) "
      "from ff_exec_core where flow_id=$1::uuid group by public_state";
  Parameters parameters;
  parameters.add(flow);
  parameters.add_array<std::string>(harmless_reasons, append_value<std::string>);
  connection_->run(sql, parameters, [&](const Rows& found) {
    for (int row = 0; row < found.size(); ++row) {
      counts.by_state[found.get<PublicState>(row, 0)] = found.get<std::int64_t>(row, 1);
      counts.without_harm += found.get<std::int64_t>(row, 2);
    }
  });
  return counts;
}

std::vector<Edge> PostgresSession::edges_of(const FlowKey& flow) {
  static const std::string sql = "select " + column_list<Edge>() +
                                 " from ff_edge where partition_key=$1::int4 and flow_id=$2::uuid "
                                 "order by edge_id";
  return rows<Edge>(sql, Parameters().add_fields(flow));
}

std::vector<EdgeGroup> PostgresSession::joins_of(const FlowKey& flow) {
  static const std::string sql = "select " + column_list<EdgeGroup>() +
                                 " from ff_edge_group where partition_key=$1::int4 and flow_id=$2::uuid "
                                 "order by downstream_eid";
  return rows<EdgeGroup>(sql, Parameters().add_fields(flow));
}

std::vector<NodeName> PostgresSession::node_names(const FlowId& flow) {
  return rows<NodeName>(
      "select s.partition_key,s.execution_id,s.node_name from ff_exec_core c join ff_exec_spec s "
      "on s.partition_key=c.partition_key and s.execution_id=c.execution_id "
      "where c.flow_id=$1::uuid and s.node_name is not null",
      Parameters().add(flow));
}

}  // namespace flowfabric::store::postgres
