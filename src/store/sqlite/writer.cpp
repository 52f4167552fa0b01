#include "store/sqlite/writer.h"

#include <boost/unordered/unordered_flat_map.hpp>

#include "store/sqlite/files.h"
#include "store/sqlite/sizes.h"

namespace flowfabric::store::sqlite {

namespace {

using core::AnySlot;
using core::Unit;

// At twice the size at which the log is moved, readers that keep it from starting over are waited for.
int forced_checkpoint_pages() {
  return 2 * sizes().checkpoint_pages;
}
// How far it may grow on while it is being moved.
int more_meanwhile() {
  return sizes().checkpoint_pages / 4;
}
// Distinct sets of changed columns are few; a runaway would only cost memory, so it is cut off.
constexpr std::size_t kMaxStatements = 256;

// Slots of several batches that hold the same record.
struct SlotHash {
  std::size_t operator()(const AnySlot* slot) const { return slot->hash; }
};
struct SlotSame {
  bool operator()(const AnySlot* left, const AnySlot* right) const { return left->key == right->key; }
};

}  // namespace

Writer::Writer(const std::string& path, Durability durability, std::shared_ptr<DiskHealth> health)
    : durability_(durability),
      health_(std::move(health)),
      connection_(path, Access::read_write),
      position_(redo_position(connection_).value()),
      wal_(path),
      beside_(path, Access::read_write),
      next_checkpoint_pages_(sizes().checkpoint_pages) {
  connection_.share_log_syncs(log_syncs_);
  beside_.share_log_syncs(log_syncs_);
}

EventNumbers Writer::last_events() {
  EventNumbers last{};
  for (const auto& type : event_types()) {
    last[type.place] = connection_.number(std::string("select max(event_id) from ") + type.table);
  }
  return last;
}

template <class Call>
void Writer::watched(Call call) {
  health_->require();
  try {
    call();
  } catch (const StoreFailure& failure) {
    if (failure.retry == Retry::after_restart) health_->has_failed(failure);
    throw;
  }
}

// ---- the log ----

// The other thread moves most of it while this one writes on. It does that once between two starts of the
// log, so that the log cannot start over while it does; and this thread moves the rest when nobody else does.
void Writer::keep_log_bounded() {
  const int pages = connection_.wal_pages();
  if (pages < next_checkpoint_pages_) return;
  if (!is_shortened_) wants_shorter_log_ = true;
  const bool is_too_long = pages >= forced_checkpoint_pages();
  // Who writes alone may have no other thread that gets round to it.
  const bool is_time = is_shortened_ || is_too_long || pages >= next_checkpoint_pages_ + more_meanwhile();
  std::unique_lock lock(log_mutex_, std::defer_lock);
  if (!is_time) return;
  if (is_too_long) {
    lock.lock();
  } else if (!lock.try_lock()) {
    return;
  }
  bool moved_all = false;
  watched([&] {
    moved_all = connection_.checkpoint(is_too_long ? Connection::Checkpoint::restart
                                                   : Connection::Checkpoint::beside);
  });
  wants_shorter_log_ = false;
  is_shortened_ = false;
  // A reader that stays must not cost every batch an attempt: the next one comes when the log has grown
  // again.
  next_checkpoint_pages_ = moved_all ? sizes().checkpoint_pages : pages + more_meanwhile();
}

void Writer::shorten_log() {
  std::lock_guard lock(log_mutex_);
  if (!wants_shorter_log_) return;
  wants_shorter_log_ = false;
  is_shortened_ = true;
  watched([&] { beside_.checkpoint(Connection::Checkpoint::beside); });
}

bool Writer::empty_log() {
  std::lock_guard lock(log_mutex_);
  bool moved_all = false;
  watched([&] { moved_all = connection_.checkpoint(Connection::Checkpoint::empty); });
  return moved_all;
}

void Writer::sync() {
  std::lock_guard lock(log_mutex_);
  watched([&] {
    const int code = log_syncs_.run([&] {
      wal_.sync();
      return SQLITE_OK;
    });
    if (code != SQLITE_OK) throw failed_for_good(connection_.path(), "another sync of its log has failed");
  });
}

// ---- transactions ----

// `write` says whether to commit.
template <class Write>
bool Writer::in_transaction(bool is_synced, Write write) {
  keep_log_bounded();
  connection_.sync_commits(is_synced);  // a checkpoint has turned it on
  bool committed = false;
  watched([&] {
    statement("begin immediate").run();
    try {
      committed = write();
      statement(committed ? "commit" : "rollback").run();
    } catch (...) {
      if (connection_.in_transaction()) {
        sqlite3_exec(connection_.get(), "rollback", nullptr, nullptr, nullptr);
      }
      throw;
    }
  });
  return committed;
}

void Writer::set_applied(std::uint64_t number) {
  auto& applied = statement("update ff_redo set applied=?1 where id=1");
  bind(applied.get(), 1, number);
  applied.run();
}

void Writer::write(const Worked& batch) {
  in_transaction(durability_ == Durability::full, [&] {
    write_alone(*batch.unit, batch.last_events);
    set_applied(batch.number);
    return true;
  });
}

bool Writer::write_logged(std::span<const Worked> batches, const std::function<bool()>& may_commit) {
  return in_transaction(false, [&] {
    write_all(batches);
    set_applied(batches.back().number);
    return may_commit();
  });
}

Statement& Writer::by_columns(ByColumns& statements, const TableType& type, const ColumnMask& columns,
                              MakeSql make_sql) {
  auto it = statements.find(columns);
  if (it == statements.end()) {
    if (statements.size() >= kMaxStatements) statements.clear();
    it = statements.emplace(columns, connection_.prepare(make_sql(type, columns))).first;
  }
  return it->second;
}

Statement& Writer::bind_insert(ByColumns& statements, const TableType& type, const void* record) {
  const auto columns = columns_with_value(type, record);
  auto& insert = by_columns(statements, type, columns, insert_statement);
  bind_columns(insert.get(), 1, type, record, columns);
  return insert;
}

void Writer::write(const RecordType& type, const Change& change) {
  if (change.stored && change.changed) {
    const auto columns = changed_columns(type, change.stored, change.changed);
    if (columns.none()) return;
    auto& update = by_columns(tables_[type.place].updates, type, columns, update_statement);
    bind_columns(update.get(), bind_key(update.get(), 1, *change.key), type, change.changed, columns);
    update.run();
  } else if (change.changed) {
    bind_insert(tables_[type.place].inserts, type, change.changed).run();
  } else if (change.stored) {
    auto& erase = statement(statements_of(type).erase);
    bind_key(erase.get(), 1, *change.key);
    erase.run();
  }
}

// A record that several batches have changed goes from what the first of them found to what the last one
// left.
void Writer::write_merged(const RecordType& type, std::span<const Worked> batches) {
  std::vector<Change> changes;
  boost::unordered_flat_map<const AnySlot*, std::size_t, SlotHash, SlotSame> places;
  for (const auto& batch : batches) {
    for (const auto* slot : batch.unit->dirty(type.place)) {
      const auto [place, is_first] = places.try_emplace(slot, changes.size());
      if (is_first)
        changes.push_back({&slot->key, slot->stored.get(), slot->changed.get()});
      else
        changes[place->second].changed = slot->changed.get();
    }
  }
  for (const auto& change : changes) write(type, change);
}

void Writer::append(const EventType& type, const Unit& unit, const EventNumbers& last_events) {
  auto id = last_events[type.place];
  const auto events = unit.appended(type.place);
  for (std::size_t i = 0; i < events.size(); ++i) {
    auto& insert = bind_insert(event_inserts_[type.place], type, events[i]);
    bind(insert.get(), 1, ++id);  // the store numbers events
    insert.run();
  }
  if (!unit.trim_before_ms()) return;
  auto& trim = statement(statements_of(type).trim);
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
    for (const auto* type : owned_types()) {
      auto& erase = statement(statements_of(*type).purge);
      bind_all(erase.get(), 1, id);
      erase.run();
    }
  }
  for (const auto& type : record_types()) {
    for (const auto* slot : unit.dirty(type.place)) {
      const void* stored = unit.is_stored(*slot) ? slot->stored.get() : nullptr;
      write(type, {&slot->key, stored, slot->changed.get()});
    }
  }
  for (const auto& [stream, count] : unit.dropped_frames()) {
    auto& drop = statement(kDropFrames);
    bind(drop.get(), bind_all(drop.get(), 1, stream), count);
    drop.run();
  }
  for (const auto& type : event_types()) append(type, unit, last_events);
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
    for (const auto& type : record_types()) write_merged(type, run);
    std::map<LaneCountKey, std::int64_t> counts;
    for (const auto& batch : run) {
      for (const auto& type : event_types()) append(type, *batch.unit, batch.last_events);
      for (const auto& [key, delta] : batch.unit->count_deltas()) counts[key] += delta;
    }
    count(counts);
    batches = batches.subspan(run.size());
  }
}

}  // namespace flowfabric::store::sqlite
