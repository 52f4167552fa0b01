// The SQL text that follows from a record's description; shared by every SQL store.
//
// Templates only hand the names of a record's columns to functions of sql.cpp: text that were put together by
// a template would be compiled anew for every record, column by column.
#pragma once

#include <array>
#include <span>
#include <string>
#include <vector>

#include "model/describe.h"
#include "model/records.h"

namespace flowfabric::store {

using Names = std::span<const std::string_view>;

// "t.a,t.b", each name with `before` before it.
std::string listed(Names names, std::string_view before = "");
// "a=?1 and b=?2"
std::string equal_to_parameters(Names names);

// "(a='x' or a='y')": the form that partial indexes have, word for word. The values are words of ours.
std::string one_of(std::string_view column, std::span<const std::string_view> words);

// "ownership_state='leased' and worker_instance_id=": whose leases, follows.
std::string held_by();

template <class Record>
inline constexpr auto kColumnNames = [] {
  std::array<std::string_view, column_count<Record>()> names;
  std::size_t index = 0;
  for_each_column<Record>([&]<class Field>(std::string_view name) { names[index++] = name; });
  return names;
}();

template <class Record>
constexpr std::size_t key_column_count() {
  return column_count<typename Record::Key>();
}

template <class Record>
constexpr Names column_names() {
  return kColumnNames<Record>;
}
template <class Record>
constexpr Names key_names() {
  return column_names<Record>().first(key_column_count<Record>());
}

// "a,b,c"
template <class Record>
std::string column_list() {
  return listed(column_names<Record>());
}

// The key columns: "a,b".
template <class Record>
std::string key_list() {
  return listed(key_names<Record>());
}

// "a=?1 and b=?2", over the key columns.
template <class Record>
std::string key_condition() {
  return equal_to_parameters(key_names<Record>());
}

// Tables whose primary key has the partition last.
template <class Record>
inline constexpr bool lies_by_id = std::is_same_v<Record, ExecutionSpec> || std::is_same_v<Record, Attempt> ||
                                   std::is_same_v<Record, Edge> || std::is_same_v<Record, EdgeGroup>;

// How a statement that lists keys is put together.
struct KeyListing {
  const char* table;
  Names keys;
  bool partition_last;              // in the primary key, whose order it is
  std::string limit;                // the parameters: how many
  std::vector<std::string> behind;  // and the key they come behind, if it goes on
};
std::string statement_of(const KeyListing& listing);

// As many keys as the first parameter says, behind the one that the others give. A parameter is written as
// `mark<Field>(number)`.
template <class Record, class Mark>
std::string keys_statement(bool goes_on, Mark mark) {
  std::vector<std::string> behind;
  for_each_column<typename Record::Key>([&]<class Field>(std::string_view) {
    behind.push_back(mark.template operator()<Field>(static_cast<int>(behind.size()) + 2));
  });
  if (!goes_on) behind.clear();
  return statement_of({Record::table, key_names<Record>(), lies_by_id<Record>,
                       mark.template operator()<std::int64_t>(1), std::move(behind)});
}

}  // namespace flowfabric::store
