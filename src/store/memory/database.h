// The tables of a memory store, and its indexes.
#pragma once

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "core/index_rules.h"
#include "store/store.h"

namespace flowfabric::store {

using core::Offer;

// The rows of one table, by key.
using AnyTable = std::map<AnyKey, std::shared_ptr<const void>>;

// A table whose type is known.
template <class Record>
class Table {
 public:
  using Key = typename Record::Key;
  struct Row {
    const Key& first;
    const Record* second;
    const Row* operator->() const { return this; }
  };
  class Iterator {
   public:
    explicit Iterator(AnyTable::const_iterator at) : at_(at) {}
    Row operator*() const { return {at_->first.as<Key>(), static_cast<const Record*>(at_->second.get())}; }
    Row operator->() const { return **this; }
    Iterator& operator++() {
      ++at_;
      return *this;
    }
    bool operator==(const Iterator&) const = default;
    AnyTable::const_iterator base() const { return at_; }

   private:
    AnyTable::const_iterator at_;
  };

  explicit Table(AnyTable& rows) : rows_(rows) {}
  Iterator begin() const { return Iterator(rows_.begin()); }
  Iterator end() const { return Iterator(rows_.end()); }
  Iterator find(const Key& key) const { return Iterator(rows_.find(any_key<Record>(key))); }
  Iterator lower_bound(const Key& key) const { return Iterator(rows_.lower_bound(any_key<Record>(key))); }
  Iterator upper_bound(const Key& key) const { return Iterator(rows_.upper_bound(any_key<Record>(key))); }
  std::shared_ptr<const Record> at(const Key& key) const {
    return std::static_pointer_cast<const Record>(rows_.at(any_key<Record>(key)));
  }
  void erase(Iterator first, Iterator last) { rows_.erase(first.base(), last.base()); }

 private:
  AnyTable& rows_;
};

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

  std::array<AnyTable, kRecordTypes> tables;
  boost::mp11::mp_rename<boost::mp11::mp_transform<Log, Events>, std::tuple> logs;
  std::map<LaneCountKey, std::int64_t> counts;
  std::map<std::int64_t, std::set<Offer>> offers;
  std::set<std::pair<std::int64_t, RecordKey>> due;
  // By lane: the routes that offer something, and those that something is blocked on.
  std::map<std::string, std::set<std::int64_t>> offering_routes;
  std::map<std::string, std::set<std::int64_t>> armed_routes;
  ByAge by_age;
  std::set<std::pair<std::int64_t, RecordKey>> removable;  // by time of removal
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
  Table<Record> table() {
    return Table<Record>(tables[place_of<Record>]);
  }
  template <class Event>
  Log<Event>& log() {
    return std::get<Log<Event>>(logs);
  }

  // Keep the indexes of one record, as it comes or goes.
  void index(const RecordType& type, const AnyKey& key, const void* record, bool comes);
  void index(const Execution& execution, bool comes);
  void index(const Route& route, bool comes);

  template <class Map, class Key>
  static void drop_if_empty(Map& map, const Key& key) {
    const auto it = map.find(key);
    if (it != map.end() && it->second.empty()) map.erase(it);
  }

  void write(const RecordType& type, const core::AnySlot& slot, bool is_stored);
  void erase_of(const RecordType& type, const ExecutionId& id);

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
