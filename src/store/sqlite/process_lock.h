// One process at a time, and one engine of it, as long as the store is open. Two locks keep others out: one
// on a file beside the database, which says who holds it and belongs to its name, and one on the database
// itself, which is there even if somebody removes the first, or comes by another name.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>

#include "store/sqlite/files.h"

namespace flowfabric::store::sqlite {

class ProcessLock {
 public:
  // Makes the database's file if there is none. Throws StoreFailure when somebody else holds it.
  explicit ProcessLock(const std::string& database_path);
  // To be destroyed after the last connection: when a process closes a file, POSIX takes all of its locks on
  // that file away, SQLite's, too.
  ~ProcessLock();
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

  const File& database() const { return database_; }

 private:
  std::pair<dev_t, ino_t> identity_;
  File name_;
  File database_;
};

}  // namespace flowfabric::store::sqlite
