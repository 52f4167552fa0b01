// What a session answers about flows.
#include <algorithm>

#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

using core::Unit;

namespace {

// The members of flow $1, as c.
const std::string kMembers = " from ff_flow_member m join ff_exec_core c on " +
                             same_key<Execution>("c", "m") + " where m.flow_id=$1::uuid";

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

// All of them together.
void PostgresSession::post_edges_from(Unit& unit) {
  auto questions = std::exchange(unit.wanted_answers<core::EdgesFrom>(), {});
  const auto others = std::ranges::stable_partition(questions, [&](const auto& question) {
    return access_ == Access::write && question.limit <= kMostResolved;
  });
  post_edges(unit, {others.begin(), others.end()}, false);
  questions.erase(others.begin(), others.end());
  post_edges(unit, std::move(questions), true);
}

// Whoever is about to resolve them needs downstreams and joins as well. Downstreams are locked first, in the
// order of keys. Their joins are locked only to be seen as whoever held a downstream before has left them.
void PostgresSession::post_edges(Unit& unit, std::vector<core::EdgesFrom> questions, bool to_resolve) {
  static const std::string edges = "select k.asked," + columns_of<Edge>("e") + kEdgesAsked;
  static const std::string resolved =
      "select e.*," + columns_of<EdgeGroup>("g") + ",t.xmin,e.partition_key,e.downstream_eid from (" + edges +
      " order by e.partition_key,e.downstream_eid offset 0) as e left join lateral ("
      "select t.xmin from ff_exec_core t where t.partition_key=e.partition_key and "
      "t.execution_id=e.downstream_eid for update) as t on true left join lateral ("
      "select * from ff_edge_group g where " +
      same_key<EdgeGroup>("g", "e") + " for update) as g on true";
  if (questions.empty()) return;
  const auto parameters = parameters_of(questions);
  connection_->post(to_resolve ? resolved : edges, parameters,
                    [this, &unit, questions = std::move(questions), to_resolve](const Rows& found) {
                      take_edges(unit, questions, found);
                      if (to_resolve) take_downstreams(unit, found);
                    });
}

void PostgresSession::take_edges(Unit& unit, const std::vector<core::EdgesFrom>& questions,
                                 const Rows& found) {
  std::vector<std::vector<EdgeKey>> answers(questions.size());
  for (int row = 0; row < found.size(); ++row) {
    auto edge = std::make_shared<const Edge>(found.get_struct<Edge>(row, 1));
    const auto key = edge->key();
    answers[static_cast<std::size_t>(found.get<std::int64_t>(row, 0)) - 1].push_back(key);
    unit.put<Edge>(key, std::move(edge));
  }
  for (std::size_t i = 0; i < questions.size(); ++i) {
    std::ranges::sort(answers[i]);
    unit.put_answer(questions[i], std::move(answers[i]));
  }
}

void PostgresSession::take_downstreams(Unit& unit, const Rows& found) {
  constexpr int after_edge = 1 + static_cast<int>(column_count<Edge>());
  constexpr int after_join = after_edge + static_cast<int>(column_count<EdgeGroup>());
  constexpr int after_version = after_join + 1;
  Versions versions;
  for (int row = 0; row < found.size(); ++row) {
    auto& version = versions[found.get_struct<ExecutionId>(row, after_version)];
    if (!found.is_null(row, after_join)) version = version_of(found, row, after_join);
    if (found.is_null(row, after_edge)) continue;
    auto join = std::make_shared<const EdgeGroup>(found.get_struct<EdgeGroup>(row, after_edge));
    const auto key = join->key();
    unit.put<EdgeGroup>(key, std::move(join));
  }
  take_cached(unit, versions);
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
  connection_->post("select c.partition_key,c.execution_id,c.lifecycle_phase" + kMembers,
                    Parameters().add(question.flow_id), [&unit, question](const Rows& found) {
                      unit.put_answer(question, found.all<core::MemberPhase>());
                    });
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

// Whoever is a member stays one until it is removed.
void PostgresSession::post_new_members(const Unit& unit) {
  static const std::string sql = insert_statement(flow_member_type());
  std::vector<FlowMember> members;
  for (const auto* any : unit.dirty(place_of<Execution>)) {
    const core::Slot<Execution> slot(*any);
    if (!slot.changed || !slot.changed->flow_id) continue;
    const auto& execution = *slot.changed;
    if (unit.is_stored(*any) && slot.stored->flow_id == execution.flow_id) continue;
    members.push_back(
        {*execution.flow_id, execution.created_at_ms, execution.partition_key, execution.execution_id});
  }
  if (members.empty()) return;
  std::vector<const void*> rows;
  for (const auto& member : members) rows.push_back(&member);
  connection_->post(sql, settings_.row_types->of_flow_members().parameters(rows));
}

void PostgresSession::post_members_gone(const std::vector<ExecutionId>& removed) {
  static const std::string sql = "delete from ff_flow_member m using " +
                                 keys_as_rows(record_type<Execution>()) + " join ff_exec_core c on " +
                                 same_key<Execution>("c", "k") + " where " +
                                 same_key(flow_member_type(), "m", "c");
  connection_->post(sql, key_parameters(removed));
}

std::optional<FlowId> PostgresSession::remembered_flow(const ExecutionId& id) const {
  const auto cached = settings_.cache->find(id);
  return cached ? cached->execution->flow_id : std::nullopt;
}

FlowCounts PostgresSession::count_flow(const FlowId& flow, const std::vector<std::string>& harmless_reasons) {
  FlowCounts counts;
  static const std::string sql =
      "select c.public_state,count(*),count(*) filter (where c.cancellation_reason=any($2::text[]))" +
      kMembers + " group by c.public_state";
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
  static const std::string sql =
      "select s.partition_key,s.execution_id,s.node_name from ff_flow_member m join ff_exec_spec s on " +
      same_key<ExecutionSpec>("s", "m") + " where m.flow_id=$1::uuid and s.node_name is not null";
  return rows<NodeName>(sql, Parameters().add(flow));
}

}  // namespace flowfabric::store::postgres
