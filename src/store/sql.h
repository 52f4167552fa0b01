// The SQL text that follows from a record's description; shared by every SQL store.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "model/describe.h"
#include "model/records.h"

namespace flowfabric::store {

// "a,b,c"
template <class Record>
std::string column_list() {
  std::string list;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (!list.empty()) list += ',';
    list += name;
  });
  return list;
}

template <class Record>
constexpr std::size_t key_column_count() {
  return column_count<typename Record::Key>();
}

// The key columns: "a,b".
template <class Record>
std::string key_list() {
  std::string list;
  std::size_t index = 0;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (index++ >= key_column_count<Record>()) return;
    if (index > 1) list += ',';
    list += name;
  });
  return list;
}

// "a=?1 and b=?2", over the key columns.
template <class Record>
std::string key_condition() {
  std::string condition;
  std::size_t index = 0;
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (index >= key_column_count<Record>()) return;
    ++index;
    if (index > 1) condition += " and ";
    condition.append(name).append("=?").append(std::to_string(index));
  });
  return condition;
}

// Tables whose primary key has the partition last.
template <class Record>
inline constexpr bool lies_by_id = std::is_same_v<Record, ExecutionSpec> || std::is_same_v<Record, Attempt> ||
                                   std::is_same_v<Record, Edge> || std::is_same_v<Record, EdgeGroup>;

// As many keys as the first parameter says, behind the one that the others give, in the order of the primary
// key. A parameter is written as `mark<Field>(number)`.
template <class Record, class Mark>
std::string keys_statement(bool goes_on, Mark mark) {
  std::vector<std::pair<std::string, std::string>> columns;  // with their parameters
  for_each_column<Record>([&]<class Field>(std::string_view name) {
    if (columns.size() == key_column_count<Record>()) return;
    columns.emplace_back(name, mark.template operator()<Field>(static_cast<int>(columns.size()) + 2));
  });
  if (lies_by_id<Record>) std::ranges::rotate(columns, columns.begin() + 1);
  std::string order;
  std::string marks;
  for (const auto& [name, parameter] : columns) {
    order += (order.empty() ? "" : ",") + name;
    marks += (marks.empty() ? "" : ",") + parameter;
  }
  return "select " + key_list<Record>() + " from " + Record::table +
         (goes_on ? " where (" + order + ")>(" + marks + ")" : "") + " order by " + order + " limit " +
         mark.template operator()<std::int64_t>(1);
}

}  // namespace flowfabric::store
