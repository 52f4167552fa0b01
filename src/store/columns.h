// What follows from a record's description for every SQL store: which kind of value a field is, which columns
// of a record have a value, and which have changed.
#pragma once

#include <bitset>

#include "model/condition_json.h"
#include "model/describe.h"
#include "model/event_word.h"
#include "model/policy_json.h"
#include "store/sql.h"

namespace flowfabric::store {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_typed_id = false;
template <class Tag>
inline constexpr bool is_typed_id<TypedId<Tag>> = true;
template <class T>
inline constexpr bool is_event_word = false;
template <class Enum>
inline constexpr bool is_event_word<EventWord<Enum>> = true;
template <class T>
inline constexpr bool is_json = std::is_same_v<T, Tags> || std::is_same_v<T, ExecutionPolicy> ||
                                std::is_same_v<T, std::vector<std::string>> ||
                                std::is_same_v<T, ResumeCondition> || std::is_same_v<T, Amounts>;

template <class Record>
using ColumnMask = std::bitset<column_count<Record>()>;

// Calls f(index, left, right) for each pair of corresponding columns.
template <class Record, class F>
void for_each_pair(const Record& left, const Record& right, F&& f) {
  const auto* left_begin = reinterpret_cast<const char*>(&left);
  const auto* right_begin = reinterpret_cast<const char*>(&right);
  std::size_t index = 0;
  for_each_field(right, [&]<class Field>(std::string_view, const Field& field) {
    const auto offset = reinterpret_cast<const char*>(&field) - right_begin;
    f(index++, *reinterpret_cast<const Field*>(left_begin + offset), field);
  });
}

template <class Record>
ColumnMask<Record> changed_columns(const Record& before, const Record& after) {
  ColumnMask<Record> mask;
  for_each_pair(before, after, [&](std::size_t index, const auto& left, const auto& right) {
    if (!(left == right)) mask.set(index);
  });
  return mask;
}

// An absent value, an empty text, a default policy and what is not so are stored as null.
template <class T>
bool has_value(const T& value) {
  if constexpr (is_optional<T>)
    return value.has_value();
  else if constexpr (std::is_same_v<T, bool>)
    return value;
  else if constexpr (std::is_same_v<T, std::string>)
    return !value.empty();
  else if constexpr (std::is_same_v<T, Bytes>)
    return !value.data.empty();
  else if constexpr (is_json<T>)
    return !(value == T{});
  else
    return true;
}

// Events have no key of their own.
template <class Record>
inline constexpr std::size_t key_columns = 0;
template <class Record>
requires requires {
  typename Record::Key;
}
inline constexpr std::size_t key_columns<Record> = key_column_count<Record>();

// Keys always count: an empty namespace is a namespace.
template <class Record>
ColumnMask<Record> columns_with_value(const Record& record) {
  constexpr std::size_t keys = key_columns<Record>;
  ColumnMask<Record> mask;
  std::size_t index = 0;
  for_each_field(record, [&](std::string_view, const auto& field) {
    mask.set(index, index < keys || has_value(field));
    ++index;
  });
  return mask;
}

}  // namespace flowfabric::store
