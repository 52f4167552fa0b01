// What the SQLite store knows of budgets and quota policies.
#include "core/index_rules.h"
#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

std::vector<core::ListPosition> SqliteSession::answer(const core::BlockedOn& question) {
  std::string sql = "select created_at_ms,partition_key,execution_id from ff_exec_core where blocked_on=?1";
  if (question.after) sql += " and (created_at_ms,partition_key,execution_id)>(?3,?4,?5)";
  auto& query = statement(sql + " order by created_at_ms,partition_key,execution_id limit ?2");
  bind(query.get(), 1, question.limit_id);
  bind(query.get(), 2, question.limit);
  if (question.after) bind_all(query.get(), 3, *question.after);
  return rows<core::ListPosition>(query);
}

std::vector<core::WindowEntry> SqliteSession::answer(const core::WindowOf& question) {
  auto& query = statement(
      "select partition_key,quota_policy_id,execution_partition,execution_id,window_at_ms "
      "from ff_quota_admitted "
      "where quota_policy_id=?1 and window_at_ms is not null order by window_at_ms limit ?2");
  bind(query.get(), 1, question.policy.quota_policy_id);
  bind(query.get(), 2, question.limit);
  return rows<core::WindowEntry>(query);
}

std::vector<QuotaAdmissionKey> SqliteSession::answer(const core::SlotsOf& question) {
  auto& query = statement(
      "select partition_key,quota_policy_id,execution_partition,execution_id from ff_quota_admitted "
      "where partition_key=?1 and quota_policy_id=?2 and holds_slot=1");
  bind_all(query.get(), 1, question.policy);
  return rows<QuotaAdmissionKey>(query);
}

std::vector<QuotaAdmissionKey> SqliteSession::answer(const core::StraySlotsOf& question) {
  static const std::string sql =
      "select a.partition_key,a.quota_policy_id,a.execution_partition,a.execution_id "
      "from ff_quota_admitted a "
      "left join ff_exec_core e on e.partition_key=a.execution_partition and e.execution_id=a.execution_id "
      "where a.partition_key=?1 and a.quota_policy_id=?2 and a.holds_slot=1 "
      "and e.ownership_state is not '" +
      std::string(enum_name(core::kHeld)) +
      "' and e.grant_expires_at_ms is null order by a.execution_partition,a.execution_id limit ?3";
  auto& query = statement(sql);
  bind(query.get(), bind_all(query.get(), 1, question.policy), question.limit);
  return rows<QuotaAdmissionKey>(query);
}

// Without an index: it is asked when an operator changes a lane.
std::vector<QuotaPolicyKey> SqliteSession::answer(const core::FullKeysOf& question) {
  auto& query = statement(
      "select partition_key,quota_policy_id from ff_quota_policy where lane_id=?1 and has_blocked=1 "
      "order by partition_key,quota_policy_id limit ?2");
  bind(query.get(), 1, question.lane_id);
  bind(query.get(), 2, question.limit);
  return rows<QuotaPolicyKey>(query);
}

// Without an index: it is asked when a limit is deleted.
std::vector<ScopeLimitsKey> SqliteSession::answer(const core::ScopesOf& question) {
  auto& query = statement(
      "select scope_type,scope_id from ff_limit_attachment "
      "where instr(budget_ids,?1)>0 or instr(quota_policy_ids,?1)>0");
  const auto id = question.limit_id.to_string();
  bind(query.get(), 1, id);
  return rows<ScopeLimitsKey>(query);
}

std::vector<SpendKey> SqliteSession::answer(const core::SpendingOf& question) {
  std::string sql =
      "select partition_key,execution_id,budget_id from ff_budget_usage_by_exec where budget_id=?1";
  if (question.after) sql += " and (partition_key,execution_id)>(?3,?4)";
  auto& query = statement(sql + " order by partition_key,execution_id limit ?2");
  bind(query.get(), 1, question.budget_id);
  bind(query.get(), 2, question.limit);
  if (question.after) bind_all(query.get(), 3, *question.after);
  return rows<SpendKey>(query);
}

}  // namespace flowfabric::store::sqlite
