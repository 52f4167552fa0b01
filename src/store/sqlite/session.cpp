#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

namespace {

using core::OfferScan;
using core::Slot;
using core::Unit;

// About 32 MiB of log; four times that when readers keep it from starting over, and then they are waited for.
constexpr int kCheckpointPages = 8000;
constexpr int kForcedCheckpointPages = 4 * kCheckpointPages;
// Distinct sets of changed columns are few; a runaway would only cost memory, so it is cut off.
constexpr std::size_t kMaxStatements = 256;
constexpr int kTrimmedPerStep = 1000;

// Large inputs are read when they are claimed; they would only crowd out the rest.
constexpr std::size_t kLargestCachedPayload = 4096;

template <class Record>
bool is_worth_caching(const Record* record) {
  // Sound because one process, through this one session, is all that ever changes the file.
  // Read by readers only, or removed with their execution, unseen.
  constexpr bool is_part = is_owned<Record> && !std::is_same_v<typename Record::Key, ExecutionId>;
  if constexpr (is_part || std::is_same_v<Record, ExecutionTag> ||
                std::is_same_v<Record, CancelBacklogMember>)
    return false;
  if (!record) return false;
  // What has ended is hardly asked for again.
  if constexpr (std::is_same_v<Record, Execution>) {
    return record->state.lifecycle_phase != LifecyclePhase::terminal;
  }
  if constexpr (std::is_same_v<Record, Edge>) {
    return record->dependency_state == DependencyState::unsatisfied;
  }
  if constexpr (std::is_same_v<Record, EdgeGroup>) return record->group_state == GroupState::pending;
  if constexpr (std::is_same_v<Record, ExecutionSpec>) {
    return record->payload.data.size() <= kLargestCachedPayload;
  }
  return true;
}

}  // namespace

SqliteSession::SqliteSession(SessionSettings settings) : settings_(std::move(settings)) {
  connect();
}

void SqliteSession::connect() {
  // Statements belong to the connection they were prepared on, and what was cached may not have been stored.
  tables_ = {};
  logs_ = {};
  others_.clear();
  connection_.reset();
  auto connection = std::make_unique<Connection>(settings_.path, settings_.access, settings_.durability);
  for_each_type<Events>([&]<class Event>() {
    log<Event>().last_id = connection->number(std::string("select max(event_id) from ") + Event::table);
  });
  connection_ = std::move(connection);
  next_checkpoint_pages_ = kCheckpointPages;
}

Statement& SqliteSession::prepared(std::optional<Statement>& slot, const std::string& sql) {
  if (!slot) slot = connection_->prepare(sql);
  return *slot;
}

Statement& SqliteSession::statement(const std::string& sql) {
  auto it = others_.find(sql);
  if (it == others_.end()) it = others_.emplace(sql, connection_->prepare(sql)).first;
  return it->second;
}

std::int64_t SqliteSession::begin(Unit& unit) {
  if (!connection_) connect();
  if (settings_.access == Access::read_write) {
    keep_log_bounded();
    statement("begin immediate").run();
  } else {
    statement("begin").run();
  }
  load(unit);
  return settings_.now_ms();
}

void SqliteSession::keep_log_bounded() {
  const int pages = connection_->wal_pages();
  if (pages < next_checkpoint_pages_) return;
  const bool moved_all = connection_->checkpoint(pages >= kForcedCheckpointPages);
  // A reader that stays must not cost every batch an attempt: the next one comes when the log has grown
  // again.
  next_checkpoint_pages_ = moved_all ? kCheckpointPages : pages + kCheckpointPages;
}

template <class Record>
std::shared_ptr<const Record> SqliteSession::find(const typename Record::Key& key) {
  auto& table = this->table<Record>();
  if (settings_.access == Access::read_write) {
    if (auto cached = table.cache.find(key)) return cached;
  }
  static const std::string sql =
      "select " + column_list<Record>() + " from " + Record::table + " where " + key_condition<Record>();
  auto& select = prepared(table.select, sql);
  const ResetAfterUse reset(select);
  bind_all(select.get(), 1, key);
  if (!select.step()) return nullptr;
  return std::make_shared<const Record>(read_all<Record>(select.get()));
}

template <class Record>
void SqliteSession::load_wanted(Unit& unit) {
  if (unit.wanted<Record>().empty()) return;
  for (const auto& key : std::exchange(unit.wanted<Record>(), {})) unit.put<Record>(key, find<Record>(key));
}

void SqliteSession::load(Unit& unit) {
  for_each_type<Records>([&]<class Record>() { load_wanted<Record>(unit); });
  for_each_type<core::Questions>([&]<class Question>() {
    for (const auto& question : std::exchange(unit.wanted_answers<Question>(), {})) {
      unit.put_answer(question, answer(question));
    }
  });
  for (const auto& lane : std::exchange(unit.wanted_routes(), {})) {
    static const std::string sql = "select " + column_list<Route>() + " from ff_route where lane_id=?1";
    auto& query = statement(sql);
    bind(query.get(), 1, lane);
    unit.put_routes(lane, rows<Route>(query));
  }
  for (const auto& scan : std::exchange(unit.wanted_offers(), {})) {
    // The index alone answers this; the rows themselves are mostly cached.
    static const std::string from =
        "select partition_key,execution_id from ff_exec_core where route_id=?1 and offer_order is not null";
    static const std::string order = " order by offer_order,partition_key,execution_id limit ?2";
    static const std::string first = from + order;
    static const std::string next = from + " and (offer_order,partition_key,execution_id)>(?3,?4,?5)" + order;
    auto& query = statement(scan.after ? next : first);
    bind(query.get(), 1, scan.route_id);
    bind(query.get(), 2, scan.limit);
    if (scan.after) {
      bind(query.get(), 3, scan.after->order);
      bind_all(query.get(), 4, scan.after->execution_id);
    }
    std::vector<std::shared_ptr<const Execution>> offered;
    for (const auto& id : rows<ExecutionId>(query)) {
      offered.push_back(find<Execution>(id));
      if (offered.back()) continue;
      throw StoreFailure{{ErrorCode::corruption,
                          settings_.path + ": an index names " + id.to_string() + ", which is not there",
                          "The file is damaged. Restore it from a backup."}};
    }
    unit.put_offers(scan, std::move(offered));
  }
}

template <class Record, class MakeSql>
Statement& SqliteSession::by_columns(ByColumns<Record>& statements, const ColumnMask<Record>& columns,
                                     MakeSql make_sql) {
  auto it = statements.find(columns);
  if (it == statements.end()) {
    if (statements.size() >= kMaxStatements) statements.clear();
    it = statements.emplace(columns, connection_->prepare(make_sql(columns))).first;
  }
  return it->second;
}

template <class Record>
void SqliteSession::insert(const Record& record) {
  const auto columns = columns_with_value(record);
  auto& insert = by_columns<Record>(table<Record>().inserts, columns, insert_statement<Record>);
  bind_columns(insert.get(), 1, record, columns);
  insert.run();
}

template <class Record>
void SqliteSession::update(const Slot<Record>& slot) {
  const auto columns = changed_columns(*slot.stored, *slot.changed);
  if (columns.none()) return;
  auto& update = by_columns<Record>(table<Record>().updates, columns, update_statement<Record>);
  bind_columns(update.get(), bind_all(update.get(), 1, slot.key), *slot.changed, columns);
  update.run();
}

template <class Record>
void SqliteSession::write(const Slot<Record>& slot, bool is_stored) {
  if (is_stored && slot.changed) return update(slot);
  if (slot.changed) {
    insert(*slot.changed);
  } else if (is_stored) {
    static const std::string sql =
        std::string("delete from ") + Record::table + " where " + key_condition<Record>();
    auto& erase = prepared(table<Record>().erase, sql);
    bind_all(erase.get(), 1, slot.key);
    erase.run();
  }
}

template <class Event>
void SqliteSession::append(const std::vector<Event>& events) {
  auto id = log<Event>().last_id;
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
void SqliteSession::purge(const ExecutionId& id) {
  static const std::string sql =
      std::string("delete from ") + Record::table + " where partition_key=?1 and execution_id=?2";
  auto& erase = statement(sql);
  bind_all(erase.get(), 1, id);
  erase.run();
}

template <class Event>
void SqliteSession::trim(std::int64_t before_ms) {
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

void SqliteSession::commit(Unit& unit) {
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
  try {
    statement("commit").run();
  } catch (StoreFailure& failure) {
    const bool full = sqlite3_errcode(connection_->get()) == SQLITE_FULL;
    // The log may hold the commit although the disk did not confirm it. Only a fresh connection, which reads
    // the log anew, knows; until then nobody does.
    connection_.reset();
    if (!full) {
      failure.error.code = ErrorCode::unavailable;
      failure.error.advice += " It is not known whether this call was stored; repeating it is safe.";
    }
    throw;
  }
  remember(unit);
}

void SqliteSession::remember(const Unit& unit) {
  for_each_type<Events>([&]<class Event>() {
    log<Event>().last_id += static_cast<std::int64_t>(unit.appended<Event>().size());
  });
  for_each_type<OwnedRecords>([&]<class Record>() {
    if constexpr (std::is_same_v<typename Record::Key, ExecutionId>) {
      for (const auto& id : unit.purged()) table<Record>().cache.forget(id);
    }
  });
  for_each_type<Records>([&]<class Record>() {
    auto& cache = table<Record>().cache;
    unit.for_each_dirty<Record>([&](const Slot<Record>& slot) {
      if (is_worth_caching<Record>(slot.changed.get())) {
        cache.put(slot.key, slot.changed);
      } else {
        cache.forget(slot.key);
        if constexpr (std::is_same_v<Record, Execution>) table<ExecutionSpec>().cache.forget(slot.key);
      }
    });
  });
}

void SqliteSession::rollback() noexcept {
  if (connection_ && connection_->in_transaction()) {
    sqlite3_exec(connection_->get(), "rollback", nullptr, nullptr, nullptr);
  }
}

}  // namespace flowfabric::store::sqlite
