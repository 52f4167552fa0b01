// What the PostgreSQL store knows of output streams.
#include <algorithm>

#include "core/index_rules.h"
#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

void PostgresSession::post_drops(const core::Unit& unit) {
  for (const auto& [stream, count] : unit.dropped_frames()) {
    connection_->post(
        "delete from ff_stream_frame where (partition_key,execution_id,attempt_index,frame_ms,frame_seq) in ("
        "select partition_key,execution_id,attempt_index,frame_ms,frame_seq from ff_stream_frame "
        "where partition_key=$1::int4 and execution_id=$2::uuid and attempt_index=$3::int8 "
        "order by frame_ms,frame_seq limit $4::int8)",
        Parameters().add_fields(stream).add(static_cast<std::int64_t>(count)));
  }
}

std::vector<Frame> PostgresSession::frames(const FrameScan& scan) {
  static const std::string sql =
      "select " + column_list<Frame>() +
      " from ff_stream_frame where partition_key=$1::int4 and execution_id=$2::uuid and "
      "attempt_index=$3::int8 "
      "and (frame_ms,frame_seq)>=($4::int8,$5::int8) and (frame_ms,frame_seq)<=($6::int8,$7::int8) "
      "and ($8::bool or mode<>'best_effort') order by frame_ms,frame_seq limit $9::int8";
  Parameters parameters;
  parameters.add_fields(scan.stream);
  for (const auto number : {scan.from.ms, scan.from.seq, scan.to.ms, scan.to.seq}) {
    parameters.add(static_cast<std::int64_t>(number));
  }
  parameters.add(!scan.without_best_effort).add(static_cast<std::int64_t>(scan.limit));
  return rows<Frame>(sql, parameters);
}

std::vector<Stream> PostgresSession::streams_of(const ExecutionId& id) {
  static const std::string sql =
      "select " + column_list<Stream>() +
      " from ff_stream_meta where partition_key=$1::int4 and execution_id=$2::uuid "
      "order by attempt_index";
  return rows<Stream>(sql, Parameters().add_fields(id));
}

std::vector<OperatorEvent> PostgresSession::operator_events_of(const ExecutionId& id) {
  static const std::string sql = "select " + column_list<OperatorEvent>() +
                                 " from ff_operator_event where partition_key=$1::int4 and "
                                 "execution_id=$2::uuid order by event_id";
  return rows<OperatorEvent>(sql, Parameters().add_fields(id));
}

std::vector<LeaseEvent> PostgresSession::pauses_of(const ExecutionId& id, std::size_t limit) {
  static const std::string sql =
      "select " + column_list<LeaseEvent>() +
      " from ff_lease_event where partition_key=$1::int4 and execution_id=$2::uuid and " +
      one_of("reason", core::kPauseReasons) + " order by event_id desc limit $3::int8";
  auto found = rows<LeaseEvent>(sql, Parameters().add_fields(id).add(static_cast<std::int64_t>(limit)));
  std::ranges::reverse(found);
  return found;
}

}  // namespace flowfabric::store::postgres
