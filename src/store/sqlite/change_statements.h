// The statements by which a batch's changes reach the tables, other than those of the writer's fast path
// (mapping.h: inserts and updates of just the columns that matter). One text each, at one address: the writer
// prepares them once, and the redo log writes them down once.
#pragma once

#include <array>

#include "store/sqlite/mapping.h"

namespace flowfabric::store::sqlite {

// The last id of each event log, in the order of `Events`: the one writer numbers events.
using EventNumbers = std::array<std::int64_t, kEventTypes>;

struct RecordStatements {
  std::string put;    // a whole record, whether it is there or not
  std::string erase;  // by its key
  std::string purge;  // all rows of an execution: its key is a part of theirs
};
const RecordStatements& statements_of(const RecordType& type);

struct EventStatements {
  std::string put;
  // The oldest before ?1, up to the first that is to be kept: times may go back where ids do not, and a log
  // has no holes. The newest row, ?2, stays: it is where the numbering goes on. At most ?3.
  std::string trim;
};
const EventStatements& statements_of(const EventType& type);
inline constexpr int kTrimmedPerStep = 1000;

inline const std::string kDropFrames =
    "delete from ff_stream_frame where rowid in (select rowid from ff_stream_frame "
    "where partition_key=?1 and execution_id=?2 and attempt_index=?3 order by frame_ms,frame_seq limit ?4)";

inline const std::string kCount =
    "insert into ff_lane_count values(?1,?2,?3) "
    "on conflict do update set executions=executions+excluded.executions";

}  // namespace flowfabric::store::sqlite
