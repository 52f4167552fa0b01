// The statements by which a batch's changes reach the tables, other than those of the writer's fast path
// (mapping.h: inserts and updates of just the columns that matter). One text each, at one address: the writer
// prepares them once, and the redo log writes them down once.
#pragma once

#include <array>

#include "store/sqlite/mapping.h"

namespace flowfabric::store::sqlite {

// The last id of each event log, in the order of `Events`: the one writer numbers events.
using EventNumbers = std::array<std::int64_t, boost::mp11::mp_size<Events>::value>;
template <class Event>
inline constexpr std::size_t event_index = boost::mp11::mp_find<Events, Event>::value;

// A whole record or event, whether it is there or not.
template <class Record>
const std::string& put_statement() {
  static const std::string sql =
      "insert or replace" + insert_statement<Record>(~ColumnMask<Record>{}).substr(6);
  return sql;
}

template <class Record>
const std::string& erase_statement() {
  static const std::string sql =
      std::string("delete from ") + Record::table + " where " + key_condition<Record>();
  return sql;
}

// All rows of an execution: its key is a part of theirs.
template <class Record>
const std::string& purge_statement() {
  static const std::string sql =
      std::string("delete from ") + Record::table + " where partition_key=?1 and execution_id=?2";
  return sql;
}

// The oldest before ?1, up to the first that is to be kept: times may go back where ids do not, and a log has
// no holes. The newest row, ?2, stays: it is where the numbering goes on. At most ?3.
template <class Event>
const std::string& trim_statement() {
  static const std::string table = Event::table;
  static const std::string sql =
      "delete from " + table + " where event_id in (select event_id from " + table +
      " where event_id<?2 order by event_id limit ?3) and event_id<coalesce((select min(event_id) from "
      "(select event_id,occurred_at_ms from " +
      table + " order by event_id limit ?3) where occurred_at_ms>=?1),?2)";
  return sql;
}
inline constexpr int kTrimmedPerStep = 1000;

inline const std::string kDropFrames =
    "delete from ff_stream_frame where rowid in (select rowid from ff_stream_frame "
    "where partition_key=?1 and execution_id=?2 and attempt_index=?3 order by frame_ms,frame_seq limit ?4)";

inline const std::string kCount =
    "insert into ff_lane_count values(?1,?2,?3) "
    "on conflict do update set executions=executions+excluded.executions";

}  // namespace flowfabric::store::sqlite
