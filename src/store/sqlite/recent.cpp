#include "store/sqlite/recent.h"

#include <unordered_set>

namespace flowfabric::store::sqlite {

namespace {

using core::Slot;
using core::Unit;

// Large inputs are read when they are claimed; they would only crowd out the rest.
constexpr std::size_t kLargestCachedPayload = 4096;

bool is_worth_caching(const RecordType& type, const void* record) {
  // Read by readers only, or removed with their execution, unseen.
  const bool is_part = type.is_owned && type.key != record_type<Execution>().key;
  if (!record || is_part || type.is<ExecutionTag>() || type.is<CancelBacklogMember>()) return false;
  // What has ended is hardly asked for again.
  if (type.is<Execution>())
    return static_cast<const Execution*>(record)->state.lifecycle_phase != LifecyclePhase::terminal;
  if (type.is<Edge>())
    return static_cast<const Edge*>(record)->dependency_state == DependencyState::unsatisfied;
  if (type.is<EdgeGroup>()) return static_cast<const EdgeGroup*>(record)->group_state == GroupState::pending;
  if (type.is<ExecutionSpec>())
    return static_cast<const ExecutionSpec*>(record)->payload.data.size() <= kLargestCachedPayload;
  return true;
}

std::optional<core::Offer> offer_of(const Execution* execution) {
  if (!execution || !execution->offer_order) return std::nullopt;
  return core::Offer{*execution->offer_order, execution->key()};
}

}  // namespace

std::optional<std::shared_ptr<const void>> Recent::find(const RecordType& type, const AnyKey& key) {
  if (const auto* cached = caches_[type.place].find(key)) return *cached;
  for (auto batch = unwritten_.rbegin(); batch != unwritten_.rend(); ++batch) {
    if (auto left = batch->unit->left(type.place, key.get())) return left;
  }
  return std::nullopt;
}

void Recent::remember(const Unit& unit) {
  for (const auto& id : unit.purged()) {
    const auto key = any_key<Execution>(id);
    for (const auto* type : owned_types()) {
      if (type->key == &key.type()) caches_[type->place].forget(key);
    }
  }
  for (const auto& type : record_types()) {
    for (const auto* slot : unit.dirty(type.place)) {
      if (is_worth_caching(type, slot->changed.get())) {
        caches_[type.place].put(slot->key, slot->changed);
      } else {
        caches_[type.place].forget(slot->key);
        if (type.is<Execution>()) caches_[place_of<ExecutionSpec>].forget(slot->key);
      }
    }
  }
  remember_edges(unit);
  unit.for_each_dirty<Execution>([&](const Slot<Execution>& slot) {
    const auto offer = offer_of(slot.changed);
    if (!offer) return;
    const auto route = routes_.find(slot.changed->route_id);
    if (route == routes_.end()) return;
    if (auto& taken = route->second.taken_up_to; taken && *offer <= *taken) taken.reset();
  });
}

// A flow that is new has no edges but those that are seen here.
void Recent::remember_edges(const Unit& unit) {
  std::unordered_set<FlowKey, KeyHash<FlowKey>> new_flows;
  unit.for_each_dirty<Flow>([&](const Slot<Flow>& slot) {
    if (!slot.stored) new_flows.insert(slot.key);
  });
  unit.for_each_dirty<Execution>([&](const Slot<Execution>& slot) {
    const auto* execution = slot.changed;
    if (!execution || execution->state.lifecycle_phase == LifecyclePhase::terminal) {
      edges_.forget(slot.key);
    } else if (!slot.stored && execution->flow_id &&
               new_flows.contains({execution->partition_key, *execution->flow_id})) {
      edges_.put(slot.key, {});
    }
  });
  unit.for_each_dirty<Edge>([&](const Slot<Edge>& slot) {
    if (slot.stored && slot.changed) return;
    const auto upstream = (slot.changed ? slot.changed : slot.stored)->upstream();
    auto* edges = edges_.find(upstream);
    if (edges && slot.changed)
      edges->push_back(slot.key);
    else if (edges)
      edges_.forget(upstream);
  });
}

void Recent::add(std::shared_ptr<const Unit> unit, std::uint64_t number) {
  remember(*unit);
  unit->for_each_dirty<Edge>([&](const Slot<Edge>& slot) {
    if (!slot.stored && slot.changed) {
      new_edges_.emplace(slot.changed->upstream(), std::pair(slot.key, number));
    }
  });
  unit->for_each_dirty<Execution>([&](const Slot<Execution>& slot) {
    if (const auto offer = offer_of(slot.stored)) {
      routes_[slot.stored->route_id].new_offers.erase(*offer);
    }
    if (const auto offer = offer_of(slot.changed)) {
      routes_[slot.changed->route_id].new_offers.insert_or_assign(*offer, number);
    }
  });
  unwritten_.push_back({std::move(unit), number});
}

void Recent::are_written(std::uint64_t number) {
  for (; !unwritten_.empty() && unwritten_.front().number <= number; unwritten_.pop_front()) {
    const auto& [unit, written] = unwritten_.front();
    unit->for_each_dirty<Edge>([&](const Slot<Edge>& slot) {
      if (slot.stored || !slot.changed) return;
      auto [it, end] = new_edges_.equal_range(slot.changed->upstream());
      while (it != end) it = it->second.first == slot.key ? new_edges_.erase(it) : std::next(it);
    });
    unit->for_each_dirty<Execution>([&](const Slot<Execution>& slot) {
      const auto offer = offer_of(slot.changed);
      if (!offer) return;
      auto& [offers, taken_up_to] = routes_[slot.changed->route_id];
      // A later batch may have changed it, and offers it as well.
      const auto it = offers.find(*offer);
      if (it == offers.end() || it->second != written) return;
      offers.erase(it);
      // From now on it is the database that offers it.
      if (taken_up_to && *offer <= *taken_up_to) taken_up_to.reset();
    });
  }
  // The database offers what is offered, and nothing that was taken.
  if (unwritten_.empty()) routes_.clear();
}

std::vector<EdgeKey> Recent::new_edges_from(const ExecutionId& upstream) const {
  std::vector<EdgeKey> edges;
  const auto [begin, end] = new_edges_.equal_range(upstream);
  for (auto it = begin; it != end; ++it) edges.push_back(it->second.first);
  return edges;
}

std::set<std::int64_t> Recent::offering_routes() const {
  std::set<std::int64_t> offering;
  for (const auto& [route_id, route] : routes_) {
    if (!route.new_offers.empty()) offering.insert(route_id);
  }
  return offering;
}

std::vector<core::Offer> Recent::new_offers(const core::OfferScan& scan) const {
  std::vector<core::Offer> offers;
  const auto route = routes_.find(scan.route_id);
  if (route == routes_.end()) return offers;
  const auto& all = route->second.new_offers;
  for (auto it = scan.after ? all.upper_bound(*scan.after) : all.begin();
       it != all.end() && offers.size() < scan.limit; ++it) {
    offers.push_back(it->first);
  }
  return offers;
}

std::optional<core::Offer> Recent::taken_up_to(std::int64_t route_id) const {
  const auto route = routes_.find(route_id);
  return route == routes_.end() ? std::nullopt : route->second.taken_up_to;
}

}  // namespace flowfabric::store::sqlite
