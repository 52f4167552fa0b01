// How the fields of a record become SQLite values, and back.
#pragma once

#include "model/record_type.h"
#include "store/sql.h"
#include "store/sqlite/database.h"

namespace flowfabric::store::sqlite {

// Gives a field to a sink as SQLite has it: null, integer, text or blob; JSON is made here, and is gone
// afterwards.
template <class Sink>
void give_field(const FieldType& type, const void* field, Sink& sink) {
  const void* value = type.is_optional() ? type.value(field) : field;
  if (!value) return sink.null();
  switch (type.kind) {
    case FieldKind::uuid:
      return sink.blob({reinterpret_cast<const char*>(static_cast<const Uuid*>(value)->bytes.data()), 16});
    case FieldKind::text:
      return sink.text(*static_cast<const std::string*>(value));
    case FieldKind::bytes:
      return sink.blob(static_cast<const Bytes*>(value)->data);
    case FieldKind::word:
      return sink.text(type.word(value));
    case FieldKind::json:
      return sink.json(type.json(value));
    default:
      return sink.integer(integer_of(type.kind, value));
  }
}
// Null for what has no value (model/field_type.h), unless it is part of a key.
template <class Sink>
void give_column(const Column& column, bool is_key, const void* record, Sink& sink) {
  const void* field = column.in(record);
  if (is_key || has_value(*column.type, field))
    give_field(*column.type, field, sink);
  else
    sink.null();
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

void bind_field(sqlite3_stmt* statement, int index, const FieldType& type, const void* field);
template <class T>
void bind(sqlite3_stmt* statement, int index, const T& value) {
  bind_field(statement, index, kFieldType<T>, &value);
}

// Binds the fields of a struct from parameter `first` on; returns the next free one.
int bind_fields(sqlite3_stmt* statement, int first, Columns columns, const void* value);
inline int bind_key(sqlite3_stmt* statement, int first, const AnyKey& key) {
  return bind_fields(statement, first, key.type().columns, key.get());
}
template <class Struct>
int bind_all(sqlite3_stmt* statement, int first, const Struct& value) {
  return bind_fields(statement, first, described_columns<Struct>(), &value);
}
// Binds the chosen columns of a record, in order, from parameter `first` on.
void bind_columns(sqlite3_stmt* statement, int first, const TableType& type, const void* record,
                  const ColumnMask& chosen);

std::string_view text_of(sqlite3_stmt* statement, int column);

// Throws StoreFailure with `corruption` for a value that this version does not write.
void read_field(sqlite3_stmt* statement, int column, const FieldType& type, void* field);
template <class T>
void read(sqlite3_stmt* statement, int column, T& value) {
  read_field(statement, column, kFieldType<T>, &value);
}
// Reads the columns of a row, from the first on, into a struct.
void read_fields(sqlite3_stmt* statement, Columns columns, void* value);
template <class Struct>
Struct read_all(sqlite3_stmt* statement) {
  Struct value;
  read_fields(statement, described_columns<Struct>(), &value);
  return value;
}

// "update t set b=?3,d=?4 where a=?1 and c=?2": the key first, then the changed columns in order.
std::string update_statement(const TableType& type, const ColumnMask& changed);
std::string insert_statement(const TableType& type, const ColumnMask& columns);

}  // namespace flowfabric::store::sqlite
