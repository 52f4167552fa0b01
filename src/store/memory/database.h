// The tables of a memory store, and its indexes.
#pragma once

#include <deque>
#include <functional>
#include <mutex>
#include <set>

#include "core/index_rules.h"
#include "store/store.h"

namespace flowfabric::store {

using core::Offer;
using core::Slot;

template <class Record>
using Table = std::map<typename Record::Key, std::shared_ptr<const Record>>;
template <class Event>
struct Log {
  std::deque<Event> events;
  std::int64_t first_id{1};
};

using ByAge = std::set<core::ListPosition>;

inline core::ListPosition position_of(const Execution& execution) {
  return {execution.created_at_ms, execution.key()};
}

struct Database {
  std::mutex mutex;  // held for the length of a transaction
  std::function<std::int64_t()> now_ms;
  bool instant{true};

  boost::mp11::mp_rename<boost::mp11::mp_transform<Table, Records>, std::tuple> tables;
  boost::mp11::mp_rename<boost::mp11::mp_transform<Log, Events>, std::tuple> logs;
  std::map<LaneCountKey, std::int64_t> counts;
  std::map<std::int64_t, std::set<Offer>> offers;
  std::set<std::pair<std::int64_t, DueKey>> due;
  // By lane: the routes that offer something, and those that something is blocked on.
  std::map<std::string, std::set<std::int64_t>> offering_routes;
  std::map<std::string, std::set<std::int64_t>> armed_routes;
  ByAge by_age;
  std::set<std::pair<std::int64_t, DueKey>> removable;  // by time of removal
  std::map<std::pair<std::int64_t, PublicState>, ByAge> group_members;
  std::map<std::int64_t, std::set<GroupKey>> groups_of_route;
  std::map<FlowId, ByAge> flow_members;
  std::map<std::int64_t, ByAge> blocked_on_route;
  std::map<Uuid, ByAge> blocked_on;
  std::map<std::string, std::set<ExecutionId>> held_by;  // a worker instance
  std::map<QuotaPolicyKey, std::set<std::pair<std::int64_t, QuotaAdmissionKey>>> windows;
  ByAge flows_by_age;
  std::map<ExecutionId, std::set<EdgeKey>> edges_from;
  std::map<ExecutionId, std::set<EdgeKey>> edges_into;
  std::set<std::pair<WaitpointId, WaitpointRecordKey>> waitpoints_by_id;

  template <class Record>
  Table<Record>& table() {
    return std::get<Table<Record>>(tables);
  }
  template <class Event>
  Log<Event>& log() {
    return std::get<Log<Event>>(logs);
  }

  // Keeps the indexes of one record, as it comes or goes.
  template <class Record>
  void index(const Record* record, bool comes) {
    const auto update = [comes](auto& set, const auto& entry) {
      if (comes)
        set.insert(entry);
      else
        set.erase(entry);
    };
    if (!record) return;
    if constexpr (has_clock<Record>) {
      if (record->next_due_at_ms)
        update(due, std::pair(*record->next_due_at_ms, DueKey(Due<Record>{record->key()})));
    }
    if constexpr (is_removable<Record>) {
      if (const std::optional<std::int64_t> at = record->purge_at_ms)
        update(removable, std::pair(*at, DueKey(Due<Record>{record->key()})));
    }
    if constexpr (std::is_same_v<Record, Execution>) {
      if (record->offer_order) {
        auto& offered = offers[record->route_id];
        update(offered, Offer{*record->offer_order, record->key()});
        auto& offering = offering_routes[record->lane_id];
        if (offered.empty())
          offering.erase(record->route_id);
        else
          offering.insert(record->route_id);
      }
      update(by_age, position_of(*record));
      update(group_members[{record->group_id, record->state.public_state}], position_of(*record));
      if (!comes) drop_if_empty(group_members, std::pair(record->group_id, record->state.public_state));
      if (record->flow_id) update(flow_members[*record->flow_id], position_of(*record));
      if (record->state.eligibility_state == EligibilityState::blocked_by_route) {
        update(blocked_on_route[record->route_id], position_of(*record));
      }
      if (record->blocked_on) update(blocked_on[*record->blocked_on], position_of(*record));
      if (core::is_held(*record)) update(held_by[record->lease.worker_instance_id], record->key());
    }
    if constexpr (std::is_same_v<Record, QuotaAdmission>) {
      if (record->window_at_ms) {
        update(windows[{record->partition_key, record->quota_policy_id}],
               std::pair(*record->window_at_ms, record->key()));
      }
    }
    if constexpr (std::is_same_v<Record, Flow>) {
      update(flows_by_age,
             core::ListPosition{record->created_at_ms, {record->partition_key, record->flow_id.uuid}});
    }
    if constexpr (std::is_same_v<Record, Edge>) {
      update(edges_from[record->upstream()], record->key());
      update(edges_into[record->downstream()], record->key());
    }
    if constexpr (std::is_same_v<Record, Waitpoint>) {
      update(waitpoints_by_id, std::pair(record->waitpoint_id, record->key()));
    }
    if constexpr (std::is_same_v<Record, Group>) {
      if (record->route_id) update(groups_of_route[*record->route_id], record->key());
    }
    if constexpr (std::is_same_v<Record, Route>) {
      if (record->next_due_at_ms) update(armed_routes[record->lane_id], record->route_id);
      if (comes) return;
      drop_if_empty(offers, record->route_id);
      drop_if_empty(blocked_on_route, record->route_id);
      drop_if_empty(groups_of_route, record->route_id);
    }
  }

  template <class Map, class Key>
  static void drop_if_empty(Map& map, const Key& key) {
    const auto it = map.find(key);
    if (it != map.end() && it->second.empty()) map.erase(it);
  }

  template <class Record>
  void write(const Slot<Record>& slot, bool is_stored) {
    if (is_stored) index<Record>(slot.stored.get(), false);
    index<Record>(slot.changed.get(), true);
    if (slot.changed)
      table<Record>().insert_or_assign(slot.key, slot.changed);
    else
      table<Record>().erase(slot.key);
  }

  template <class Record>
  void erase_of(const ExecutionId& id) {
    auto& all = table<Record>();
    std::vector<typename Record::Key> keys;
    for (auto it = all.lower_bound(first_key<Record>(id)); it != all.end() && owner_of(it->first) == id;
         ++it) {
      index<Record>(it->second.get(), false);
      keys.push_back(it->first);
    }
    for (const auto& key : keys) all.erase(key);
  }

  template <class Record>
  static typename Record::Key first_key(const ExecutionId& id) {
    if constexpr (std::is_same_v<typename Record::Key, ExecutionId>)
      return id;
    else
      return {.partition_key = id.partition, .execution_id = id.uuid};
  }

  template <class Event>
  void append(const std::vector<Event>& events) {
    auto& log = this->log<Event>();
    for (auto event : events) {
      event.event_id = log.first_id + static_cast<std::int64_t>(log.events.size());
      log.events.push_back(std::move(event));
    }
  }

  // The newest event stays, so that numbering goes on.
  template <class Event>
  void trim(std::int64_t before_ms) {
    auto& log = this->log<Event>();
    while (log.events.size() > 1 && log.events.front().occurred_at_ms < before_ms) {
      log.events.pop_front();
      ++log.first_id;
    }
  }

  template <class Event>
  std::vector<Event> events_after(std::int64_t after, std::size_t limit) {
    const auto& log = this->log<Event>();
    std::vector<Event> page;
    for (auto i = static_cast<std::size_t>(std::max<std::int64_t>(after + 1 - log.first_id, 0));
         i < log.events.size() && page.size() < limit; ++i) {
      page.push_back(log.events[i]);
    }
    return page;
  }

  const ByAge& members(const ListScan::Everything&) { return by_age; }
  const ByAge& members(const ListScan::InGroup& group) {
    static const ByAge none;
    const auto it = group_members.find({group.group_id, group.state});
    return it == group_members.end() ? none : it->second;
  }
  const ByAge& members(const ListScan::Flows&) { return flows_by_age; }
  const ByAge& members(const ListScan::InFlow& flow) { return flow_members[flow.flow_id]; }
};

}  // namespace flowfabric::store
