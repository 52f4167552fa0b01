// What the PostgreSQL store knows of budgets and quota policies.
#include "core/index_rules.h"
#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

void PostgresSession::post_answer(core::Unit& unit, const core::BlockedOn& question) {
  const bool goes_on = question.after.has_value();
  static const std::string from =
      "select created_at_ms,partition_key,execution_id from ff_exec_core where blocked_on=$1::uuid";
  static const std::string order = " order by created_at_ms,partition_key,execution_id limit $2::int8";
  static const std::string first = from + order;
  static const std::string next =
      from + " and (created_at_ms,partition_key,execution_id)>($3::int8,$4::int4,$5::uuid)" + order;
  Parameters parameters;
  parameters.add(question.limit_id).add(static_cast<std::int64_t>(question.limit));
  if (goes_on) parameters.add_fields(*question.after);
  connection_->post(goes_on ? next : first, parameters, [&unit, question](const Rows& found) {
    unit.put_answer(question, found.all<core::ListPosition>());
  });
}

void PostgresSession::post_answer(core::Unit& unit, const core::WindowOf& question) {
  connection_->post(
      "select partition_key,quota_policy_id,execution_partition,execution_id,window_at_ms "
      "from ff_quota_admitted "
      "where quota_policy_id=$1::uuid and window_at_ms is not null order by window_at_ms limit $2::int8",
      Parameters().add(question.policy.quota_policy_id).add(static_cast<std::int64_t>(question.limit)),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<core::WindowEntry>()); });
}

void PostgresSession::post_answer(core::Unit& unit, const core::SlotsOf& question) {
  connection_->post(
      "select partition_key,quota_policy_id,execution_partition,execution_id from ff_quota_admitted "
      "where partition_key=$1::int4 and quota_policy_id=$2::uuid and holds_slot",
      Parameters().add_fields(question.policy),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<QuotaAdmissionKey>()); });
}

void PostgresSession::post_answer(core::Unit& unit, const core::StraySlotsOf& question) {
  static const std::string sql =
      "select a.partition_key,a.quota_policy_id,a.execution_partition,a.execution_id "
      "from ff_quota_admitted a "
      "left join ff_exec_core e on e.partition_key=a.execution_partition and e.execution_id=a.execution_id "
      "where a.partition_key=$1::int4 and a.quota_policy_id=$2::uuid and a.holds_slot "
      "and e.ownership_state is distinct from '" +
      std::string(enum_name(core::kHeld)) +
      "' and e.grant_expires_at_ms is null "
      "order by a.execution_partition,a.execution_id limit $3::int8";
  connection_->post(
      sql, Parameters().add_fields(question.policy).add(static_cast<std::int64_t>(question.limit)),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<QuotaAdmissionKey>()); });
}

// Without an index: it is asked when an operator changes a lane.
void PostgresSession::post_answer(core::Unit& unit, const core::FullKeysOf& question) {
  connection_->post(
      "select partition_key,quota_policy_id from ff_quota_policy where lane_id=$1::text and has_blocked "
      "order by partition_key,quota_policy_id limit $2::int8",
      Parameters().add(question.lane_id).add(static_cast<std::int64_t>(question.limit)),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<QuotaPolicyKey>()); });
}

// Without an index: it is asked when a limit is deleted.
void PostgresSession::post_answer(core::Unit& unit, const core::ScopesOf& question) {
  connection_->post(
      "select scope_type,scope_id from ff_limit_attachment where budget_ids ? $1::text or quota_policy_ids ? "
      "$1::text",
      Parameters().add(question.limit_id.to_string()),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<ScopeLimitsKey>()); });
}

void PostgresSession::post_answer(core::Unit& unit, const core::SpendingOf& question) {
  const auto after = question.after.value_or(ExecutionId{});
  connection_->post(
      "select partition_key,execution_id,budget_id from ff_budget_usage_by_exec where budget_id=$1::uuid "
      "and ($3::bool or (partition_key,execution_id)>($4::int4,$5::uuid)) "
      "order by partition_key,execution_id limit $2::int8",
      Parameters()
          .add(question.budget_id)
          .add(static_cast<std::int64_t>(question.limit))
          .add(!question.after.has_value())
          .add_fields(after),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<SpendKey>()); });
}

}  // namespace flowfabric::store::postgres
