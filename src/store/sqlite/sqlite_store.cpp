#include "store/sqlite/sqlite_store.h"

#include <filesystem>

#include "store/sqlite/opening.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/writing_session.h"

namespace flowfabric::store {

namespace {

using sqlite::Durability;

class SqliteStore final : public Store {
 public:
  SqliteStore(std::unique_ptr<sqlite::ProcessLock> lock, sqlite::SessionSettings settings)
      : lock_(std::move(lock)), settings_(std::move(settings)) {}

  std::unique_ptr<Session> open_writer() override {
    return std::make_unique<sqlite::WritingSession>(settings_);
  }
  std::unique_ptr<Session> open_reader() override {
    settings_.health->require();
    return std::make_unique<sqlite::SqliteSession>(settings_);
  }

 private:
  std::unique_ptr<sqlite::ProcessLock> lock_;
  sqlite::SessionSettings settings_;
};

Result<Durability> durability_of(const StoreUrl& url) {
  auto durability = Durability::full;
  for (const auto& [key, value] : url.options) {
    if (key == "synchronous" && value == "full") {
      durability = Durability::full;
    } else if (key == "synchronous" && value == "normal") {
      durability = Durability::normal;
    } else {
      return fail_with(
          ErrorCode::invalid_input, "store URL: unknown option",
          "sqlite: knows synchronous=full and synchronous=normal, not '" + key + "=" + value + "'.");
    }
  }
  return durability;
}

Result<Durability> check_url(const StoreUrl& url) {
  if (url.path.empty()) {
    return fail_with(ErrorCode::invalid_input, "store URL: no path",
                     "Name the database file: sqlite:PATH, for example sqlite:flowfabric.db.");
  }
  return durability_of(url);
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const StoreUrl& url, const StoreOptions& options) {
  const auto durability = check_url(url);
  if (!durability) return std::unexpected(durability.error());
  try {
    auto opened = sqlite::open_database(url.path, options);
    return std::make_unique<SqliteStore>(
        std::move(opened.lock),
        sqlite::SessionSettings{opened.path, *durability, options.now_ms,
                                std::make_shared<sqlite::ShownMark>(),
                                std::make_shared<sqlite::DiskHealth>(options.failed)});
  } catch (const StoreFailure& failure) {
    return std::unexpected(failure.error);
  }
}

Result<std::string> migrate_sqlite_store(const StoreUrl& url, const StoreOptions& options) {
  if (const auto checked = check_url(url); !checked) return std::unexpected(checked.error());
  auto settled = options;
  if (!settled.now_ms) settled.now_ms = system_now_ms;
  try {
    const auto opened = sqlite::open_database(url.path, settled);
    if (opened.migrations.empty()) return url.path + ": schema is up to date";
    std::string said;
    for (const auto& migration : opened.migrations) said += (said.empty() ? "" : ", ") + migration;
    return url.path + ": applied " + said;
  } catch (const StoreFailure& failure) {
    return std::unexpected(failure.error);
  }
}

Result<std::string> plan_sqlite_migration(const StoreUrl& url) {
  try {
    std::int64_t stored = 0;
    if (std::filesystem::exists(url.path)) {
      sqlite::Connection connection(url.path, sqlite::Access::read_only);
      sqlite::check_schema(connection);
      stored = connection.number("pragma user_version");
    }
    std::string sql;
    for (const auto& migration : sqlite::migrations()) {
      if (migration.version > stored) sql += migration.sql;
    }
    return sql.empty() ? "-- the schema is up to date\n" : sql;
  } catch (const StoreFailure& failure) {
    return std::unexpected(failure.error);
  }
}

}  // namespace flowfabric::store
