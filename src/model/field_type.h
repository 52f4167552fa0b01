// The types of stored fields, described at run time: stores convert a field by looking at its description, so
// that none of their code is compiled for each record or each field.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "model/condition_json.h"
#include "model/describe.h"
#include "model/event_word.h"
#include "model/execution_records.h"
#include "model/policy_json.h"

namespace flowfabric {

// How a value is kept in memory, and thereby how it is stored.
enum class FieldKind : std::uint8_t {
  boolean,
  uint16,
  int32,
  uint32,
  int64,
  uint64,
  uuid,   // a typed id, too
  text,   // std::string
  bytes,  // Bytes
  word,   // of an enum, or of an event
  json,   // several values in one column
};

// One per C++ type. Functions that a kind does not need are null.
struct FieldType {
  FieldKind kind{};
  bool (*same)(const void* left, const void* right){};
  void (*clear)(void* field){};
  // Of an optional field: its value, null if it is absent; and a new value to be filled in.
  const void* (*value)(const void* field){};
  void* (*emplace)(void* field){};
  // Of a word. False: there is no such word.
  std::string_view (*word)(const void* value){};
  bool (*set_word)(void* value, std::string_view word){};
  // Of JSON. False: it cannot be read.
  std::string (*json)(const void* value){};
  bool (*set_json)(void* value, std::string_view json){};
  bool (*is_default)(const void* value){};

  bool is_optional() const { return value != nullptr; }
};

namespace detail {

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool is_uuid = std::is_same_v<T, Uuid>;
template <class Tag>
inline constexpr bool is_uuid<TypedId<Tag>> = true;
template <class T>
inline constexpr bool is_event_word = false;
template <class Enum>
inline constexpr bool is_event_word<EventWord<Enum>> = true;
template <class T>
inline constexpr bool is_json = std::is_same_v<T, Tags> || std::is_same_v<T, ExecutionPolicy> ||
                                std::is_same_v<T, std::vector<std::string>> ||
                                std::is_same_v<T, ResumeCondition> || std::is_same_v<T, Amounts>;

inline auto from_json(std::string_view json, std::type_identity<Tags>) {
  return tags_from_json(json);
}
inline auto from_json(std::string_view json, std::type_identity<std::vector<std::string>>) {
  return strings_from_json(json);
}
inline auto from_json(std::string_view json, std::type_identity<Amounts>) {
  return amounts_from_json(json);
}
inline auto from_json(std::string_view json, std::type_identity<ExecutionPolicy>) {
  return policy_from_json(json);
}
inline auto from_json(std::string_view json, std::type_identity<ResumeCondition>) {
  return condition_from_json(json);
}

template <class T>
constexpr FieldKind integer_kind() {
  static_assert(std::is_integral_v<T>, "a field of this type cannot be stored");
  if constexpr (std::is_same_v<T, bool>)
    return FieldKind::boolean;
  else if constexpr (std::is_same_v<T, std::uint16_t>)
    return FieldKind::uint16;
  else if constexpr (std::is_signed_v<T>)
    return sizeof(T) == sizeof(std::int32_t) ? FieldKind::int32 : FieldKind::int64;
  else
    return sizeof(T) == sizeof(std::uint32_t) ? FieldKind::uint32 : FieldKind::uint64;
}

template <class T>
constexpr void describe_value(FieldType& type) {
  if constexpr (is_uuid<T>) {
    static_assert(std::is_standard_layout_v<T> && sizeof(T) == sizeof(Uuid));
    type.kind = FieldKind::uuid;
  } else if constexpr (std::is_same_v<T, std::string>) {
    type.kind = FieldKind::text;
  } else if constexpr (std::is_same_v<T, Bytes>) {
    type.kind = FieldKind::bytes;
  } else if constexpr (std::is_enum_v<T>) {
    type.kind = FieldKind::word;
    type.word = [](const void* value) { return enum_name(*static_cast<const T*>(value)); };
    type.set_word = [](void* value, std::string_view word) {
      const auto known = enum_from_name<T>(word);
      if (known) *static_cast<T*>(value) = *known;
      return known.has_value();
    };
  } else if constexpr (is_event_word<T>) {
    type.kind = FieldKind::word;
    type.word = [](const void* value) { return word_text(*static_cast<const T*>(value)); };
    type.set_word = [](void* value, std::string_view word) {
      *static_cast<T*>(value) = event_word<decltype(T::known)>(word);
      return !word.empty();
    };
  } else if constexpr (is_json<T>) {
    type.kind = FieldKind::json;
    type.json = [](const void* value) { return to_json(*static_cast<const T*>(value)); };
    type.set_json = [](void* value, std::string_view json) {
      auto read = from_json(json, std::type_identity<T>());
      if (read) *static_cast<T*>(value) = *std::move(read);
      return read.has_value();
    };
    type.is_default = [](const void* value) { return *static_cast<const T*>(value) == T{}; };
  } else {
    type.kind = integer_kind<T>();
  }
}

template <class T>
constexpr FieldType describe_field() {
  FieldType type;
  if constexpr (is_optional<T>) {
    describe_value<typename T::value_type>(type);
    type.value = [](const void* field) -> const void* {
      const auto& optional = *static_cast<const T*>(field);
      return optional ? &*optional : nullptr;
    };
    type.emplace = [](void* field) -> void* { return &static_cast<T*>(field)->emplace(); };
  } else {
    describe_value<T>(type);
  }
  type.same = [](const void* left, const void* right) {
    return *static_cast<const T*>(left) == *static_cast<const T*>(right);
  };
  type.clear = [](void* field) { *static_cast<T*>(field) = T{}; };
  return type;
}

}  // namespace detail

template <class T>
inline constexpr FieldType kFieldType = detail::describe_field<T>();

// A whole number of any width; the kind must be one.
std::int64_t integer_of(FieldKind kind, const void* value);
// False: it does not fit.
bool set_integer(FieldKind kind, void* value, std::int64_t integer);

// An absent value, an empty text, a default policy and `false` are stored as null.
bool has_value(const FieldType& type, const void* field);

// For people: an id in its usual form, a word, a number, a text.
std::string shown_field(const FieldType& type, const void* field);

// ---- columns ----

struct Column {
  std::string_view name;
  std::ptrdiff_t offset{};  // in the struct
  const FieldType* type{};

  const void* in(const void* record) const { return static_cast<const char*>(record) + offset; }
  void* in(void* record) const { return static_cast<char*>(record) + offset; }
};
using Columns = std::span<const Column>;
// Null: there is none of this name.
const Column* column_named(Columns columns, std::string_view name);

// The columns of a described struct, in order.
template <class Struct>
std::array<Column, column_count<Struct>()> describe_columns() {
  std::array<Column, column_count<Struct>()> columns;
  const Struct value{};
  const auto* begin = reinterpret_cast<const char*>(&value);
  std::size_t index = 0;
  for_each_field(value, [&]<class Field>(std::string_view name, const Field& field) {
    columns[index++] = {name, reinterpret_cast<const char*>(&field) - begin, &kFieldType<Field>};
  });
  return columns;
}

}  // namespace flowfabric
