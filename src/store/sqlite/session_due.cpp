// What is due.
#include <algorithm>

#include "store/due_sql.h"
#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

namespace {

// Of the condition; the first is the time.
constexpr int kFirstParameter = 2;

const DueDialect kDialect{.text_parameter = [](int number) { return "?" + std::to_string(number); },
                          // Tags that cannot be read are none, and hold up nobody.
                          .flow_has_tag =
                              [](const std::string& key, const std::string& value) {
                                return "exists(select 1 from json_each(case when json_valid(o.tags) then "
                                       "o.tags end) j where j.key=" +
                                       key + " and j.value=" + value + ")";
                              },
                          .no_index = [](const std::string& column) { return "+" + column; }};

// "ff_exec_core (7,x'00…',…)"
std::string shown_key(const char* table, sqlite3_stmt* row, int first, std::size_t count) {
  std::string shown = std::string(table) + " (";
  for (std::size_t i = 0; i < count; ++i) {
    const int column = first + static_cast<int>(i);
    if (i > 0) shown += ",";
    if (sqlite3_column_type(row, column) != SQLITE_BLOB) {
      shown += text_of(row, column).substr(0, 80);
      continue;
    }
    const auto* bytes = static_cast<const char*>(sqlite3_column_blob(row, column));
    shown += shown_bytes({bytes, static_cast<std::size_t>(sqlite3_column_bytes(row, column))});
  }
  return shown + ")";
}

}  // namespace

// Oldest first, as far as it is read. The column has an index of its own.
Statement& SqliteSession::due_statement(const DueScan& scan, const core::ClockRule& rule,
                                        std::string_view column, const std::string& columns) {
  const auto condition = due_condition(rule, scan.scope.filter, kFirstParameter, kDialect);
  const std::string name(column);
  auto& query = statement("select " + columns + " from " + rule.type->table + " t where " + name + "<=?1" +
                          condition.sql + " order by " + name);
  bind(query.get(), 1, scan.until_ms);
  int parameter = kFirstParameter;
  // Copied: the condition does not last.
  for (const auto& value : condition.values) Parameter{query.get(), parameter++}.json(value);
  return query;
}

void SqliteSession::read_due(const DueScan& scan, const core::ClockRule& rule, std::string_view column,
                             std::size_t limit, DueRecords& records) {
  const auto& type = *rule.type;
  auto& query =
      due_statement(scan, rule, column, store::listed(type.key_names()) + "," + std::string(column));
  const ResetAfterUse reset(query);
  for (std::size_t found = 0; found < limit && query.step();) {
    try {
      DueRecord record{0, {&type, AnyKey(*type.key)}};
      read_fields(query.get(), type.key->columns, record.key.key.get());
      read(query.get(), static_cast<int>(type.keys), record.due_at_ms);
      records.found.push_back(std::move(record));
      ++found;
    } catch (const StoreFailure& failure) {
      records.unreadable.push_back({shown_key(type.table, query.get(), 0, type.keys), failure.error});
    }
  }
}

DueRecords SqliteSession::due(const DueScan& scan) {
  DueRecords records;
  for (const auto& rule : core::clock_rules()) {
    if (rule.type->clock && scan.scope.covers(rule.rules))
      read_due(scan, rule, rule.type->clock->name, scan.limit, records);
  }
  for (const auto& rule : core::clock_rules()) {
    if (rule.type->removal && scan.scope.removes())
      read_due(scan, rule, rule.type->removal->name, scan.purge_limit, records);
  }
  return records;
}

std::optional<std::int64_t> SqliteSession::first_due(const DueScan& scan, const core::ClockRule& rule,
                                                     std::string_view column) {
  auto& query = due_statement(scan, rule, column, std::string(column));
  const ResetAfterUse reset(query);
  std::optional<std::int64_t> due;
  if (query.step()) read(query.get(), 0, due);
  return due;
}

std::optional<std::int64_t> SqliteSession::next_due(const DueScan& scan) {
  std::optional<std::int64_t> next;
  const auto consider = [&](const std::optional<std::int64_t>& due) {
    if (due) next = std::min(next.value_or(*due), *due);
  };
  for (const auto& rule : core::clock_rules()) {
    if (rule.type->clock && scan.scope.covers(rule.rules))
      consider(first_due(scan, rule, rule.type->clock->name));
    if (rule.type->removal && scan.scope.removes()) consider(first_due(scan, rule, rule.type->removal->name));
  }
  return next;
}

}  // namespace flowfabric::store::sqlite
