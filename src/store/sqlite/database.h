// A thin, throwing wrapper over the SQLite C API: connections, statements, and errors that say what to do.
#pragma once

#include <sqlite3.h>

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/store.h"

namespace flowfabric::store::sqlite {

class LogSyncs;

// The error for a result code, naming the file and the remedy.
Error explain(int code, const std::string& path, const std::string& message);
// Of the last call on a connection, with what may be done about it.
StoreFailure failure_at(sqlite3* connection, const std::string& path);

class Statement {
 public:
  Statement(sqlite3* connection, const std::string& path, const std::string& sql);
  Statement(Statement&&) noexcept = default;
  Statement& operator=(Statement&&) noexcept = default;

  sqlite3_stmt* get() const { return statement_.get(); }
  // True for a row, false when done.
  bool step();
  void run() {
    step();
    reset();
  }
  void reset() noexcept { sqlite3_reset(statement_.get()); }

 private:
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const noexcept { sqlite3_finalize(statement); }
  };
  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  const std::string* path_;
};

// Resets a statement when the reading of its rows is over, however it ends.
class ResetAfterUse {
 public:
  explicit ResetAfterUse(Statement& statement) : statement_(statement) {}
  ~ResetAfterUse() { statement_.reset(); }
  ResetAfterUse(const ResetAfterUse&) = delete;
  ResetAfterUse& operator=(const ResetAfterUse&) = delete;

 private:
  Statement& statement_;
};

enum class Access { read_write, read_only };
// Of a store: whether an answer means that the change is on disk.
enum class Durability { full, normal };

class Connection {
 public:
  // Its commits are written to the log, and not synced, until it is told to (`sync_commits`).
  Connection(std::string path, Access access);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  sqlite3* get() const { return connection_; }
  const std::string& path() const { return path_; }
  void run(const std::string& sql);
  std::int64_t number(const std::string& sql);
  Statement prepare(const std::string& sql) const { return Statement(connection_, path_, sql); }

  bool in_transaction() const { return sqlite3_get_autocommit(connection_) == 0; }
  // Whether a commit is on disk before anybody can see it.
  void sync_commits(bool full);
  // Syncs its log in turn with others, who share this. It must outlive the connection.
  void share_log_syncs(LogSyncs& syncs);
  // Pages in the write-ahead log after the last commit of this connection.
  int wal_pages() const { return wal_pages_; }
  // Moves the log's pages into the database, so that the log can start over. Says whether all were moved.
  enum class Checkpoint {
    beside,   // as far as it can be done without waiting
    restart,  // gives readers that are in the way a moment to finish
    empty,    // the same, and the log has no bytes then
  };
  bool checkpoint(Checkpoint how);

 private:
  void require_log(bool has_log) const;

  std::string path_;
  sqlite3* connection_{nullptr};
  int wal_pages_{0};
};

// The statements of a connection by their texts, each prepared when it is first used.
class Statements {
 public:
  Statement& of(const Connection& connection, const std::string& sql) {
    auto it = prepared_.find(sql);
    if (it == prepared_.end()) it = prepared_.emplace(sql, connection.prepare(sql)).first;
    return it->second;
  }

 private:
  std::unordered_map<std::string, Statement> prepared_;
};

}  // namespace flowfabric::store::sqlite
