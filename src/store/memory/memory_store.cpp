#include "store/memory/memory_store.h"

#include <deque>
#include <limits>
#include <mutex>
#include <set>

namespace flowfabric::store {

namespace {

using core::Offer;
using core::OfferScan;
using core::Slot;
using core::Unit;

template <class Record>
using Table = std::map<typename Record::Key, std::shared_ptr<const Record>>;
template <class Event>
struct Log {
  std::deque<Event> events;
  std::int64_t first_id{1};
};

using ByAge = std::set<core::ListPosition>;

core::ListPosition position_of(const Execution& execution) {
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
  std::map<std::string, std::set<std::int64_t>> lane_routes;
  ByAge by_age;
  ByAge purgeable;  // by time of removal
  std::map<std::pair<std::int64_t, PublicState>, ByAge> group_members;
  std::map<FlowId, ByAge> flow_members;
  std::map<std::int64_t, ByAge> blocked_on_route;
  ByAge flows_by_age;
  std::map<ExecutionId, std::set<EdgeKey>> edges_from;
  std::map<ExecutionId, std::set<EdgeKey>> edges_into;

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
    if constexpr (std::is_same_v<Record, Execution>) {
      if (record->offer_order) update(offers[record->route_id], Offer{*record->offer_order, record->key()});
      update(by_age, position_of(*record));
      if (record->purge_at_ms) update(purgeable, core::ListPosition{*record->purge_at_ms, record->key()});
      update(group_members[{record->group_id, record->state.public_state}], position_of(*record));
      if (record->flow_id) update(flow_members[*record->flow_id], position_of(*record));
      if (record->state.eligibility_state == EligibilityState::blocked_by_route) {
        update(blocked_on_route[record->route_id], position_of(*record));
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
    if constexpr (std::is_same_v<Record, Route>) update(lane_routes[record->lane_id], record->route_id);
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
    return group_members[{group.group_id, group.state}];
  }
  const ByAge& members(const ListScan::Flows&) { return flows_by_age; }
  const ByAge& members(const ListScan::InFlow& flow) { return flow_members[flow.flow_id]; }
};

template <class Set>
std::vector<core::ListPosition> walk(const Set& set, const ListScan& scan) {
  std::vector<core::ListPosition> found;
  if (scan.order == ListOrder::oldest) {
    for (auto it = scan.after ? set.upper_bound(*scan.after) : set.begin();
         it != set.end() && found.size() < scan.limit; ++it) {
      found.push_back(*it);
    }
    return found;
  }
  for (auto it = scan.after ? set.lower_bound(*scan.after) : set.end();
       it != set.begin() && found.size() < scan.limit;) {
    found.push_back(*--it);
  }
  return found;
}

class MemorySession final : public Session {
 public:
  explicit MemorySession(std::shared_ptr<Database> database)
      : database_(std::move(database)), lock_(database_->mutex, std::defer_lock) {}

  bool loads_instantly() const override { return database_->instant; }

  std::int64_t begin(Unit& unit) override {
    lock_.lock();
    load(unit);
    return database_->now_ms();
  }

  void load(Unit& unit) override {
    for_each_type<Records>([&]<class Record>() {
      for (const auto& key : std::exchange(unit.wanted<Record>(), {})) {
        const auto& table = database_->table<Record>();
        const auto it = table.find(key);
        unit.put<Record>(key, it == table.end() ? nullptr : it->second);
      }
    });
    for_each_type<core::Questions>([&]<class Question>() {
      for (const auto& question : std::exchange(unit.wanted_answers<Question>(), {})) {
        unit.put_answer(question, answer(question));
      }
    });
    for (const auto& lane : std::exchange(unit.wanted_routes(), {})) {
      std::vector<Route> routes;
      for (const auto id : database_->lane_routes[lane])
        routes.push_back(*database_->table<Route>().at({id}));
      unit.put_routes(lane, std::move(routes));
    }
    for (const auto& scan : std::exchange(unit.wanted_offers(), {})) {
      const auto& offers = database_->offers[scan.route_id];
      auto it = scan.after ? offers.upper_bound(*scan.after) : offers.begin();
      std::vector<std::shared_ptr<const Execution>> rows;
      for (; it != offers.end() && rows.size() < scan.limit; ++it) {
        rows.push_back(database_->table<Execution>().at(it->execution_id));
      }
      unit.put_offers(scan, std::move(rows));
    }
  }

  void commit(Unit& unit) override {
    for (const auto& id : unit.purged()) {
      for_each_type<OwnedRecords>([&]<class Record>() { database_->erase_of<Record>(id); });
    }
    for_each_type<Records>([&]<class Record>() {
      unit.for_each_dirty<Record>(
          [&](const Slot<Record>& slot) { database_->write(slot, unit.is_stored(slot)); });
    });
    for_each_type<Events>([&]<class Event>() {
      database_->append(unit.appended<Event>());
      if (unit.trim_before_ms()) database_->trim<Event>(*unit.trim_before_ms());
    });
    for (const auto& [key, delta] : unit.count_deltas()) database_->counts[key] += delta;
    lock_.unlock();
  }

  void rollback() noexcept override {
    if (lock_.owns_lock()) lock_.unlock();
  }

  std::vector<DueKey> due(std::int64_t now_ms, std::size_t limit) override {
    std::vector<DueKey> keys;
    for (const auto& [time, key] : database_->due) {
      if (time > now_ms || keys.size() == limit) break;
      keys.push_back(key);
    }
    return keys;
  }

  std::optional<std::int64_t> next_due() override {
    std::optional<std::int64_t> next;
    if (!database_->due.empty()) next = database_->due.begin()->first;
    if (database_->purgeable.empty()) return next;
    const auto purge_at = database_->purgeable.begin()->created_at_ms;
    return std::min(next.value_or(purge_at), purge_at);
  }

  std::vector<ExecutionId> purgeable(std::int64_t now_ms, std::size_t limit) override {
    std::vector<ExecutionId> found;
    for (const auto& position : database_->purgeable) {
      if (position.created_at_ms > now_ms || found.size() == limit) break;
      found.push_back(position.execution_id);
    }
    return found;
  }

  std::vector<ListedExecution> listed(const std::vector<core::ListPosition>& positions) override {
    std::vector<ListedExecution> found;
    const auto& table = database_->table<Execution>();
    for (const auto& position : positions) {
      const auto it = table.find(position.execution_id);
      if (it != table.end()) found.push_back(flowfabric::listed(*it->second));
    }
    return found;
  }

  std::vector<Attempt> attempts_of(const ExecutionId& id) override {
    std::vector<Attempt> attempts;
    const auto& table = database_->table<Attempt>();
    for (auto it = table.lower_bound({id.partition, id.uuid, 0});
         it != table.end() && it->first.partition_key == id.partition && it->first.execution_id == id.uuid;
         ++it) {
      attempts.push_back(*it->second);
    }
    return attempts;
  }

  void fill(AnyKeyPage any) override {
    std::visit(
        [&]<class Record>(KeyPage<Record>* page) {
          const auto& table = database_->table<Record>();
          for (auto it = page->after ? table.upper_bound(*page->after) : table.begin();
               it != table.end() && page->found.size() < page->limit; ++it) {
            page->found.push_back(it->first);
          }
        },
        any);
  }

  void fill(AnyEventPage any) override {
    std::visit(
        [&]<class Event>(EventPage<Event>* page) {
          page->found = database_->events_after<Event>(page->after, page->limit);
        },
        any);
  }

  std::vector<core::ListPosition> scan(const ListScan& scan) override {
    if (const auto* tag = std::get_if<ListScan::Tagged>(&scan.of)) return walk(tagged(*tag), scan);
    return std::visit(
        [&](const auto& of) -> std::vector<core::ListPosition> {
          if constexpr (requires { database_->members(of); }) return walk(database_->members(of), scan);
          return {};
        },
        scan.of);
  }

  std::vector<Group> groups(const GroupFilter& filter, std::size_t limit) override {
    const auto matches = [](const std::optional<std::string>& wanted, const std::string& value) {
      return !wanted || *wanted == value;
    };
    std::vector<Group> found;
    for (const auto& [key, group] : database_->table<Group>()) {
      const bool wanted = matches(filter.lane_id, group->lane_id) &&
                          matches(filter.namespace_, group->namespace_) &&
                          matches(filter.execution_kind, group->execution_kind);
      if (wanted && found.size() < limit) found.push_back(*group);
    }
    return found;
  }

  std::vector<ExecutionId> expired_leases(const ExpiredLeaseScan& scan) override {
    std::set<core::ListPosition> expired;
    for (const auto& [id, execution] : database_->table<Execution>()) {
      const auto owner = execution->state.ownership_state;
      const bool held = owner == OwnershipState::leased || owner == OwnershipState::lease_expired_reclaimable;
      if (!held || !execution->lease.lease_expires_at_ms) continue;
      const core::ListPosition position{*execution->lease.lease_expires_at_ms, id};
      if (position.created_at_ms > scan.as_of_ms || (scan.after && position <= *scan.after)) continue;
      if (!scan.namespace_ || *scan.namespace_ == execution->namespace_) expired.insert(position);
    }
    std::vector<ExecutionId> found;
    for (const auto& position : expired) {
      if (found.size() < scan.limit) found.push_back(position.execution_id);
    }
    return found;
  }

  std::optional<std::int64_t> oldest_event() override {
    std::optional<std::int64_t> oldest;
    for_each_type<Events>([&]<class Event>() {
      const auto& events = database_->log<Event>().events;
      if (events.size() < 2) return;
      oldest = std::min(oldest.value_or(events.front().occurred_at_ms), events.front().occurred_at_ms);
    });
    return oldest;
  }

  FlowCounts count_flow(const FlowId& flow, const std::vector<std::string>& harmless_reasons) override {
    FlowCounts counts;
    for (const auto& position : database_->flow_members[flow]) {
      const auto& member = *database_->table<Execution>().at(position.execution_id);
      ++counts.by_state[member.state.public_state];
      if (std::ranges::find(harmless_reasons, member.cancellation_reason) != harmless_reasons.end())
        ++counts.without_harm;
    }
    return counts;
  }
  std::vector<Edge> edges_of(const FlowKey& flow) override { return all_of_flow<Edge>(flow); }
  std::vector<EdgeGroup> joins_of(const FlowKey& flow) override { return all_of_flow<EdgeGroup>(flow); }
  std::vector<SuspensionKey> suspended(const SuspendedScan& scan) override {
    std::set<std::pair<std::int64_t, Uuid>> found;
    const auto& table = database_->table<Suspension>();
    for (auto it = table.lower_bound({scan.partition_key, {}});
         it != table.end() && it->first.partition_key == scan.partition_key; ++it) {
      const auto& details = it->second->details;
      const auto& id = it->first.execution_id;
      if (!details.suspension_id || details.closed_at_ms) continue;
      const bool behind =
          scan.after_ms ? std::pair(details.suspended_at_ms, id) > std::pair(*scan.after_ms, *scan.after_id)
                        : !scan.after_id || id > *scan.after_id;
      if (behind) found.emplace(details.suspended_at_ms, id);
    }
    std::vector<SuspensionKey> keys;
    for (const auto& [time, id] : found) {
      if (keys.size() < scan.limit) keys.push_back({scan.partition_key, id});
    }
    return keys;
  }
  std::vector<NodeName> node_names(const FlowId& flow) override {
    std::vector<NodeName> names;
    for (const auto& position : database_->flow_members[flow]) {
      const auto& spec = *database_->table<ExecutionSpec>().at(position.execution_id);
      if (!spec.node_name.empty()) names.push_back({spec.partition_key, spec.execution_id, spec.node_name});
    }
    return names;
  }

  std::map<LaneCountKey, std::int64_t> count_executions() override {
    std::map<LaneCountKey, std::int64_t> counts;
    for (const auto& [id, execution] : database_->table<Execution>()) {
      ++counts[{execution->lane_id, execution->state.public_state}];
    }
    return counts;
  }
  std::map<LaneCountKey, std::int64_t> lane_counts() override { return database_->counts; }

  std::map<PublicState, std::int64_t> count_lane(const std::string& lane) override {
    std::map<PublicState, std::int64_t> counts;
    for (const auto& [key, count] : database_->counts) {
      if (key.lane_id == lane && count != 0) counts[key.public_state] = count;
    }
    return counts;
  }

 private:
  std::vector<WorkerKey> answer(const core::WorkersOf& question) {
    std::vector<WorkerKey> found;
    const auto& workers = database_->table<Worker>();
    for (auto it = workers.lower_bound({question.namespace_, ""});
         it != workers.end() && it->first.namespace_ == question.namespace_; ++it) {
      found.push_back(it->first);
    }
    return found;
  }

  std::vector<ExecutionId> answer(const core::BlockedOnRoute& question) {
    std::vector<ExecutionId> found;
    for (const auto& position : database_->blocked_on_route[question.route_id]) {
      if (found.size() < question.limit) found.push_back(position.execution_id);
    }
    return found;
  }

  // Edge ids are unique in their flow only, but an execution has edges in one flow.
  template <class Question>
  static std::vector<EdgeKey> page_of(const std::set<EdgeKey>& edges, const Question& question) {
    std::vector<EdgeKey> found;
    for (const auto& key : edges) {
      if (question.after && key.edge_id <= *question.after) continue;
      if (found.size() < question.limit) found.push_back(key);
    }
    return found;
  }
  std::vector<EdgeKey> answer(const core::EdgesFrom& question) {
    return page_of(database_->edges_from[question.upstream], question);
  }
  std::vector<EdgeKey> answer(const core::EdgesInto& question) {
    return page_of(database_->edges_into[question.downstream], question);
  }

  std::vector<ExecutionId> answer(const core::Descendants& question) {
    std::set<ExecutionId> reached;
    std::vector<ExecutionId> next{question.of};
    while (!next.empty()) {
      const auto id = next.back();
      next.pop_back();
      for (const auto& key : database_->edges_from[id]) {
        const auto downstream = database_->table<Edge>().at(key)->downstream();
        if (reached.insert(downstream).second) next.push_back(downstream);
      }
    }
    return {reached.begin(), reached.end()};
  }

  std::vector<core::MemberPhase> answer(const core::MembersOf& question) {
    std::vector<core::MemberPhase> found;
    for (const auto& position : database_->flow_members[question.flow_id]) {
      const auto& member = *database_->table<Execution>().at(position.execution_id);
      found.push_back({position.execution_id, member.state.lifecycle_phase});
    }
    return found;
  }

  std::vector<ExecutionId> answer(const core::OwedCancels& question) {
    std::vector<ExecutionId> found;
    const auto& [partition, flow] = question.flow;
    const auto& rows = database_->table<CancelBacklogMember>();
    auto it = question.after ? rows.upper_bound({partition, flow, *question.after})
                             : rows.lower_bound({partition, flow, {}});
    for (; it != rows.end() && it->first.partition_key == partition && it->first.flow_id == flow &&
           found.size() < question.limit;
         ++it) {
      found.push_back({partition, it->first.execution_id});
    }
    return found;
  }

  std::vector<WaitpointRecordKey> answer(const core::OpenWaitpoints& question) {
    std::vector<WaitpointRecordKey> found;
    const auto& rows = database_->table<Waitpoint>();
    for (auto it = rows.lower_bound({question.of.partition, question.of.uuid, {}});
         it != rows.end() && owner_of(it->first) == question.of; ++it) {
      if (it->second->state != WaitpointState::closed) found.push_back(it->first);
    }
    return found;
  }
  std::vector<HmacKeyKey> answer(const core::RetiredSecrets&) {
    std::vector<HmacKeyKey> found;
    for (const auto& [key, secret] : database_->table<HmacKey>()) {
      if (!secret->active) found.push_back(key);
    }
    return found;
  }

  template <class Record>
  std::vector<Record> all_of_flow(const FlowKey& flow) {
    std::vector<Record> found;
    const auto& table = database_->table<Record>();
    for (auto it = table.lower_bound({flow.partition_key, flow.flow_id, {}});
         it != table.end() && it->first.partition_key == flow.partition_key &&
         it->first.flow_id == flow.flow_id;
         ++it) {
      found.push_back(*it->second);
    }
    return found;
  }

  ByAge tagged(const ListScan::Tagged& tag) {
    ByAge found;
    const auto& rows = database_->table<ExecutionTag>();
    for (auto it = rows.lower_bound({tag.key, tag.value, std::numeric_limits<std::int64_t>::min(), 0, {}});
         it != rows.end() && it->first.tag_key == tag.key && it->first.tag_value == tag.value; ++it) {
      found.insert({it->first.created_at_ms, {it->first.partition_key, it->first.execution_id}});
    }
    return found;
  }

  std::shared_ptr<Database> database_;
  std::unique_lock<std::mutex> lock_;
};

class MemoryStore final : public Store {
 public:
  explicit MemoryStore(std::shared_ptr<Database> database) : database_(std::move(database)) {}
  std::unique_ptr<Session> open_writer() override { return std::make_unique<MemorySession>(database_); }
  std::unique_ptr<Session> open_reader() override { return std::make_unique<MemorySession>(database_); }

 private:
  std::shared_ptr<Database> database_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_memory_store(const StoreUrl& url, const StoreOptions& options) {
  auto database = std::make_shared<Database>();
  database->now_ms = options.now_ms;
  for (const auto& [key, value] : url.options) {
    if (key == "load" && value == "deferred") {
      database->instant = false;
    } else {
      return fail_with(ErrorCode::invalid_input, "store URL: unknown option",
                       "memory: knows no option '" + key + "=" + value + "'.");
    }
  }
  return std::make_unique<MemoryStore>(std::move(database));
}

}  // namespace flowfabric::store
