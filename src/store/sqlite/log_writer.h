// Writes the write-ahead log in large pieces. SQLite writes each page of a commit with two small writes,
// which cost the kernel more than the disk; here they are gathered and written when SQLite asks for the sync
// that makes the commit durable. Nobody can look for them before that: SQLite announces a commit to readers
// after it.
#pragma once

#include <sqlite3.h>

namespace flowfabric::store::sqlite {

// The name of the SQLite VFS that does it. Only for connections that sync every commit.
const char* log_gathering_vfs();

// While there is one, commits of the connection are written and announced, but not synced: somebody else does
// that. What keeps an old log from being taken for a new one is synced all the same. Does nothing to a
// connection with another VFS.
class CommitsUnsynced {
 public:
  explicit CommitsUnsynced(sqlite3* connection);
  ~CommitsUnsynced();
  CommitsUnsynced(const CommitsUnsynced&) = delete;
  CommitsUnsynced& operator=(const CommitsUnsynced&) = delete;

 private:
  sqlite3_file* log_;  // null: it has another VFS
};

}  // namespace flowfabric::store::sqlite
