// Writes the write-ahead log in large pieces. SQLite writes each page of a commit with two small writes,
// which cost the kernel more than the disk; here they are gathered and written when SQLite asks for the sync
// that makes the commit durable. Nobody can look for them before that: SQLite announces a commit to readers
// after it.
#pragma once

#include <sqlite3.h>

#include <mutex>

namespace flowfabric::store::sqlite {

// The syncs of one log, whichever descriptor they go through: one after the other, and none after one that
// has failed. Pages that could not be written pass for clean, so the next sync might succeed; a commit would
// then be answered that rests on what is lost.
class LogSyncs {
 public:
  // `sync` returns SQLite's code, as this does, or throws.
  template <class Sync>
  int run(Sync sync) {
    std::lock_guard lock(mutex_);
    if (!is_well_) return SQLITE_IOERR_FSYNC;
    is_well_ = false;
    const int code = sync();
    is_well_ = code == SQLITE_OK;
    return code;
  }

 private:
  std::mutex mutex_;
  bool is_well_{true};
};

// The name of the SQLite VFS that does it. Only for connections with `pragma synchronous=full`.
const char* log_gathering_vfs();

// Whether commits of the connection, and its checkpoints, are synced, or only written and announced: somebody
// else syncs them then. (At first they are not.) What keeps an old log from being taken for a new one is
// synced all the same. The connection must have read from its database before. False: it has no such log.
bool sync_log(sqlite3* connection, bool syncs);
// From now on the connection syncs its log in turn with others. False: it has no such log.
bool share_syncs(sqlite3* connection, LogSyncs& syncs);

}  // namespace flowfabric::store::sqlite
