#include "store/memory/memory_store.h"

#include <limits>

#include "core/clock/scanner_filter.h"
#include "store/first_positions.h"
#include "store/memory/database.h"

namespace flowfabric::store {

namespace {

using core::OfferScan;
using core::Unit;

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
  std::optional<std::int64_t> time_of_load() const override { return database_->now_ms(); }

  std::int64_t begin(Unit& unit) override {
    lock_.lock();
    load(unit);
    return database_->now_ms();
  }

  void load(Unit& unit) override {
    for (const auto& type : record_types()) {
      const auto& table = database_->tables[type.place];
      for (const auto& key : unit.take_wanted(type.place)) {
        const auto it = table.find(key);
        unit.put(type.place, key.get(), it == table.end() ? nullptr : it->second);
      }
    }
    for_each_type<core::Questions>([&]<class Question>() {
      if (!unit.wants_answers<Question>()) return;
      for (const auto& question : std::exchange(unit.wanted_answers<Question>(), {})) {
        unit.put_answer(question, answer(question));
      }
    });
    for (const auto& lane : std::exchange(unit.wanted_routes(), {})) {
      auto ids = database_->offering_routes[lane];
      ids.insert(database_->armed_routes[lane].begin(), database_->armed_routes[lane].end());
      std::vector<Route> routes;
      for (const auto id : ids) {
        const auto it = database_->table<Route>().find({id});
        if (it != database_->table<Route>().end()) routes.push_back(*it->second);
      }
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
      for (const auto* type : owned_types()) database_->erase_of(*type, id);
    }
    for (const auto& type : record_types()) {
      for (const auto* slot : unit.dirty(type.place)) database_->write(type, *slot, unit.is_stored(*slot));
    }
    for (const auto& [stream, count] : unit.dropped_frames()) drop_frames(stream, count);
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

  DueRecords due(const DueScan& scan) override {
    DueRecords records;
    std::array<std::size_t, kRecordTypes> counts{};
    for (const auto& [time, key] : database_->due) {
      if (time > scan.until_ms) break;
      auto& count = counts[key.type->place];
      const bool is_covered = scan.scope.covers(core::clock_rule(*key.type).rules);
      if (count == scan.limit || !is_covered || !passes(scan.scope, key)) continue;
      ++count;
      records.found.push_back({time, key});
    }
    counts.fill(0);
    for (const auto& [time, key] : database_->removable) {
      if (time > scan.until_ms) break;
      auto& count = counts[key.type->place];
      if (count == scan.purge_limit || !scan.scope.removes() || !passes(scan.scope, key)) continue;
      ++count;
      records.found.push_back({time, key});
    }
    return records;
  }

  std::optional<std::int64_t> next_due(const DueScan& scan) override {
    const auto first = due({scan.until_ms, scan.scope, 1, 1}).found;
    std::optional<std::int64_t> next;
    for (const auto& record : first) next = std::min(next.value_or(record.due_at_ms), record.due_at_ms);
    return next;
  }

  std::vector<ListedExecution> listed(const std::vector<core::ListPosition>& positions) override {
    std::vector<ListedExecution> found;
    const auto table = database_->table<Execution>();
    for (const auto& position : positions) {
      const auto it = table.find(position.execution_id);
      if (it != table.end()) found.push_back(flowfabric::listed(*it->second));
    }
    return found;
  }

  std::vector<Attempt> attempts_of(const ExecutionId& id) override {
    std::vector<Attempt> attempts;
    const auto table = database_->table<Attempt>();
    for (auto it = table.lower_bound({id.partition, id.uuid, 0});
         it != table.end() && it->first.partition_key == id.partition && it->first.execution_id == id.uuid;
         ++it) {
      attempts.push_back(*it->second);
    }
    return attempts;
  }

  EventRange event_range(EventFamily family) override {
    EventRange range;
    for_each_type<Events>([&]<class Event>() {
      if (family_of<Event> != family) return;
      const auto& log = database_->log<Event>();
      const auto last = log.first_id - 1 + static_cast<std::int64_t>(log.events.size());
      range = {log.first_id - 1, last, last};
    });
    return range;
  }

  std::vector<Frame> frames(const FrameScan& scan) override {
    std::vector<Frame> found;
    const auto table = database_->table<Frame>();
    for (auto it = table.lower_bound(place_of(scan.stream, scan.from));
         it != table.end() && it->first <= place_of(scan.stream, scan.to) && found.size() < scan.limit;
         ++it) {
      if (scan.without_best_effort && it->second->mode == FrameMode::best_effort) continue;
      found.push_back(*it->second);
    }
    return found;
  }

  std::vector<OperatorEvent> operator_events_of(const ExecutionId& id) override {
    std::vector<OperatorEvent> found;
    for (const auto& event : database_->log<OperatorEvent>().events) {
      if (event.partition_key == id.partition && event.execution_id == id.uuid) found.push_back(event);
    }
    return found;
  }

  std::vector<LeaseEvent> pauses_of(const ExecutionId& id, std::size_t limit) override {
    std::vector<LeaseEvent> found;
    for (const auto& event : database_->log<LeaseEvent>().events) {
      const bool is_its = event.partition_key == id.partition && event.execution_id == id.uuid;
      if (is_its && core::is_pause_reason(event.reason)) found.push_back(event);
    }
    if (found.size() > limit) found.erase(found.begin(), found.end() - static_cast<std::ptrdiff_t>(limit));
    return found;
  }

  std::vector<Stream> streams_of(const ExecutionId& id) override {
    std::vector<Stream> found;
    const auto table = database_->table<Stream>();
    for (auto it = table.lower_bound({id.partition, id.uuid, 0});
         it != table.end() && owner_of(it->first) == id; ++it) {
      found.push_back(*it->second);
    }
    return found;
  }

  void fill(KeyPage& page) override {
    const auto& table = database_->tables[page.type.place];
    for (auto it = page.after ? table.upper_bound(*page.after) : table.begin();
         it != table.end() && page.found.size() < page.limit; ++it) {
      page.found.push_back(it->first);
    }
  }

  void fill(EventPage& page) override {
    for_each_type<Events>([&]<class Event>() {
      if (event_place<Event> != page.type.place) return;
      for (auto& event : database_->events_after<Event>(page.after, page.limit)) {
        page.found.push_back(std::make_shared<Event>(std::move(event)));
      }
    });
  }

  std::vector<core::ListPosition> scan(const ListScan& scan) override {
    if (const auto* tag = std::get_if<ListScan::Tagged>(&scan.of)) return walk(tagged(*tag), scan);
    if (const auto* groups = std::get_if<ListScan::InGroups>(&scan.of)) return walk_groups(*groups, scan);
    return std::visit(
        [&](const auto& of) -> std::vector<core::ListPosition> {
          if constexpr (requires { database_->members(of); }) return walk(database_->members(of), scan);
          return {};
        },
        scan.of);
  }

  std::vector<Group> groups(const GroupFilter& filter, std::size_t limit) override {
    std::vector<Group> found;
    for (const auto& [key, group] : database_->table<Group>()) {
      if (found.size() == limit) break;
      if (is_one_of(filter, *group)) found.push_back(*group);
    }
    return found;
  }

  std::vector<LeaseCount> count_leases(const std::vector<std::string>& instances,
                                       std::int64_t now_ms) override {
    std::vector<LeaseCount> counts;
    for (const auto& instance : instances) {
      std::map<std::string, std::uint64_t> held;
      for (const auto& id : database_->held_by[instance]) {
        const auto& execution = *database_->table<Execution>().at(id);
        if (execution.lease.lease_expires_at_ms > now_ms) ++held[execution.namespace_];
      }
      for (const auto& [name_space, leases] : held) counts.push_back({instance, name_space, leases});
    }
    return counts;
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
    std::map<std::pair<std::int64_t, Uuid>, SuspensionKey> found;
    const auto table = database_->table<Suspension>();
    for (auto it = table.lower_bound({scan.first_partition, {}});
         it != table.end() && it->first.partition_key <= scan.last_partition; ++it) {
      const auto& details = it->second->details;
      const auto& id = it->first.execution_id;
      if (!details.suspension_id || details.closed_at_ms) continue;
      const bool behind =
          scan.after_ms ? std::pair(details.suspended_at_ms, id) > std::pair(*scan.after_ms, *scan.after_id)
                        : !scan.after_id || id > *scan.after_id;
      if (behind) found.emplace(std::pair(details.suspended_at_ms, id), it->first);
    }
    std::vector<SuspensionKey> keys;
    for (const auto& [position, key] : found) {
      if (keys.size() < scan.limit) keys.push_back(key);
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
  bool passes(const core::ClockScope& scope, const RecordKey& due) {
    return core::passes(scope.filter, due, [&](const RecordType& type, const void* key) -> const void* {
      const auto& table = database_->tables[type.place];
      const auto it = table.find(AnyKey(*type.key, key));
      return it == table.end() ? nullptr : it->second.get();
    });
  }

  static bool is_one_of(const GroupFilter& filter, const Group& group) {
    const auto matches = [](const std::optional<std::string>& wanted, const std::string& value) {
      return !wanted || *wanted == value;
    };
    return matches(filter.lane_id, group.lane_id) && matches(filter.namespace_, group.namespace_) &&
           matches(filter.execution_kind, group.execution_kind);
  }
  std::vector<core::ListPosition> walk_groups(const ListScan::InGroups& of, const ListScan& scan) {
    FirstPositions first(scan.order, scan.limit);
    for (const auto& [key, group] : database_->table<Group>()) {
      if (!is_one_of(of.groups, *group)) continue;
      for (const auto state : of.states) {
        const auto members = database_->group_members.find({group->group_id, state});
        if (members == database_->group_members.end()) continue;
        for (const auto& position : walk(members->second, scan)) {
          if (!first.take(position)) break;
        }
      }
    }
    return first.all();
  }

  static FrameKey place_of(const StreamKey& stream, const FrameId& id) {
    return {stream.partition_key, stream.execution_id, stream.attempt_index, id.ms, id.seq};
  }
  void drop_frames(const StreamKey& stream, std::uint64_t count) {
    auto table = database_->table<Frame>();
    auto last = table.lower_bound(place_of(stream, {}));
    const auto first = last;
    const auto is_its = [&](const FrameKey& key) {
      return StreamKey{key.partition_key, key.execution_id, key.attempt_index} == stream;
    };
    for (; count > 0 && last != table.end() && is_its(last->first); --count) ++last;
    table.erase(first, last);
  }

  std::vector<WorkerKey> answer(const core::WorkersOf& question) {
    std::vector<WorkerKey> found;
    const auto workers = database_->table<Worker>();
    for (auto it = workers.lower_bound({question.namespace_, ""});
         it != workers.end() && it->first.namespace_ == question.namespace_; ++it) {
      found.push_back(it->first);
    }
    return found;
  }

  std::vector<ExecutionId> answer(const core::LeasesOf& question) {
    std::vector<ExecutionId> found;
    const auto& held = database_->held_by[question.worker_instance_id];
    for (auto it = question.after ? held.upper_bound(*question.after) : held.begin();
         it != held.end() && found.size() < question.limit; ++it) {
      const auto& name_space = database_->table<Execution>().at(*it)->namespace_;
      if (!question.namespace_ || *question.namespace_ == name_space) found.push_back(*it);
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

  std::vector<GroupKey> answer(const core::GroupsOf& question) {
    std::vector<GroupKey> found;
    for (const auto& key : database_->groups_of_route[question.route_id]) {
      if (found.size() < question.limit) found.push_back(key);
    }
    return found;
  }
  std::vector<ExecutionId> answer(const core::ExecutionsIn& question) {
    const auto& members = database_->group_members;
    const auto it = members.lower_bound({question.group_id, PublicState{}});
    if (it == members.end() || it->first.first != question.group_id) return {};
    return {it->second.begin()->execution_id};
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
    const auto rows = database_->table<CancelBacklogMember>();
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
    const auto rows = database_->table<Waitpoint>();
    for (auto it = rows.lower_bound({question.of.partition, question.of.uuid, {}});
         it != rows.end() && owner_of(it->first) == question.of; ++it) {
      if (it->second->state != WaitpointState::closed) found.push_back(it->first);
    }
    return found;
  }
  std::vector<WaitpointRecordKey> answer(const core::WaitpointsNamed& question) {
    std::vector<WaitpointRecordKey> found;
    const auto& all = database_->waitpoints_by_id;
    for (auto it = all.lower_bound({question.waitpoint_id, {}});
         it != all.end() && it->first == question.waitpoint_id; ++it) {
      found.push_back(it->second);
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

  std::vector<core::ListPosition> answer(const core::BlockedOn& question) {
    std::vector<core::ListPosition> found;
    for (const auto& position : database_->blocked_on[question.limit_id]) {
      if (question.after && position <= *question.after) continue;
      if (found.size() < question.limit) found.push_back(position);
    }
    return found;
  }
  std::vector<core::WindowEntry> answer(const core::WindowOf& question) {
    std::vector<core::WindowEntry> found;
    for (const auto& [time, key] : database_->windows[question.policy]) {
      if (found.size() < question.limit) found.push_back({key, time});
    }
    return found;
  }
  std::vector<QuotaAdmissionKey> answer(const core::SlotsOf& question) {
    std::vector<QuotaAdmissionKey> found;
    const auto& [partition, policy] = question.policy;
    const auto rows = database_->table<QuotaAdmission>();
    for (auto it = rows.lower_bound({partition, policy, 0, {}});
         it != rows.end() && it->first.quota_policy_id == policy; ++it) {
      if (it->second->holds_slot) found.push_back(it->first);
    }
    return found;
  }
  std::vector<QuotaAdmissionKey> answer(const core::StraySlotsOf& question) {
    std::vector<QuotaAdmissionKey> found;
    const auto executions = database_->table<Execution>();
    for (const auto& key : answer(core::SlotsOf{question.policy})) {
      const auto it = executions.find({key.execution_partition, key.execution_id});
      const bool in_use = it != executions.end() && core::may_hold_slot(*it->second);
      if (!in_use && found.size() < question.limit) found.push_back(key);
    }
    return found;
  }
  std::vector<QuotaPolicyKey> answer(const core::FullKeysOf& question) {
    std::vector<QuotaPolicyKey> found;
    for (const auto& [key, policy] : database_->table<QuotaPolicy>()) {
      const bool is_full = policy->lane_id == question.lane_id && policy->has_blocked;
      if (is_full && found.size() < question.limit) found.push_back(key);
    }
    return found;
  }
  std::vector<ScopeLimitsKey> answer(const core::ScopesOf& question) {
    std::vector<ScopeLimitsKey> found;
    const auto id = question.limit_id.to_string();
    const auto names = [&](const std::vector<std::string>& ids) {
      return std::ranges::find(ids, id) != ids.end();
    };
    for (const auto& [key, limits] : database_->table<ScopeLimits>()) {
      if (names(limits->budget_ids) || names(limits->quota_policy_ids)) found.push_back(key);
    }
    return found;
  }
  std::vector<SpendKey> answer(const core::SpendingOf& question) {
    std::vector<SpendKey> found;
    for (const auto& [key, spend] : database_->table<Spend>()) {
      if (key.budget_id != question.budget_id || (question.after && owner_of(key) <= *question.after))
        continue;
      if (found.size() < question.limit) found.push_back(key);
    }
    return found;
  }

  template <class Record>
  std::vector<Record> all_of_flow(const FlowKey& flow) {
    std::vector<Record> found;
    const auto table = database_->table<Record>();
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
    const auto rows = database_->table<ExecutionTag>();
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
