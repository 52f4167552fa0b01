#include "store/sqlite/database.h"

#include "store/sqlite/files.h"
#include "store/sqlite/log_writer.h"

namespace flowfabric::store::sqlite {

namespace {

constexpr int kBusyTimeoutMs = 10'000;
constexpr int kCheckpointWaitMs = 100;
// Our rows are wide: with slots this large, nearly all of a statement's memory comes from the connection
// itself.
constexpr int kLookasideBytes = 1024;
constexpr int kLookasideSlots = 512;

// SQLite counts every allocation under a lock unless told not to. Refused, harmlessly, when the host program
// has started SQLite before us.
void configure_once() {
  static const int configured = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  static_cast<void>(configured);
}

// SQLite itself calls only ENOSPC a full disk. Its files remember what they have met last.
bool met_full_disk(sqlite3* connection) {
  int of_database = 0;
  int of_log = 0;
  sqlite3_file* log = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_LAST_ERRNO, &of_database);
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  if (log && log->pMethods) log->pMethods->xFileControl(log, SQLITE_FCNTL_LAST_ERRNO, &of_log);
  return is_full(of_database) || is_full(of_log);
}

// Something was to be changed on disk, and nobody knows whether it was.
bool leaves_disk_unknown(int code) {
  switch (code) {
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC:
    case SQLITE_IOERR_WRITE:
    case SQLITE_IOERR_TRUNCATE:
      return true;
    default:
      return false;
  }
}

}  // namespace

Error explain(int code, const std::string& path, const std::string& message) {
  const std::string what = path + ": " + message;
  switch (code & 0xff) {
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return {
          ErrorCode::corruption, what,
          "The file is damaged or is no SQLite database. Restore it from a backup, or give another path."};
    case SQLITE_FULL:
      return {ErrorCode::transport, what,
              "The disk is full. Free some space; nothing of this call was stored, so repeat it then."};
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return {ErrorCode::transport, what,
              "The file or its folder is not writable. Check its permissions and that the file system is not "
              "mounted read-only."};
    case SQLITE_CANTOPEN:
      return {ErrorCode::transport, what,
              "The file cannot be opened. Check that its folder exists and that this user may write there."};
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return {ErrorCode::unavailable, what,
              "Another program holds the database. Close it (a sqlite3 shell, a backup tool) and repeat the "
              "call."};
    default:
      return {ErrorCode::transport, what, "The disk reported trouble. Check it, then repeat the call."};
  }
}

StoreFailure failure_at(sqlite3* connection, const std::string& path) {
  auto code = sqlite3_extended_errcode(connection);
  const std::string message = sqlite3_errmsg(connection);
  if (code == SQLITE_IOERR_WRITE && met_full_disk(connection)) code = SQLITE_FULL;
  if (leaves_disk_unknown(code)) return failed_for_good(path, message);
  return {explain(code, path, message)};
}

Statement::Statement(sqlite3* connection, const std::string& path, const std::string& sql) : path_(&path) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(connection, sql.c_str(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                         &statement, nullptr) != SQLITE_OK) {
    throw failure_at(connection, path);
  }
  statement_.reset(statement);
}

bool Statement::step() {
  const int code = sqlite3_step(statement_.get());
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  const auto failure = failure_at(sqlite3_db_handle(statement_.get()), *path_);
  sqlite3_reset(statement_.get());
  throw failure;
}

Connection::Connection(std::string path, Access access) : path_(std::move(path)) {
  configure_once();
  // One thread at a time uses a connection, so SQLite need not lock it.
  const int flags =
      SQLITE_OPEN_NOMUTEX |
      (access == Access::read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  const char* vfs = access == Access::read_only ? nullptr : log_gathering_vfs();
  if (sqlite3_open_v2(path_.c_str(), &connection_, flags, vfs) != SQLITE_OK) {
    const auto failure = failure_at(connection_, path_);
    sqlite3_close_v2(connection_);
    throw failure;
  }
  try {
    sqlite3_extended_result_codes(connection_, 1);
    sqlite3_busy_timeout(connection_, kBusyTimeoutMs);
    sqlite3_db_config(connection_, SQLITE_DBCONFIG_LOOKASIDE, nullptr, kLookasideBytes, kLookasideSlots);
    run("pragma cache_size=-65536");
    if (access == Access::read_only) return;
    run("pragma page_size=4096");
    run("pragma secure_delete=off");  // Debian's build would overwrite every freed cell with zeros
    run("pragma journal_mode=wal");
    run("pragma synchronous=full");
    number("select count(*) from sqlite_schema");  // so that there is a log
    // The log goes away only by our own checkpoints. After a failed sync it must not be touched.
    sqlite3_db_config(connection_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    // Checkpoints are made by the writer (writer.h), never inside a commit.
    run("pragma wal_autocheckpoint=0");
    sqlite3_wal_hook(
        connection_,
        [](void* self, sqlite3*, const char*, int pages) {
          static_cast<Connection*>(self)->wal_pages_ = pages;
          return SQLITE_OK;
        },
        this);
  } catch (...) {
    sqlite3_close_v2(connection_);
    throw;
  }
}

Connection::~Connection() {
  sqlite3_close_v2(connection_);
}

void Connection::run(const std::string& sql) {
  if (sqlite3_exec(connection_, sql.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) {
    throw failure_at(connection_, path_);
  }
}

void Connection::sync_commits(bool full) {
  require_log(sync_log(connection_, full));
}

void Connection::share_log_syncs(LogSyncs& syncs) {
  require_log(share_syncs(connection_, syncs));
}

void Connection::require_log(bool has_log) const {
  if (has_log) return;
  throw StoreFailure{{ErrorCode::transport, path_ + ": no write-ahead log can be kept",
                      "The file system cannot share memory between connections. Use a local one."}};
}

std::int64_t Connection::number(const std::string& sql) {
  auto statement = prepare(sql);
  return statement.step() ? sqlite3_column_int64(statement.get(), 0) : 0;
}

bool Connection::checkpoint(Checkpoint how) {
  const int mode = how == Checkpoint::beside    ? SQLITE_CHECKPOINT_PASSIVE
                   : how == Checkpoint::restart ? SQLITE_CHECKPOINT_RESTART
                                                : SQLITE_CHECKPOINT_TRUNCATE;
  int log_pages = 0;
  int moved_pages = 0;
  sync_commits(true);  // what is moved must be in the log for certain
  sqlite3_busy_timeout(connection_, how == Checkpoint::beside ? 0 : kCheckpointWaitMs);
  const int code = sqlite3_wal_checkpoint_v2(connection_, nullptr, mode, &log_pages, &moved_pages);
  sqlite3_busy_timeout(connection_, kBusyTimeoutMs);
  // Busy only means that a reader was in the way; a later attempt will move the rest.
  if (code != SQLITE_OK && (code & 0xff) != SQLITE_BUSY) throw failure_at(connection_, path_);
  const bool moved_all = code == SQLITE_OK && log_pages == moved_pages;
  if (moved_all) wal_pages_ = 0;  // the next commit starts it over
  return moved_all;
}

}  // namespace flowfabric::store::sqlite
