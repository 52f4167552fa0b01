// What a batch wants, posted together and read in one round trip.
#include <algorithm>

#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

namespace {

using core::OfferScan;
using core::Unit;

constexpr std::size_t kMaxRemembered = 10'000;
constexpr int kUncachedScans = 32;
constexpr std::size_t kRememberedIdle = 8;

template <class Key>
void make_distinct(std::vector<Key>& keys) {
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
}

template <class Record>
std::vector<typename Record::Key> from_any(const std::vector<AnyKey>& keys) {
  std::vector<typename Record::Key> typed;
  for (const auto& key : keys) typed.push_back(key.as<typename Record::Key>());
  return typed;
}
template <class Record>
std::vector<AnyKey> to_any(const std::vector<typename Record::Key>& keys) {
  std::vector<AnyKey> any;
  for (const auto& key : keys) any.push_back(any_key<Record>(key));
  return any;
}

// What whoever takes an offer needs: the execution, and what was submitted.
std::string offer_columns() {
  return columns_of<Execution>("t") + "," + columns_of<ExecutionSpec>("s");
}
std::string join_spec() {
  return " join ff_exec_spec s on " + same_key<ExecutionSpec>("t", "s");
}

// The scan of a route's offers: from an order on, or behind a place; for looking, or for taking.
class OfferStatements {
 public:
  OfferStatements(const std::string& columns, const std::string& join) {
    const std::string from = "select " + columns + " from ff_exec_core t" + join +
                             " where t.route_id=$1::int8 and t.offer_order is not null and ";
    const std::string order =
        " order by t.route_id,t.offer_order,t.partition_key,t.execution_id limit $2::int8";
    for (const bool behind : {false, true}) {
      const std::string start =
          behind ? "(t.offer_order,t.partition_key,t.execution_id)>($3::int8,$4::int4,$5::uuid)"
                 : "t.offer_order>=$3::int8";
      at(behind, false) = from + start + order;
      at(behind, true) = at(behind, false) + " for update of t skip locked";
    }
  }
  const std::string& choose(bool behind, bool locks) const { return statements_[behind * 2 + locks]; }

 private:
  std::string& at(bool behind, bool locks) { return statements_[behind * 2 + locks]; }
  std::array<std::string, 4> statements_;
};

// Of kVersionColumns.
constexpr int kVersion = 2;

}  // namespace

void PostgresSession::load(Unit& unit) {
  for (;;) {
    post_wanted(unit);
    // A scan that started at the cursor and came back short starts again from the beginning.
    for (const auto& scan : std::exchange(short_scans_, {})) post_offers(unit, scan);
    for (auto& offers : std::exchange(incomplete_, {})) post_missing(unit, std::move(offers));
    if (connection_->is_idle()) return;
    post_clock();
    connection_->flush();
  }
}

void PostgresSession::post_wanted(Unit& unit) {
  for (const auto& type : record_types()) post_records(unit, type);
  for (const auto& type : record_types()) {
    if (type.is_shared) post_locks(unit, type);
  }
  for_each_type<core::Questions>([&]<class Question>() {
    if (!unit.wants_answers<Question>()) return;
    if constexpr (std::is_same_v<Question, core::EdgesFrom>) {
      post_edges_from(unit);
    } else {
      for (const auto& question : std::exchange(unit.wanted_answers<Question>(), {})) {
        post_answer(unit, question);
      }
    }
  });
  auto lanes = std::exchange(unit.wanted_routes(), {});
  make_distinct(lanes);
  for (const auto& lane : lanes) post_routes(unit, lane);
  for (const auto& scan : std::exchange(unit.wanted_offers(), {})) post_offers(unit, scan);
}

bool PostgresSession::put_remembered(Unit& unit, const GroupKey& key) {
  const auto it = remembered_groups_.find(key.group_id);
  if (it == remembered_groups_.end()) return false;
  unit.put<Group>(key, it->second);
  return true;
}

// As it was seen, or left, last; null: it is gone.
void PostgresSession::remember(const GroupKey& key, const std::shared_ptr<const Group>& group) {
  if (remembered_groups_.size() >= kMaxRemembered) remembered_groups_.clear();
  if (group)
    remembered_groups_[key.group_id] = group;
  else
    remembered_groups_.erase(key.group_id);
}

void PostgresSession::answer_otherwise(Unit& unit, const RecordType& type, std::vector<AnyKey>& keys) {
  // Readers want to know what is stored now.
  if (access_ != Access::write) return;
  if (type.is<Group>()) {
    std::erase_if(keys, [&](const AnyKey& key) { return put_remembered(unit, key.as<GroupKey>()); });
  } else if (type.is<Execution>()) {
    keys = to_any<Execution>(post_cached(unit, from_any<Execution>(keys)));
  } else if (type.is<QuotaPolicy>()) {
    keys = to_any<QuotaPolicy>(post_contested(unit, from_any<QuotaPolicy>(keys)));
  }
}

void PostgresSession::post_records(Unit& unit, const RecordType& type) {
  auto keys = unit.take_wanted(type.place);
  if (keys.empty()) return;
  make_distinct(keys);
  answer_otherwise(unit, type, keys);
  if (keys.empty()) return;
  const auto& statements = statements_of(type);
  const auto parameters = key_parameters(type, keys);
  connection_->post(access_ == Access::write ? statements.load : statements.read, parameters,
                    [this, &unit, &type, keys = std::move(keys)](const Rows& found) {
                      for (int row = 0; row < found.size(); ++row) {
                        std::shared_ptr<const void> record = found.get_record(type, row);
                        const auto key = type.key_of(record.get());
                        if (type.is<Group>())
                          remember(key.as<GroupKey>(), std::static_pointer_cast<const Group>(record));
                        unit.put(type.place, key.get(), std::move(record));
                      }
                      // The rest is not there.
                      for (const auto& key : keys) unit.put(type.place, key.get(), nullptr);
                    });
}

void PostgresSession::post_locks(Unit& unit, const RecordType& type) {
  auto keys = unit.take_wanted_locks(type.place);
  if (keys.empty()) return;
  make_distinct(keys);
  const auto parameters = key_parameters(type, keys);
  connection_->post(statements_of(type).lock, parameters,
                    [this, &unit, &type, keys = std::move(keys)](const Rows& found) {
                      std::map<AnyKey, std::shared_ptr<const void>> records;
                      for (int row = 0; row < found.size(); ++row) {
                        auto record = found.get_record(type, row);
                        records.emplace(type.key_of(record.get()), record);
                      }
                      for (const auto& key : keys) {
                        const auto it = records.find(key);
                        const auto record = it == records.end() ? nullptr : it->second;
                        if (type.is<Group>())
                          remember(key.as<GroupKey>(), std::static_pointer_cast<const Group>(record));
                        unit.put_locked(type.place, key.get(), record);
                      }
                    });
}

// Those that offer something, and those that something is blocked on. What offered something before is
// remembered as well: it is likely to again, and is then asked for at once.
void PostgresSession::post_routes(Unit& unit, const std::string& lane) {
  static const std::string sql = "with recursive " + offering_routes() + " select " + columns_of<Route>("r") +
                                 " from " + join_offering() + " where r.lane_id=$1::text union select " +
                                 columns_of<Route>("a") +
                                 " from ff_route a where a.next_due_at_ms is not null and a.lane_id=$1::text";
  if (auto routes = settings_.offering->believed(lane)) return unit.put_routes(lane, *std::move(routes));
  const auto asked_at = std::chrono::steady_clock::now();
  connection_->post(sql, Parameters().add(lane), [this, &unit, lane, asked_at](const Rows& found) {
    auto routes = found.all<Route>();
    settings_.offering->are(lane, routes, asked_at);
    if (remembered_routes_.size() >= kMaxRemembered) remembered_routes_.clear();
    auto remembered = routes;
    for (const auto& before : remembered_routes_[lane]) {
      if (remembered.size() >= routes.size() + kRememberedIdle) break;
      const bool is_known = std::ranges::find(routes, before.route_id, &Route::route_id) != routes.end();
      if (!is_known) remembered.push_back(before);
    }
    remembered_routes_[lane] = std::move(remembered);
    unit.put_routes(lane, std::move(routes));
  });
}

// Locks those that are in the cache and asks only for their versions. Gives back the others.
std::vector<ExecutionId> PostgresSession::post_cached(Unit& unit, std::vector<ExecutionId> ids) {
  static const std::string sql = select_by_keys(record_type<Execution>(), kVersionColumns, Lock::update);
  const auto cached =
      std::ranges::partition(ids, [&](const ExecutionId& id) { return !settings_.cache->find(id); });
  std::vector<ExecutionId> known(cached.begin(), cached.end());
  ids.erase(cached.begin(), cached.end());
  if (known.empty()) return ids;
  std::ranges::sort(known);
  connection_->post(sql, key_parameters(known), [this, &unit, known](const Rows& found) {
    Versions versions;
    for (const auto& id : known) versions[id];
    for (int row = 0; row < found.size(); ++row)
      versions[found.get_struct<ExecutionId>(row)] = version_of(found, row, kVersion);
    take_cached(unit, versions);
  });
  return ids;
}

std::uint32_t PostgresSession::version_of(const Rows& rows, int row, int column) {
  return number_from<std::uint32_t>(rows.bytes(row, column), "xmin");
}

void PostgresSession::take_cached(Unit& unit, const Versions& versions) {
  for (const auto& [id, version] : versions) {
    const auto cached = settings_.cache->find(id);
    if (!version) {
      settings_.cache->forget(id);
      unit.put<Execution>(id, nullptr);
    } else if (cached && cached->written_by == *version) {
      unit.put<Execution>(id, cached->execution);
      if (cached->spec) unit.put<ExecutionSpec>(id, cached->spec);
    } else {
      settings_.cache->forget(id);
      unit.want<Execution>(id);
    }
  }
}

void PostgresSession::post_offers(Unit& unit, const OfferScan& scan) {
  static const OfferStatements whole(offer_columns(), join_spec());
  static const OfferStatements keys(kVersionColumns, "");
  const bool locks = access_ == Access::write;
  auto offers = std::make_shared<Offers>(Offers{.scan = scan, .start = {}});
  if (locks && !scan.after) offers->start = settings_.cursors->start(scan.route_id);
  const auto uncached = uncached_routes_.find(scan.route_id);
  offers->by_cache = locks && uncached == uncached_routes_.end();
  if (uncached != uncached_routes_.end() && --uncached->second == 0) uncached_routes_.erase(uncached);
  Parameters parameters;
  parameters.add(scan.route_id).add(static_cast<std::int64_t>(scan.limit));
  if (scan.after)
    parameters.add(scan.after->order).add_fields(scan.after->execution_id);
  else
    parameters.add(offers->start.order);
  const auto& sql = (offers->by_cache ? keys : whole).choose(scan.after.has_value(), locks);
  connection_->post(sql, parameters,
                    [this, &unit, offers](const Rows& found) { take_offers(unit, offers, found); });
}

void PostgresSession::take_offers(Unit& unit, std::shared_ptr<Offers> offers, const Rows& found) {
  const auto count = static_cast<std::size_t>(found.size());
  const bool is_short = count < offers->scan.limit && offers->start.order != ClaimCursors::kBeginning;
  if (is_short && settings_.cursors->look_again(offers->scan.route_id)) {
    short_scans_.push_back(offers->scan);
    return;
  }
  offers->rows.resize(count);
  for (int row = 0; row < found.size(); ++row) {
    auto& offer = offers->rows[static_cast<std::size_t>(row)];
    if (!offers->by_cache) {
      offer = take_offer(unit, found, row);
      continue;
    }
    const auto id = found.get_struct<ExecutionId>(row);
    const auto cached = settings_.cache->find(id);
    if (cached && cached->spec && cached->written_by == version_of(found, row, kVersion)) {
      unit.put<ExecutionSpec>(id, cached->spec);
      offer = cached->execution;
    } else {
      offers->missing.emplace(id, static_cast<std::size_t>(row));
    }
  }
  if (offers->missing.size() * 4 > count) uncached_routes_[offers->scan.route_id] = kUncachedScans;
  if (offers->missing.empty())
    put_offers(unit, *offers);
  else
    incomplete_.push_back(std::move(offers));
}

// The rows are locked already.
void PostgresSession::post_missing(Unit& unit, std::shared_ptr<Offers> offers) {
  static const std::string sql = "select " + offer_columns() + " from " +
                                 keys_as_rows(record_type<Execution>()) + " join ff_exec_core t on " +
                                 same_key<Execution>("t", "k") + join_spec();
  std::vector<ExecutionId> ids;
  for (const auto& [id, place] : offers->missing) ids.push_back(id);
  connection_->post(sql, key_parameters(ids), [this, &unit, offers](const Rows& found) {
    for (int row = 0; row < found.size(); ++row) {
      auto offer = take_offer(unit, found, row);
      offers->rows[offers->missing.at(offer->key())] = offer;
    }
    put_offers(unit, *offers);
  });
}

std::shared_ptr<const Execution> PostgresSession::take_offer(Unit& unit, const Rows& found, int row) {
  const auto after_execution = static_cast<int>(record_type<Execution>().columns.size());
  auto execution = std::make_shared<const Execution>(found.get_struct<Execution>(row));
  unit.put<ExecutionSpec>(execution->key(), std::make_shared<const ExecutionSpec>(
                                                found.get_struct<ExecutionSpec>(row, after_execution)));
  return execution;
}

void PostgresSession::put_offers(Unit& unit, Offers& offers) {
  std::erase(offers.rows, nullptr);
  if (!offers.scan.after && access_ == Access::write) {
    const auto first = offers.rows.empty() ? std::nullopt : offers.rows.front()->offer_order;
    settings_.cursors->found(offers.scan.route_id, offers.start, first);
  }
  unit.put_offers(offers.scan, std::move(offers.rows));
}

void PostgresSession::post_answer(Unit& unit, const core::WorkersOf& question) {
  connection_->post("select namespace,worker_instance_id from ff_worker_registry where namespace=$1::text",
                    Parameters().add(question.namespace_), [&unit, question](const Rows& found) {
                      unit.put_answer(question, found.all<WorkerKey>());
                    });
}

void PostgresSession::post_answer(Unit& unit, const core::BlockedOnRoute& question) {
  connection_->post(
      "select partition_key,execution_id from ff_exec_core "
      "where eligibility_state='blocked_by_route' and route_id=$1::int8 "
      "order by route_id,created_at_ms,partition_key,execution_id limit $2::int8",
      Parameters().add(question.route_id).add(static_cast<std::int64_t>(question.limit)),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<ExecutionId>()); });
}

void PostgresSession::post_answer(Unit& unit, const core::GroupsOf& question) {
  connection_->post(
      "select group_id from ff_exec_group where route_id=$1::int8 union all select group_id from "
      "ff_exec_group where route_id is null and lane_id=$2::text and coalesce(namespace,'')=$3::text "
      "limit $4::int8",
      Parameters()
          .add(question.route_id)
          .add(question.lane_id)
          .add(question.namespace_)
          .add(static_cast<std::int64_t>(question.limit)),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<GroupKey>()); });
}

void PostgresSession::post_answer(Unit& unit, const core::ExecutionsIn& question) {
  connection_->post("select partition_key,execution_id from ff_exec_core where group_id=$1::int8 limit 1",
                    Parameters().add(question.group_id), [&unit, question](const Rows& found) {
                      unit.put_answer(question, found.all<ExecutionId>());
                    });
}

}  // namespace flowfabric::store::postgres
