// Writes the write-ahead log in large pieces. SQLite writes each page of a commit with two small writes,
// which cost the kernel more than the disk; here they are gathered and written when SQLite asks for the sync
// that makes the commit durable. Nobody can look for them before that: SQLite announces a commit to readers
// after it.
#pragma once

namespace flowfabric::store::sqlite {

// The name of the SQLite VFS that does it. Only for connections that sync every commit.
const char* log_gathering_vfs();

}  // namespace flowfabric::store::sqlite
