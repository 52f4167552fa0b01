// The redo log: what makes the batches of a busy engine durable. Writing a batch into tables and indexes
// takes much longer than writing down what is to be written; so that is done first, and answers need not wait
// for the tables. An entry is a list of SQL statements with their parameters: whatever the last process has
// not got round to, the next one runs before anything else (replay.h).
//
// Two files take turns, each from its beginning and in place, so that a sync has no metadata to write. A file
// is used again when all its entries are in the database for good. README.md has the rules, and the tests
// that guard them.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <unordered_map>
#include <vector>

#include "store/sqlite/database.h"
#include "store/sqlite/files.h"

namespace flowfabric::store::sqlite {

// Which files there are for a database.
std::array<std::string, 2> redo_paths(const std::string& database_path);

// ---- the form of an entry ----

// Values as SQLite has them. A statement's text is given where a file uses it for the first time. An entry
// begins with the number of the last one that was known to be on disk when it was written: if that one cannot
// be read, the file is damaged.
enum class RedoMark : std::uint8_t { define = 1, run, null, integer, text, blob, stored };

class RedoEntry {
 public:
  // Numbers of the statements that the file knows already.
  using Known = std::unordered_map<const std::string*, std::uint32_t>;
  RedoEntry(std::string& out, Known& known) : out_(out), known_(known) {}

  void stored(std::uint64_t number) {
    mark(RedoMark::stored);
    raw(number);
  }
  // Its parameters follow, in order. Known by its address, which must stay.
  void statement(const std::string& sql);

  void null() { mark(RedoMark::null); }
  void integer(std::int64_t value) {
    mark(RedoMark::integer);
    raw(value);
  }
  void text(std::string_view value) { bytes(RedoMark::text, value); }
  void blob(std::string_view value) { bytes(RedoMark::blob, value); }
  void json(const std::string& value) { bytes(RedoMark::text, value); }

 private:
  void mark(RedoMark mark) { out_.push_back(static_cast<char>(mark)); }
  template <class T>
  void raw(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void bytes(RedoMark kind, std::string_view value) {
    mark(kind);
    raw(static_cast<std::uint32_t>(value.size()));
    out_.append(value);
  }

  std::string& out_;
  Known& known_;
};

// ---- the files ----

struct RedoHeader {
  std::array<char, 8> magic;
  std::uint64_t log_id;  // of the database that it belongs to
};
struct RedoEntryHeader {
  std::uint64_t number;
  std::uint64_t size;
  std::uint64_t checksum;
};
inline constexpr std::array<char, 8> kRedoMagic{'F', 'F', 'r', 'e', 'd', 'o', '0', '1'};
std::uint64_t redo_checksum(std::uint64_t log_id, std::uint64_t number, std::string_view entry);

// One thread appends; another may say what is safe.
class RedoLog {
 public:
  // There are no files yet.
  RedoLog(const std::string& database_path, std::uint64_t log_id, Durability durability);

  // Gathers an entry: write(entry) fills it in. Numbers increase. Says how long it is.
  template <class Write>
  std::size_t add(std::uint64_t number, Write write) {
    begin_entry();
    RedoEntry entry(gathered_, known_);
    entry.stored(stored_);
    write(entry);
    end_entry(number);
    return gathered_.size() - entry_begin_;
  }
  // The gathered entries are on disk then.
  void sync();
  // The gathered entries will never be there, not even after a power failure. To be called when one of the
  // two above has thrown anything but `Retry::after_restart`.
  void drop_gathered();

  // Entries up to this one are in the database for good.
  void is_safe(std::uint64_t number) { safe_ = number; }
  // The other file's last entry is this one, and not yet safe: time to see to it. 0: nothing to do.
  std::uint64_t wants_safe() const;
  // Everything that was ever added is in the database for good.
  void remove();

 private:
  struct Turn {
    std::string path;
    File file{};
    std::atomic<std::uint64_t> last_number{0};
  };
  Turn& current() { return turns_[current_]; }
  void begin_entry();
  void end_entry(std::uint64_t number);
  void take_turns();
  void begin_turn(std::size_t which);
  File make_file(const std::string& path) const;

  const std::string database_path_;
  const std::uint64_t log_id_;
  const Durability durability_;
  std::array<Turn, 2> turns_;
  std::atomic<std::size_t> current_{0};
  std::int64_t offset_{0};
  std::string gathered_;
  std::size_t entry_begin_{0};
  std::uint64_t last_gathered_{0};
  bool is_partly_written_{false};  // of what was gathered
  std::uint64_t stored_{0};        // the last entry that is on disk
  RedoEntry::Known known_;
  std::size_t known_before_{0};  // how many before what was gathered
  std::atomic<std::uint64_t> safe_{0};
};

}  // namespace flowfabric::store::sqlite
