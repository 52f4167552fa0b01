// Copies a database, with all that the redo log has and the tables have not, whoever is writing to it.
#pragma once

#include <string>

#include "flowfabric/error.h"
#include "store/url.h"

namespace flowfabric::store {

Result<std::string> backup_sqlite_store(const StoreUrl& url, const std::string& file);

}  // namespace flowfabric::store
