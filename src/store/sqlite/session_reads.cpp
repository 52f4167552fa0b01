// The questions that a session answers from its indexes.
#include <algorithm>
#include <limits>

#include "core/index_rules.h"
#include "store/first_positions.h"
#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

namespace {

constexpr const char* kPosition = "created_at_ms,partition_key,execution_id";

struct ListSql {
  std::string from;  // with the conditions that choose the index
  int parameters;    // of those conditions
};

ListSql list_sql(const ListScan::Everything&) {
  return {"ff_exec_core where true", 0};
}
ListSql list_sql(const ListScan::InGroup&) {
  return {"ff_exec_core where group_id=?1 and public_state=?2", 2};
}
// Walked group by group, and state by state.
ListSql list_sql(const ListScan::InGroups&) {
  return list_sql(ListScan::InGroup{});
}
ListSql list_sql(const ListScan::InFlow&) {
  return {"ff_exec_core where flow_id=?1", 1};
}
ListSql list_sql(const ListScan::Flows&) {
  return {"(select created_at_ms,partition_key,flow_id as execution_id from ff_flow_core) where true", 0};
}
ListSql list_sql(const ListScan::Tagged&) {
  return {"ff_exec_tag where tag_key=?1 and tag_value=?2", 2};
}

void bind_list(sqlite3_stmt*, const ListScan::Everything&) {}
void bind_list(sqlite3_stmt*, const ListScan::Flows&) {}
void bind_list(sqlite3_stmt*, const ListScan::InGroups&) {}
void bind_list(sqlite3_stmt* statement, const ListScan::InGroup& group) {
  bind(statement, 1, group.group_id);
  bind(statement, 2, group.state);
}
void bind_list(sqlite3_stmt* statement, const ListScan::InFlow& flow) {
  bind(statement, 1, flow.flow_id);
}
void bind_list(sqlite3_stmt* statement, const ListScan::Tagged& tag) {
  bind(statement, 1, tag.key);
  bind(statement, 2, tag.value);
}

std::string parameter(int number) {
  return "?" + std::to_string(number);
}

std::string order_by(ListOrder order) {
  const std::string direction = order == ListOrder::newest ? " desc" : "";
  return " order by created_at_ms" + direction + ",partition_key" + direction + ",execution_id" + direction;
}

std::string list_statement(const ListScan& scan) {
  const auto [from, parameters] = std::visit([](const auto& of) { return list_sql(of); }, scan.of);
  std::string sql = std::string("select ") + kPosition + " from " + from;
  if (scan.after) {
    sql += std::string(" and (") + kPosition + ")" + (scan.order == ListOrder::newest ? "<" : ">") + "(" +
           parameter(parameters + 2) + "," + parameter(parameters + 3) + "," + parameter(parameters + 4) +
           ")";
  }
  return sql + order_by(scan.order) + " limit " + parameter(parameters + 1);
}

std::string mark(const FieldType&, int number) {
  return parameter(number);
}

}  // namespace

std::vector<ListedExecution> SqliteSession::listed(const std::vector<core::ListPosition>& positions) {
  static const std::string sql = "select " + column_list<ListedExecution>() + " from ff_exec_core where " +
                                 equal_to_parameters(record_type<Execution>().key_names());
  auto& query = statement(sql);
  std::vector<ListedExecution> found;
  for (const auto& position : positions) {
    const ResetAfterUse reset(query);
    bind_all(query.get(), 1, position.execution_id);
    if (query.step()) found.push_back(read_all<ListedExecution>(query.get()));
  }
  return found;
}

std::vector<Attempt> SqliteSession::attempts_of(const ExecutionId& id) {
  static const std::string sql =
      "select " + column_list<Attempt>() +
      " from ff_attempt where partition_key=?1 and execution_id=?2 order by attempt_index";
  auto& query = statement(sql);
  bind_all(query.get(), 1, id);
  return rows<Attempt>(query);
}

std::map<PublicState, std::int64_t> SqliteSession::count_lane(const std::string& lane) {
  auto& query =
      statement("select public_state,executions from ff_lane_count where lane_id=?1 and executions<>0");
  const ResetAfterUse reset(query);
  bind(query.get(), 1, lane);
  std::map<PublicState, std::int64_t> counts;
  while (query.step()) {
    PublicState state{};
    read(query.get(), 0, state);
    read(query.get(), 1, counts[state]);
  }
  return counts;
}

std::map<LaneCountKey, std::int64_t> SqliteSession::counts(const std::string& sql) {
  auto& query = statement(sql);
  const ResetAfterUse reset(query);
  std::map<LaneCountKey, std::int64_t> counts;
  while (query.step()) {
    LaneCountKey key;
    read(query.get(), 0, key.lane_id);
    read(query.get(), 1, key.public_state);
    read(query.get(), 2, counts[key]);
  }
  return counts;
}

std::map<LaneCountKey, std::int64_t> SqliteSession::count_executions() {
  return counts("select lane_id,public_state,count(*) from ff_exec_core group by lane_id,public_state");
}

std::map<LaneCountKey, std::int64_t> SqliteSession::lane_counts() {
  return counts("select lane_id,public_state,executions from ff_lane_count");
}

// A statement for each would be prepared and read anew: of most groups, only the first row is looked at.
std::vector<core::ListPosition> SqliteSession::scan_groups(const ListScan::InGroups& of,
                                                           const ListScan& scan) {
  FirstPositions first(scan.order, scan.limit);
  const ListScan each{ListScan::InGroup{}, scan.order, scan.after, scan.limit};
  auto& query = statement(list_statement(each));
  auto& groups = groups_statement("group_id", of.groups, std::numeric_limits<std::int64_t>::max());
  for (const auto& [group_id] : rows<GroupKey>(groups)) {
    for (const auto state : of.states) {
      const ResetAfterUse reset(query);
      bind_list(query.get(), ListScan::InGroup{group_id, state});
      bind(query.get(), 3, scan.limit);
      if (scan.after) bind_all(query.get(), 4, *scan.after);
      while (query.step() && first.take(read_all<core::ListPosition>(query.get()))) {
      }
    }
  }
  return first.all();
}

std::vector<core::ListPosition> SqliteSession::scan(const ListScan& scan) {
  if (const auto* groups = std::get_if<ListScan::InGroups>(&scan.of)) return scan_groups(*groups, scan);
  auto& query = statement(list_statement(scan));
  const int parameters = std::visit([](const auto& of) { return list_sql(of).parameters; }, scan.of);
  std::visit([&](const auto& of) { bind_list(query.get(), of); }, scan.of);
  bind(query.get(), parameters + 1, scan.limit);
  if (scan.after) bind_all(query.get(), parameters + 2, *scan.after);
  return rows<core::ListPosition>(query);
}

// The filter must outlive its use.
Statement& SqliteSession::groups_statement(const std::string& columns, const GroupFilter& filter,
                                           std::size_t limit) {
  std::string sql = "select " + columns + " from ff_exec_group where true";
  if (filter.lane_id) sql += " and lane_id=?2";
  // An empty text is stored as null.
  if (filter.namespace_) sql += " and coalesce(namespace,'')=?3";
  if (filter.execution_kind) sql += " and coalesce(execution_kind,'')=?4";
  auto& query = statement(sql + " order by group_id limit ?1");
  bind(query.get(), 1, limit);
  if (filter.lane_id) bind(query.get(), 2, filter.lane_id);
  if (filter.namespace_) bind(query.get(), 3, filter.namespace_);
  if (filter.execution_kind) bind(query.get(), 4, filter.execution_kind);
  return query;
}

std::vector<Group> SqliteSession::groups(const GroupFilter& filter, std::size_t limit) {
  return rows<Group>(groups_statement(column_list<Group>(), filter, limit));
}

std::vector<ExecutionId> SqliteSession::expired_leases(const ExpiredLeaseScan& scan) {
  // Those that were found expired have an index of their own; those that were not yet are due.
  std::string conditions = " and lease_expires_at_ms<=?1";
  if (scan.namespace_) conditions += " and coalesce(namespace,'')=?2";
  if (scan.after) conditions += " and (lease_expires_at_ms,partition_key,execution_id)>(?4,?5,?6)";
  const std::string columns =
      "select lease_expires_at_ms,partition_key,execution_id from ff_exec_core where ";
  const std::string order = " order by lease_expires_at_ms,partition_key,execution_id limit ?3";
  auto& query =
      statement("select partition_key,execution_id from (select * from (" + columns +
                "ownership_state='lease_expired_reclaimable'" + conditions + order + ") union all " +
                columns + "next_due_at_ms<=?7 and ownership_state='leased'" + conditions + ")" + order);
  bind(query.get(), 1, scan.as_of_ms);
  if (scan.namespace_) bind(query.get(), 2, *scan.namespace_);
  bind(query.get(), 3, scan.limit);
  if (scan.after) bind_all(query.get(), 4, *scan.after);
  bind(query.get(), 7, scan.now_ms);
  return rows<ExecutionId>(query);
}

std::optional<std::int64_t> SqliteSession::oldest_event() {
  std::optional<std::int64_t> oldest;
  for (const auto& type : event_types()) {
    const std::string table = type.table;
    auto& query =
        statement("select occurred_at_ms from " + table + " where event_id=(select min(event_id) from " +
                  table + ") and event_id<(select max(event_id) from " + table + ")");
    const ResetAfterUse reset(query);
    if (!query.step()) continue;
    std::int64_t at = 0;
    read(query.get(), 0, at);
    oldest = std::min(oldest.value_or(at), at);
  }
  return oldest;
}

void SqliteSession::fill(KeyPage& page) {
  auto& query = statement(keys_statement(page.type, page.after.has_value(), mark));
  bind(query.get(), 1, page.limit);
  if (page.after) bind_key(query.get(), 2, *page.after);
  const ResetAfterUse reset(query);
  while (query.step()) {
    auto& key = page.found.emplace_back(*page.type.key);
    read_fields(query.get(), page.type.key->columns, key.get());
  }
}

void SqliteSession::fill(EventPage& page) {
  auto& query = statement("select " + store::listed(page.type.names) + " from " + page.type.table +
                          " where event_id>?1 order by event_id limit ?2");
  bind(query.get(), 1, page.after);
  bind(query.get(), 2, page.limit);
  const ResetAfterUse reset(query);
  while (query.step()) {
    try {
      auto event = page.type.make();
      read_fields(query.get(), page.type.columns, event.get());
      page.found.push_back(std::move(event));
    } catch (const StoreFailure&) {
      page.damaged = sqlite3_column_int64(query.get(), 0);
      return;
    }
  }
}

std::vector<WorkerKey> SqliteSession::answer(const core::WorkersOf& question) {
  auto& query = statement("select namespace,worker_instance_id from ff_worker_registry where namespace=?1");
  bind(query.get(), 1, question.namespace_);
  return rows<WorkerKey>(query);
}

std::vector<ExecutionId> SqliteSession::answer(const core::LeasesOf& question) {
  static const std::string from = "select partition_key,execution_id from ff_exec_core where " + held_by();
  std::string sql = from + "?1";
  if (question.namespace_) sql += " and coalesce(namespace,'')=?3";
  if (question.after) sql += " and (partition_key,execution_id)>(?4,?5)";
  auto& query = statement(sql + " order by partition_key,execution_id limit ?2");
  bind(query.get(), 1, question.worker_instance_id);
  bind(query.get(), 2, question.limit);
  if (question.namespace_) bind(query.get(), 3, *question.namespace_);
  if (question.after) bind_all(query.get(), 4, *question.after);
  return rows<ExecutionId>(query);
}

std::vector<LeaseCount> SqliteSession::count_leases(const std::vector<std::string>& instances,
                                                    std::int64_t now_ms) {
  static const std::string sql =
      "select namespace from ff_exec_core where " + held_by() + "?1 and lease_expires_at_ms>?2";
  std::vector<LeaseCount> counts;
  for (const auto& instance : instances) {
    auto& query = statement(sql);
    bind(query.get(), 1, instance);
    bind(query.get(), 2, now_ms);
    const ResetAfterUse reset(query);
    std::map<std::string, std::uint64_t> held;
    while (query.step()) {
      std::string name_space;
      read(query.get(), 0, name_space);
      ++held[name_space];
    }
    for (const auto& [name_space, leases] : held) counts.push_back({instance, name_space, leases});
  }
  return counts;
}

std::vector<GroupKey> SqliteSession::answer(const core::GroupsOf& question) {
  auto& query = statement(
      "select group_id from ff_exec_group where route_id=?1 union all select group_id from ff_exec_group "
      "where route_id is null and +lane_id=?2 and coalesce(namespace,'')=?3 limit ?4");
  bind(query.get(), 1, question.route_id);
  bind(query.get(), 2, question.lane_id);
  bind(query.get(), 3, question.namespace_);
  bind(query.get(), 4, question.limit);
  return rows<GroupKey>(query);
}

std::vector<ExecutionId> SqliteSession::answer(const core::ExecutionsIn& question) {
  auto& query = statement("select partition_key,execution_id from ff_exec_core where group_id=?1 limit 1");
  bind(query.get(), 1, question.group_id);
  return rows<ExecutionId>(query);
}

std::vector<ExecutionId> SqliteSession::answer(const core::BlockedOnRoute& question) {
  auto& query = statement(
      "select partition_key,execution_id from ff_exec_core "
      "where eligibility_state='blocked_by_route' and route_id=?1 "
      "order by created_at_ms,partition_key,execution_id limit ?2");
  bind(query.get(), 1, question.route_id);
  bind(query.get(), 2, question.limit);
  return rows<ExecutionId>(query);
}

}  // namespace flowfabric::store::sqlite
