// What is due, and what the clock wants to know beside.
#include "store/due_sql.h"
#include "store/postgres/session.h"
#include "store/postgres/statements.h"

namespace flowfabric::store::postgres {

namespace {

const DueDialect kDialect{
    .text_parameter = [](int number) { return "$" + std::to_string(number) + "::text"; },
    .flow_has_tag = [](const std::string& key,
                       const std::string& value) { return "o.tags->>" + key + "=" + value; },
    .no_index = [](const std::string& column) { return column; }};

// "$2::int8"
std::string number_parameter(int number) {
  return "$" + std::to_string(number) + "::int8";
}

// " from ff_route t where next_due_at_ms<=$1::int8 and … order by next_due_at_ms"; adds the parameters.
std::string from_due(const DueScan& scan, const core::ClockRule& rule, const std::string& column, int until,
                     Parameters& parameters) {
  const auto first = static_cast<int>(parameters.size()) + 1;
  const auto condition = due_condition(rule, scan.scope.filter, first, kDialect);
  for (const auto& value : condition.values) parameters.add(value);
  return std::string(" from ") + rule.type->table + " t where t." + column + "<=" + number_parameter(until) +
         condition.sql + " order by t." + column;
}

// "least((select …),…)": when something is due first.
std::string next_due_expression(const DueScan& scan, Parameters& parameters) {
  parameters.add(scan.until_ms);
  const auto until = static_cast<int>(parameters.size());
  // Null, and mentions the parameter.
  std::string list = "nullif(" + number_parameter(until) + "," + number_parameter(until) + ")";
  const auto consider = [&](const core::ClockRule& rule, const Column& at) {
    const std::string column(at.name);
    list += ",(select t." + column + from_due(scan, rule, column, until, parameters) + " limit 1)";
  };
  for (const auto& rule : core::clock_rules()) {
    if (rule.type->clock && scan.scope.covers(rule.rules)) consider(rule, *rule.type->clock);
    if (rule.type->removal && scan.scope.removes()) consider(rule, *rule.type->removal);
  }
  return "least(" + list + ")";
}

// The newest event of each log always stays.
std::string oldest_event_expression() {
  std::string list;
  for (const auto& type : event_types()) {
    const std::string table = type.table;
    list += (list.empty() ? "" : ",") + std::string("(select occurred_at_ms from ") + table +
            " where event_id=(select min(event_id) from " + table +
            ") and event_id<(select max(event_id) from " + table + "))";
  }
  return "least(" + list + ")";
}

std::string shown_key(const RecordType& type, const Rows& rows, int row) {
  std::string shown = std::string(type.table) + " (";
  for (int column = 0; column < static_cast<int>(type.keys); ++column) {
    shown += (column == 0 ? "" : ",") + shown_bytes(rows.bytes(row, column));
  }
  return shown + ")";
}

}  // namespace

Agenda PostgresSession::agenda(const AgendaQuestion& question) {
  const DueScan scan{.until_ms = question.until_ms, .scope = question.scope};
  Parameters parameters;
  parameters.add_array<std::string>(
      question.waiting_lanes, [](std::string& bytes, const std::string& lane) { append_value(bytes, lane); });
  const auto next_due = next_due_expression(scan, parameters);
  static const std::string oldest_event = oldest_event_expression();
  const std::string sql = "with recursive " + offering_routes(" and cardinality($1::text[])>0") +
                          " select (extract(epoch from clock_timestamp())*1000)::bigint," + next_due + "," +
                          oldest_event + "," + columns_of<Route>("w") +
                          " from (select 1) as one left join (select r.* from " + join_offering() +
                          " where r.lane_id=any($1::text[])) as w on true";
  Agenda agenda;
  connected().run(sql, parameters, [&](const Rows& rows) {
    rows.read(0, 0, agenda.now_ms);
    rows.read(0, 1, agenda.next_due);
    rows.read(0, 2, agenda.oldest_event);
    for (int row = 0; row < rows.size() && !rows.is_null(row, 3); ++row) {
      agenda.offered.push_back(rows.get_struct<Route>(row, 3));
    }
  });
  for (const auto& route : agenda.offered) settings_.offering->offers(route.lane_id, route.route_id);
  if (settings_.now_ms) agenda.now_ms = settings_.now_ms();
  return agenda;
}

// What another server is busy with is not for this one: its rows are locked, and skipped.
void PostgresSession::post_due(const DueScan& scan, const core::ClockRule& rule, std::string_view at,
                               std::size_t limit, DueRecords& records) {
  const auto& type = *rule.type;
  const std::string column(at);
  Parameters parameters;
  parameters.add(scan.until_ms).add(as_limit(limit + unreadable_due_));
  const auto from = from_due(scan, rule, column, 1, parameters);
  connection_->post("select " + store::listed(type.key_names(), "t.") + ",t." + column + from + " limit " +
                        number_parameter(2) + " for key share of t skip locked",
                    parameters, [&records, &type](const Rows& rows) {
                      for (int row = 0; row < rows.size(); ++row) {
                        try {
                          DueRecord record{rows.get<std::int64_t>(row, static_cast<int>(type.keys)),
                                           {&type, AnyKey(*type.key)}};
                          rows.read_fields(row, 0, type.key->columns, record.key.key.get());
                          records.found.push_back(std::move(record));
                        } catch (const StoreFailure& failure) {
                          records.unreadable.push_back({shown_key(type, rows, row), failure.error});
                        }
                      }
                    });
}

DueRecords PostgresSession::due(const DueScan& scan) {
  for (;;) {
    DueRecords records;
    rollback();
    connection_->post(kBeginWriting);
    in_transaction_ = true;
    holds_locks_ = true;
    for (const auto& rule : core::clock_rules()) {
      if (rule.type->clock && scan.scope.covers(rule.rules))
        post_due(scan, rule, rule.type->clock->name, scan.limit, records);
    }
    for (const auto& rule : core::clock_rules()) {
      const bool removes = scan.scope.removes() && scan.purge_limit > 0;
      if (rule.type->removal && removes)
        post_due(scan, rule, rule.type->removal->name, scan.purge_limit, records);
    }
    connection_->flush();
    if (records.unreadable.size() <= unreadable_due_) return records;
    // They may have taken the place of others: look past them.
    unreadable_due_ = 2 * records.unreadable.size();
  }
}

std::optional<std::int64_t> PostgresSession::next_due(const DueScan& scan) {
  Parameters parameters;
  const auto sql = "select " + next_due_expression(scan, parameters);
  std::optional<std::int64_t> due;
  connection_->run(sql, parameters, [&](const Rows& rows) { rows.read(0, 0, due); });
  return due;
}

std::optional<std::int64_t> PostgresSession::oldest_event() {
  static const std::string sql = "select " + oldest_event_expression();
  std::optional<std::int64_t> oldest;
  connection_->run(sql, {}, [&](const Rows& rows) { rows.read(0, 0, oldest); });
  return oldest;
}

}  // namespace flowfabric::store::postgres
