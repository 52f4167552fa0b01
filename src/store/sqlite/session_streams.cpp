// What the SQLite store knows of output streams.
#include <algorithm>

#include "core/index_rules.h"
#include "store/sqlite/mapping.h"
#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

std::vector<Frame> SqliteSession::frames(const FrameScan& scan) {
  static const std::string from =
      "select " + column_list<Frame>() +
      " from ff_stream_frame where partition_key=?1 and execution_id=?2 and attempt_index=?3 "
      "and (frame_ms,frame_seq)>=(?4,?5) and (frame_ms,frame_seq)<=(?6,?7)";
  static const std::string order = " order by frame_ms,frame_seq limit ?8";
  static const std::string all = from + order;
  static const std::string some = from + " and mode<>'best_effort'" + order;
  auto& query = statement(scan.without_best_effort ? some : all);
  auto place = bind_all(query.get(), 1, scan.stream);
  for (const auto number : {scan.from.ms, scan.from.seq, scan.to.ms, scan.to.seq}) {
    bind(query.get(), place++, number);
  }
  bind(query.get(), place, static_cast<std::uint64_t>(scan.limit));
  return rows<Frame>(query);
}

std::vector<Stream> SqliteSession::streams_of(const ExecutionId& id) {
  static const std::string sql =
      "select " + column_list<Stream>() +
      " from ff_stream_meta where partition_key=?1 and execution_id=?2 order by attempt_index";
  auto& query = statement(sql);
  bind_all(query.get(), 1, id);
  return rows<Stream>(query);
}

std::vector<OperatorEvent> SqliteSession::operator_events_of(const ExecutionId& id) {
  static const std::string sql = "select " + column_list<OperatorEvent>() +
                                 " from ff_operator_event where partition_key=?1 and execution_id=?2 "
                                 "order by event_id";
  auto& query = statement(sql);
  bind_all(query.get(), 1, id);
  return rows<OperatorEvent>(query);
}

std::vector<LeaseEvent> SqliteSession::pauses_of(const ExecutionId& id, std::size_t limit) {
  static const std::string sql = "select " + column_list<LeaseEvent>() +
                                 " from ff_lease_event where partition_key=?1 and execution_id=?2 and " +
                                 one_of("reason", core::kPauseReasons) + " order by event_id desc limit ?3";
  auto& query = statement(sql);
  bind(query.get(), bind_all(query.get(), 1, id), static_cast<std::uint64_t>(limit));
  auto found = rows<LeaseEvent>(query);
  std::ranges::reverse(found);
  return found;
}

// The ids of a log follow each other without gaps, and its newest event always stays.
EventRange SqliteSession::event_range(EventFamily family) {
  EventRange range;
  for (const auto& type : event_types()) {
    if (type.family != family) continue;
    const std::string table = type.table;
    const auto last = connection_->number("select coalesce(max(event_id),0) from " + table);
    range = {connection_->number("select coalesce(min(event_id)-1,0) from " + table), last, last};
  }
  return range;
}

}  // namespace flowfabric::store::sqlite
