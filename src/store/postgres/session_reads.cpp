// The questions that a session answers from its indexes.
#include <thread>

#include "core/index_rules.h"
#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

namespace {

constexpr const char* kPosition = "created_at_ms,partition_key,execution_id";
// To look into a group costs as much as to read a few rows.
constexpr int kExecutionsPerLook = 2;
// How long a reader of events waits for transactions that are still open, so that callers find their own.
constexpr std::chrono::milliseconds kSettling{100};
constexpr std::chrono::milliseconds kSettlingStep{2};

struct ListSql {
  std::string from;   // with the conditions that choose the index
  std::string first;  // the columns before the position in that index
  int parameters;     // of the conditions
};

ListSql list_sql(const ListScan::InGroups&) {
  return {"ff_exec_core where group_id=g.group_id and public_state=g.state", "group_id,public_state,", 4};
}
// The same rows, all of them.
ListSql unordered_list_sql(const ListScan::InGroups& of) {
  const auto [lane, name_space, kind] = of.groups;
  std::string from = "ff_exec_core where public_state=any($1::text[])";
  from += lane ? " and lane_id=$2::text" : " and $2::text is null";
  from += name_space ? " and coalesce(namespace,'')=$3::text" : " and $3::text is null";
  from += kind ? " and group_id in (select group_id from ff_exec_group where "
                 "coalesce(execution_kind,'')=$4::text)"
               : " and $4::text is null";
  return {from, "", 4};
}
ListSql list_sql(const ListScan::InGroup&) {
  return {"ff_exec_core where group_id=$1::int8 and public_state=$2::text", "group_id,public_state,", 2};
}
ListSql list_sql(const ListScan::InFlow&) {
  return {"ff_flow_member where flow_id=$1::uuid", "flow_id,", 1};
}
ListSql list_sql(const ListScan::Flows&) {
  return {"(select created_at_ms,partition_key,flow_id as execution_id from ff_flow_core) as f where true",
          "", 0};
}
ListSql list_sql(const ListScan::Tagged&) {
  return {"ff_exec_tag where tag_key=$1::text and tag_value=$2::text", "tag_key,tag_value,", 2};
}

void add_list(Parameters& parameters, const ListScan::InGroups& of) {
  parameters.add_array<std::string>(
      of.states, [](std::string& bytes, PublicState state) { append_bytes(bytes, enum_name(state)); });
  parameters.add(of.groups.lane_id).add(of.groups.namespace_).add(of.groups.execution_kind);
}
void add_list(Parameters& parameters, const ListScan::InGroup& group) {
  parameters.add(group.group_id).add(group.state);
}
void add_list(Parameters& parameters, const ListScan::InFlow& flow) {
  parameters.add(flow.flow_id);
}
void add_list(Parameters&, const ListScan::Flows&) {}
void add_list(Parameters& parameters, const ListScan::Tagged& tag) {
  parameters.add(tag.key).add(tag.value);
}

std::string parameter(int number) {
  return "$" + std::to_string(number);
}

// "a desc,b desc"
std::string ordered(std::string columns, bool descending) {
  if (!descending) return columns;
  for (std::size_t at = 0; (at = columns.find(',', at)) != columns.npos; at += 6) columns.insert(at, " desc");
  return columns + " desc";
}

// Whether a group is one that three parameters from `first` on describe. An empty text is stored as null.
std::string group_matches(int first) {
  const auto is_any = [](int number) { return "(" + parameter(number) + "::text is null or "; };
  return is_any(first) + "lane_id=" + parameter(first) + "::text) and " + is_any(first + 1) +
         "coalesce(namespace,'')=" + parameter(first + 1) + "::text) and " + is_any(first + 2) +
         "coalesce(execution_kind,'')=" + parameter(first + 2) + "::text)";
}

// Whether there are so few executions that it is quicker to read all of them than to look into every group.
std::string are_few_statement() {
  return "select (select coalesce(sum(executions),0) from ff_lane_count)<=" +
         std::to_string(kExecutionsPerLook) + "*cardinality($1::text[])*count(*) from ff_exec_group where " +
         group_matches(2);
}

std::string list_statement(const ListSql& list, const ListScan& scan, bool side_by_side) {
  const auto& [from, first, count] = list;
  const bool newest = scan.order == ListOrder::newest;
  std::string sql = std::string("select ") + kPosition + " from " + from;
  if (scan.after) {
    sql += std::string(" and (") + kPosition + ")" + (newest ? "<" : ">") + "(" + parameter(count + 2) +
           "::int8," + parameter(count + 3) + "::int4," + parameter(count + 4) + "::uuid)";
  }
  sql += " order by " + ordered(first + kPosition, newest);
  const std::string limit = " limit " + parameter(count + 1) + "::int8";
  if (!side_by_side) return sql + limit;
  // The first rows of all are in the groups and states whose own first rows come first. Of the others, one
  // row is looked at.
  const auto by_age = " order by " + ordered(kPosition, newest) + limit;
  const auto heads =
      "select g.* from (select group_id,s.state from ff_exec_group cross join unnest($1::text[]) as s(state) "
      "where " +
      group_matches(2) + ") as g cross join lateral (" + sql + " limit 1) as head" + by_age;
  return std::string("select ") + kPosition + " from (" + heads + ") as g cross join lateral (" + sql +
         limit + ") as walk" + by_age;
}

std::string mark(const FieldType& type, int number) {
  return parameter(number) + "::" + column_type(type.kind).name;
}

}  // namespace

std::vector<ListedExecution> PostgresSession::listed(const std::vector<core::ListPosition>& positions) {
  if (positions.empty()) return {};
  static const std::string sql =
      "select " + columns_of<ListedExecution>("t") +
      " from unnest($1::int4[],$2::uuid[]) with ordinality as k(partition_key,execution_id,place) "
      "join ff_exec_core t on " +
      same_key<Execution>("t", "k") + " order by k.place";
  std::vector<ExecutionId> ids;
  for (const auto& position : positions) ids.push_back(position.execution_id);
  return rows<ListedExecution>(sql, key_parameters(ids));
}

std::vector<Attempt> PostgresSession::attempts_of(const ExecutionId& id) {
  static const std::string sql = "select " + column_list<Attempt>() +
                                 " from ff_attempt where partition_key=$1::int4 and execution_id=$2::uuid "
                                 "order by partition_key,execution_id,attempt_index";
  return rows<Attempt>(sql, Parameters().add_fields(id));
}

std::map<LaneCountKey, std::int64_t> PostgresSession::counts(const std::string& sql) {
  std::map<LaneCountKey, std::int64_t> counts;
  connection_->run(sql, {}, [&](const Rows& rows) {
    for (int row = 0; row < rows.size(); ++row) {
      rows.read(row, 2, counts[rows.get_struct<LaneCountKey>(row)]);
    }
  });
  return counts;
}

std::map<PublicState, std::int64_t> PostgresSession::count_lane(const std::string& lane) {
  std::map<PublicState, std::int64_t> counts;
  connection_->run(
      "select public_state,sum(executions)::int8 from ff_lane_count where lane_id=$1::text "
      "group by public_state having sum(executions)<>0",
      Parameters().add(lane), [&](const Rows& rows) {
        for (int row = 0; row < rows.size(); ++row) {
          rows.read(row, 1, counts[rows.get<PublicState>(row, 0)]);
        }
      });
  return counts;
}

std::map<LaneCountKey, std::int64_t> PostgresSession::count_executions() {
  return counts("select lane_id,public_state,count(*) from ff_exec_core group by lane_id,public_state");
}

std::map<LaneCountKey, std::int64_t> PostgresSession::lane_counts() {
  return counts(
      "select lane_id,public_state,sum(executions)::int8 from ff_lane_count group by lane_id,public_state");
}

// Every index on a hot row is paid for with every change of it, so there is none for everything by age: the
// groups and the states that there are, which have one, are walked side by side.
ListScan::InGroups PostgresSession::all_groups() {
  std::map<PublicState, std::int64_t> counts;
  for (const auto& [key, count] : lane_counts()) counts[key.public_state] += count;
  ListScan::InGroups all;
  for (const auto& [state, count] : counts) {
    if (count > 0) all.states.push_back(state);
  }
  return all;
}

std::vector<core::ListPosition> PostgresSession::scan(const ListScan& scan) {
  return std::visit(
      [&]<class Of>(const Of& of) {
        if constexpr (std::is_same_v<Of, ListScan::Everything>) {
          return this->scan({all_groups(), scan.order, scan.after, scan.limit});
        } else {
          constexpr bool in_groups = std::is_same_v<Of, ListScan::InGroups>;
          Parameters parameters;
          add_list(parameters, of);
          bool are_few = false;
          auto list = list_sql(of);
          if constexpr (in_groups) {
            static const std::string sql = are_few_statement();
            connection_->run(sql, parameters, [&](const Rows& found) { found.read(0, 0, are_few); });
            if (are_few) list = unordered_list_sql(of);
          }
          parameters.add(as_limit(scan.limit));
          if (scan.after) parameters.add_fields(*scan.after);
          return rows<core::ListPosition>(list_statement(list, scan, in_groups && !are_few), parameters);
        }
      },
      scan.of);
}

std::vector<Group> PostgresSession::groups(const GroupFilter& filter, std::size_t limit) {
  static const std::string sql = "select " + column_list<Group>() + " from ff_exec_group where " +
                                 group_matches(2) + " order by group_id limit $1::int8";
  return rows<Group>(sql, Parameters()
                              .add(as_limit(limit))
                              .add(filter.lane_id)
                              .add(filter.namespace_)
                              .add(filter.execution_kind));
}

std::vector<LeaseCount> PostgresSession::count_leases(const std::vector<std::string>& instances,
                                                      std::int64_t now_ms) {
  static const std::string sql =
      "select worker_instance_id,namespace,count(*) from ff_exec_core where " + held_by() +
      "any($1::text[]) and lease_expires_at_ms>$2::int8 group by worker_instance_id,namespace";
  Parameters parameters;
  parameters
      .add_array<std::string>(instances,
                              [](std::string& bytes, const std::string& name) { append_bytes(bytes, name); })
      .add(now_ms);
  return rows<LeaseCount>(sql, parameters);
}

void PostgresSession::post_answer(core::Unit& unit, const core::LeasesOf& question) {
  static const std::string sql =
      "select partition_key,execution_id from ff_exec_core where " + held_by() +
      "$1::text and ($3::text is null or coalesce(namespace,'')=$3::text) and "
      "(partition_key,execution_id)>($4::int4,$5::uuid) order by partition_key,execution_id limit $2::int8";
  const auto after = question.after;
  connection_->post(
      sql,
      Parameters()
          .add(question.worker_instance_id)
          .add(static_cast<std::int64_t>(question.limit))
          .add(question.namespace_)
          .add(after ? static_cast<std::int32_t>(after->partition) : -1)
          .add(after ? after->uuid : Uuid{}),
      [&unit, question](const Rows& found) { unit.put_answer(question, found.all<ExecutionId>()); });
}

std::vector<ExecutionId> PostgresSession::expired_leases(const ExpiredLeaseScan& scan) {
  // Those that were found expired have an index of their own; those that were not yet are due.
  const std::string conditions =
      " and lease_expires_at_ms<=$1::int8 and ($2::text is null or coalesce(namespace,'')=$2::text)"
      " and ($4::int8 is null or "
      "(lease_expires_at_ms,partition_key,execution_id)>($4::int8,$5::int4,$6::uuid))";
  const std::string columns =
      "select lease_expires_at_ms,partition_key,execution_id from ff_exec_core where ";
  static const std::string sql = "select partition_key,execution_id from (" + columns +
                                 "ownership_state='lease_expired_reclaimable'" + conditions + " union all " +
                                 columns + "next_due_at_ms<=$7::int8 and ownership_state='leased'" +
                                 conditions +
                                 ") as expired order by lease_expires_at_ms,partition_key,execution_id "
                                 "limit $3::int8";
  Parameters parameters;
  parameters.add(scan.as_of_ms).add(scan.namespace_).add(as_limit(scan.limit));
  if (scan.after) {
    parameters.add_fields(*scan.after);
  } else {
    parameters.add(std::optional<std::int64_t>())
        .add(std::optional<std::int32_t>())
        .add(std::optional<Uuid>());
  }
  parameters.add(scan.now_ms);
  return rows<ExecutionId>(sql, parameters);
}

void PostgresSession::fill(KeyPage& page) {
  Parameters parameters;
  parameters.add(as_limit(page.limit));
  const auto& columns = page.type.key->columns;
  if (page.after) parameters.add_fields(columns, page.after->get());
  connection_->run(keys_statement(page.type, page.after.has_value(), mark), parameters,
                   [&](const Rows& found) {
                     for (int row = 0; row < found.size(); ++row) {
                       found.read_fields(row, 0, columns, page.found.emplace_back(*page.type.key).get());
                     }
                   });
}

// Writers draw event ids when all their locks are taken, and before that lock the last id drawn so far, in
// shared mode, until they have ended. So every id up to the smallest one locked is settled: it is there to be
// seen, or never will be. The sequence is read before the locks: whoever locks later draws later. Events
// are read with a snapshot that is younger than both.
constexpr const char* kSettled =
    "least(s.id,(select min(s.id-((s.id-l.objid::bigint)&4294967295)) from pg_locks l "
    "where l.locktype='advisory' and l.classid='ff_event_id_seq'::regclass and l.objsubid=1 and l.granted "
    "and l.database=(select oid from pg_database where datname=current_database())))";
constexpr const char* kDrawn =
    " from (select last_value-(not is_called)::int as id from ff_event_id_seq) as s";

std::int64_t PostgresSession::settled_event() {
  static const std::string sql = std::string("select ") + kSettled + kDrawn;
  std::int64_t settled = 0;
  connection_->run(sql, {}, [&](const Rows& rows) { rows.read(0, 0, settled); });
  return settled;
}

EventRange PostgresSession::event_range(EventFamily family) {
  static const std::string sql =
      "select coalesce((select trimmed_up_to from ff_event_horizon where family=$1::text),0)," +
      std::string(kSettled) + ",s.id" + kDrawn;
  EventRange range;
  connection_->run(sql, Parameters().add(std::string(enum_name(family))), [&](const Rows& rows) {
    rows.read(0, 0, range.trimmed_up_to);
    rows.read(0, 1, range.end);
    rows.read(0, 2, range.last);
  });
  return range;
}

// Reads what no open transaction can still add to, and says whether that is all there is to see now.
bool PostgresSession::read_settled(EventPage& page) {
  const std::string events_sql = "select " + store::listed(page.type.names) + " from " + page.type.table +
                                 " where event_id>$1::int8 order by event_id limit $2::int8";
  const auto settled = settled_event();
  begin_reading();
  page.found.clear();
  page.damaged.reset();
  bool all = true;
  connection_->run(events_sql, Parameters().add(page.after).add(as_limit(page.limit)), [&](const Rows& rows) {
    for (int row = 0; row < rows.size(); ++row) {
      const auto event_id = rows.get<std::int64_t>(row, 0);
      all = event_id <= settled;
      if (!all) return;
      try {
        auto event = page.type.make();
        rows.read_fields(row, 0, page.type.columns, event.get());
        page.found.push_back(std::move(event));
      } catch (const StoreFailure&) {
        page.damaged = event_id;
        return;
      }
    }
  });
  return all;
}

void PostgresSession::begin_reading() {
  post_begin(kBeginReading);
  in_transaction_ = true;
  holds_locks_ = false;
}

void PostgresSession::fill(EventPage& page) {
  const auto patience = std::chrono::steady_clock::now() + kSettling;
  for (;;) {
    rollback();
    if (read_settled(page) || std::chrono::steady_clock::now() >= patience) return;
    std::this_thread::sleep_for(kSettlingStep);
  }
}

}  // namespace flowfabric::store::postgres
