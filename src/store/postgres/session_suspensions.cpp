// What the PostgreSQL store knows of suspensions.
#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

void PostgresSession::post_answer(core::Unit& unit, const core::OpenWaitpoints& question) {
  connection_->post(
      "select partition_key,execution_id,waitpoint_id from ff_waitpoint_pending "
      "where partition_key=$1::int4 and execution_id=$2::uuid and state<>'closed' order by waitpoint_id",
      Parameters().add_fields(question.of),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<WaitpointRecordKey>()); });
}

void PostgresSession::post_answer(core::Unit& unit, const core::WaitpointsNamed& question) {
  connection_->post(
      "select partition_key,execution_id,waitpoint_id from ff_waitpoint_pending "
      "where waitpoint_id=$1::uuid",
      Parameters().add(question.waitpoint_id),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<WaitpointRecordKey>()); });
}

void PostgresSession::post_answer(core::Unit& unit, const core::RetiredSecrets& question) {
  connection_->post(
      "select kid from ff_waitpoint_hmac where active is not true order by kid", Parameters(),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<HmacKeyKey>()); });
}

std::vector<SuspensionKey> PostgresSession::suspended(const SuspendedScan& scan) {
  // Each partition has its order in the index.
  const std::string behind = scan.after_ms   ? "and (suspended_at_ms,execution_id)>($4::int8,$5::uuid) "
                             : scan.after_id ? "and execution_id>$4::uuid "
                                             : "";
  const auto sql =
      "select found.partition_key,found.execution_id "
      "from generate_series($1::int4,$2::int4) as wanted(partition_key) cross join lateral ("
      "select s.partition_key,execution_id,suspended_at_ms from ff_suspension_current s "
      "where suspension_id is not null and closed_at_ms is null and s.partition_key=wanted.partition_key " +
      behind +
      "order by suspended_at_ms,execution_id limit $3::int8) as found "
      "order by found.suspended_at_ms,found.execution_id limit $3::int8";
  Parameters parameters;
  parameters.add(scan.first_partition).add(scan.last_partition).add(static_cast<std::int64_t>(scan.limit));
  if (scan.after_ms) parameters.add(*scan.after_ms);
  if (scan.after_id) parameters.add(*scan.after_id);
  return rows<SuspensionKey>(sql, parameters);
}

}  // namespace flowfabric::store::postgres
