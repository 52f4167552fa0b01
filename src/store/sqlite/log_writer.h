// Writes the write-ahead log in large pieces. SQLite writes each page of a commit with two small writes,
// which cost the kernel more than the disk; here they are gathered and written when SQLite asks for the sync
// that makes the commit durable. Nobody can look for them before that: SQLite announces a commit to readers
// after it.
#pragma once

#include <sqlite3.h>

namespace flowfabric::store::sqlite {

// The name of the SQLite VFS that does it. Only for connections with `pragma synchronous=full`.
const char* log_gathering_vfs();

// Whether commits of the connection, and its checkpoints, are synced, or only written and announced: somebody
// else syncs them then. (At first they are not.) What keeps an old log from being taken for a new one is
// synced all the same. The connection must have read from its database before. False: it has no such log.
bool sync_log(sqlite3* connection, bool syncs);

}  // namespace flowfabric::store::sqlite
