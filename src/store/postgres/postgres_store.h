// The PostgreSQL store: several servers may use one database at the same time.
#pragma once

#include "store/store.h"

namespace flowfabric::store {

Result<std::unique_ptr<Store>> open_postgres_store(const std::string& url, const StoreOptions& options);
Result<std::string> migrate_postgres_store(const std::string& url, const StoreOptions& options);
// The SQL that it would run.
Result<std::string> plan_postgres_migration(const std::string& url, const StoreOptions& options);

}  // namespace flowfabric::store
