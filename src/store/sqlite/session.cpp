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

// Large inputs are read when they are claimed; they would only crowd out the rest.
constexpr std::size_t kLargestCachedPayload = 4096;

template <class Record>
bool is_worth_caching(const Record* record) {
  if constexpr (std::is_same_v<Record, Attempt>) return false;  // history is read by readers only
  if constexpr (std::is_same_v<Record, ExecutionSpec>) {
    return record && record->payload.data.size() <= kLargestCachedPayload;
  }
  return record != nullptr;
}

template <class List, class F>
void for_each_type(F&& f) {
  boost::mp11::mp_for_each<boost::mp11::mp_transform<std::type_identity, List>>(
      [&]<class T>(std::type_identity<T>) { f.template operator()<T>(); });
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
std::vector<Record> SqliteSession::rows(Statement& query) {
  const ResetAfterUse reset(query);
  std::vector<Record> found;
  while (query.step()) found.push_back(read_all<Record>(query.get()));
  return found;
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
void SqliteSession::write(const Slot<Record>& slot) {
  if (slot.stored && slot.changed) return update(slot);
  if (slot.changed) {
    insert(*slot.changed);
  } else if (slot.stored) {
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

void SqliteSession::commit(Unit& unit) {
  for_each_type<Records>(
      [&]<class Record>() { unit.for_each_dirty<Record>([&](const Slot<Record>& slot) { write(slot); }); });
  for_each_type<Events>([&]<class Event>() { append(unit.appended<Event>()); });
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
  for_each_type<Records>([&]<class Record>() {
    auto& cache = table<Record>().cache;
    unit.for_each_dirty<Record>([&](const Slot<Record>& slot) {
      if (is_worth_caching<Record>(slot.changed.get()))
        cache.put(slot.key, slot.changed);
      else
        cache.forget(slot.key);
    });
  });
}

void SqliteSession::rollback() noexcept {
  if (connection_ && connection_->in_transaction()) {
    sqlite3_exec(connection_->get(), "rollback", nullptr, nullptr, nullptr);
  }
}

std::vector<DueKey> SqliteSession::due(std::int64_t now_ms, std::size_t limit) {
  std::vector<DueKey> keys;
  for_each_type<ClockedRecords>([&]<class Record>() {
    using Key = typename Record::Key;
    static const std::string sql = "select " + key_list<Record>() + " from " + Record::table +
                                   " where next_due_at_ms<=?1 order by next_due_at_ms limit ?2";
    auto& query = statement(sql);
    bind(query.get(), 1, now_ms);
    bind(query.get(), 2, limit);
    for (auto& key : rows<Key>(query)) keys.emplace_back(std::move(key));
  });
  return keys;
}

std::optional<std::int64_t> SqliteSession::next_due() {
  std::optional<std::int64_t> earliest;
  for_each_type<ClockedRecords>([&]<class Record>() {
    static const std::string sql =
        std::string("select min(next_due_at_ms) from ") + Record::table + " where next_due_at_ms is not null";
    auto& query = statement(sql);
    const ResetAfterUse reset(query);
    query.step();
    std::optional<std::int64_t> due;
    read(query.get(), 0, due);
    if (due && (!earliest || *due < *earliest)) earliest = due;
  });
  return earliest;
}

std::vector<Attempt> SqliteSession::attempts_of(const ExecutionId& id) {
  static const std::string sql =
      "select " + column_list<Attempt>() +
      " from ff_attempt where partition_key=?1 and execution_id=?2 order by attempt_index";
  auto& query = statement(sql);
  bind_all(query.get(), 1, id);
  return rows<Attempt>(query);
}

template <class Event>
std::vector<Event> SqliteSession::events_after(std::int64_t after, std::size_t limit) {
  static const std::string sql = "select " + column_list<Event>() + " from " + Event::table +
                                 " where event_id>?1 order by event_id limit ?2";
  auto& query = statement(sql);
  bind(query.get(), 1, after);
  bind(query.get(), 2, limit);
  return rows<Event>(query);
}

std::vector<LeaseEvent> SqliteSession::lease_events(std::int64_t after, std::size_t limit) {
  return events_after<LeaseEvent>(after, limit);
}

std::vector<CompletionEvent> SqliteSession::completion_events(std::int64_t after, std::size_t limit) {
  return events_after<CompletionEvent>(after, limit);
}

std::map<PublicState, std::int64_t> SqliteSession::count_lane(const std::string& lane) {
  auto& query =
      statement("select public_state,executions from ff_lane_count where lane_id=?1 and executions<>0");
  const ResetAfterUse reset(query);
  bind(query.get(), 1, lane);
  std::map<PublicState, std::int64_t> counts;
  while (query.step()) {
    PublicState state{};
    read(query.get(), 0, state);
    read(query.get(), 1, counts[state]);
  }
  return counts;
}

}  // namespace flowfabric::store::sqlite
