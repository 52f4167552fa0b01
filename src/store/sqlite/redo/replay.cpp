#include "store/sqlite/redo/replay.h"

#include <fcntl.h>

#include <algorithm>
#include <cstring>

namespace flowfabric::store::sqlite {

namespace {

// Files of older logs do not come back.
constexpr int kMostPast = 100;
// So many entries nobody has between two that are in the tables.
constexpr std::uint64_t kMostMissing = 1 << 20;

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw StoreFailure{{ErrorCode::corruption, path + ": " + why,
                      "This file holds changes that were acknowledged and are not in the database yet. Put "
                      "the database back "
                      "that it belongs to, with all files beside it. If an older copy was restored on "
                      "purpose, move the -redo and "
                      "-wal files away."}};
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

// What an entry says was on disk when it was written. Those of older versions do not say it.
std::uint64_t stored_before(std::string_view entry) {
  Parts parts(entry);
  RedoMark mark{};
  std::uint64_t number = 0;
  return parts.take(mark) && mark == RedoMark::stored && parts.take(number) ? number : 0;
}

// A whole entry at the beginning of the bytes.
struct Whole {
  std::uint64_t number;
  std::string_view bytes;
};
std::optional<Whole> whole_entry(std::string_view bytes, std::uint64_t log_id) {
  Parts parts(bytes);
  RedoEntryHeader header{};
  std::string_view entry;
  const bool is_whole = parts.take(header) && parts.take(header.size, entry) &&
                        redo_checksum(log_id, header.number, entry) == header.checksum;
  if (!is_whole) return std::nullopt;
  return Whole{header.number, entry};
}

}  // namespace

class RedoContent::Run {
 public:
  explicit Run(Connection& connection) : connection_(connection) {}

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
      std::uint64_t stored = 0;
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
        case RedoMark::stored:
          fits &= parts.take(stored);
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

RedoContent::RedoContent(const std::string& database_path) {
  for (const auto& path : redo_paths(database_path)) {
    auto file = File::open_if_there(path, O_RDONLY);
    if (!file) continue;
    auto bytes = file->read_all();
    // It was made, and the power failed before anything was in it.
    if (std::ranges::all_of(bytes, [](char byte) { return byte == 0; })) continue;
    files_.push_back({path, std::move(bytes)});
  }
  for (auto& file : files_) take_entries(file);
  std::ranges::stable_sort(entries_, {}, &Entry::number);
}

// Up to the first that is not whole, or that an earlier turn of the file has left behind.
void RedoContent::take_entries(Source& file) {
  Parts parts(file.bytes);
  RedoHeader header{};
  if (!parts.take(header) || header.magic != kRedoMagic) {
    throw StoreFailure{
        {ErrorCode::corruption, file.path + ": not a redo log of this version",
         "This file may hold changes that were acknowledged and are not in the database yet. If another "
         "version of FlowFabric wrote it, start and stop that version once. If the file is damaged, "
         "restore a backup; to go on without what is in it, move it away."}};
  }
  file.log_id = header.log_id;
  file.end = sizeof header;
  std::uint64_t last = 0;
  while (const auto entry = whole_entry(std::string_view(file.bytes).substr(file.end), header.log_id)) {
    if (entry->number <= last) break;
    last = entry->number;
    entries_.push_back({entry->number, entry->bytes, &file});
    file.end += sizeof(RedoEntryHeader) + entry->bytes.size();
  }
}

// An entry that was never acknowledged may be torn, and is the end then. But if one behind it says that those
// before it were on disk, it is damage.
void RedoContent::look_for_damage(const RedoPosition& position, std::uint64_t last) const {
  for (const auto& file : files_) {
    if (file.log_id != position.log_id) continue;
    const std::string_view bytes = file.bytes;
    for (auto at = file.end; at + sizeof(RedoEntryHeader) < bytes.size(); ++at) {
      std::uint64_t number = 0;
      std::memcpy(&number, bytes.data() + at, sizeof number);
      if (number <= last || number > last + kMostMissing) continue;
      const auto entry = whole_entry(bytes.substr(at), file.log_id);
      if (entry && stored_before(entry->bytes) > last) refuse(file.path, "has damage before its end");
    }
  }
}

void RedoContent::check(const RedoPosition& position) {
  const auto is_current = [&](const Source& file) { return file.log_id == position.log_id; };
  for (const auto& file : files_) {
    const bool is_known =
        is_current(file) || std::ranges::find(position.past, file.log_id) != position.past.end();
    if (!is_known) refuse(file.path, "belongs to another database, or to another time of it");
  }
  std::erase_if(entries_, [&](const Entry& entry) { return !is_current(*entry.file); });
  auto last = position.applied;
  for (const auto& entry : entries_) {
    if (entry.number <= position.applied) continue;
    if (entry.number != ++last) refuse(entry.file->path, "does not go on where the database ends");
  }
  look_for_damage(position, last);
}

void RedoContent::run_missing(Connection& connection) {
  const auto position = redo_position(connection).value_or(RedoPosition{});
  check(position);
  Run run(connection);
  for (const auto& entry : entries_) run.look_at(entry, entry.number > position.applied);
  if (entries_.empty() || entries_.back().number <= position.applied) return;
  connection.run("update ff_redo set applied=" + std::to_string(entries_.back().number) + " where id=1");
}

namespace {

bool has_table(Connection& connection, const std::string& name) {
  return connection.number("select count(*) from sqlite_schema where name='" + name + "'") > 0;
}

}  // namespace

std::optional<RedoPosition> redo_position(Connection& connection) {
  if (!has_table(connection, "ff_redo")) return std::nullopt;
  const auto number = [&](const char* column) {
    return static_cast<std::uint64_t>(
        connection.number(std::string("select ") + column + " from ff_redo where id=1"));
  };
  RedoPosition position{number("applied"), number("log_id")};
  if (!has_table(connection, "ff_redo_past")) return position;
  auto past = connection.prepare("select log_id from ff_redo_past");
  while (past.step()) {
    position.past.push_back(static_cast<std::uint64_t>(sqlite3_column_int64(past.get(), 0)));
  }
  return position;
}

void begin_new_log(Connection& connection) {
  connection.run("insert into ff_redo_past (log_id) select log_id from ff_redo where id=1");
  connection.run("delete from ff_redo_past where opening<=(select max(opening) from ff_redo_past)-" +
                 std::to_string(kMostPast));
  connection.run("update ff_redo set log_id=random() where id=1");
}

void remove_redo_files(const std::string& database_path) {
  for (const auto& path : redo_paths(database_path)) remove_file(path);
}

}  // namespace flowfabric::store::sqlite
