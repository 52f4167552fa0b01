// The SQLite store: the embedded default. One writing connection that commits batches with full durability,
// any number of readers beside it, and a write-ahead log that stays bounded.
#pragma once

#include "store/store.h"
#include "store/url.h"

namespace flowfabric::store {

Result<std::unique_ptr<Store>> open_sqlite_store(const StoreUrl& url, const StoreOptions& options);
Result<std::string> migrate_sqlite_store(const StoreUrl& url, const StoreOptions& options);
// The SQL that it would run.
Result<std::string> plan_sqlite_migration(const StoreUrl& url);

}  // namespace flowfabric::store
