// Opening a database: in one order, in which a power failure at any point leaves something that can be opened
// again.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "store/sqlite/process_lock.h"
#include "store/store.h"

namespace flowfabric::store::sqlite {

struct Opened {
  std::unique_ptr<ProcessLock> lock;
  std::string path;                     // of the database itself, whatever links lead there
  std::vector<std::string> migrations;  // that were run
};

// Everything that the last process acknowledged is in the tables then, and on disk; the schema is up to date,
// and there is no redo log. Throws StoreFailure.
Opened open_database(const std::string& path, const StoreOptions& options);

}  // namespace flowfabric::store::sqlite
