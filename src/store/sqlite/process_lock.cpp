#include "store/sqlite/process_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

#include "store/store.h"

namespace flowfabric::store::sqlite {

namespace {

std::string holder(int file) {
  std::array<char, 32> text{};
  const auto length = pread(file, text.data(), text.size() - 1, 0);
  return length > 0 ? "process " + std::string(text.data(), static_cast<std::size_t>(length))
                    : "another process";
}

}  // namespace

ProcessLock::ProcessLock(const std::string& database_path) {
  const std::string path = database_path + ".lock";
  file_ = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw StoreFailure{
        {ErrorCode::transport, path + ": " + std::strerror(errno),
         "The lock file beside the database cannot be written. Check that the folder exists and "
         "that this user may write there."}};
  }
  if (flock(file_, LOCK_EX | LOCK_NB) != 0) {
    const auto who = holder(file_);
    close(file_);
    throw StoreFailure{
        {ErrorCode::unavailable, database_path + ": in use by " + who,
         "An embedded database serves one process at a time. If that is a server, give its address "
         "instead (--store http://host:port); or stop it, or give another file."}};
  }
  const auto pid = std::to_string(getpid());
  const bool written = ftruncate(file_, 0) == 0 && pwrite(file_, pid.data(), pid.size(), 0) > 0;
  static_cast<void>(written);  // the number is a courtesy to the reader of an error; the lock is what counts
}

ProcessLock::~ProcessLock() {
  close(file_);
}

}  // namespace flowfabric::store::sqlite
