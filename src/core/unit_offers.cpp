// The offers of a unit of work: what the store offers, and what the batch itself offers and takes.
#include <algorithm>

#include "core/unit.h"

namespace flowfabric::core {

namespace {

// What many claims want together is read in steps, so that no batch locks more than it can use.
constexpr std::uint32_t kLongestScan = 2048;

std::optional<Offer> offer_of(const Execution* execution, std::int64_t route_id) {
  if (!execution || !execution->offer_order || execution->route_id != route_id) return std::nullopt;
  return Offer{*execution->offer_order, execution->key()};
}

}  // namespace

std::vector<const Route*> Unit::routes_of(const std::string& lane) {
  auto it = routes_.find(lane);
  if (it == routes_.end()) {
    wanted_routes_.push_back(lane);
    load_now();
    it = routes_.find(lane);
  }
  auto keys = it->second;
  const auto add = [&](const RouteKey& key) {
    if (std::ranges::find(keys, key) == keys.end()) keys.push_back(key);
  };
  for_each_dirty<Route>([&](const Slot<Route>& slot) {
    if (slot.changed && slot.changed->lane_id == lane) add(slot.key);
  });
  // The store does not know yet what this batch offers. One that is remembered spares a look into the store:
  // who changes it reads it again.
  const auto* remembered = loader_.remembered_routes(lane);
  for (const auto& [route_id, count] : new_offers_) {
    const RouteKey key{route_id};
    if (remembered && !held(place_of<Route>, &key)) {
      const auto known = std::ranges::find(*remembered, route_id, &Route::route_id);
      if (known != remembered->end()) put<Route>(key, std::make_shared<const Route>(*known));
    }
    const auto* route = find<Route>(key);
    if (route && route->lane_id == lane) add(key);
  }
  std::vector<const Route*> found;
  for (const auto& key : keys) {
    if (const auto* route = find<Route>(key)) found.push_back(route);
  }
  return found;
}

void Unit::put_routes(const std::string& lane, std::vector<Route> routes) {
  const auto [it, fresh] = routes_.try_emplace(lane);
  if (!fresh) return;
  auto& keys = it->second;
  for (auto& route : routes) {
    keys.push_back(route.key());
    const auto key = route.key();
    put<Route>(key, std::make_shared<const Route>(std::move(route)));
  }
}

void Unit::put_offers(const OfferScan& scan, std::vector<std::shared_ptr<const Execution>> rows) {
  auto& book = books_[scan.route_id];
  if (rows.size() < scan.limit) book.exhausted = true;
  for (auto& row : rows) {
    const Offer offer{*row->offer_order, row->key()};
    book.horizon = book.horizon ? std::max(*book.horizon, offer) : offer;
    book.known.insert(offer);
    if (want_for_taking_) want_for_taking_(*this, *row);
    put<Execution>(offer.execution_id, std::move(row));
  }
}

void Unit::absorb_touched(OfferBook& book, std::int64_t route_id) {
  for (; book.seen < touched_executions_.size(); ++book.seen) {
    const auto* touched = touched_executions_[book.seen]->current();
    if (auto offer = offer_of(static_cast<const Execution*>(touched), route_id)) book.known.insert(*offer);
  }
}

void Unit::expect_offers(const std::vector<std::int64_t>& routes, std::uint32_t expected) {
  if (loader_.loads_instantly()) return;
  for (const auto route : routes) want_offers(route, expected);
  if (!wanted_offers_.empty()) load_now();
}

void Unit::want_offers(std::int64_t route_id, std::uint32_t limit) {
  if (!books_.contains(route_id)) want_more(route_id, std::nullopt, limit);
}

void Unit::want_more(std::int64_t route_id, const std::optional<Offer>& after, std::uint32_t expected) {
  const auto same = [&](const OfferScan& scan) { return scan.route_id == route_id && scan.after == after; };
  const auto it = std::ranges::find_if(wanted_offers_, same);
  if (it == wanted_offers_.end())
    wanted_offers_.push_back({route_id, after, expected});
  else
    it->limit = std::min(it->limit + expected, kLongestScan);
}

const Execution* Unit::best_offer(std::int64_t route_id, std::uint32_t expected) {
  auto& book = books_[route_id];
  absorb_touched(book, route_id);
  for (;;) {
    for (auto it = book.known.begin(); it != book.known.end();) {
      const bool beyond_horizon = !book.exhausted && (!book.horizon || *book.horizon < *it);
      if (beyond_horizon) break;
      const auto& slot = slot_of(place_of<Execution>, &it->execution_id);
      const auto* execution = static_cast<const Execution*>(slot.current());
      if (offer_of(execution, route_id) == *it) return execution;
      // Taken. If this operation took it, an undo may bring it back; otherwise it is gone for good.
      it = slot.touched_by == operation_ ? std::next(it) : book.known.erase(it);
    }
    if (book.exhausted) return nullptr;
    want_more(route_id, book.horizon, expected);
    load_now();
  }
}

std::vector<ExecutionId> Unit::known_offers(std::int64_t route_id, std::uint32_t count) {
  std::vector<ExecutionId> ids;
  if (loader_.loads_instantly()) return ids;
  auto& book = books_[route_id];
  absorb_touched(book, route_id);
  for (const auto& offer : book.known) {
    if (ids.size() == count) break;
    ids.push_back(offer.execution_id);
  }
  return ids;
}

std::map<std::int64_t, std::uint32_t> Unit::offers_left() const {
  std::map<std::int64_t, std::uint32_t> left;
  for (const auto& [route_id, book] : books_) {
    std::uint32_t untouched = 0;
    for (const auto& offer : book.known) {
      const auto* slot = held(place_of<Execution>, &offer.execution_id);
      if (slot && !slot->dirty) ++untouched;
    }
    const bool took = std::ranges::any_of(touched_executions_, [&](const AnySlot* any) {
      const Slot<Execution> slot(*any);
      return offer_of(slot.stored, route_id) && !offer_of(slot.current(), route_id);
    });
    if (took && untouched > 0) left[route_id] = untouched;
  }
  return left;
}

}  // namespace flowfabric::core
