// Runs what the redo log holds and the database does not: what the last process has acknowledged and not got
// round to writing. Before the schema is brought up to date, for its statements are those of the version
// that wrote them.
#pragma once

#include <vector>

#include "store/sqlite/database.h"
#include "store/sqlite/redo/redo_log.h"

namespace flowfabric::store::sqlite {

// Where the database is.
struct RedoPosition {
  std::uint64_t applied{};            // the last entry in its tables
  std::uint64_t log_id{};             // the log that goes on from there
  std::vector<std::uint64_t> past{};  // logs of which everything is in the tables
};
std::optional<RedoPosition> redo_position(Connection& connection);  // absent: it has never had a redo log
// From now on the database has another log: none of an earlier time, or of a copy, belongs to it. In the
// transaction that is open.
void begin_new_log(Connection& connection);

// The content of a redo log's files.
class RedoContent {
 public:
  // Refuses a file that cannot be read or that is no redo log: there may be something in it that was
  // acknowledged.
  explicit RedoContent(const std::string& database_path);
  RedoContent(RedoContent&&) = default;  // its entries point into its files

  // Refuses a log that is another database's, or that has a part missing. Forgets what is left of past ones.
  void check(const RedoPosition& position);
  // Runs what the database has not got yet, in the transaction that is open. Checks it first.
  void run_missing(Connection& connection);

 private:
  struct Source {
    std::string path;
    std::string bytes;
    std::uint64_t log_id{};
    std::size_t end{};                      // of the entries that can be read
    std::vector<std::string> statements{};  // by number
  };
  struct Entry {
    std::uint64_t number;
    std::string_view bytes;
    Source* file;
  };
  class Run;

  void take_entries(Source& file);
  void look_for_damage(const RedoPosition& position, std::uint64_t last) const;

  std::vector<Source> files_;
  std::vector<Entry> entries_;  // by number
};

void remove_redo_files(const std::string& database_path);

}  // namespace flowfabric::store::sqlite
