// What the SQLite store knows of suspensions.
#include <algorithm>
#include <ranges>

#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

namespace {

struct OpenSuspension {
  std::int64_t suspended_at_ms{};
  Uuid execution_id;
  std::uint16_t partition_key{};
  auto operator<=>(const OpenSuspension&) const = default;
};
BOOST_DESCRIBE_STRUCT(OpenSuspension, (), (suspended_at_ms, execution_id, partition_key))

}  // namespace

std::vector<WaitpointRecordKey> SqliteSession::answer(const core::OpenWaitpoints& question) {
  auto& query = statement(
      "select partition_key,execution_id,waitpoint_id from ff_waitpoint_pending "
      "where partition_key=?1 and execution_id=?2 and state<>'closed' order by waitpoint_id");
  bind_all(query.get(), 1, question.of);
  return rows<WaitpointRecordKey>(query);
}

std::vector<WaitpointRecordKey> SqliteSession::answer(const core::WaitpointsNamed& question) {
  auto& query = statement(
      "select partition_key,execution_id,waitpoint_id from ff_waitpoint_pending where waitpoint_id=?1");
  bind(query.get(), 1, question.waitpoint_id);
  return rows<WaitpointRecordKey>(query);
}

std::vector<HmacKeyKey> SqliteSession::answer(const core::RetiredSecrets&) {
  return rows<HmacKeyKey>(
      statement("select kid from ff_waitpoint_hmac where active is not true order by kid"));
}

std::vector<SuspensionKey> SqliteSession::suspended(const SuspendedScan& scan) {
  std::string sql =
      "select suspended_at_ms,execution_id,partition_key from ff_suspension_current "
      "where suspension_id is not null and closed_at_ms is null and partition_key=?1";
  if (scan.after_ms)
    sql += " and (suspended_at_ms,execution_id)>(?3,?4)";
  else if (scan.after_id)
    sql += " and execution_id>?4";
  sql += " order by suspended_at_ms,execution_id limit ?2";
  // Each partition has its order in the index.
  std::vector<OpenSuspension> found;
  for (int partition = scan.first_partition; partition <= scan.last_partition; ++partition) {
    auto& query = statement(sql);
    bind(query.get(), 1, partition);
    bind(query.get(), 2, scan.limit);
    if (scan.after_ms) bind(query.get(), 3, *scan.after_ms);
    if (scan.after_id) bind(query.get(), 4, *scan.after_id);
    const auto some = rows<OpenSuspension>(query);
    found.insert(found.end(), some.begin(), some.end());
  }
  std::ranges::sort(found);
  std::vector<SuspensionKey> keys;
  for (const auto& each : found | std::views::take(scan.limit)) {
    keys.push_back({each.partition_key, each.execution_id});
  }
  return keys;
}

}  // namespace flowfabric::store::sqlite
