// The one connection that writes: puts what batches have changed into the database.
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "store/sqlite/change_statements.h"
#include "store/sqlite/disk_health.h"
#include "store/sqlite/log_writer.h"
#include "store/sqlite/redo/replay.h"
#include "store/sqlite/wal_file.h"
#include "store/store.h"

namespace flowfabric::store::sqlite {

// A batch that is to be written.
struct Worked {
  std::shared_ptr<const core::Unit> unit;
  EventNumbers last_events;  // before its own
  std::uint64_t number{0};   // in the redo log
  std::size_t bytes{0};      // of its entry there, when it is there
};

class Writer {
 public:
  Writer(const std::string& path, Durability durability, std::shared_ptr<DiskHealth> health);

  // Where events and the redo log go on, and which log it is.
  EventNumbers last_events();
  RedoPosition position() const { return position_; }

  // In one transaction that is on disk before anybody sees it, if the store is to be that durable. It takes
  // the place of an entry of the redo log. When it fails, nothing of it was stored, unless the failure says
  // otherwise.
  void write(const Worked& batch);
  // Batches that the redo log has made durable, or will have when `may_commit` says so: false, and they are
  // not written. A record that several of them changed is written once.
  bool write_logged(std::span<const Worked> batches, const std::function<bool()>& may_commit);

  // Everything that was written is on disk then. This and the next may be called while another thread writes.
  void sync();
  // Moves most of a long log into the database, so that the writing thread has little to do before it can
  // start over.
  void shorten_log();
  bool wants_shorter_log() const { return wants_shorter_log_; }
  // Moves all of the log into the database, where it is on disk then. False: somebody was in the way. Nobody
  // may write any more.
  bool empty_log();

 private:
  // The statements of one table, prepared when first used. Inserts name only the columns that have a value,
  // updates only those that changed.
  using ByColumns = std::unordered_map<ColumnMask, Statement>;
  struct Table {
    ByColumns inserts;
    ByColumns updates;
  };
  // A record as the database has it, and as it is to be.
  struct Change {
    const AnyKey* key;
    const void* stored;
    const void* changed;
  };

  void keep_log_bounded();
  Statement& statement(const std::string& sql) { return statements_.of(connection_, sql); }
  using MakeSql = std::string(const TableType& type, const ColumnMask& columns);
  Statement& by_columns(ByColumns& statements, const TableType& type, const ColumnMask& columns,
                        MakeSql make_sql);
  // Whatever is done on the disk: a failure for good is one for everybody, at once.
  template <class Call>
  void watched(Call call);
  template <class Write>
  bool in_transaction(bool is_synced, Write write);
  void write_all(std::span<const Worked> batches);
  void write_alone(const core::Unit& unit, const EventNumbers& last_events);
  void write_merged(const RecordType& type, std::span<const Worked> batches);
  void write(const RecordType& type, const Change& change);
  Statement& bind_insert(ByColumns& statements, const TableType& type, const void* record);
  void append(const EventType& type, const core::Unit& unit, const EventNumbers& last_events);
  void count(const std::map<LaneCountKey, std::int64_t>& deltas);
  void set_applied(std::uint64_t number);

  const Durability durability_;
  const std::shared_ptr<DiskHealth> health_;
  LogSyncs log_syncs_;
  Connection connection_;
  RedoPosition position_;
  const WalFile wal_;
  // Whoever moves the log, or syncs it, holds this. SQLite before 3.51.3 may lose what is committed while two
  // connections move the log one after the other (its WAL-reset bug); and once a sync has failed, the log
  // must not be touched any more.
  std::mutex log_mutex_;
  Connection beside_;  // for the thread that shortens it
  int next_checkpoint_pages_;
  std::atomic<bool> wants_shorter_log_{false};
  std::atomic<bool> is_shortened_{false};  // since it has last started over
  std::array<Table, kRecordTypes> tables_;
  std::array<ByColumns, kEventTypes> event_inserts_;
  Statements statements_;
};

}  // namespace flowfabric::store::sqlite
