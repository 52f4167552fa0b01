// How the fields of a record become PostgreSQL values, and back. Everything travels in binary: no quoting, no
// parsing.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <utility>

#include "model/record_type.h"
#include "store/sql.h"
#include "store/store.h"

namespace flowfabric::store::postgres {

// The type of a column, by the kind of the field.
struct ColumnType {
  const char* name;
  std::uint32_t oid;
};
ColumnType column_type(FieldKind kind);

// ---- writing ----

template <std::integral T>
void append_number(std::string& out, T value) {
  const T big = std::byteswap(value);
  out.append(reinterpret_cast<const char*>(&big), sizeof(big));
}

inline void append_bytes(std::string& out, std::string_view bytes) {
  append_number(out, static_cast<std::int32_t>(bytes.size()));
  out.append(bytes);
}

inline void append_null(std::string& out) {
  append_number(out, std::int32_t{-1});
}

// A value with its length before it, as in an array or a row.
void append_field(std::string& out, const FieldType& type, const void* field);
template <class T>
void append_value(std::string& out, const T& value) {
  append_field(out, kFieldType<T>, &value);
}

// The parameters of one statement.
class Parameters {
 public:
  template <class T>
  Parameters& add(const T& value) {
    return add_field(kFieldType<T>, &value);
  }
  template <class Struct>
  Parameters& add_fields(const Struct& value) {
    return add_fields(described_columns<Struct>(), &value);
  }
  Parameters& add_field(const FieldType& type, const void* field) {
    append_field(values_.emplace_back(), type, field);
    return *this;
  }
  Parameters& add_fields(Columns columns, const void* value) {
    for (const auto& column : columns) add_field(*column.type, column.in(value));
    return *this;
  }
  // An array of Field: append(bytes, item) writes one of its elements.
  template <class Field, class Items, class Append>
  Parameters& add_array(const Items& items, Append append) {
    return add_items(column_type(kFieldType<Field>.kind).oid, items, append);
  }
  // An array of one column of these structs.
  Parameters& add_column(const Column& column, std::span<const void* const> structs);
  // An array of rows: append(bytes, item) writes the columns of one.
  template <class Items, class Append>
  Parameters& add_rows(std::uint32_t row_type, const Items& items, Append append) {
    return add_items(row_type, items, [&](std::string& bytes, const auto& item) {
      const auto start = bytes.size();
      append_number(bytes, std::int32_t{0});
      append(bytes, item);
      write_length(bytes, start);
    });
  }

  std::size_t size() const { return values_.size(); }
  // Null: SQL's null.
  const char* data(std::size_t index) const {
    return length(index) < 0 ? nullptr : values_[index].data() + sizeof(std::int32_t);
  }
  int length(std::size_t index) const {
    std::int32_t big = 0;
    std::memcpy(&big, values_[index].data(), sizeof(big));
    return std::byteswap(big);
  }

 private:
  template <class Items, class Append>
  Parameters& add_items(std::uint32_t type, const Items& items, Append append) {
    std::string bytes;
    bytes.reserve(24 + items.size() * 24);
    append_number(bytes, std::int32_t{0});
    append_number(bytes, std::int32_t{items.empty() ? 0 : 1});
    append_number(bytes, std::int32_t{1});
    append_number(bytes, type);
    if (!items.empty()) {
      append_number(bytes, static_cast<std::int32_t>(items.size()));
      append_number(bytes, std::int32_t{1});
    }
    for (const auto& item : items) append(bytes, item);
    write_length(bytes, 0);
    values_.push_back(std::move(bytes));
    return *this;
  }
  // The length of what follows it, known in the end.
  static void write_length(std::string& bytes, std::size_t at) {
    const auto length = std::byteswap(static_cast<std::int32_t>(bytes.size() - at - sizeof(std::int32_t)));
    std::memcpy(bytes.data() + at, &length, sizeof(length));
  }

  std::vector<std::string> values_;  // each with its length before it
};

// ---- reading ----

[[noreturn]] void fail_corrupt(const std::string& column);

template <std::integral T>
T number_from(std::string_view bytes, const char* column) {
  if (bytes.size() != sizeof(T)) fail_corrupt(column);
  T big{};
  std::memcpy(&big, bytes.data(), sizeof(big));
  return std::byteswap(big);
}

// Not called for null. Throws StoreFailure with `corruption` for a value that this version does not write.
void read_value(std::string_view bytes, const char* column, const FieldType& type, void* field);

}  // namespace flowfabric::store::postgres
