#include "store/sqlite/log_writer.h"

#include <cstring>
#include <new>
#include <string>

namespace flowfabric::store::sqlite {

namespace {

// SQLite's own files take less than 128 KiB at once.
constexpr std::size_t kMostGathered = 120 * 1024;

// SQLite knows the base only; the file that the default VFS has opened lies behind it.
struct LogFile : sqlite3_file {
  sqlite3_file* real;
  sqlite3_int64 begin;  // where the gathered bytes belong
  std::string gathered;
  bool syncs;
  bool begins_anew;  // its header was written, and not yet synced
  LogSyncs* shared;  // with other connections; or null
};

// The default VFS aligns its file to eight bytes.
constexpr std::size_t kRealOffset = (sizeof(LogFile) + 7) / 8 * 8;

LogFile& log_of(sqlite3_file* file) {
  return *static_cast<LogFile*>(file);
}

int write_gathered(LogFile& log) {
  if (log.gathered.empty()) return SQLITE_OK;
  const int code = log.real->pMethods->xWrite(log.real, log.gathered.data(),
                                              static_cast<int>(log.gathered.size()), log.begin);
  log.gathered.clear();
  return code;
}

// Everything but a write that goes on where the last one ended wants to see what was written before.
template <class Call>
int after_writing(sqlite3_file* file, Call call) {
  auto& log = log_of(file);
  if (const int code = write_gathered(log); code != SQLITE_OK) return code;
  return call(log.real, log.real->pMethods);
}

int close(sqlite3_file* file) {
  auto& log = log_of(file);
  // What no commit was announced for is not missed.
  const int code = log.real->pMethods ? log.real->pMethods->xClose(log.real) : SQLITE_OK;
  log.~LogFile();
  return code;
}

int read(sqlite3_file* file, void* into, int size, sqlite3_int64 at) {
  return after_writing(file, [&](auto* real, auto* methods) { return methods->xRead(real, into, size, at); });
}

int write(sqlite3_file* file, const void* bytes, int size, sqlite3_int64 at) {
  auto& log = log_of(file);
  // Were a new header to reach the disk after the pages behind it, what is left of the old log would pass for
  // the newest.
  if (at == 0) log.begins_anew = true;
  const auto end = log.begin + static_cast<sqlite3_int64>(log.gathered.size());
  if (at != end || log.gathered.size() + static_cast<std::size_t>(size) > kMostGathered) {
    if (const int code = write_gathered(log); code != SQLITE_OK) return code;
    log.begin = at;
  }
  try {
    log.gathered.append(static_cast<const char*>(bytes), static_cast<std::size_t>(size));
  } catch (const std::bad_alloc&) {
    return SQLITE_IOERR_NOMEM;
  }
  return SQLITE_OK;
}

int truncate(sqlite3_file* file, sqlite3_int64 size) {
  return after_writing(file, [&](auto* real, auto* methods) { return methods->xTruncate(real, size); });
}

int sync(sqlite3_file* file, int flags) {
  return after_writing(file, [&](auto* real, auto* methods) {
    auto& log = log_of(file);
    if (!log.syncs && !log.begins_anew) return SQLITE_OK;
    const auto sync_it = [&] { return methods->xSync(real, flags); };
    const int code = log.shared ? log.shared->run(sync_it) : sync_it();
    if (code == SQLITE_OK) log.begins_anew = false;
    return code;
  });
}

int file_size(sqlite3_file* file, sqlite3_int64* size) {
  return after_writing(file, [&](auto* real, auto* methods) { return methods->xFileSize(real, size); });
}

int lock(sqlite3_file* file, int level) {
  return log_of(file).real->pMethods->xLock(log_of(file).real, level);
}

int unlock(sqlite3_file* file, int level) {
  return log_of(file).real->pMethods->xUnlock(log_of(file).real, level);
}

int check_reserved_lock(sqlite3_file* file, int* is_reserved) {
  return log_of(file).real->pMethods->xCheckReservedLock(log_of(file).real, is_reserved);
}

int file_control(sqlite3_file* file, int operation, void* argument) {
  return after_writing(
      file, [&](auto* real, auto* methods) { return methods->xFileControl(real, operation, argument); });
}

int sector_size(sqlite3_file* file) {
  return log_of(file).real->pMethods->xSectorSize(log_of(file).real);
}

int device_characteristics(sqlite3_file* file) {
  return log_of(file).real->pMethods->xDeviceCharacteristics(log_of(file).real);
}

constexpr sqlite3_io_methods kMethods{.iVersion = 1,
                                      .xClose = close,
                                      .xRead = read,
                                      .xWrite = write,
                                      .xTruncate = truncate,
                                      .xSync = sync,
                                      .xFileSize = file_size,
                                      .xLock = lock,
                                      .xUnlock = unlock,
                                      .xCheckReservedLock = check_reserved_lock,
                                      .xFileControl = file_control,
                                      .xSectorSize = sector_size,
                                      .xDeviceCharacteristics = device_characteristics};

sqlite3_vfs* default_vfs = nullptr;

int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  // Every other file is the default VFS's own: there is room enough for it.
  if ((flags & SQLITE_OPEN_WAL) == 0) return default_vfs->xOpen(default_vfs, name, file, flags, out_flags);
  auto* log = new (file) LogFile{};
  log->real = reinterpret_cast<sqlite3_file*>(reinterpret_cast<char*>(file) + kRealOffset);
  std::memset(static_cast<void*>(log->real), 0, static_cast<std::size_t>(default_vfs->szOsFile));
  if (const int code = default_vfs->xOpen(default_vfs, name, log->real, flags, out_flags);
      code != SQLITE_OK) {
    log->~LogFile();
    file->pMethods = nullptr;  // SQLite need not close it
    return code;
  }
  log->pMethods = &kMethods;
  return SQLITE_OK;
}

sqlite3_vfs* register_vfs() {
  default_vfs = sqlite3_vfs_find(nullptr);
  static sqlite3_vfs gathering = *default_vfs;
  gathering.zName = "flowfabric-log";
  gathering.szOsFile = static_cast<int>(kRealOffset) + default_vfs->szOsFile;
  gathering.xOpen = open;
  gathering.pNext = nullptr;
  sqlite3_vfs_register(&gathering, 0);
  return &gathering;
}

// Null: the connection has no such log.
LogFile* log_of_connection(sqlite3* connection) {
  sqlite3_file* log = nullptr;
  sqlite3_file_control(connection, "main", SQLITE_FCNTL_JOURNAL_POINTER, &log);
  return log && log->pMethods == &kMethods ? &log_of(log) : nullptr;
}

}  // namespace

bool sync_log(sqlite3* connection, bool syncs) {
  auto* const log = log_of_connection(connection);
  if (log) log->syncs = syncs;
  return log != nullptr;
}

bool share_syncs(sqlite3* connection, LogSyncs& syncs) {
  auto* const log = log_of_connection(connection);
  if (log) log->shared = &syncs;
  return log != nullptr;
}

const char* log_gathering_vfs() {
  static sqlite3_vfs* const registered = register_vfs();
  return registered->zName;
}

}  // namespace flowfabric::store::sqlite
