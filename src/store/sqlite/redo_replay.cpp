#include "store/sqlite/redo_replay.h"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "store/sqlite/redo_log.h"

namespace flowfabric::store::sqlite {

namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw StoreFailure{
      {ErrorCode::corruption, path + ": " + why,
       "This file holds changes that were acknowledged and are not in the database yet. Put the database "
       "back "
       "that it belongs to. If an older copy was restored on purpose, move the -redo files away."}};
}

// Takes what was written apart again; what does not fit ends it.
class Parts {
 public:
  explicit Parts(std::string_view bytes) : left_(bytes) {}
  bool empty() const { return left_.empty(); }
  template <class T>
  bool take(T& value) {
    if (left_.size() < sizeof value) return false;
    std::memcpy(&value, left_.data(), sizeof value);
    left_.remove_prefix(sizeof value);
    return true;
  }
  bool take(std::size_t size, std::string_view& bytes) {
    if (left_.size() < size) return false;
    bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }
  bool take_sized(std::string_view& bytes) {
    std::uint32_t size = 0;
    return take(size) && take(size, bytes);
  }

 private:
  std::string_view left_;
};

struct File {
  std::string path;
  std::string bytes{};
  std::vector<std::string> statements{};  // by number
};
struct Entry {
  std::uint64_t number;
  std::string_view bytes;
  File* file;
};

// Up to the first that is not whole, or that an earlier turn of the file has left behind.
std::vector<Entry> entries_of(File& file, std::uint64_t log_id) {
  std::vector<Entry> entries;
  Parts parts(file.bytes);
  RedoHeader header{};
  if (!parts.take(header) || header.magic != kRedoMagic) return entries;
  if (header.log_id != log_id) refuse(file.path, "belongs to another database");
  for (RedoEntryHeader entry{}; parts.take(entry);) {
    std::string_view bytes;
    const bool is_whole =
        parts.take(entry.size, bytes) && redo_checksum(log_id, entry.number, bytes) == entry.checksum;
    const bool follows = entries.empty() || entry.number == entries.back().number + 1;
    if (!is_whole || !follows) break;
    entries.push_back({entry.number, bytes, &file});
  }
  return entries;
}

class Replay {
 public:
  explicit Replay(Connection& connection) : connection_(connection) {}

  // Statements are defined by whichever entry of a file uses them first, so all are looked at.
  void look_at(const Entry& entry, bool run) {
    Statement* statement = nullptr;
    int parameter = 0;
    Parts parts(entry.bytes);
    const auto finish = [&] {
      if (statement && run) statement->run();
      statement = nullptr;
    };
    while (!parts.empty()) {
      RedoMark mark{};
      std::string_view text;
      std::uint32_t number = 0;
      std::int64_t integer = 0;
      bool fits = parts.take(mark);
      switch (mark) {
        case RedoMark::define:
          finish();
          fits &= parts.take_sized(text);
          entry.file->statements.emplace_back(text);
          break;
        case RedoMark::run:
          finish();
          fits &= parts.take(number) && number < entry.file->statements.size();
          if (fits && run) statement = &statements_.of(connection_, entry.file->statements[number]);
          parameter = 0;
          break;
        case RedoMark::null:
          if (statement) sqlite3_bind_null(statement->get(), ++parameter);
          break;
        case RedoMark::integer:
          fits &= parts.take(integer);
          if (statement) sqlite3_bind_int64(statement->get(), ++parameter, integer);
          break;
        case RedoMark::text:
          fits &= parts.take_sized(text);
          if (statement) {
            sqlite3_bind_text(statement->get(), ++parameter, text.data(), static_cast<int>(text.size()),
                              SQLITE_STATIC);
          }
          break;
        case RedoMark::blob:
          fits &= parts.take_sized(text);
          if (statement) {
            sqlite3_bind_blob64(statement->get(), ++parameter, text.data(), text.size(), SQLITE_STATIC);
          }
          break;
        default:
          fits = false;
      }
      if (!fits) refuse(entry.file->path, "has an entry that cannot be read");
    }
    finish();
  }

 private:
  Connection& connection_;
  Statements statements_;
};

void run_missing(Connection& connection, const std::vector<Entry>& entries, std::uint64_t applied) {
  Replay replay(connection);
  // Whatever the database is opened with: the commit, and all before it, is on disk then.
  connection.run("pragma synchronous=full");
  connection.run("begin immediate");
  try {
    auto last = applied;
    for (const auto& entry : entries) {
      const bool is_missing = entry.number > applied;
      if (is_missing && entry.number != last + 1)
        refuse(entry.file->path, "does not go on where the database ends");
      replay.look_at(entry, is_missing);
      if (is_missing) last = entry.number;
    }
    connection.run("update ff_redo set applied=" + std::to_string(last) + " where id=1");
    connection.run("commit");
  } catch (...) {
    sqlite3_exec(connection.get(), "rollback", nullptr, nullptr, nullptr);
    throw;
  }
}

}  // namespace

void replay_redo_log(Connection& connection) {
  std::vector<File> files;
  for (const auto& path : redo_paths(connection.path())) {
    std::ifstream stream(path, std::ios::binary);
    if (!stream) continue;
    files.push_back({path, std::string(std::istreambuf_iterator<char>(stream), {})});
  }
  if (files.empty()) return;
  const bool is_known = connection.number("select count(*) from sqlite_schema where name='ff_redo'") > 0;
  const auto log_id =
      is_known ? static_cast<std::uint64_t>(connection.number("select log_id from ff_redo where id=1")) : 0;
  const auto applied =
      is_known ? static_cast<std::uint64_t>(connection.number("select applied from ff_redo where id=1")) : 0;
  std::vector<Entry> entries;
  for (auto& file : files) {
    std::ranges::copy(entries_of(file, log_id), std::back_inserter(entries));
  }
  std::ranges::stable_sort(entries, {}, &Entry::number);
  if (is_known) run_missing(connection, entries, applied);
  for (const auto& file : files) unlink(file.path.c_str());
}

}  // namespace flowfabric::store::sqlite
