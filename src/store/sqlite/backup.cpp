#include "store/sqlite/backup.h"

#include <fcntl.h>

#include <filesystem>
#include <thread>

#include "store/sqlite/redo/replay.h"
#include "store/sqlite/schema.h"

namespace flowfabric::store {

namespace {

using sqlite::Access;
using sqlite::Connection;
using sqlite::File;

// Whoever writes to the database may change its redo log while it is read; then it is read again.
constexpr int kMostAttempts = 50;
constexpr std::chrono::milliseconds kBeforeNextAttempt{20};

struct CloseConnection {
  void operator()(sqlite3* connection) const { sqlite3_close_v2(connection); }
};
using RawConnection = std::unique_ptr<sqlite3, CloseConnection>;

// Neither journal nor syncs: until it has its name, the copy is nobody's.
RawConnection open_copy(const std::string& path) {
  sqlite3* opened = nullptr;
  const int code = sqlite3_open_v2(path.c_str(), &opened, SQLITE_OPEN_READWRITE, nullptr);
  RawConnection connection(opened);
  if (code != SQLITE_OK) throw StoreFailure{sqlite::explain(code, path, sqlite3_errmsg(opened))};
  sqlite3_exec(opened, "pragma journal_mode=off; pragma synchronous=off", nullptr, nullptr, nullptr);
  return connection;
}

void copy_pages(Connection& source, const std::string& path) {
  const auto copy = open_copy(path);
  auto* backup = sqlite3_backup_init(copy.get(), "main", source.get(), "main");
  if (backup) sqlite3_backup_step(backup, -1);
  if (!backup || sqlite3_backup_finish(backup) != SQLITE_OK) {
    throw sqlite::failure_at(copy.get(), path);
  }
}

// Goes on with what the source shows from now on, and with all that was acknowledged before and is not there
// yet: its entries are read first, for whatever is not among them is in the tables by then.
sqlite::RedoContent begin_reading(Connection& source) {
  for (int attempt = 1;; ++attempt) {
    try {
      sqlite::RedoContent redo(source.path());
      source.run("begin");
      redo.check(sqlite::redo_position(source).value_or(sqlite::RedoPosition{}));
      return redo;
    } catch (const StoreFailure&) {
      if (attempt == kMostAttempts) throw;
    }
    sqlite3_exec(source.get(), "rollback", nullptr, nullptr, nullptr);
    std::this_thread::sleep_for(kBeforeNextAttempt);
  }
}

void copy_database(const std::string& from, const std::string& to) {
  static_cast<void>(File(to, O_RDWR | O_CREAT | O_EXCL));
  Connection source(from, Access::read_only);
  sqlite::check_schema(source);
  auto redo = begin_reading(source);
  copy_pages(source, to);
  Connection copy(to, Access::read_write);
  copy.run("begin immediate");
  redo.run_missing(copy);
  // No redo log of the original belongs to it, whatever it holds.
  if (sqlite::redo_position(copy)) copy.run("update ff_redo set log_id=random() where id=1");
  copy.run("commit");
  copy.checkpoint(Connection::Checkpoint::empty);
}

void remove_copy(const std::string& path) {
  for (const char* suffix : {"", "-wal", "-shm"}) sqlite::remove_file(path + suffix);
}

Result<void> check_names(const std::string& from, const std::string& to) {
  if (from.empty() || !std::filesystem::exists(from)) {
    return fail_with(ErrorCode::invalid_input, from + ": no such file",
                     "Give the store that is to be copied: sqlite:PATH.");
  }
  if (!to.empty() && !std::filesystem::exists(std::filesystem::symlink_status(to))) return {};
  return fail_with(ErrorCode::invalid_input, to + ": exists already",
                   "Give the name of a file that is not there yet; nothing is overwritten.");
}

}  // namespace

Result<std::string> backup_sqlite_store(const StoreUrl& url, const std::string& file) {
  if (auto checked = check_names(url.path, file); !checked) return std::unexpected(checked.error());
  const auto part = file + ".part";
  try {
    remove_copy(part);
    copy_database(sqlite::real_path(url.path), part);
    std::int64_t bytes = 0;
    {
      const File copy(part, O_RDWR);
      copy.sync();
      bytes = copy.size();
    }
    sqlite::rename_file(part, file);
    remove_copy(part);
    sqlite::sync_folder_of(file);
    return url.path + ": copied to " + file + ", " + std::to_string(bytes) + " bytes";
  } catch (const StoreFailure& failure) {
    std::error_code ignored;
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(part + suffix, ignored);
    return std::unexpected(failure.error);
  }
}

}  // namespace flowfabric::store
