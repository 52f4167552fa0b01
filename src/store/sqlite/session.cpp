#include "store/sqlite/session.h"

#include <algorithm>
#include <limits>

namespace flowfabric::store::sqlite {

using core::Offer;
using core::OfferScan;
using core::Unit;

SqliteSession::SqliteSession(SessionSettings settings)
    : settings_(std::move(settings)),
      connection_(std::make_unique<Connection>(settings_.path, Access::read_only)) {}

void SqliteSession::begin_reading() {
  rollback();
  statement("begin").run();
}

std::int64_t SqliteSession::begin(Unit& unit) {
  settings_.health->require();
  if (!recent_) settings_.shown->await();
  begin_reading();
  load(unit);
  return now_ms();
}

void SqliteSession::commit(Unit&) {
  throw StoreFailure{{ErrorCode::invalid_input, settings_.path, "This session only reads."}};
}

void SqliteSession::rollback() noexcept {
  if (connection_->in_transaction()) {
    sqlite3_exec(connection_->get(), "rollback", nullptr, nullptr, nullptr);
  }
}

std::shared_ptr<const void> SqliteSession::find(const RecordType& type, const AnyKey& key) {
  if (recent_) {
    if (auto known = recent_->find(type, key)) return *std::move(known);
  }
  auto& select = selects_[type.place];
  if (!select) {
    select = connection_->prepare("select " + store::listed(type.names) + " from " + type.table + " where " +
                                  key_condition(type));
  }
  const ResetAfterUse reset(*select);
  bind_key(select->get(), 1, key);
  if (!select->step()) return nullptr;
  auto record = type.make();
  read_fields(select->get(), type.columns, record.get());
  return record;
}

void SqliteSession::load(Unit& unit) {
  for (const auto& type : record_types()) {
    for (const auto& key : unit.take_wanted(type.place)) unit.put(type.place, key.get(), find(type, key));
  }
  for_each_type<core::Questions>([&]<class Question>() {
    if (!unit.wants_answers<Question>()) return;
    for (const auto& question : std::exchange(unit.wanted_answers<Question>(), {})) {
      if constexpr (!std::is_same_v<Question, core::EdgesFrom>) see_everything();
      unit.put_answer(question, answer(question));
    }
  });
  load_routes(unit);
  for (const auto& scan : std::exchange(unit.wanted_offers(), {})) unit.put_offers(scan, find_offers(scan));
}

// On which something is offered, one seek each, whatever else is registered.
std::set<std::int64_t> SqliteSession::offering_routes() {
  std::set<std::int64_t> routes;
  if (recent_) routes = recent_->offering_routes();
  auto& query = statement(
      "select route_id from ff_exec_core where offer_order is not null and route_id>?1 order by route_id "
      "limit 1");
  for (auto last = std::numeric_limits<std::int64_t>::min();;) {
    const ResetAfterUse reset(query);
    bind(query.get(), 1, last);
    if (!query.step()) return routes;
    read(query.get(), 0, last);
    routes.insert(last);
  }
}

void SqliteSession::load_routes(Unit& unit) {
  if (unit.wanted_routes().empty()) return;
  static const std::string armed =
      "select " + column_list<Route>() + " from ff_route where next_due_at_ms>=?1 and +lane_id=?2";
  if (recent_ && recent_->is_ahead_in<Route>()) see_everything();
  const auto offering = offering_routes();
  for (const auto& lane : std::exchange(unit.wanted_routes(), {})) {
    auto& query = statement(armed);
    bind(query.get(), 1, std::numeric_limits<std::int64_t>::min());
    bind(query.get(), 2, lane);
    auto routes = rows<Route>(query);
    for (const auto id : offering) {
      const auto route = find<Route>({id});
      const bool is_listed = std::ranges::find(routes, id, &Route::route_id) != routes.end();
      if (route && route->lane_id == lane && !is_listed) routes.push_back(*route);
    }
    unit.put_routes(lane, std::move(routes));
  }
}

// The index alone answers this; the rows themselves are mostly cached.
std::vector<Offer> SqliteSession::read_offers(const OfferScan& scan) {
  static const std::string from =
      "select offer_order,partition_key,execution_id from ff_exec_core where route_id=?1 and offer_order is "
      "not null";
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
  const ResetAfterUse reset(query);
  std::vector<Offer> offers;
  while (query.step()) {
    auto& offer = offers.emplace_back();
    read(query.get(), 0, offer.order);
    read(query.get(), 1, offer.execution_id.partition);
    read(query.get(), 2, offer.execution_id.uuid);
  }
  return offers;
}

std::vector<std::shared_ptr<const Execution>> SqliteSession::find_offers(const OfferScan& scan) {
  const bool is_ahead = recent_ && recent_->is_ahead();
  std::map<Offer, std::shared_ptr<const Execution>> found;
  const auto add_if_it_stands = [&](const Offer& offer) {
    auto execution = find<Execution>(offer.execution_id);
    const bool stands =
        execution && execution->offer_order == offer.order && execution->route_id == scan.route_id;
    if (stands) found.emplace(offer, std::move(execution));
    return stands;
  };
  auto stored = scan;
  const auto taken = is_ahead ? recent_->taken_up_to(scan.route_id) : std::nullopt;
  bool all_taken = is_ahead && (!scan.after || (taken && *scan.after <= *taken));
  if (all_taken && taken) stored.after = taken;
  for (bool is_exhausted = false; !is_exhausted && found.size() < scan.limit;) {
    const auto offers = read_offers(stored);
    for (const auto& offer : offers) {
      const bool stands = add_if_it_stands(offer);
      all_taken &= !stands;
      if (all_taken) recent_->is_taken(scan.route_id, offer);
      // It may have been taken since.
      if (stands || is_ahead) continue;
      throw StoreFailure{{ErrorCode::corruption,
                          settings_.path + ": an index offers " + offer.execution_id.to_string() +
                              ", which is not there or is not offered",
                          "The file is damaged. Restore it from a backup."}};
    }
    is_exhausted = offers.size() < scan.limit;
    if (!offers.empty()) stored.after = offers.back();
  }
  if (is_ahead) {
    for (const auto& offer : recent_->new_offers(scan)) add_if_it_stands(offer);
  }
  std::vector<std::shared_ptr<const Execution>> offered;
  for (auto& [offer, execution] : found) {
    if (offered.size() == scan.limit) break;
    offered.push_back(std::move(execution));
  }
  return offered;
}

}  // namespace flowfabric::store::sqlite
