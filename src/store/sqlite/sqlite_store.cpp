#include "store/sqlite/sqlite_store.h"

#include <filesystem>

#include "store/sqlite/process_lock.h"
#include "store/sqlite/redo_replay.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/writing_session.h"

namespace flowfabric::store {

namespace {

using sqlite::Access;
using sqlite::Durability;

class SqliteStore final : public Store {
 public:
  SqliteStore(std::unique_ptr<sqlite::ProcessLock> lock, sqlite::SessionSettings settings)
      : lock_(std::move(lock)), settings_(std::move(settings)) {}

  std::unique_ptr<Session> open_writer() override {
    return std::make_unique<sqlite::WritingSession>(settings_);
  }
  std::unique_ptr<Session> open_reader() override {
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

// Opens with the process lock held and the schema up to date.
struct Opened {
  std::unique_ptr<sqlite::ProcessLock> lock;
  sqlite::SessionSettings settings;
  std::vector<std::string> migrations;
};
Result<Opened> prepare(const StoreUrl& url, const StoreOptions& options) {
  if (url.path.empty()) {
    return fail_with(ErrorCode::invalid_input, "store URL: no path",
                     "Name the database file: sqlite:PATH, for example sqlite:flowfabric.db.");
  }
  const auto durability = durability_of(url);
  if (!durability) return std::unexpected(durability.error());
  try {
    sqlite::check_file(url.path);
    Opened opened{.lock = std::make_unique<sqlite::ProcessLock>(url.path),
                  .settings = {url.path, *durability, options.now_ms, std::make_shared<sqlite::ShownMark>()},
                  .migrations = {}};
    sqlite::Connection connection(url.path, Access::read_write, *durability);
    sqlite::replay_redo_log(connection);
    opened.migrations = sqlite::migrate(connection, options);
    return opened;
  } catch (const StoreFailure& failure) {
    return std::unexpected(failure.error);
  }
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const StoreUrl& url, const StoreOptions& options) {
  auto opened = prepare(url, options);
  if (!opened) return std::unexpected(opened.error());
  return std::make_unique<SqliteStore>(std::move(opened->lock), std::move(opened->settings));
}

Result<std::string> migrate_sqlite_store(const StoreUrl& url, const StoreOptions& options) {
  auto settled = options;
  if (!settled.now_ms) settled.now_ms = system_now_ms;
  auto opened = prepare(url, settled);
  if (!opened) return std::unexpected(opened.error());
  if (opened->migrations.empty()) return url.path + ": schema is up to date";
  std::string said;
  for (const auto& migration : opened->migrations) said += (said.empty() ? "" : ", ") + migration;
  return url.path + ": applied " + said;
}

Result<std::string> plan_sqlite_migration(const StoreUrl& url) {
  try {
    sqlite::check_file(url.path);
    std::int64_t stored = 0;
    if (std::filesystem::exists(url.path)) {
      stored =
          sqlite::Connection(url.path, Access::read_only, Durability::full).number("pragma user_version");
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
