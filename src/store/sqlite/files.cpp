#include "store/sqlite/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "store/sqlite/database.h"

namespace flowfabric::store::sqlite {

namespace {

constexpr std::size_t kPiece = 1 << 20;
constexpr int kMostLinks = 40;  // as many as Linux follows

// Nothing was changed.
[[noreturn]] void refuse(const std::string& path, int sqlite_code) {
  const int reason = errno;
  throw StoreFailure{explain(is_full(reason) ? SQLITE_FULL : sqlite_code, path, std::strerror(reason))};
}

[[noreturn]] void fail_for_good(const std::string& path, const char* doing) {
  throw failed_for_good(path, std::string(doing) + ": " + std::strerror(errno));
}

template <class Call>
auto unless_interrupted(Call call) {
  for (;;) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

std::string folder_of(const std::string& path) {
  const auto folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace

bool is_full(int error_number) {
  return error_number == ENOSPC || error_number == EDQUOT || error_number == EFBIG;
}

StoreFailure failed_for_good(const std::string& path, const std::string& what) {
  return {
      {ErrorCode::unavailable, path + ": " + what,
       "The disk has failed, and nobody knows whether this call was stored. Check the disk, then start the "
       "process again: it goes on from what is known to be on disk, and repeating the call is safe."},
      Retry::after_restart};
}

// ---- one file ----

File::File(std::string path, int flags) : path_(std::move(path)) {
  descriptor_ = unless_interrupted([&] { return open(path_.c_str(), flags | O_CLOEXEC, 0600); });
  if (descriptor_ < 0) refuse(path_, SQLITE_CANTOPEN);
}

File File::of(std::string path, int descriptor) {
  File file;
  file.path_ = std::move(path);
  file.descriptor_ = descriptor;
  return file;
}

File::~File() {
  if (descriptor_ >= 0) close(descriptor_);
}

File::File(File&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)) {}

File& File::operator=(File&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

std::optional<File> File::open_if_there(const std::string& path, int flags) {
  struct stat found {};
  if (stat(path.c_str(), &found) == 0) return File(path, flags);
  if (errno != ENOENT) refuse(path, SQLITE_CANTOPEN);
  return std::nullopt;
}

std::int64_t File::size() const {
  struct stat found {};
  if (fstat(descriptor_, &found) != 0) refuse(path_, SQLITE_IOERR);
  return found.st_size;
}

std::string File::read(std::int64_t offset, std::size_t size) const {
  std::string bytes(size, '\0');
  std::size_t done = 0;
  while (done < size) {
    const auto got = unless_interrupted([&] {
      return pread(descriptor_, bytes.data() + done, size - done, offset + static_cast<std::int64_t>(done));
    });
    if (got < 0) refuse(path_, SQLITE_IOERR);
    if (got == 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

std::string File::read_all() const {
  return read(0, static_cast<std::size_t>(size()));
}

std::size_t File::write_what_fits(std::int64_t offset, std::string_view bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const auto written = unless_interrupted([&] {
      return pwrite(descriptor_, bytes.data() + done, std::min(kPiece, bytes.size() - done),
                    offset + static_cast<std::int64_t>(done));
    });
    if (written < 0 && is_full(errno)) return done;
    if (written < 0) fail_for_good(path_, "write");
    done += static_cast<std::size_t>(written);
  }
  return done;
}

void File::write(std::int64_t offset, std::string_view bytes) const {
  if (write_what_fits(offset, bytes) < bytes.size()) refuse(path_, SQLITE_FULL);
}

void File::truncate(std::int64_t size) const {
  if (unless_interrupted([&] { return ftruncate(descriptor_, size); }) != 0) fail_for_good(path_, "truncate");
}

void File::sync() const {
  if (unless_interrupted([&] { return fdatasync(descriptor_); }) != 0) fail_for_good(path_, "sync");
}

// ---- names ----

void sync_folder_of(const std::string& path) {
  const File folder(folder_of(path), O_RDONLY | O_DIRECTORY);
  // A file system that has no such thing says EINVAL.
  if (unless_interrupted([&] { return fsync(folder.descriptor()); }) != 0 && errno != EINVAL) {
    fail_for_good(folder.path(), "sync");
  }
}

void remove_file(const std::string& path) {
  if (unlink(path.c_str()) != 0 && errno != ENOENT) refuse(path, SQLITE_IOERR);
}

void rename_file(const std::string& from, const std::string& to) {
  if (std::rename(from.c_str(), to.c_str()) != 0) refuse(to, SQLITE_IOERR);
}

std::string real_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  fs::path file = path;
  for (int links = 0; fs::is_symlink(fs::symlink_status(file, error)); ++links) {
    if (links == kMostLinks) {
      errno = ELOOP;
      refuse(path, SQLITE_CANTOPEN);
    }
    file = file.parent_path() / fs::read_symlink(file, error);
  }
  // The file itself may not be there yet.
  const auto folder = fs::canonical(folder_of(file.string()), error);
  return error ? file.string() : (folder / file.filename()).string();
}

}  // namespace flowfabric::store::sqlite
