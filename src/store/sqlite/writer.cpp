#include "store/sqlite/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "store/sqlite/log_writer.h"

namespace flowfabric::store::sqlite {

namespace {

using core::Slot;
using core::Unit;

// About 64 MiB of log; twice that when readers keep it from starting over, and then they are waited for.
constexpr int kCheckpointPages = 16000;
constexpr int kForcedCheckpointPages = 2 * kCheckpointPages;
// How far it may grow on while it is being moved.
constexpr int kMoreMeanwhile = kCheckpointPages / 4;
// Distinct sets of changed columns are few; a runaway would only cost memory, so it is cut off.
constexpr std::size_t kMaxStatements = 256;
constexpr int kTrimmedPerStep = 1000;
constexpr const char* kUnknown = " It is not known whether this call was stored; repeating it is safe.";

}  // namespace

Writer::Writer(std::string path, Durability durability, std::shared_ptr<DurableMark> durable)
    : path_(std::move(path)), durability_(durability), durable_(std::move(durable)) {
  connect();
}

Writer::~Writer() {
  if (log_file_ >= 0) close(log_file_);
}

void Writer::connect() {
  // Statements belong to the connection they were prepared on.
  tables_ = {};
  logs_ = {};
  statements_ = {};
  connection_.reset();
  auto connection = std::make_unique<Connection>(path_, Access::read_write, durability_);
  for_each_type<Events>([&]<class Event>() {
    log<Event>().last_id = connection->number(std::string("select max(event_id) from ") + Event::table);
  });
  if (log_file_ >= 0) close(log_file_);
  log_file_ = open((path_ + "-wal").c_str(), O_RDONLY | O_CLOEXEC);
  if (log_file_ < 0) {
    throw StoreFailure{{ErrorCode::transport, path_ + "-wal: " + std::strerror(errno),
                        "The database's log cannot be opened. Check the permissions of its folder."}};
  }
  connection_ = std::move(connection);
  next_checkpoint_pages_ = kCheckpointPages;
}

void Writer::keep_log_bounded() {
  const int pages = connection_->wal_pages();
  if (pages < next_checkpoint_pages_) return;
  // The other thread moves most of it. Who writes alone has no other thread.
  auto none = Shortening::none;
  shortening_.compare_exchange_strong(none, Shortening::wanted);
  const auto most = shortening_ == Shortening::running ? kForcedCheckpointPages
                    : shortening_ == Shortening::done  ? pages
                                                       : next_checkpoint_pages_ + kMoreMeanwhile;
  if (pages < most) return;
  const bool moved_all = connection_->checkpoint(pages >= kForcedCheckpointPages);
  shortening_ = Shortening::none;
  // A reader that stays must not cost every batch an attempt: the next one comes when the log has grown
  // again.
  next_checkpoint_pages_ = moved_all ? kCheckpointPages : pages + kMoreMeanwhile;
}

void Writer::shorten_log() {
  auto wanted = Shortening::wanted;
  if (!shortening_.compare_exchange_strong(wanted, Shortening::running)) return;
  try {
    if (!beside_) beside_ = std::make_unique<Connection>(path_, Access::read_write, durability_);
    beside_->checkpoint(false);
  } catch (const StoreFailure&) {
    beside_.reset();  // the writing thread meets the same trouble, and tells
  }
  shortening_ = Shortening::done;
}

void Writer::write(const std::vector<const Unit*>& units) {
  std::vector<std::int64_t> numbered;  // how far events were, by family
  bool is_announced = false;
  const auto announce = [&] {
    if (!std::exchange(is_announced, true)) durable_->announce(units.size());
  };
  try {
    if (!connection_) connect();
    for_each_type<Events>([&]<class Event>() { numbered.push_back(log<Event>().last_id); });
    keep_log_bounded();
    statement("begin immediate").run();
    for (const auto* unit : units) write_all(*unit);
    announce();
    commit();
  } catch (...) {
    announce();
    if (connection_ && connection_->in_transaction()) {
      sqlite3_exec(connection_->get(), "rollback", nullptr, nullptr, nullptr);
    }
    if (!numbered.empty()) {
      auto last_id = numbered.begin();
      for_each_type<Events>([&]<class Event>() { log<Event>().last_id = *last_id++; });
    }
    throw;
  }
}

void Writer::commit() {
  try {
    const CommitsUnsynced unsynced(connection_->get());
    statement("commit").run();
  } catch (StoreFailure& failure) {
    const bool full = sqlite3_errcode(connection_->get()) == SQLITE_FULL;
    // The log may hold the commit although the disk did not confirm it. Only a fresh connection, which reads
    // the log anew, knows; until then nobody does.
    connection_.reset();
    if (!full) {
      failure.error.code = ErrorCode::unavailable;
      failure.error.advice += kUnknown;
    }
    throw;
  }
}

void Writer::sync() {
  if (durability_ != Durability::full) return;
  int code = 0;
  do {
    code = fdatasync(log_file_);
  } while (code != 0 && errno == EINTR);
  if (code == 0) return;
  throw StoreFailure{{ErrorCode::unavailable, path_ + "-wal: " + std::strerror(errno),
                      std::string("The disk reported trouble. Check it, then repeat the call.") + kUnknown}};
}

template <class Record, class MakeSql>
Statement& Writer::by_columns(ByColumns<Record>& statements, const ColumnMask<Record>& columns,
                              MakeSql make_sql) {
  auto it = statements.find(columns);
  if (it == statements.end()) {
    if (statements.size() >= kMaxStatements) statements.clear();
    it = statements.emplace(columns, connection_->prepare(make_sql(columns))).first;
  }
  return it->second;
}

template <class Record>
void Writer::insert(const Record& record) {
  const auto columns = columns_with_value(record);
  auto& insert = by_columns<Record>(table<Record>().inserts, columns, insert_statement<Record>);
  bind_columns(insert.get(), 1, record, columns);
  insert.run();
}

template <class Record>
void Writer::update(const Slot<Record>& slot) {
  const auto columns = changed_columns(*slot.stored, *slot.changed);
  if (columns.none()) return;
  auto& update = by_columns<Record>(table<Record>().updates, columns, update_statement<Record>);
  bind_columns(update.get(), bind_all(update.get(), 1, slot.key), *slot.changed, columns);
  update.run();
}

template <class Record>
void Writer::write(const Slot<Record>& slot, bool is_stored) {
  if (is_stored && slot.changed) return update(slot);
  if (slot.changed) {
    insert(*slot.changed);
  } else if (is_stored) {
    static const std::string sql =
        std::string("delete from ") + Record::table + " where " + key_condition<Record>();
    auto& erase = statement(sql);
    bind_all(erase.get(), 1, slot.key);
    erase.run();
  }
}

template <class Event>
void Writer::append(const std::vector<Event>& events) {
  auto& id = log<Event>().last_id;
  for (const auto& event : events) {
    const auto columns = columns_with_value(event);
    auto& insert = by_columns<Event>(log<Event>().inserts, columns, insert_statement<Event>);
    bind_columns(insert.get(), 1, event, columns);
    bind(insert.get(), 1, ++id);  // the store numbers events
    insert.run();
  }
}

// All rows of an execution: its key is the beginning of theirs.
template <class Record>
void Writer::purge(const ExecutionId& id) {
  static const std::string sql =
      std::string("delete from ") + Record::table + " where partition_key=?1 and execution_id=?2";
  auto& erase = statement(sql);
  bind_all(erase.get(), 1, id);
  erase.run();
}

template <class Event>
void Writer::trim(std::int64_t before_ms) {
  // The oldest, up to the first that is to be kept: times may go back where ids do not, and a log has no
  // holes. The newest row stays: it is where the numbering goes on.
  static const std::string table = Event::table;
  static const std::string sql =
      "delete from " + table + " where event_id in (select event_id from " + table +
      " where event_id<?2 order by event_id limit ?3) and event_id<coalesce((select min(event_id) from "
      "(select event_id,occurred_at_ms from " +
      table + " order by event_id limit ?3) where occurred_at_ms>=?1),?2)";
  auto& trim = statement(sql);
  bind(trim.get(), 1, before_ms);
  bind(trim.get(), 2, log<Event>().last_id);
  bind(trim.get(), 3, kTrimmedPerStep);
  trim.run();
}

void Writer::drop_frames(const StreamKey& stream, std::uint64_t count) {
  auto& drop = statement(
      "delete from ff_stream_frame where rowid in (select rowid from ff_stream_frame "
      "where partition_key=?1 and execution_id=?2 and attempt_index=?3 order by frame_ms,frame_seq limit "
      "?4)");
  bind(drop.get(), bind_all(drop.get(), 1, stream), count);
  drop.run();
}

void Writer::write_all(const Unit& unit) {
  for (const auto& id : unit.purged()) {
    for_each_type<OwnedRecords>([&]<class Record>() { purge<Record>(id); });
  }
  for_each_type<Records>([&]<class Record>() {
    unit.for_each_dirty<Record>([&](const Slot<Record>& slot) { write(slot, unit.is_stored(slot)); });
  });
  for (const auto& [stream, count] : unit.dropped_frames()) drop_frames(stream, count);
  for_each_type<Events>([&]<class Event>() {
    append(unit.appended<Event>());
    if (unit.trim_before_ms()) trim<Event>(*unit.trim_before_ms());
  });
  for (const auto& [key, delta] : unit.count_deltas()) {
    if (delta == 0) continue;
    static const std::string sql =
        "insert into ff_lane_count values(?1,?2,?3) "
        "on conflict do update set executions=executions+excluded.executions";
    auto& count = statement(sql);
    bind(count.get(), bind_all(count.get(), 1, key), delta);
    count.run();
  }
}

}  // namespace flowfabric::store::sqlite
