#include "store/sqlite/mapping.h"

#include <cstring>

namespace flowfabric::store::sqlite {

namespace {

[[noreturn]] void fail_corrupt(sqlite3_stmt* statement, int column) {
  const auto name = std::string(sqlite3_column_name(statement, column));
  throw StoreFailure{{ErrorCode::corruption, name + ": cannot be read",
                      "A stored value is not one this version writes. Restore the database from a backup."}};
}

void read_uuid(sqlite3_stmt* statement, int column, Uuid& value) {
  const void* blob = sqlite3_column_blob(statement, column);
  if (sqlite3_column_bytes(statement, column) != 16) fail_corrupt(statement, column);
  std::memcpy(value.bytes.data(), blob, 16);
}

void read_bytes(sqlite3_stmt* statement, int column, Bytes& value) {
  const auto* blob = static_cast<const char*>(sqlite3_column_blob(statement, column));
  if (blob) value.data.assign(blob, static_cast<std::size_t>(sqlite3_column_bytes(statement, column)));
}

// SQLite keeps whatever it is given: text would be read as 0, which means that there is no limit, and a
// number below zero as a limit that nothing reaches.
void read_integer(sqlite3_stmt* statement, int column, FieldKind kind, void* value) {
  const auto type = sqlite3_column_type(statement, column);
  const auto stored = sqlite3_column_int64(statement, column);
  if ((type != SQLITE_INTEGER && type != SQLITE_NULL) || !set_integer(kind, value, stored))
    fail_corrupt(statement, column);
}

}  // namespace

void bind_field(sqlite3_stmt* statement, int index, const FieldType& type, const void* field) {
  Parameter parameter{statement, index};
  give_field(type, field, parameter);
}

int bind_fields(sqlite3_stmt* statement, int first, Columns columns, const void* value) {
  for (const auto& column : columns) bind_field(statement, first++, *column.type, column.in(value));
  return first;
}

void bind_columns(sqlite3_stmt* statement, int first, const TableType& type, const void* record,
                  const ColumnMask& chosen) {
  for (std::size_t i = 0; i < type.columns.size(); ++i) {
    if (!chosen.test(i)) continue;
    Parameter parameter{statement, first++};
    give_column(type.columns[i], i < type.keys, record, parameter);
  }
}

std::string_view text_of(sqlite3_stmt* statement, int column) {
  const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
  return {text ? text : "", static_cast<std::size_t>(sqlite3_column_bytes(statement, column))};
}

void read_field(sqlite3_stmt* statement, int column, const FieldType& type, void* field) {
  void* value = field;
  if (type.is_optional()) {
    if (sqlite3_column_type(statement, column) == SQLITE_NULL) return type.clear(field);
    value = type.emplace(field);
  }
  switch (type.kind) {
    case FieldKind::boolean:
      *static_cast<bool*>(value) = sqlite3_column_int64(statement, column) != 0;
      return;
    case FieldKind::uuid:
      return read_uuid(statement, column, *static_cast<Uuid*>(value));
    case FieldKind::text:
      *static_cast<std::string*>(value) = text_of(statement, column);
      return;
    case FieldKind::bytes:
      return read_bytes(statement, column, *static_cast<Bytes*>(value));
    case FieldKind::word:
      if (!type.set_word(value, text_of(statement, column))) fail_corrupt(statement, column);
      return;
    case FieldKind::json: {
      const auto json = text_of(statement, column);
      if (json.empty()) return type.clear(field);
      if (!type.set_json(value, json)) fail_corrupt(statement, column);
      return;
    }
    default:
      return read_integer(statement, column, type.kind, value);
  }
}

void read_fields(sqlite3_stmt* statement, Columns columns, void* value) {
  int index = 0;
  for (const auto& column : columns) read_field(statement, index++, *column.type, column.in(value));
}

std::string update_statement(const TableType& type, const ColumnMask& changed) {
  std::string changes;
  auto parameter = type.keys;
  for (const auto name : chosen_names(type, changed)) {
    if (!changes.empty()) changes += ',';
    changes.append(name).append("=?").append(std::to_string(++parameter));
  }
  return std::string("update ") + type.table + " set " + changes + " where " + key_condition(type);
}

std::string insert_statement(const TableType& type, const ColumnMask& columns) {
  const auto names = chosen_names(type, columns);
  std::string marks;
  for (std::size_t i = 0; i < names.size(); ++i) marks += i == 0 ? "?" : ",?";
  return std::string("insert into ") + type.table + "(" + listed(names) + ") values(" + marks + ")";
}

}  // namespace flowfabric::store::sqlite
