#include "store/sqlite/recent.h"

namespace flowfabric::store::sqlite {

namespace {

using core::Slot;
using core::Unit;

// Large inputs are read when they are claimed; they would only crowd out the rest.
constexpr std::size_t kLargestCachedPayload = 4096;

template <class Record>
bool is_worth_caching(const Record* record) {
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

void Recent::remember(const Unit& unit) {
  for_each_type<OwnedRecords>([&]<class Record>() {
    if constexpr (std::is_same_v<typename Record::Key, ExecutionId>) {
      for (const auto& id : unit.purged()) cache<Record>().forget(id);
    }
  });
  for_each_type<Records>([&]<class Record>() {
    unit.for_each_dirty<Record>([&](const Slot<Record>& slot) {
      if (is_worth_caching<Record>(slot.changed.get())) {
        cache<Record>().put(slot.key, slot.changed);
      } else {
        cache<Record>().forget(slot.key);
        if constexpr (std::is_same_v<Record, Execution>) cache<ExecutionSpec>().forget(slot.key);
      }
    });
  });
}

void Recent::add(std::shared_ptr<const Unit> unit) {
  remember(*unit);
  auto& batch = unwritten_.emplace_back();
  unit->for_each_dirty<Edge>([&](const Slot<Edge>& slot) {
    if (!slot.stored && slot.changed) batch.new_edges.emplace(slot.changed->upstream(), slot.key);
  });
  batch.unit = std::move(unit);
}

void Recent::are_written_but(std::size_t count) {
  while (unwritten_.size() > count) unwritten_.pop_front();
}

std::vector<EdgeKey> Recent::new_edges_from(const ExecutionId& upstream) const {
  std::vector<EdgeKey> edges;
  for (const auto& batch : unwritten_) {
    const auto [begin, end] = batch.new_edges.equal_range(upstream);
    for (auto it = begin; it != end; ++it) edges.push_back(it->second);
  }
  return edges;
}

std::vector<std::shared_ptr<const Execution>> Recent::new_offers(std::int64_t route_id) const {
  std::vector<std::shared_ptr<const Execution>> offered;
  for (const auto& batch : unwritten_) {
    batch.unit->for_each_dirty<Execution>([&](const Slot<Execution>& slot) {
      const bool is_offered = slot.changed && slot.changed->offer_order && slot.changed->route_id == route_id;
      if (is_offered) offered.push_back(slot.changed);
    });
  }
  return offered;
}

}  // namespace flowfabric::store::sqlite
