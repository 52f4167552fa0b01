#include "store/sqlite/process_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <set>

#include "store/sqlite/database.h"

namespace flowfabric::store::sqlite {

namespace {

// A byte that SQLite never locks, and that no database reaches.
constexpr off_t kLockedByte = off_t{1} << 60;

using Identity = std::pair<dev_t, ino_t>;

// The databases that this process holds, so that it does not even open one of them twice (see ~ProcessLock).
std::mutex held_mutex;
std::set<Identity> held;

[[noreturn]] void refuse(const std::string& database_path, const std::string& who) {
  throw StoreFailure{
      {ErrorCode::unavailable, database_path + ": in use by " + who,
       "An embedded database serves one process at a time. If that is a server, give its address "
       "instead (--store http://host:port); or stop it, or give another file."}};
}

std::string holder(const File& file) {
  const auto number = file.read(0, 32);
  return number.empty() ? "another process" : "process " + number;
}

File lock_name(const std::string& database_path) {
  const auto path = database_path + ".lock";
  const int descriptor = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor < 0) {
    throw StoreFailure{
        {ErrorCode::transport, path + ": " + std::strerror(errno),
         "The lock file beside the database cannot be written. Check that the folder exists and "
         "that this user may write there."}};
  }
  File file = File::of(path, descriptor);
  if (flock(descriptor, LOCK_EX | LOCK_NB) != 0) refuse(database_path, holder(file));
  const auto pid = std::to_string(getpid());
  const bool written = ftruncate(descriptor, 0) == 0 && pwrite(descriptor, pid.data(), pid.size(), 0) > 0;
  static_cast<void>(written);  // the number is a courtesy to the reader of an error; the lock is what counts
  return file;
}

Identity identity_of(const File& file) {
  struct stat found {};
  if (fstat(file.descriptor(), &found) != 0) {
    throw StoreFailure{explain(SQLITE_IOERR, file.path(), std::strerror(errno))};
  }
  return {found.st_dev, found.st_ino};
}

// With `held_mutex` locked.
void refuse_if_held_here(const std::string& database_path) {
  struct stat found {};
  if (stat(database_path.c_str(), &found) != 0 || !held.contains({found.st_dev, found.st_ino})) return;
  refuse(database_path, "process " + std::to_string(getpid()));
}

void lock_database(const File& file) {
  struct flock range {};
  range.l_type = F_WRLCK;
  range.l_whence = SEEK_SET;
  range.l_start = kLockedByte;
  range.l_len = 1;
  // Unlike the locks of a process, that of a descriptor is not lost when SQLite closes one of its own.
  if (fcntl(file.descriptor(), F_OFD_SETLK, &range) == 0) return;
  if (errno == EAGAIN || errno == EACCES) refuse(file.path(), "another process");
  throw StoreFailure{explain(SQLITE_IOERR_LOCK, file.path(), std::strerror(errno))};
}

}  // namespace

ProcessLock::ProcessLock(const std::string& database_path) : name_(lock_name(database_path)) {
  std::lock_guard lock(held_mutex);
  refuse_if_held_here(database_path);
  database_ = File(database_path, O_RDWR | O_CREAT);
  lock_database(database_);
  identity_ = identity_of(database_);
  held.insert(identity_);
}

ProcessLock::~ProcessLock() {
  std::lock_guard lock(held_mutex);
  held.erase(identity_);
}

}  // namespace flowfabric::store::sqlite
