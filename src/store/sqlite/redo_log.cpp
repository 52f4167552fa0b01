#include "store/sqlite/redo_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace flowfabric::store::sqlite {

namespace {

// When it is the other file's turn, if that can be used again by then.
constexpr std::int64_t kTurnBytes = 32 << 20;

int sync_data(int descriptor) {
  int code = 0;
  do {
    code = fdatasync(descriptor);
  } while (code != 0 && errno == EINTR);
  return code;
}

// So that a new file is still there after a power failure.
void sync_folder_of(const std::string& path) {
  auto folder = std::filesystem::path(path).parent_path().string();
  if (folder.empty()) folder = ".";
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  fsync(descriptor);
  close(descriptor);
}

// It holds what the database will hold: whoever may not read that may not read this.
bool give_rights_of(const std::string& database_path, int descriptor) {
  struct stat database {};
  if (stat(database_path.c_str(), &database) != 0) return false;
  if (geteuid() == 0 && fchown(descriptor, database.st_uid, database.st_gid) != 0) return false;
  return fchmod(descriptor, database.st_mode & 0777) == 0;
}

}  // namespace

std::array<std::string, 2> redo_paths(const std::string& database_path) {
  return {database_path + "-redo1", database_path + "-redo2"};
}

std::uint64_t redo_checksum(std::uint64_t log_id, std::uint64_t number, std::string_view entry) {
  return XXH3_64bits_withSeed(entry.data(), entry.size(), log_id ^ (number * 0x9E3779B97F4A7C15ULL));
}

void RedoEntry::statement(const std::string& sql) {
  const auto [it, is_new] = known_.try_emplace(&sql, static_cast<std::uint32_t>(known_.size()));
  if (is_new) bytes(RedoMark::define, sql);
  mark(RedoMark::run);
  raw(it->second);
}

RedoLog::RedoLog(const std::string& database_path, std::uint64_t log_id, Durability durability)
    : database_path_(database_path), log_id_(log_id), durability_(durability) {
  const auto paths = redo_paths(database_path);
  for (std::size_t i = 0; i < files_.size(); ++i) files_[i].path = paths[i];
}

RedoLog::~RedoLog() {
  close_all();
}

void RedoLog::close_all() {
  for (auto& file : files_) {
    if (file.descriptor >= 0) close(file.descriptor);
    file.descriptor = -1;
  }
}

void RedoLog::fail(const File& file, bool is_unknown) const {
  const int reason = errno;
  const bool is_full = reason == ENOSPC || reason == EDQUOT || reason == EFBIG;
  auto error = explain(is_full ? SQLITE_FULL : SQLITE_IOERR, file.path, std::strerror(reason));
  if (is_unknown) {
    error.code = ErrorCode::unavailable;
    error.advice =
        "The disk reported trouble. It is not known whether this call was stored; repeating it is safe.";
  }
  throw StoreFailure{std::move(error)};
}

void RedoLog::open_current() {
  auto& file = current();
  if (file.descriptor < 0) {
    file.descriptor = open(file.path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file.descriptor < 0) fail(file, false);
    if (!give_rights_of(database_path_, file.descriptor)) {
      const int reason = errno;
      close(std::exchange(file.descriptor, -1));
      errno = reason;
      fail(file, false);
    }
    sync_folder_of(file.path);
  }
  const RedoHeader header{kRedoMagic, log_id_};
  if (pwrite(file.descriptor, &header, sizeof header, 0) != sizeof header) fail(file, false);
  offset_ = sizeof header;
  known_.clear();
}

void RedoLog::take_turns() {
  const auto next = 1 - current_;
  if (offset_ < kTurnBytes || files_[next].last_number > safe_) return;
  // Entries of the next file are worth nothing without those before them.
  if (durability_ != Durability::full && sync_data(current().descriptor) != 0) fail(current(), true);
  current_ = next;
  open_current();
}

void RedoLog::begin_entry() {
  if (gathered_.empty()) {
    if (offset_ == 0) open_current();
    take_turns();
  }
  entry_begin_ = gathered_.size();
  gathered_.append(sizeof(RedoEntryHeader), '\0');
}

void RedoLog::end_entry(std::uint64_t number) {
  const auto entry = std::string_view(gathered_).substr(entry_begin_ + sizeof(RedoEntryHeader));
  const RedoEntryHeader header{number, entry.size(), redo_checksum(log_id_, number, entry)};
  std::memcpy(gathered_.data() + entry_begin_, &header, sizeof header);
  last_gathered_ = number;
}

void RedoLog::write_gathered() {
  auto& file = current();
  for (std::size_t done = 0; done < gathered_.size();) {
    const auto written = pwrite(file.descriptor, gathered_.data() + done, gathered_.size() - done,
                                offset_ + static_cast<std::int64_t>(done));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      const int reason = errno;
      // The first of several entries may be whole.
      const bool is_gone = ftruncate(file.descriptor, offset_) == 0;
      errno = reason;
      fail(file, !is_gone);
    }
    done += static_cast<std::size_t>(written);
  }
}

void RedoLog::sync() {
  if (gathered_.empty()) return;
  write_gathered();
  if (durability_ == Durability::full && sync_data(current().descriptor) != 0) fail(current(), true);
  offset_ += static_cast<std::int64_t>(gathered_.size());
  current().last_number = last_gathered_;
  gathered_.clear();
}

std::uint64_t RedoLog::wants_safe() const {
  const std::uint64_t last = files_[1 - current_].last_number;
  return last > safe_ ? last : 0;
}

void RedoLog::start_over() {
  for (auto& file : files_) {
    file.last_number = 0;
    if (file.descriptor < 0) continue;
    if (ftruncate(file.descriptor, 0) != 0 || sync_data(file.descriptor) != 0) fail(file, false);
  }
  offset_ = 0;
  gathered_.clear();
}

void RedoLog::remove() {
  close_all();
  for (const auto& file : files_) unlink(file.path.c_str());
}

}  // namespace flowfabric::store::sqlite
