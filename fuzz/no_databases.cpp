// Fuzzing needs the store in memory only; scripts/fuzz links this in place of the others, which take long to
// compile.
#include "store/postgres/postgres_store.h"
#include "store/sqlite/sqlite_store.h"

namespace flowfabric::store {

namespace {

std::unexpected<Error> not_here() {
  return fail_with(ErrorCode::unavailable, "store", "This program has memory: only.");
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const StoreUrl&, const StoreOptions&) {
  return not_here();
}
Result<std::string> migrate_sqlite_store(const StoreUrl&, const StoreOptions&) {
  return not_here();
}
Result<std::string> plan_sqlite_migration(const StoreUrl&) {
  return not_here();
}
Result<std::unique_ptr<Store>> open_postgres_store(const std::string&, const StoreOptions&) {
  return not_here();
}
Result<std::string> migrate_postgres_store(const std::string&, const StoreOptions&) {
  return not_here();
}
Result<std::string> plan_postgres_migration(const std::string&, const StoreOptions&) {
  return not_here();
}

}  // namespace flowfabric::store
