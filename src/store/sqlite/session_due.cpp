// What is due.
#include <algorithm>

#include "store/due_sql.h"
#include "store/sqlite/session.h"

namespace flowfabric::store::sqlite {

namespace {

constexpr const char* kClock = "next_due_at_ms";
constexpr const char* kRemoval = "purge_at_ms";
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
template <class Record>
Statement& SqliteSession::due_statement(const DueScan& scan, const char* column, const std::string& columns) {
  const auto condition = due_condition(due_owner<Record>(), scan.scope.filter, kFirstParameter, kDialect);
  auto& query = statement("select " + columns + " from " + Record::table + " t where " + column + "<=?1" +
                          condition.sql + " order by " + column);
  bind(query.get(), 1, scan.until_ms);
  int parameter = kFirstParameter;
  // Copied: the condition does not last.
  for (const auto& value : condition.values) Parameter{query.get(), parameter++}.json(value);
  return query;
}

template <class Record>
void SqliteSession::read_due(const DueScan& scan, const char* column, std::size_t limit,
                             DueRecords& records) {
  using Key = typename Record::Key;
  auto& query = due_statement<Record>(scan, column, key_list<Record>() + "," + column);
  const ResetAfterUse reset(query);
  constexpr auto keys = key_column_count<Record>();
  for (std::size_t found = 0; found < limit && query.step();) {
    try {
      DueRecord record{0, Due<Record>{read_all<Key>(query.get())}};
      read(query.get(), static_cast<int>(keys), record.due_at_ms);
      records.found.push_back(std::move(record));
      ++found;
    } catch (const StoreFailure& failure) {
      records.unreadable.push_back({shown_key(Record::table, query.get(), 0, keys), failure.error});
    }
  }
}

DueRecords SqliteSession::due(const DueScan& scan) {
  DueRecords records;
  for_each_type<ClockedRecords>([&]<class Record>() {
    if (scan.scope.covers<Record>()) read_due<Record>(scan, kClock, scan.limit, records);
  });
  for_each_type<RemovableRecords>([&]<class Record>() {
    if (scan.scope.removes()) read_due<Record>(scan, kRemoval, scan.purge_limit, records);
  });
  return records;
}

template <class Record>
std::optional<std::int64_t> SqliteSession::first_due(const DueScan& scan, const char* column) {
  auto& query = due_statement<Record>(scan, column, column);
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
  for_each_type<ClockedRecords>([&]<class Record>() {
    if (scan.scope.covers<Record>()) consider(first_due<Record>(scan, kClock));
  });
  for_each_type<RemovableRecords>([&]<class Record>() {
    if (scan.scope.removes()) consider(first_due<Record>(scan, kRemoval));
  });
  return next;
}

}  // namespace flowfabric::store::sqlite
