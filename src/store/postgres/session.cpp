#include "store/postgres/session.h"

#include <algorithm>
#include <random>

#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

namespace {

using core::Slot;
using core::Unit;

// Enough that writers seldom share a row, few enough that their sum is quick.
constexpr std::int32_t kCountWriters = 64;
constexpr std::int64_t kTrimmedPerStep = 1000;
constexpr std::int64_t kNoRoute = -1;
// Large inputs are read when they are claimed; they would only crowd out the rest.
constexpr std::size_t kLargestCachedPayload = 4096;
// How many rows may be inserted before plans are made anew: those of 256 are walked through as fast as a few
// are found.
constexpr std::uint64_t kFewestBetweenPlans = 256;
constexpr std::uint64_t kMostBetweenPlans = 1 << 20;

std::int32_t any_writer() {
  std::random_device random;
  return static_cast<std::int32_t>(random() % kCountWriters);
}

}  // namespace

PostgresSession::PostgresSession(SessionSettings settings, Access access)
    : settings_(std::move(settings)), access_(access), writer_(any_writer()) {
  connected();
}

Connection& PostgresSession::connected() {
  if (connection_ && connection_->is_broken()) {
    round_trips_ += connection_->round_trips();
    connection_.reset();
  }
  if (!connection_) {
    remembered_groups_.clear();
    remembered_routes_.clear();
    connection_ = std::make_unique<Connection>(settings_.connection);
  }
  return *connection_;
}

const std::vector<Route>* PostgresSession::remembered_routes(const std::string& lane) const {
  const auto it = remembered_routes_.find(lane);
  return it == remembered_routes_.end() ? nullptr : &it->second;
}

void PostgresSession::post_clock() {
  if (settings_.now_ms) return;
  connection_->post("select (extract(epoch from clock_timestamp())*1000)::bigint", {},
                    [this](const Rows& rows) { now_ms_ = rows.get<std::int64_t>(0, 0); });
}

// A plan that was made for a small table may go through all of it, and is kept while the table grows, until
// the database has a look at it. So plans are made anew whenever the tables may be four times as large.
void PostgresSession::post_begin(const std::string& sql) {
  connection_->post(sql);
  const auto inserted = settings_.inserted->load(std::memory_order_relaxed);
  if (settings_.connection.pooled || inserted < replans_at_) return;
  connection_->post("discard plans");
  replans_at_ = inserted + std::clamp(3 * inserted, kFewestBetweenPlans, kMostBetweenPlans);
}

std::int64_t PostgresSession::begin(Unit& unit) {
  auto& connection = connected();
  in_transaction_ = true;
  holds_locks_ = access_ == Access::write;
  // Of a batch that failed.
  short_scans_.clear();
  incomplete_.clear();
  locked_policies_.clear();
  post_begin(access_ == Access::write ? kBeginWriting : kBeginReading);
  post_wanted(unit);
  // The time is read after the locks were taken, so that what happens to an execution happens in order.
  post_clock();
  connection.flush();
  if (settings_.now_ms) now_ms_ = settings_.now_ms();
  load(unit);
  return now_ms_;
}

template <class Record>
void PostgresSession::post_inserts(const std::vector<const Record*>& records) {
  if (records.empty()) return;
  static const std::string sql = insert_statement<Record>();
  connection_->post(sql, settings_.row_types->of<Record>().parameters(records));
  *settings_.inserted += records.size();
}

// A statement for each set of changed columns, of which a batch has few.
template <class Record>
void PostgresSession::post_updates(const std::vector<const Slot<Record>*>& slots) {
  std::unordered_map<ColumnMask<Record>, std::vector<const Record*>> by_columns;
  for (const auto* slot : slots) {
    const auto columns = changed_columns(*slot->stored, *slot->changed);
    if (columns.any()) by_columns[columns].push_back(slot->changed.get());
  }
  for (const auto& [columns, records] : by_columns) {
    connection_->post(update_statement<Record>(columns),
                      settings_.row_types->of<Record>().parameters(records, columns));
  }
}

// In the order of keys.
template <class Record>
void PostgresSession::post_changes(Unit& unit) {
  std::vector<const Slot<Record>*> dirty;
  unit.for_each_dirty<Record>([&](const Slot<Record>& slot) {
    if constexpr (std::is_same_v<Record, QuotaPolicy>) {
      if (is_only_counted(slot)) return;
    }
    dirty.push_back(&slot);
  });
  if (dirty.empty()) return;
  std::ranges::sort(dirty, {}, &Slot<Record>::key);
  std::vector<const Record*> inserts;
  std::vector<const Slot<Record>*> updates;
  std::vector<typename Record::Key> erased;
  for (const auto* slot : dirty) {
    if (!slot->changed) {
      if (unit.is_stored(*slot)) erased.push_back(slot->key);
    } else if (unit.is_stored(*slot)) {
      updates.push_back(slot);
    } else {
      inserts.push_back(slot->changed.get());
    }
  }
  if (!erased.empty()) {
    static const std::string sql = delete_by_keys<Record>();
    connection_->post(sql, key_parameters<typename Record::Key>(erased));
  }
  post_inserts<Record>(inserts);
  post_updates<Record>(updates);
}

template <class Event>
void PostgresSession::post_events(const std::vector<Event>& events) {
  if (events.empty()) return;
  static const std::string sql = insert_statement<Event>();
  std::vector<const Event*> records;
  for (const auto& event : events) records.push_back(&event);
  connection_->post(sql, settings_.row_types->of<Event>().parameters(records));
}

// The oldest, up to the first that is to be kept: of two batches that overlap, the one with the greater ids
// may have begun first, and a log has no holes.
template <class Event>
void PostgresSession::post_trim(std::int64_t before_ms) {
  static const std::string table = Event::table;
  static const std::string sql =
      "with oldest as (select event_id,occurred_at_ms from " + table +
      " where event_id<(select max(event_id) from " + table +
      ") order by event_id limit $2::int8), gone as (delete from " + table +
      " where event_id in (select event_id from oldest) and event_id<coalesce((select min(event_id) from "
      "oldest where occurred_at_ms>=$1::int8),9223372036854775807) returning event_id) "
      "insert into ff_event_horizon(family,trimmed_up_to) select '" +
      std::string(enum_name(family_of<Event>)) + "',max(event_id) from gone having count(*)>0 " +
      "on conflict (family) do update set trimmed_up_to=greatest(ff_event_horizon.trimmed_up_to," +
      "excluded.trimmed_up_to)";
  connection_->post(sql, Parameters().add(before_ms).add(kTrimmedPerStep));
}

void PostgresSession::post_counts(const Unit& unit) {
  std::vector<std::pair<LaneCountKey, std::int64_t>> deltas;
  for (const auto& delta : unit.count_deltas()) {
    if (delta.second != 0) deltas.push_back(delta);
  }
  if (deltas.empty()) return;
  Parameters parameters;
  parameters.add_array<std::string>(
      deltas, [](std::string& bytes, const auto& delta) { append_value(bytes, delta.first.lane_id); });
  parameters.add_array<PublicState>(
      deltas, [](std::string& bytes, const auto& delta) { append_value(bytes, delta.first.public_state); });
  parameters.add_array<std::int64_t>(
      deltas, [](std::string& bytes, const auto& delta) { append_value(bytes, delta.second); });
  parameters.add(writer_);
  connection_->post(
      "insert into ff_lane_count(lane_id,public_state,writer,executions) "
      "select lane_id,public_state,$4::int4,executions "
      "from unnest($1::text[],$2::text[],$3::int8[]) as d(lane_id,public_state,executions) "
      "on conflict (lane_id,public_state,writer) "
      "do update set executions=ff_lane_count.executions+excluded.executions",
      parameters);
}

void PostgresSession::commit(Unit& unit) {
  check_counted(unit);
  if (!unit.purged().empty()) {
    const std::vector<ExecutionId> purged(unit.purged().begin(), unit.purged().end());
    post_members_gone(purged);
    for_each_type<OwnedRecords>([&]<class Record>() {
      static const std::string sql =
          std::string("delete from ") + Record::table +
          " t using unnest($1::int4[],$2::uuid[]) as k(partition_key,execution_id) "
          "where t.partition_key=k.partition_key and t.execution_id=k.execution_id";
      connection_->post(sql, key_parameters<ExecutionId>(purged));
    });
  }
  for_each_type<Records>([&]<class Record>() { post_changes<Record>(unit); });
  post_new_members(unit);
  post_drops(unit);
  bool has_events = false;
  for_each_type<Events>([&]<class Event>() { has_events |= !unit.appended<Event>().empty(); });
  if (has_events) {
    // Says that ids after this one may be in use and not yet to be seen: see read_settled.
    connection_->post(
        "select pg_advisory_xact_lock_shared(('ff_event_id_seq'::regclass::oid::bigint<<32)|"
        "((last_value-(not is_called)::int)&4294967295)) from ff_event_id_seq");
  }
  for_each_type<Events>([&]<class Event>() {
    post_events(unit.appended<Event>());
    if (unit.trim_before_ms()) post_trim<Event>(*unit.trim_before_ms());
  });
  post_counts(unit);
  connection_->post("select txid_current()", {}, [this](const Rows& rows) {
    transaction_ = static_cast<std::uint32_t>(rows.get<std::int64_t>(0, 0));
  });
  const auto counted = post_counted(unit);
  connection_->post("commit");
  try {
    connection_->flush();
  } catch (StoreFailure& failure) {
    for (const auto& key : counted) contested_.add(key);
    if (connection_->is_broken()) {
      failure.retry = Retry::never;
      failure.error.code = ErrorCode::unavailable;
      failure.error.advice += " It is not known whether this call was stored; repeating it is safe.";
    }
    throw;
  }
  in_transaction_ = false;
  remember(unit);
}

void PostgresSession::remember(const Unit& unit) {
  for (const auto& id : unit.purged()) settings_.cache->forget(id);
  // Its input is another now.
  unit.for_each_dirty<ExecutionSpec>([&](const Slot<ExecutionSpec>& slot) {
    if (slot.stored) settings_.cache->forget(slot.key);
  });
  unit.for_each_dirty<Execution>([&](const Slot<Execution>& slot) { remember(unit, slot); });
  unit.for_each_dirty<Group>([&](const Slot<Group>& slot) { remember(slot.key, slot.changed); });
  unit.for_each_dirty<Route>([&](const Slot<Route>& slot) {
    if (!slot.changed) return;
    if (!slot.stored) remembered_routes_.erase(slot.changed->lane_id);
    // Whatever is believed of its lane is out of date.
    settings_.offering->offers(slot.changed->lane_id, kNoRoute);
  });
}

void PostgresSession::remember(const Unit& unit, const Slot<Execution>& slot) {
  const auto& execution = slot.changed;
  if (!execution || execution->state.lifecycle_phase == LifecyclePhase::terminal) {
    settings_.cache->forget(slot.key);
    return;
  }
  if (execution->offer_order) {
    settings_.cursors->offered(execution->route_id, *execution->offer_order);
    settings_.offering->offers(execution->lane_id, execution->route_id);
  }
  // A row that was locked and looked at, but not changed, is still what an earlier transaction wrote.
  if (slot.stored && *slot.stored == *execution) return;
  auto spec = unit.left<ExecutionSpec>(slot.key).value_or(nullptr);
  if (!spec) {
    const auto before = settings_.cache->find(slot.key);
    if (before) spec = before->spec;
  }
  if (spec && spec->payload.data.size() > kLargestCachedPayload) spec.reset();
  settings_.cache->put(slot.key, {execution, transaction_, std::move(spec)});
}

void PostgresSession::rollback() noexcept {
  if (!std::exchange(in_transaction_, false)) return;
  try {
    if (!connection_ || connection_->is_broken()) return;
    connection_->post("rollback");
    // Locks must be gone before anybody is answered: a claim would skip what they hold. Otherwise nobody
    // needs to wait.
    if (holds_locks_)
      connection_->flush();
    else
      connection_->send();
  } catch (const StoreFailure&) {
    connection_.reset();
  }
}

}  // namespace flowfabric::store::postgres
