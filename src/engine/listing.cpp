#include "engine/listing.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "core/registry/worker.h"
#include "core/views/listing.h"
#include "core/views/read.h"
#include "model/text.h"

namespace flowfabric::engine {

namespace {

using core::ListPosition;
using store::ListScan;

constexpr std::uint32_t kMaxPage = 1000;
constexpr std::uint32_t kMaxLongPage = 10'000;
// Beyond this many walks, they are left to the store, which takes them together: sooner across a network,
// where each walk is a round trip.
constexpr std::size_t kMaxWalks = 1024;
constexpr std::size_t kMaxRemoteWalks = 100;
// Candidates that a page may look at.
constexpr std::size_t kMaxLooks = 2000;

Result<void> check_limit(std::uint32_t limit, std::uint32_t least, std::uint32_t most) {
  if (limit >= least && limit <= most) return {};
  return fail_with(ErrorCode::invalid_input, "limit: out of range",
                   "Ask for " + std::to_string(least) + " to " + std::to_string(most) + " entries per page.");
}

bool comes_first(const ListPosition& left, const ListPosition& right, ListOrder order) {
  return order == ListOrder::newest ? right < left : left < right;
}

// One index, read ahead in chunks.
class Walk {
 public:
  Walk(store::Session& session, ListScan scan) : session_(&session), scan_(std::move(scan)) {}

  // Null: it has come to its end.
  const ListPosition* head() {
    if (next_ == ahead_.size() && !finished_) read_ahead();
    return next_ < ahead_.size() ? &ahead_[next_] : nullptr;
  }
  void advance() { ++next_; }

 private:
  void read_ahead() {
    ahead_ = session_->scan(scan_);
    next_ = 0;
    finished_ = ahead_.size() < scan_.limit;
    if (!ahead_.empty()) scan_.after = ahead_.back();
  }

  store::Session* session_;
  ListScan scan_;
  std::vector<ListPosition> ahead_;
  std::size_t next_{0};
  bool finished_{false};
};

// Several walks as one, in order.
class Merge {
  // The standard heap has its greatest on top; ours is the one that comes first.
  auto later() {
    return [this](Walk& left, Walk& right) { return comes_first(*right.head(), *left.head(), order_); };
  }

 public:
  Merge(std::vector<Walk> walks, ListOrder order) : order_(order) {
    for (auto& walk : walks) {
      if (walk.head()) walks_.push_back(std::move(walk));
    }
    std::ranges::make_heap(walks_, later());
  }

  std::optional<ListPosition> next() {
    if (walks_.empty()) return std::nullopt;
    std::ranges::pop_heap(walks_, later());
    const auto position = *walks_.back().head();
    walks_.back().advance();
    if (walks_.back().head())
      std::ranges::push_heap(walks_, later());
    else
      walks_.pop_back();
    return position;
  }

 private:
  std::vector<Walk> walks_;
  ListOrder order_;
};

// The states that a lane has executions in, and the filter asks for.
std::vector<PublicState> states_to_walk(const std::map<PublicState, std::int64_t>& counts,
                                        const ExecutionFilter& filter) {
  std::vector<PublicState> states;
  for (const auto& [state, count] : counts) {
    const bool wanted =
        filter.states.empty() || std::ranges::find(filter.states, state) != filter.states.end();
    if (wanted && count > 0) states.push_back(state);
  }
  return states;
}

using Ways = std::vector<decltype(ListScan::of)>;

// What the groups and states of a filter are.
struct Choice {
  store::GroupFilter groups;
  std::vector<PublicState> states;  // that there is something in
};

Choice choice_of(store::Session& session, const ExecutionFilter& filter) {
  Choice choice{{filter.lane_id, filter.namespace_, filter.execution_kind}, {}};
  std::map<PublicState, std::int64_t> counts;
  if (filter.lane_id) {
    counts = session.count_lane(*filter.lane_id);
  } else {
    for (const auto& [key, count] : session.lane_counts()) counts[key.public_state] += count;
  }
  choice.states = states_to_walk(counts, filter);
  return choice;
}

// The walks by group and state; absent when they would be too many.
std::optional<Ways> group_ways(store::Session& session, const ExecutionFilter& filter) {
  const auto most = session.loads_instantly() ? kMaxWalks : kMaxRemoteWalks;
  const auto groups = session.groups({filter.lane_id, filter.namespace_, filter.execution_kind}, most + 1);
  if (groups.size() > most) return std::nullopt;
  std::map<std::string, std::vector<PublicState>> lanes;
  Ways ways;
  for (const auto& group : groups) {
    const auto [it, fresh] = lanes.try_emplace(group.lane_id);
    if (fresh) it->second = states_to_walk(session.count_lane(group.lane_id), filter);
    for (const auto state : it->second) ways.emplace_back(ListScan::InGroup{group.group_id, state});
    if (ways.size() > most) return std::nullopt;
  }
  return ways;
}

bool is_everything(const ExecutionFilter& filter) {
  return !filter.flow_id && filter.tags.empty() && !filter.lane_id && !filter.namespace_ &&
         !filter.execution_kind && filter.states.empty();
}

Ways ways_to(store::Session& session, const ExecutionFilter& filter) {
  if (filter.flow_id) return {ListScan::InFlow{*filter.flow_id}};
  if (!filter.tags.empty()) {
    const auto& [key, value] = *filter.tags.begin();
    return {ListScan::Tagged{key, value}};
  }
  if (is_everything(filter)) return {ListScan::Everything{}};
  if (auto ways = group_ways(session, filter)) return *std::move(ways);
  // Every group is looked at for a page; and each that is found is one of those asked for.
  auto [groups, states] = choice_of(session, filter);
  return {ListScan::InGroups{std::move(groups), std::move(states)}};
}

constexpr ExecutionId kFirstId{};
const ExecutionId kLastId = [] {
  ExecutionId id{std::numeric_limits<std::uint16_t>::max(), {}};
  id.uuid.bytes.fill(0xFF);
  return id;
}();

// Where to begin: after the cursor, and not before the time range.
std::optional<ListPosition> start_of(const ListQuery& query) {
  std::optional<ListPosition> start;
  if (query.order == ListOrder::newest && query.filter.created_before) {
    start = ListPosition{*query.filter.created_before, kFirstId};
  }
  if (query.order == ListOrder::oldest && query.filter.created_after) {
    start = ListPosition{*query.filter.created_after, kLastId};
  }
  if (query.after && (!start || comes_first(*start, *query.after, query.order))) start = query.after;
  return start;
}

// The other end of the time range.
bool is_beyond(const ListPosition& position, const ListQuery& query) {
  const auto& [newest_end, oldest_end] = std::pair(query.filter.created_after, query.filter.created_before);
  return query.order == ListOrder::newest ? newest_end && position.created_at_ms <= *newest_end
                                          : oldest_end && position.created_at_ms >= *oldest_end;
}

bool are_many_groups(const Ways& ways) {
  return ways.size() == 1 && std::holds_alternative<ListScan::InGroups>(ways.front());
}

std::vector<Walk> walks_along(store::Session& session, const ListQuery& query, Ways ways) {
  // A look at many groups costs the same for a few executions as for a page.
  const auto share =
      are_many_groups(ways) ? query.limit + 1 : 2 * query.limit / std::max<std::size_t>(ways.size(), 1);
  const auto chunk = std::max<std::size_t>(4, std::min<std::size_t>(share, query.limit + 1));
  std::vector<Walk> walks;
  for (auto& way : ways) {
    walks.emplace_back(session, ListScan{std::move(way), query.order, start_of(query), chunk});
  }
  return walks;
}

// Loads the executions at these positions, and their groups, in two rounds.
std::vector<std::pair<ListedExecution, const Group*>> load(store::Session& session, core::Unit& unit,
                                                           const std::vector<ListPosition>& positions) {
  std::vector<std::pair<ListedExecution, const Group*>> loaded;
  for (auto& execution : session.listed(positions)) {
    unit.want<Group>({execution.group_id});
    loaded.emplace_back(std::move(execution), nullptr);
  }
  session.load(unit);
  for (auto& [execution, group] : loaded) group = &unit.require<Group>({execution.group_id});
  return loaded;
}

ListResult list_along(store::Session& session, core::Unit& unit, const ListQuery& query, Ways ways,
                      std::size_t most_looks) {
  Merge merge(walks_along(session, query, std::move(ways)), query.order);
  ListResult result;
  std::size_t looks = 0;
  while (looks < most_looks) {
    std::vector<ListPosition> candidates;
    const auto wanted = std::min<std::size_t>(query.limit + 1 - result.found.size(), most_looks - looks);
    while (candidates.size() < wanted) {
      const auto position = merge.next();
      if (!position || is_beyond(*position, query)) break;
      candidates.push_back(*position);
    }
    looks += candidates.size();
    for (auto& [execution, group] : load(session, unit, candidates)) {
      if (core::matches(query.filter, execution, *group))
        result.found.emplace_back(std::move(execution), group);
    }
    if (result.found.size() > query.limit) {
      result.found.pop_back();
      const auto& last = result.found.back().first;
      result.next = ListPosition{last.created_at_ms, last.key()};
      return result;
    }
    result.next.reset();
    if (candidates.size() < wanted) return result;
    result.next = candidates.back();
  }
  return result;
}

// What is not rare is found by age before all groups have been looked at. (Not where the store has no index
// by age, but walks through the groups for that, too: across a network.)
ListResult list_many_groups(store::Session& session, core::Unit& unit, const ListQuery& query, Ways ways) {
  if (!session.loads_instantly()) return list_along(session, unit, query, std::move(ways), kMaxLooks);
  const auto few = std::min<std::size_t>(4 * (query.limit + std::size_t{1}), kMaxLooks);
  auto result = list_along(session, unit, query, {ListScan::Everything{}}, few);
  if (!result.next || result.found.size() == query.limit) return result;
  auto rest = query;
  rest.after = result.next;
  rest.limit -= static_cast<std::uint32_t>(result.found.size());
  auto others = list_along(session, unit, rest, std::move(ways), kMaxLooks);
  std::ranges::move(others.found, std::back_inserter(result.found));
  result.next = others.next;
  return result;
}

}  // namespace

ListResult list(store::Session& session, core::Unit& unit, const ListQuery& query) {
  auto ways = ways_to(session, query.filter);
  if (are_many_groups(ways)) return list_many_groups(session, unit, query, std::move(ways));
  return list_along(session, unit, query, std::move(ways), kMaxLooks);
}

namespace {

// Refuses a limit that is none, and a filter or a cursor that cannot be; puts the cursor's place into the
// query.
Result<void> check_page(ListQuery& query, const std::string& cursor) {
  if (auto ok = check_limit(query.limit, 1, kMaxPage); !ok) return ok;
  if (auto ok = core::check_filter(query.filter); !ok) return ok;
  if (cursor.empty()) return {};
  const auto position = core::position_of(cursor, query.order);
  if (!position) return std::unexpected(position.error());
  query.after = *position;
  return {};
}

}  // namespace

Result<ExecutionPage> answer(Readers& readers, const ListExecutions& request) {
  ListQuery query{request.filter, request.order, std::nullopt, request.limit};
  if (auto ok = check_page(query, request.cursor); !ok) return std::unexpected(ok.error());
  return readers.read([&](Reading& reading) -> Result<ExecutionPage> {
    const auto listed = list(reading.session, reading.unit, query);
    ExecutionPage page;
    for (const auto& [execution, group] : listed.found) {
      page.executions.push_back(core::summary(execution, *group));
    }
    if (listed.next) page.next_cursor = core::cursor_of(*listed.next, request.order);
    return page;
  });
}

Result<PartitionPage> answer(Readers& readers, const ListPartition& request) {
  if (auto ok = check_limit(request.limit, 0, kMaxPage); !ok) return std::unexpected(ok.error());
  if (request.partition >= readers.partitions().flow) return PartitionPage{};
  std::optional<ExecutionId> after;
  if (!request.cursor.empty()) {
    after = ExecutionId::parse(request.cursor);
    if (!after || after->partition != request.partition) return core::bad_cursor(request.cursor);
  } else if (request.partition > 0) {
    after = ExecutionId{static_cast<std::uint16_t>(request.partition - 1), kLastId.uuid};
  }
  if (request.limit == 0) return PartitionPage{};
  return readers.read([&](Reading& reading) -> Result<PartitionPage> {
    PartitionPage page;
    page.executions = reading.session.keys_after<Execution>(after, request.limit + 1);
    std::erase_if(page.executions, [&](const auto& id) { return id.partition != request.partition; });
    if (page.executions.size() <= request.limit) return page;
    page.executions.pop_back();
    page.next_cursor = page.executions.back().to_string();
    return page;
  });
}

Result<ExpiredLeasePage> answer(Readers& readers, const ListExpiredLeases& request) {
  if (auto ok = check_limit(request.limit, 1, kMaxLongPage); !ok) return std::unexpected(ok.error());
  if (request.namespace_) {
    if (auto ok = check_namespace(*request.namespace_); !ok) return std::unexpected(ok.error());
  }
  std::optional<ListPosition> after;
  if (!request.cursor.empty()) {
    const auto position = core::position_of(request.cursor, ListOrder::oldest);
    if (!position) return std::unexpected(position.error());
    after = *position;
  }
  return readers.read([&](Reading& reading) -> Result<ExpiredLeasePage> {
    const auto as_of = std::min(request.as_of.value_or(reading.now_ms), reading.now_ms);
    const auto ids = reading.session.expired_leases(
        {reading.now_ms, as_of, request.namespace_, after, request.limit + std::size_t{1}});
    for (const auto& id : ids) reading.unit.want<Execution>(id);
    ExpiredLeasePage page;
    for (const auto& id : ids) {
      const auto& execution = reading.require<Execution>(id);
      if (page.leases.size() == request.limit) {
        const auto& last = page.leases.back();
        page.next_cursor = core::cursor_of({last.expires_at, last.execution_id}, ListOrder::oldest);
        break;
      }
      page.leases.push_back({.execution_id = id,
                             .lease_id = execution.lease.lease_id.value_or(LeaseId{}),
                             .lease_epoch = execution.lease_epoch,
                             .worker_instance_id = execution.lease.worker_instance_id,
                             .expires_at = execution.lease.lease_expires_at_ms.value_or(0),
                             .attempt_index = execution.attempt.attempt_index});
    }
    return page;
  });
}

Result<LanePage> answer(Readers& readers, const ListLanes& request) {
  if (auto ok = check_limit(request.limit, 0, kMaxPage); !ok) return std::unexpected(ok.error());
  if (!request.cursor.empty() && !check_lane(request.cursor)) return core::bad_cursor(request.cursor);
  if (request.limit == 0) return LanePage{};
  return readers.read([&](Reading& reading) -> Result<LanePage> {
    std::optional<LaneKey> after;
    if (!request.cursor.empty()) after = LaneKey{request.cursor};
    auto keys = reading.session.keys_after<Lane>(after, request.limit + std::size_t{1});
    const bool more = keys.size() > request.limit;
    if (more) keys.pop_back();
    LanePage page;
    for (const auto& key : keys) {
      const auto& lane = reading.require<Lane>(key);
      const ListQuery oldest{
          .filter = {.lane_id = lane.lane_id, .states = {PublicState::waiting}},
          .order = ListOrder::oldest,
          .after = std::nullopt,
          .limit = 1,
      };
      const auto waiting = list(reading.session, reading.unit, oldest).found;
      page.lanes.push_back({.lane_id = lane.lane_id,
                            .state = lane.state,
                            .counts = reading.session.count_lane(lane.lane_id),
                            .oldest_waiting_at = waiting.empty()
                                                     ? std::nullopt
                                                     : std::optional(waiting[0].first.created_at_ms),
                            .registered_at = lane.registered_at_ms,
                            .registered_by = lane.registered_by,
                            .fair_by = lane.fair_by,
                            .max_concurrent_per_key = lane.max_concurrent_per_key});
    }
    if (more) page.next_cursor = keys.back().lane_id;
    return page;
  });
}

namespace {

// "<length of the namespace>:<namespace><instance>"
std::string worker_cursor(const WorkerKey& key) {
  return std::to_string(key.namespace_.size()) + ":" + key.namespace_ + key.worker_instance_id;
}

std::optional<WorkerKey> parse_worker_cursor(const std::string& cursor) {
  const auto colon = cursor.find(':');
  if (colon == cursor.npos || colon == 0 || colon > 3) return std::nullopt;
  std::size_t length = 0;
  for (const char digit : cursor.substr(0, colon)) {
    if (digit < '0' || digit > '9') return std::nullopt;
    length = length * 10 + static_cast<std::size_t>(digit - '0');
  }
  const auto rest = cursor.substr(colon + 1);
  if (rest.size() <= length) return std::nullopt;
  return WorkerKey{rest.substr(0, length), rest.substr(length)};
}

WorkerPage living_workers(Reading& reading, const ListWorkers& request, std::optional<WorkerKey> after) {
  const core::Context at{.now_ms = reading.now_ms};
  WorkerPage page;
  for (;;) {
    const auto keys = reading.session.keys_after<Worker>(after, request.limit + std::size_t{1});
    for (const auto& key : keys) reading.unit.want<Worker>(key);
    for (const auto& key : keys) {
      if (request.namespace_ && key.namespace_ != *request.namespace_) return page;
      const auto& worker = reading.require<Worker>(key);
      if (!core::is_alive(worker, at)) continue;
      if (page.workers.size() == request.limit) {
        const auto& last = page.workers.back();
        page.next_cursor = worker_cursor({last.namespace_, last.worker_instance_id});
        return page;
      }
      page.workers.push_back(core::view(worker));
    }
    if (keys.size() <= request.limit) return page;
    after = keys.back();
  }
}

void count_leases(Reading& reading, std::vector<WorkerView>& workers) {
  std::vector<std::string> instances;
  for (const auto& worker : workers) instances.push_back(worker.worker_instance_id);
  std::ranges::sort(instances);
  const auto repeated = std::ranges::unique(instances);
  instances.erase(repeated.begin(), repeated.end());
  std::map<std::string, std::vector<store::LeaseCount>> held;
  for (auto& count : reading.session.count_leases(instances, reading.now_ms)) {
    reading.unit.want<Worker>({count.namespace_, count.worker_instance_id});
    held[count.worker_instance_id].push_back(std::move(count));
  }
  reading.session.load(reading.unit);
  for (auto& worker : workers) {
    const WorkerKey key{worker.namespace_, worker.worker_instance_id};
    for (const auto& count : held[worker.worker_instance_id]) {
      if (core::works_for(reading.unit, key, count.namespace_)) worker.leases += count.leases;
    }
  }
}

}  // namespace

Result<WorkerPage> answer(Readers& readers, const ListWorkers& request) {
  if (auto ok = check_limit(request.limit, 1, kMaxLongPage); !ok) return std::unexpected(ok.error());
  if (request.namespace_) {
    if (auto ok = check_namespace(*request.namespace_); !ok) return std::unexpected(ok.error());
  }
  std::optional<WorkerKey> after;
  if (request.namespace_) after = WorkerKey{*request.namespace_, ""};
  if (!request.cursor.empty()) {
    after = parse_worker_cursor(request.cursor);
    const bool elsewhere = after && request.namespace_ && after->namespace_ != *request.namespace_;
    if (!after || elsewhere) return core::bad_cursor(request.cursor);
  }
  return readers.read([&](Reading& reading) -> Result<WorkerPage> {
    auto page = living_workers(reading, request, after);
    if (!page.workers.empty()) count_leases(reading, page.workers);
    return page;
  });
}

}  // namespace flowfabric::engine
