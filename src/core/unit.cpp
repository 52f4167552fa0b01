#include "core/unit.h"

#include <algorithm>
#include <limits>

#include "core/offer.h"

namespace flowfabric::core {

namespace {

template <class F>
void for_each_event(F&& f) {
  std::size_t index = 0;
  for_each_type<Events>([&]<class Event>() { f.template operator()<Event>(index++); });
}

// What many claims want together is read in steps, so that no batch locks more than it can use.
constexpr std::uint32_t kLongestScan = 2048;

std::optional<Offer> offer_of(const Execution* execution, std::int64_t route_id) {
  if (!execution || !execution->offer_order || execution->route_id != route_id) return std::nullopt;
  return Offer{*execution->offer_order, execution->key()};
}

}  // namespace

Unit::Unit(Loader& loader, const PartitionCounts& partitions) : loader_(loader), partitions_(partitions) {}

Unit::~Unit() = default;

std::unique_ptr<AnyDrawer> Unit::make_drawer(std::size_t place) {
  return boost::mp11::mp_with_index<boost::mp11::mp_size<Records>>(
      place, [](auto index) -> std::unique_ptr<AnyDrawer> {
        return std::make_unique<Drawer<boost::mp11::mp_at<Records, decltype(index)>>>();
      });
}

std::unique_ptr<AnyDrawer> Unit::make_answers(std::size_t place) {
  return boost::mp11::mp_with_index<boost::mp11::mp_size<Questions>>(
      place, [](auto index) -> std::unique_ptr<AnyDrawer> {
        return std::make_unique<AnswerDrawer<boost::mp11::mp_at<Questions, decltype(index)>>>();
      });
}

void Unit::purge(const ExecutionId& id) {
  for_each_type<OwnedRecords>([&]<class Record>() {
    if constexpr (std::is_same_v<typename Record::Key, ExecutionId>) {
      if (held<Record>(id)) erase<Record>(id);
    } else {
      if (!opened<Record>()) return;
      // Also what was only read: whoever uses the id again in this batch finds nothing of it.
      std::vector<typename Record::Key> known;
      for (const auto& [key, slot] : drawer<Record>().shelf) {
        if (owner_of(key) == id) known.push_back(key);
      }
      for (const auto& key : known) erase<Record>(key);
    }
  });
  purged_now_.push_back(id);
}

void Unit::begin_operation() {
  ++operation_;
  for_each_event([&]<class Event>(std::size_t i) { marks_[i] = appended<Event>().size(); });
  notes_mark_ = notes_.size();
}

void Unit::keep() {
  for_each_touched<Execution>([&](const Execution* before, const Execution* after) {
    const bool was_offered = before && before->offer_order;
    if (!after || !after->offer_order || was_offered) return;
    auto& count = new_offers_[after->route_id];
    if (count < std::numeric_limits<std::uint32_t>::max()) ++count;
  });
  // As many claims as there are may find something.
  for (const auto route : reopened_now_) new_offers_[route] = std::numeric_limits<std::uint32_t>::max();
  reopened_now_.clear();
  for (const auto& saved : drawer<Execution>().journal) touched_executions_.push_back(saved.slot);
  for_each_type<Records>([&]<class Record>() {
    if (opened<Record>()) drawer<Record>().journal.clear();
  });
  for (auto& [key, delta] : counts_now_) counts_[key] += delta;
  counts_now_.clear();
  purged_.insert(purged_now_.begin(), purged_now_.end());
  purged_now_.clear();
  for (const auto& [key, count] : dropped_now_) dropped_[key] += count;
  dropped_now_.clear();
  begin_operation();
}

void Unit::undo() {
  for_each_type<Records>([&]<class Record>() {
    if (!opened<Record>()) return;
    auto& journal = drawer<Record>().journal;
    for (auto it = journal.rbegin(); it != journal.rend(); ++it) {
      it->slot->dirty = it->was_dirty;
      it->slot->changed = std::move(it->before);
      it->slot->touched_by = it->touched_by;
      // What this operation made dirty stands at the end of the list, in the order of the journal.
      if (!it->was_dirty) drawer<Record>().dirty.pop_back();
    }
    journal.clear();
  });
  for_each_event(
      [&]<class Event>(std::size_t i) { std::get<std::vector<Event>>(events_).resize(marks_[i]); });
  notes_.resize(notes_mark_);
  counts_now_.clear();
  purged_now_.clear();
  dropped_now_.clear();
  reopened_now_.clear();
}

void Unit::load_now() {
  if (!loader_.loads_instantly()) throw NotLoaded{};
  loader_.load(*this);
}

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
    if (remembered && !held<Route>({route_id})) {
      const auto known = std::ranges::find(*remembered, route_id, &Route::route_id);
      if (known != remembered->end()) put<Route>({route_id}, std::make_shared<const Route>(*known));
    }
    const auto* route = find<Route>({route_id});
    if (route && route->lane_id == lane) add({route_id});
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
    want_for_taking(*this, *row, partitions_);
    put<Execution>(offer.execution_id, std::move(row));
  }
}

void Unit::absorb_touched(OfferBook& book, std::int64_t route_id) {
  for (; book.seen < touched_executions_.size(); ++book.seen) {
    if (auto offer = offer_of(touched_executions_[book.seen]->current(), route_id)) book.known.insert(*offer);
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
      const auto& slot = slot_of<Execution>(it->execution_id);
      if (offer_of(slot.current(), route_id) == *it) return slot.current();
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
      const auto* slot = held<Execution>(offer.execution_id);
      if (slot && !slot->dirty) ++untouched;
    }
    const bool took = std::ranges::any_of(touched_executions_, [&](const Slot<Execution>* slot) {
      return offer_of(slot->stored.get(), route_id) && !offer_of(slot->current(), route_id);
    });
    if (took && untouched > 0) left[route_id] = untouched;
  }
  return left;
}

bool Unit::has_changes() const {
  bool changed = !counts_.empty() || !purged_.empty() || trim_before_ms_;
  for_each_type<Records>([&]<class Record>() { changed |= has_changed<Record>(); });
  for_each_type<Events>([&]<class Event>() { changed |= !std::get<EventList<Event>>(events_).empty(); });
  return changed;
}

std::size_t Unit::change_count() const {
  std::size_t count = 0;
  for_each_type<Records>([&]<class Record>() {
    if (const auto* drawer = opened<Record>()) count += drawer->dirty.size();
  });
  for_each_type<Events>([&]<class Event>() { count += std::get<EventList<Event>>(events_).size(); });
  return count;
}

}  // namespace flowfabric::core
