// What the SQLite store knows of suspensions.
#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

std::vector<WaitpointRecordKey> SqliteSession::answer(const core::OpenWaitpoints& question) {
  auto& query = statement(
      "select partition_key,execution_id,waitpoint_id from ff_waitpoint_pending "
      "where partition_key=?1 and execution_id=?2 and state<>'closed' order by waitpoint_id");
  bind_all(query.get(), 1, question.of);
  return rows<WaitpointRecordKey>(query);
}

std::vector<HmacKeyKey> SqliteSession::answer(const core::RetiredSecrets&) {
  return rows<HmacKeyKey>(
      statement("select kid from ff_waitpoint_hmac where active is not true order by kid"));
}

std::vector<SuspensionKey> SqliteSession::suspended(const SuspendedScan& scan) {
  std::string sql =
      "select partition_key,execution_id from ff_suspension_current "
      "where suspension_id is not null and closed_at_ms is null and partition_key=?1";
  if (scan.after_ms)
    sql += " and (suspended_at_ms,execution_id)>(?3,?4)";
  else if (scan.after_id)
    sql += " and execution_id>?4";
  auto& query = statement(sql + " order by suspended_at_ms,execution_id limit ?2");
  bind(query.get(), 1, scan.partition_key);
  bind(query.get(), 2, scan.limit);
  if (scan.after_ms) bind(query.get(), 3, *scan.after_ms);
  if (scan.after_id) bind(query.get(), 4, *scan.after_id);
  return rows<SuspensionKey>(query);
}

}  // namespace flowfabric::store::sqlite
