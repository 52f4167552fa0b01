// How the fields of a record become SQLite values, and back.
#pragma once

#include <cstring>
#include <utility>

#include "store/columns.h"
#include "store/sqlite/database.h"

namespace flowfabric::store::sqlite {

// Gives a value to a sink as SQLite has it: null, integer, text or blob; JSON is made here, and is gone
// afterwards.
template <class T, class Sink>
void give(const T& value, Sink&& sink) {
  if constexpr (is_optional<T>) {
    if (value)
      give(*value, sink);
    else
      sink.null();
  } else if constexpr (is_typed_id<T>) {
    give(value.uuid, sink);
  } else if constexpr (std::is_same_v<T, Uuid>) {
    sink.blob({reinterpret_cast<const char*>(value.bytes.data()), 16});
  } else if constexpr (std::is_same_v<T, std::string>) {
    sink.text(value);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    sink.blob(value.data);
  } else if constexpr (std::is_enum_v<T>) {
    sink.text(enum_name(value));
  } else if constexpr (is_event_word<T>) {
    sink.text(word_text(value));
  } else if constexpr (is_json<T>) {
    sink.json(to_json(value));
  } else {
    static_assert(std::is_integral_v<T>);
    sink.integer(static_cast<std::int64_t>(value));
  }
}

// Values bound by reference must outlive the step; only JSON is copied.
struct Parameter {
  sqlite3_stmt* statement;
  int index;

  void null() { sqlite3_bind_null(statement, index); }
  void integer(std::int64_t value) { sqlite3_bind_int64(statement, index, value); }
  void text(std::string_view value) {
    sqlite3_bind_text(statement, index, value.data(), static_cast<int>(value.size()), SQLITE_STATIC);
  }
  void blob(std::string_view value) {
    sqlite3_bind_blob64(statement, index, value.data(), value.size(), SQLITE_STATIC);
  }
  void json(const std::string& value) {
    sqlite3_bind_text(statement, index, value.data(), static_cast<int>(value.size()), SQLITE_TRANSIENT);
  }
};
template <class T>
void bind(sqlite3_stmt* statement, int index, const T& value) {
  give(value, Parameter{statement, index});
}

inline std::string_view text_of(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return {text ? text : "", static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
}

[[noreturn]] inline void fail_corrupt(sqlite3_stmt* statement, int column) {
  const auto name = std::string(sqlite3_column_name(statement, column));
  throw StoreFailure{{ErrorCode::corruption, name + ": cannot be read",
                      "A stored value is not one this version writes. Restore the database from a backup."}};
}

template <class T>
T checked(sqlite3_stmt* statement, int column, Result<T> value) {
  if (!value) fail_corrupt(statement, column);
  return *std::move(value);
}

template <class T>
void read(sqlite3_stmt* statement, int column, T& value) {
  if constexpr (is_optional<T>) {
    if (sqlite3_column_type(statement, column) == SQLITE_NULL)
      value.reset();
    else
      read(statement, column, value.emplace());
  } else if constexpr (is_typed_id<T>) {
    read(statement, column, value.uuid);
  } else if constexpr (std::is_same_v<T, Uuid>) {
    const void* blob = sqlite3_column_blob(statement, column);
    if (sqlite3_column_bytes(statement, column) != 16) fail_corrupt(statement, column);
    std::memcpy(value.bytes.data(), blob, 16);
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = text_of(statement, column);
  } else if constexpr (std::is_same_v<T, Bytes>) {
    const auto* blob = static_cast<const char*>(sqlite3_column_blob(statement, column));
    if (blob) value.data.assign(blob, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
  } else if constexpr (std::is_enum_v<T>) {
    const auto known = enum_from_name<T>(text_of(statement, column));
    if (!known) fail_corrupt(statement, column);
    value = *known;
  } else if constexpr (is_event_word<T>) {
    const auto text = text_of(statement, column);
    if (text.empty()) fail_corrupt(statement, column);
    value = event_word<decltype(value.known)>(text);
  } else if constexpr (std::is_same_v<T, Tags>) {
    value = checked(statement, column, tags_from_json(text_of(statement, column)));
  } else if constexpr (std::is_same_v<T, std::vector<std::string>>) {
    value = checked(statement, column, strings_from_json(text_of(statement, column)));
  } else if constexpr (std::is_same_v<T, Amounts>) {
    value = checked(statement, column, amounts_from_json(text_of(statement, column)));
  } else if constexpr (std::is_same_v<T, ResumeCondition>) {
    const auto json = text_of(statement, column);
    value = json.empty() ? ResumeCondition{} : checked(statement, column, condition_from_json(json));
  } else if constexpr (std::is_same_v<T, ExecutionPolicy>) {
    const auto json = text_of(statement, column);
    value = json.empty() ? ExecutionPolicy{} : checked(statement, column, policy_from_json(json));
  } else if constexpr (std::is_same_v<T, bool>) {
    value = sqlite3_column_int64(statement, column) != 0;
  } else {
    static_assert(std::is_integral_v<T>);
    // SQLite keeps whatever it is given: text would be read as 0, which means that there is no limit, and a
    // number below zero as a limit that nothing reaches.
    const auto type = sqlite3_column_type(statement, column);
    const auto stored = sqlite3_column_int64(statement, column);
    if ((type != SQLITE_INTEGER && type != SQLITE_NULL) || !std::in_range<T>(stored))
      fail_corrupt(statement, column);
    value = static_cast<T>(stored);
  }
}

// Binds the fields of a described struct from parameter `first` on; returns the next free one.
template <class Struct>
int bind_all(sqlite3_stmt* statement, int first, const Struct& value) {
  for_each_field(value, [&](std::string_view, const auto& field) { bind(statement, first++, field); });
  return first;
}

template <class Field>
void read_field(sqlite3_stmt* statement, int column, void* field) {
  read(statement, column, *static_cast<Field*>(field));
}

template <class Record>
Record read_all(sqlite3_stmt* statement) {
  static const auto fields =
      fields_with<void(sqlite3_stmt*, int, void*), Record>([]<class Field>() { return &read_field<Field>; });
  Record record;
  int column = 0;
  for (const auto& [offset, read] : fields)
    read(statement, column++, reinterpret_cast<char*>(&record) + offset);
  return record;
}

// Binds the chosen columns of a record, in order, from parameter `first` on.
template <class Record>
void bind_columns(sqlite3_stmt* statement, int first, const Record& record,
                  const ColumnMask<Record>& columns) {
  constexpr std::size_t keys = key_columns<Record>;
  std::size_t index = 0;
  for_each_field(record, [&](std::string_view, const auto& field) {
    const bool is_key = index < keys;
    if (!columns.test(index++)) return;
    if (is_key || has_value(field))
      bind(statement, first++, field);
    else
      sqlite3_bind_null(statement, first++);
  });
}

// "update t set b=?3,d=?4 where a=?1 and c=?2": the key first, then the changed columns in order.
std::string update_statement(const char* table, Names keys, Names changed);
std::string insert_statement(const char* table, Names columns);

template <class Record>
std::string update_statement(const ColumnMask<Record>& mask) {
  return update_statement(Record::table, key_names<Record>(), chosen_names(column_names<Record>(), mask));
}
template <class Record>
std::string insert_statement(const ColumnMask<Record>& mask) {
  return insert_statement(Record::table, chosen_names(column_names<Record>(), mask));
}

}  // namespace flowfabric::store::sqlite
