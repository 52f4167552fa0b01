#include "flowfabric/backup.h"

#include "store/sqlite/backup.h"
#include "store/store.h"

namespace flowfabric {

Result<std::string> backup(const std::string& url, const std::string& file) {
  if (store::is_postgres_url(url)) {
    return fail_with(ErrorCode::invalid_input, "no backup of PostgreSQL",
                     "PostgreSQL makes its own: use pg_dump or pg_basebackup (docs/operations.md).");
  }
  const auto parsed = store::parse_store_url(url);
  if (!parsed) return std::unexpected(parsed.error());
  if (parsed->scheme == "sqlite") return store::backup_sqlite_store(*parsed, file);
  return fail_with(
      ErrorCode::invalid_input, "'" + parsed->scheme + ":' cannot be copied",
      "Give the store's file as sqlite:PATH, on the machine where it lies; it may be in use by a server.");
}

}  // namespace flowfabric
