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

// The names of the columns that a mask chooses.
template <std::size_t N>
std::vector<std::string_view> chosen_names(Names names, const std::bitset<N>& mask) {
  std::vector<std::string_view> chosen;
  for (std::size_t i = 0; i < N; ++i) {
    if (mask.test(i)) chosen.push_back(names[i]);
  }
  return chosen;
}

// What is done with each field of a record, by the field's type, and where the field is. A loop over these is
// compiled once for every type of field; code that names the fields is compiled once for every field.
template <class Function>
struct FieldAt {
  std::ptrdiff_t offset{};
  Function* function{};
};
// `choose<Field>()` gives the function.
template <class Function, class Record, class Choose>
auto fields_with(Choose choose) {
  std::array<FieldAt<Function>, column_count<Record>()> fields;
  const Record record{};
  const auto* begin = reinterpret_cast<const char*>(&record);
  std::size_t index = 0;
  for_each_field(record, [&]<class Field>(std::string_view, const Field& field) {
    fields[index++] = {reinterpret_cast<const char*>(&field) - begin, choose.template operator()<Field>()};
  });
  return fields;
}

template <class Field>
bool same(const void* left, const void* right) {
  return *static_cast<const Field*>(left) == *static_cast<const Field*>(right);
}

template <class Record>
ColumnMask<Record> changed_columns(const Record& before, const Record& after) {
  static const auto fields =
      fields_with<bool(const void*, const void*), Record>([]<class Field>() { return &same<Field>; });
  const auto* left = reinterpret_cast<const char*>(&before);
  const auto* right = reinterpret_cast<const char*>(&after);
  ColumnMask<Record> mask;
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto [offset, are_same] = fields[i];
    if (!are_same(left + offset, right + offset)) mask.set(i);
  }
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
