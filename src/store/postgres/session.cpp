#include "store/postgres/session.h"

#include <algorithm>
#include <random>

#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

namespace {

using core::AnySlot;
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

// A statement for each set of changed columns, of which a batch has few.
void PostgresSession::post_updates(const RecordType& type, const std::vector<const AnySlot*>& slots) {
  std::unordered_map<ColumnMask, std::vector<const void*>> by_columns;
  for (const auto* slot : slots) {
    const auto columns = changed_columns(type, slot->stored.get(), slot->changed.get());
    if (columns.any()) by_columns[columns].push_back(slot->changed.get());
  }
  for (const auto& [columns, records] : by_columns) {
    connection_->post(update_statement(type, columns),
                      settings_.row_types->of(type).parameters(records, columns));
  }
}

// In the order of keys.
void PostgresSession::post_changes(const Unit& unit, const RecordType& type) {
  std::vector<const AnySlot*> dirty;
  for (const auto* slot : unit.dirty(type.place)) {
    if (!(type.is<QuotaPolicy>() && is_only_counted(*slot))) dirty.push_back(slot);
  }
  if (dirty.empty()) return;
  std::ranges::sort(dirty, [](const AnySlot* left, const AnySlot* right) { return left->key < right->key; });
  std::vector<const void*> inserts;
  std::vector<const AnySlot*> updates;
  std::vector<const void*> erased;
  for (const auto* slot : dirty) {
    if (!slot->changed) {
      if (unit.is_stored(*slot)) erased.push_back(slot->key.get());
    } else if (unit.is_stored(*slot)) {
      updates.push_back(slot);
    } else {
      inserts.push_back(slot->changed.get());
    }
  }
  const auto& statements = statements_of(type);
  if (!erased.empty()) connection_->post(statements.erase, key_parameters(type.key->columns, erased));
  if (!inserts.empty()) {
    connection_->post(statements.insert, settings_.row_types->of(type).parameters(inserts));
    *settings_.inserted += inserts.size();
  }
  post_updates(type, updates);
}

void PostgresSession::post_events(const Unit& unit, const EventType& type) {
  const auto events = unit.appended(type.place);
  if (events.size() == 0) return;
  std::vector<const void*> records;
  for (std::size_t i = 0; i < events.size(); ++i) records.push_back(events[i]);
  connection_->post(insert_statement(type), settings_.row_types->of(type).parameters(records));
}

// The oldest, up to the first that is to be kept: of two batches that overlap, the one with the greater ids
// may have begun first, and a log has no holes.
void PostgresSession::post_trim(const EventType& type, std::int64_t before_ms) {
  const std::string table = type.table;
  const std::string sql =
      "with oldest as (select event_id,occurred_at_ms from " + table +
      " where event_id<(select max(event_id) from " + table +
      ") order by event_id limit $2::int8), gone as (delete from " + table +
      " where event_id in (select event_id from oldest) and event_id<coalesce((select min(event_id) from "
      "oldest where occurred_at_ms>=$1::int8),9223372036854775807) returning event_id) "
      "insert into ff_event_horizon(family,trimmed_up_to) select '" +
      std::string(enum_name(type.family)) + "',max(event_id) from gone having count(*)>0 " +
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
    for (const auto* type : owned_types()) {
      connection_->post(statements_of(*type).purge, key_parameters(purged));
    }
  }
  for (const auto& type : record_types()) post_changes(unit, type);
  post_new_members(unit);
  post_drops(unit);
  const bool has_events = std::ranges::any_of(
      event_types(), [&](const EventType& type) { return unit.appended(type.place).size() > 0; });
  if (has_events) {
    // Says that ids after this one may be in use and not yet to be seen: see read_settled.
    connection_->post(
        "select pg_advisory_xact_lock_shared(('ff_event_id_seq'::regclass::oid::bigint<<32)|"
        "((last_value-(not is_called)::int)&4294967295)) from ff_event_id_seq");
  }
  for (const auto& type : event_types()) {
    post_events(unit, type);
    if (unit.trim_before_ms()) post_trim(type, *unit.trim_before_ms());
  }
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
  for (const auto* slot : unit.dirty(place_of<Execution>)) remember_execution(unit, *slot);
  for (const auto* slot : unit.dirty(place_of<Group>)) {
    remember(slot->key.as<GroupKey>(), std::static_pointer_cast<const Group>(slot->changed));
  }
  unit.for_each_dirty<Route>([&](const Slot<Route>& slot) {
    if (!slot.changed) return;
    if (!slot.stored) remembered_routes_.erase(slot.changed->lane_id);
    // Whatever is believed of its lane is out of date.
    settings_.offering->offers(slot.changed->lane_id, kNoRoute);
  });
}

void PostgresSession::remember_execution(const Unit& unit, const AnySlot& slot) {
  const auto& id = slot.key.as<ExecutionId>();
  const auto execution = std::static_pointer_cast<const Execution>(slot.changed);
  if (!execution || execution->state.lifecycle_phase == LifecyclePhase::terminal) {
    settings_.cache->forget(id);
    return;
  }
  if (execution->offer_order) {
    settings_.cursors->offered(execution->route_id, *execution->offer_order);
    settings_.offering->offers(execution->lane_id, execution->route_id);
  }
  // A row that was locked and looked at, but not changed, is still what an earlier transaction wrote.
  if (slot.stored && *static_cast<const Execution*>(slot.stored.get()) == *execution) return;
  auto spec = std::static_pointer_cast<const ExecutionSpec>(
      unit.left(place_of<ExecutionSpec>, &id).value_or(nullptr));
  if (!spec) {
    const auto before = settings_.cache->find(id);
    if (before) spec = before->spec;
  }
  if (spec && spec->payload.data.size() > kLargestCachedPayload) spec.reset();
  settings_.cache->put(id, {execution, transaction_, std::move(spec)});
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
