#include "store/sqlite/writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <boost/unordered/unordered_flat_map.hpp>
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
constexpr const char* kUnknown = " It is not known whether this call was stored; repeating it is safe.";

}  // namespace

Writer::Writer(std::string path, Durability durability) : path_(std::move(path)), durability_(durability) {
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
  applied_ = static_cast<std::uint64_t>(connection->number("select applied from ff_redo where id=1"));
  log_id_ = static_cast<std::uint64_t>(connection->number("select log_id from ff_redo where id=1"));
  {
    std::lock_guard lock(log_file_mutex_);
    if (log_file_ >= 0) close(log_file_);
    log_file_ = open((path_ + "-wal").c_str(), O_RDONLY | O_CLOEXEC);
    if (log_file_ < 0) {
      throw StoreFailure{{ErrorCode::transport, path_ + "-wal: " + std::strerror(errno),
                          "The database's log cannot be opened. Check the permissions of its folder."}};
    }
  }
  connection_ = std::move(connection);
  next_checkpoint_pages_ = kCheckpointPages;
}

EventNumbers Writer::last_events() {
  if (!connection_) connect();
  EventNumbers last{};
  for_each_type<Events>([&]<class Event>() {
    last[event_index<Event>] = connection_->number(std::string("select max(event_id) from ") + Event::table);
  });
  return last;
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

// `write` says whether to commit.
template <class Write>
bool Writer::in_transaction(Write write) {
  try {
    if (!connection_) connect();
    keep_log_bounded();
    statement("begin immediate").run();
    if (write()) return true;
    statement("rollback").run();
    return false;
  } catch (...) {
    if (connection_ && connection_->in_transaction()) {
      sqlite3_exec(connection_->get(), "rollback", nullptr, nullptr, nullptr);
    }
    throw;
  }
}

void Writer::write(const Unit& unit, const EventNumbers& last_events) {
  in_transaction([&] {
    write_alone(unit, last_events);
    commit(false);
    return true;
  });
}

bool Writer::write_logged(std::span<const Worked> batches, const std::function<bool()>& may_commit) {
  if (!connection_) connect();
  while (!batches.empty() && batches.front().number <= applied_) batches = batches.subspan(1);
  if (batches.empty()) return true;
  return in_transaction([&] {
    write_all(batches);
    const auto last = batches.back().number;
    auto& applied = statement("update ff_redo set applied=?1 where id=1");
    bind(applied.get(), 1, last);
    applied.run();
    if (!may_commit()) return false;
    commit(true);
    applied_ = last;
    return true;
  });
}

void Writer::commit(bool is_logged) {
  try {
    std::optional<CommitsUnsynced> unsynced;
    if (is_logged) unsynced.emplace(connection_->get());
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
  std::lock_guard lock(log_file_mutex_);
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
void Writer::write(const Change<Record>& change) {
  if (change.stored && change.changed) {
    const auto columns = changed_columns(*change.stored, *change.changed);
    if (columns.none()) return;
    auto& update = by_columns<Record>(table<Record>().updates, columns, update_statement<Record>);
    bind_columns(update.get(), bind_all(update.get(), 1, change.key), *change.changed, columns);
    update.run();
  } else if (change.changed) {
    insert(*change.changed);
  } else if (change.stored) {
    auto& erase = statement(erase_statement<Record>());
    bind_all(erase.get(), 1, change.key);
    erase.run();
  }
}

// A record that several batches have changed goes from what the first of them found to what the last one
// left.
template <class Record>
void Writer::write_merged(std::span<const Worked> batches) {
  using Key = typename Record::Key;
  std::vector<Change<Record>> changes;
  boost::unordered_flat_map<Key, std::size_t, core::KeyHash<Key>> places;
  for (const auto& batch : batches) {
    batch.unit->for_each_dirty<Record>([&](const Slot<Record>& slot) {
      const auto [place, is_first] = places.try_emplace(slot.key, changes.size());
      if (is_first)
        changes.push_back({slot.key, slot.stored.get(), slot.changed.get()});
      else
        changes[place->second].changed = slot.changed.get();
    });
  }
  for (const auto& change : changes) write(change);
}

template <class Event>
void Writer::append(const Unit& unit, const EventNumbers& last_events) {
  auto& inserts = std::get<EventLog<Event>>(logs_).inserts;
  auto id = last_events[event_index<Event>];
  for (const auto& event : unit.appended<Event>()) {
    const auto columns = columns_with_value(event);
    auto& insert = by_columns<Event>(inserts, columns, insert_statement<Event>);
    bind_columns(insert.get(), 1, event, columns);
    bind(insert.get(), 1, ++id);  // the store numbers events
    insert.run();
  }
  if (!unit.trim_before_ms()) return;
  auto& trim = statement(trim_statement<Event>());
  bind(trim.get(), 1, *unit.trim_before_ms());
  bind(trim.get(), 2, id);
  bind(trim.get(), 3, kTrimmedPerStep);
  trim.run();
}

void Writer::count(const std::map<LaneCountKey, std::int64_t>& deltas) {
  for (const auto& [key, delta] : deltas) {
    if (delta == 0) continue;
    auto& count = statement(kCount);
    bind(count.get(), bind_all(count.get(), 1, key), delta);
    count.run();
  }
}

void Writer::write_alone(const Unit& unit, const EventNumbers& last_events) {
  for (const auto& id : unit.purged()) {
    for_each_type<OwnedRecords>([&]<class Record>() {
      auto& erase = statement(purge_statement<Record>());
      bind_all(erase.get(), 1, id);
      erase.run();
    });
  }
  for_each_type<Records>([&]<class Record>() {
    unit.for_each_dirty<Record>([&](const Slot<Record>& slot) {
      const auto* stored = unit.is_stored(slot) ? slot.stored.get() : nullptr;
      write(Change<Record>{slot.key, stored, slot.changed.get()});
    });
  });
  for (const auto& [stream, count] : unit.dropped_frames()) {
    auto& drop = statement(kDropFrames);
    bind(drop.get(), bind_all(drop.get(), 1, stream), count);
    drop.run();
  }
  for_each_type<Events>([&]<class Event>() { append<Event>(unit, last_events); });
  count(unit.count_deltas());
}

// What removes unseen rows is written by itself, between those before it and those after it.
void Writer::write_all(std::span<const Worked> batches) {
  while (!batches.empty()) {
    const auto removes = [](const Worked& batch) {
      return !batch.unit->purged().empty() || !batch.unit->dropped_frames().empty();
    };
    const auto end = std::ranges::find_if(batches, removes);
    const auto run = batches.first(static_cast<std::size_t>(end - batches.begin()));
    if (run.size() < 2) {
      write_alone(*batches.front().unit, batches.front().last_events);
      batches = batches.subspan(1);
      continue;
    }
    for_each_type<Records>([&]<class Record>() { write_merged<Record>(run); });
    std::map<LaneCountKey, std::int64_t> counts;
    for (const auto& batch : run) {
      for_each_type<Events>([&]<class Event>() { append<Event>(*batch.unit, batch.last_events); });
      for (const auto& [key, delta] : batch.unit->count_deltas()) counts[key] += delta;
    }
    count(counts);
    batches = batches.subspan(run.size());
  }
}

}  // namespace flowfabric::store::sqlite
