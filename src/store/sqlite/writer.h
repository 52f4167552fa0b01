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
  Writer(std::string path, Durability durability);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // Where events and the redo log go on, and which log it is.
  EventNumbers last_events();
  std::uint64_t applied() const { return applied_; }
  std::uint64_t log_id() const { return log_id_; }

  // In one transaction that is on disk before anybody sees it. When it fails, nothing of it was stored; or
  // nobody knows, and it says so.
  void write(const core::Unit& unit, const EventNumbers& last_events);
  // Batches that the redo log has made durable, or will have when `may_commit` says so: false, and they are
  // not written. A record that several of them changed is written once. Those that were written before, in
  // an attempt of which nobody knew, are left out.
  bool write_logged(std::span<const Worked> batches, const std::function<bool()>& may_commit);

  // Everything that was written is on disk then. This and the next may be called while another thread writes.
  void sync();
  // Moves most of a long log into the database, so that the writing thread has little to do before it can
  // start over.
  void shorten_log();
  bool wants_shorter_log() const { return shortening_ == Shortening::wanted; }

 private:
  // The statements of one record type, prepared when first used. Inserts name only the columns that have a
  // value, updates only those that changed.
  template <class Record>
  using ByColumns = std::unordered_map<ColumnMask<Record>, Statement>;
  template <class Record>
  struct Table {
    ByColumns<Record> inserts;
    ByColumns<Record> updates;
  };
  template <class Event>
  struct EventLog {
    ByColumns<Event> inserts;
  };
  // A record as the database has it, and as it is to be.
  template <class Record>
  struct Change {
    typename Record::Key key;
    const Record* stored;
    const Record* changed;
  };

  void connect();
  void keep_log_bounded();
  Statement& statement(const std::string& sql) { return statements_.of(*connection_, sql); }
  template <class Record>
  Table<Record>& table() {
    return std::get<Table<Record>>(tables_);
  }
  template <class Record, class MakeSql>
  Statement& by_columns(ByColumns<Record>& statements, const ColumnMask<Record>& columns, MakeSql make_sql);
  template <class Write>
  bool in_transaction(Write write);
  void write_all(std::span<const Worked> batches);
  void write_alone(const core::Unit& unit, const EventNumbers& last_events);
  template <class Record>
  void write_merged(std::span<const Worked> batches);
  template <class Record>
  void write(const Change<Record>& change);
  template <class Record>
  void insert(const Record& record);
  template <class Event>
  void append(const core::Unit& unit, const EventNumbers& last_events);
  void count(const std::map<LaneCountKey, std::int64_t>& deltas);
  void commit(bool is_logged);

  const std::string path_;
  const Durability durability_;
  std::unique_ptr<Connection> connection_;  // null: it failed, and is made anew
  std::uint64_t applied_{0};
  std::uint64_t log_id_{0};
  std::mutex log_file_mutex_;
  int log_file_{-1};
  int next_checkpoint_pages_{0};
  enum class Shortening { none, wanted, running, done };
  std::atomic<Shortening> shortening_{Shortening::none};
  std::unique_ptr<Connection> beside_;  // the one that shortens it
  boost::mp11::mp_rename<boost::mp11::mp_transform<Table, Records>, std::tuple> tables_;
  boost::mp11::mp_rename<boost::mp11::mp_transform<EventLog, Events>, std::tuple> logs_;
  Statements statements_;
};

}  // namespace flowfabric::store::sqlite
