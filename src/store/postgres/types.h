// How the fields of a record become PostgreSQL values, and back. Everything travels in binary: no quoting, no
// parsing.
#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <utility>

#include "store/columns.h"
#include "store/store.h"

namespace flowfabric::store::postgres {

// The type of a column, by the type of the field.
struct ColumnType {
  const char* name;
  std::uint32_t oid;
};
inline constexpr ColumnType kBool{"bool", 16};
inline constexpr ColumnType kInt4{"int4", 23};
inline constexpr ColumnType kInt8{"int8", 20};
inline constexpr ColumnType kUuid{"uuid", 2950};
inline constexpr ColumnType kText{"text", 25};
inline constexpr ColumnType kBytes{"bytea", 17};
inline constexpr ColumnType kJson{"jsonb", 3802};

template <class T>
constexpr ColumnType column_type() {
  if constexpr (is_optional<T>)
    return column_type<typename T::value_type>();
  else if constexpr (std::is_same_v<T, bool>)
    return kBool;
  else if constexpr (is_typed_id<T> || std::is_same_v<T, Uuid>)
    return kUuid;
  else if constexpr (std::is_same_v<T, std::string> || std::is_enum_v<T> || is_event_word<T>)
    return kText;
  else if constexpr (std::is_same_v<T, Bytes>)
    return kBytes;
  else if constexpr (is_json<T>)
    return kJson;
  else if constexpr (std::is_same_v<T, std::uint16_t> || std::is_same_v<T, std::int32_t>)
    return kInt4;
  else
    return kInt8;  // also for 32 bits without a sign
}

template <class Struct>
inline constexpr auto kColumnTypes = [] {
  std::array<ColumnType, column_count<Struct>()> types{};
  std::size_t index = 0;
  for_each_column<Struct>([&]<class Field>(std::string_view) { types[index++] = column_type<Field>(); });
  return types;
}();

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
template <class T>
void append_value(std::string& out, const T& value) {
  if constexpr (is_optional<T>) {
    if (value)
      append_value(out, *value);
    else
      append_null(out);
  } else if constexpr (std::is_same_v<T, bool>) {
    append_bytes(out, value ? std::string_view("\1", 1) : std::string_view("\0", 1));
  } else if constexpr (is_typed_id<T>) {
    append_value(out, value.uuid);
  } else if constexpr (std::is_same_v<T, Uuid>) {
    append_bytes(out, {reinterpret_cast<const char*>(value.bytes.data()), value.bytes.size()});
  } else if constexpr (std::is_same_v<T, Bytes>) {
    append_bytes(out, value.data);
  } else if constexpr (std::is_enum_v<T>) {
    append_bytes(out, enum_name(value));
  } else if constexpr (is_event_word<T>) {
    append_bytes(out, word_text(value));
  } else if constexpr (is_json<T>) {
    const auto json = to_json(value);
    append_number(out, static_cast<std::int32_t>(json.size() + 1));
    out.push_back(1);  // the version of the format
    out.append(json);
  } else if constexpr (std::is_integral_v<T>) {
    using Wire = std::conditional_t<column_type<T>().oid == kInt4.oid, std::int32_t, std::int64_t>;
    append_number(out, static_cast<std::int32_t>(sizeof(Wire)));
    append_number(out, static_cast<Wire>(value));
  } else {
    append_bytes(out, value);
  }
}

// The parameters of one statement.
class Parameters {
 public:
  template <class T>
  Parameters& add(const T& value) {
    std::string bytes;
    append_value(bytes, value);
    values_.push_back(std::move(bytes));
    return *this;
  }
  template <class Struct>
  Parameters& add_fields(const Struct& value) {
    for_each_field(value, [&](std::string_view, const auto& field) { add(field); });
    return *this;
  }
  // An array of Field: append(bytes, item) writes one of its elements.
  template <class Field, class Items, class Append>
  Parameters& add_array(const Items& items, Append append) {
    return add_items(column_type<Field>().oid, items, append);
  }
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

template <class T>
T checked(Result<T> value, const char* column) {
  if (!value) fail_corrupt(column);
  return *std::move(value);
}

// Not called for null.
template <class T>
void read_value(std::string_view bytes, const char* column, T& value) {
  if constexpr (is_optional<T>) {
    read_value(bytes, column, value.emplace());
  } else if constexpr (std::is_same_v<T, bool>) {
    if (bytes.size() != 1) fail_corrupt(column);
    value = bytes.front() != 0;
  } else if constexpr (is_typed_id<T>) {
    read_value(bytes, column, value.uuid);
  } else if constexpr (std::is_same_v<T, Uuid>) {
    if (bytes.size() != value.bytes.size()) fail_corrupt(column);
    std::memcpy(value.bytes.data(), bytes.data(), value.bytes.size());
  } else if constexpr (std::is_same_v<T, std::string>) {
    value = bytes;
  } else if constexpr (std::is_same_v<T, Bytes>) {
    value.data = bytes;
  } else if constexpr (std::is_enum_v<T>) {
    const auto known = enum_from_name<T>(bytes);
    if (!known) fail_corrupt(column);
    value = *known;
  } else if constexpr (is_event_word<T>) {
    if (bytes.empty()) fail_corrupt(column);
    value = event_word<decltype(value.known)>(bytes);
  } else if constexpr (is_json<T>) {
    if (bytes.empty()) fail_corrupt(column);
    const auto json = bytes.substr(1);
    if constexpr (std::is_same_v<T, Tags>)
      value = checked(tags_from_json(json), column);
    else if constexpr (std::is_same_v<T, ExecutionPolicy>)
      value = checked(policy_from_json(json), column);
    else if constexpr (std::is_same_v<T, Amounts>)
      value = checked(amounts_from_json(json), column);
    else if constexpr (std::is_same_v<T, ResumeCondition>)
      value = checked(condition_from_json(json), column);
    else
      value = checked(strings_from_json(json), column);
  } else {
    using Wire = std::conditional_t<column_type<T>().oid == kInt4.oid, std::int32_t, std::int64_t>;
    const auto stored = number_from<Wire>(bytes, column);
    // A number below zero would become a limit that nothing reaches.
    if (!std::in_range<T>(stored)) fail_corrupt(column);
    value = static_cast<T>(stored);
  }
}

}  // namespace flowfabric::store::postgres
