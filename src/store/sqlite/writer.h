// The one connection that writes: puts what batches have changed into the database, each in one transaction,
// and makes it durable.
#pragma once

#include <atomic>
#include <memory>
#include <unordered_map>

#include "store/sqlite/durable_mark.h"
#include "store/sqlite/mapping.h"
#include "store/store.h"

namespace flowfabric::store::sqlite {

class Writer {
 public:
  Writer(std::string path, Durability durability, std::shared_ptr<DurableMark> durable);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  // All of them in one transaction, in this order. Readers see it from then on: the mark has one commit more
  // for each of them, whatever comes of it. When it fails, nothing of it was stored; or nobody knows, and it
  // says so.
  void write(const std::vector<const core::Unit*>& units);
  // Everything that was written is on disk then. This and the next may be called while another thread writes.
  void sync();
  // Moves most of a long log into the database, so that the writing thread has little to do before it can
  // start over.
  void shorten_log();

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
    std::int64_t last_id{0};
  };

  void connect();
  void keep_log_bounded();
  Statement& statement(const std::string& sql) { return statements_.of(*connection_, sql); }
  template <class Record>
  Table<Record>& table() {
    return std::get<Table<Record>>(tables_);
  }
  template <class Event>
  EventLog<Event>& log() {
    return std::get<EventLog<Event>>(logs_);
  }
  template <class Record, class MakeSql>
  Statement& by_columns(ByColumns<Record>& statements, const ColumnMask<Record>& columns, MakeSql make_sql);
  void write_all(const core::Unit& unit);
  template <class Record>
  void write(const core::Slot<Record>& slot, bool is_stored);
  template <class Record>
  void insert(const Record& record);
  template <class Record>
  void update(const core::Slot<Record>& slot);
  template <class Record>
  void purge(const ExecutionId& id);
  template <class Event>
  void append(const std::vector<Event>& events);
  template <class Event>
  void trim(std::int64_t before_ms);
  void drop_frames(const StreamKey& stream, std::uint64_t count);
  void commit();

  const std::string path_;
  const Durability durability_;
  const std::shared_ptr<DurableMark> durable_;
  std::unique_ptr<Connection> connection_;  // null: it failed, and is made anew
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
