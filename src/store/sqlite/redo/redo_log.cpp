#include "store/sqlite/redo/redo_log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/sqlite/sizes.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace flowfabric::store::sqlite {

namespace {

// It holds what the database will hold: whoever may not read that may not read this.
void give_rights_of(const std::string& database_path, const File& file) {
  struct stat database {};
  const bool given = stat(database_path.c_str(), &database) == 0 &&
                     (geteuid() != 0 || fchown(file.descriptor(), database.st_uid, database.st_gid) == 0) &&
                     fchmod(file.descriptor(), database.st_mode & 0777) == 0;
  if (!given) throw StoreFailure{explain(SQLITE_PERM, file.path(), std::strerror(errno))};
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
  for (std::size_t i = 0; i < turns_.size(); ++i) turns_[i].path = paths[i];
}

// Its header and its name are on disk before any entry is written: then whatever else is in the file after a
// power failure, it can be told from a damaged one.
File RedoLog::make_file(const std::string& path) const {
  File file(path, O_RDWR | O_CREAT | O_TRUNC);
  give_rights_of(database_path_, file);
  const RedoHeader header{kRedoMagic, log_id_};
  file.write(0, {reinterpret_cast<const char*>(&header), sizeof header});
  file.sync();
  sync_folder_of(path);
  return file;
}

void RedoLog::begin_turn(std::size_t which) {
  auto& turn = turns_[which];
  if (!turn.file.is_open()) turn.file = make_file(turn.path);
  current_ = which;
  offset_ = sizeof(RedoHeader);
  known_.clear();
}

void RedoLog::take_turns() {
  if (offset_ == 0) return begin_turn(0);
  const auto next = 1 - current_;
  if (offset_ < sizes().redo_turn_bytes || turns_[next].last_number > safe_) return;
  // Entries of the next file are worth nothing without those before them.
  if (durability_ != Durability::full) {
    current().file.sync();
    stored_ = current().last_number;
  }
  begin_turn(next);
}

void RedoLog::begin_entry() {
  if (gathered_.empty()) {
    known_before_ = known_.size();
    take_turns();
    known_before_ = known_.size();
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

void RedoLog::sync() {
  if (gathered_.empty()) return;
  auto& turn = current();
  is_partly_written_ = true;
  turn.file.write(offset_, gathered_);
  if (durability_ == Durability::full) {
    turn.file.sync();
    stored_ = last_gathered_;
  }
  is_partly_written_ = false;
  offset_ += static_cast<std::int64_t>(gathered_.size());
  turn.last_number = last_gathered_;
  gathered_.clear();
}

void RedoLog::drop_gathered() {
  gathered_.clear();
  std::erase_if(known_, [&](const auto& each) { return each.second >= known_before_; });
  if (!is_partly_written_) return;
  // The first of several entries may be whole.
  current().file.truncate(offset_);
  current().file.sync();
  is_partly_written_ = false;
}

std::uint64_t RedoLog::wants_safe() const {
  const std::uint64_t last = turns_[1 - current_].last_number;
  return last > safe_ ? last : 0;
}

void RedoLog::remove() {
  for (auto& turn : turns_) {
    turn.file = {};
    remove_file(turn.path);
  }
}

}  // namespace flowfabric::store::sqlite
