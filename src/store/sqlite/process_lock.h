// One process at a time: a lock beside the database file, held as long as the store is open.
#pragma once

#include <string>

#include "flowfabric/error.h"

namespace flowfabric::store::sqlite {

class ProcessLock {
 public:
  // Throws StoreFailure when another process, or another engine of this one, holds the database.
  explicit ProcessLock(const std::string& database_path);
  ~ProcessLock();
  ProcessLock(const ProcessLock&) = delete;
  ProcessLock& operator=(const ProcessLock&) = delete;

 private:
  int file_{-1};
};

}  // namespace flowfabric::store::sqlite
