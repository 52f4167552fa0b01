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

void PostgresSession::post_answer(core::Unit& unit, const core::RetiredSecrets& question) {
  connection_->post(
      "select kid from ff_waitpoint_hmac where active is not true order by kid", Parameters(),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<HmacKeyKey>()); });
}

std::vector<SuspensionKey> PostgresSession::suspended(const SuspendedScan& scan) {
  static const std::string sql =
      "select partition_key,execution_id from ff_suspension_current "
      "where suspension_id is not null and closed_at_ms is null and partition_key=$1::int4 "
      "and case when $3::int8 is not null then (suspended_at_ms,execution_id)>($3::int8,$4::uuid) "
      "when $4::uuid is not null then execution_id>$4::uuid else true end "
      "order by suspended_at_ms,execution_id limit $2::int8";
  return rows<SuspensionKey>(sql, Parameters()
                                      .add(scan.partition_key)
                                      .add(static_cast<std::int64_t>(scan.limit))
                                      .add(scan.after_ms)
                                      .add(scan.after_id));
}

}  // namespace flowfabric::store::postgres
