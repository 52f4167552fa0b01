// What the SQLite store knows of budgets and quota policies.
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
