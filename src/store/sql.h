// The SQL text that follows from a record's description; shared by every SQL store.
#pragma once

#include <string>

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

}  // namespace flowfabric::store
