#include "model/field_type.h"

#include <utility>

namespace flowfabric {

namespace {

template <class T>
bool set_if_in_range(void* value, std::int64_t integer) {
  if (!std::in_range<T>(integer)) return false;
  *static_cast<T*>(value) = static_cast<T>(integer);
  return true;
}

}  // namespace

std::int64_t integer_of(FieldKind kind, const void* value) {
  switch (kind) {
    case FieldKind::uint16:
      return *static_cast<const std::uint16_t*>(value);
    case FieldKind::int32:
      return *static_cast<const std::int32_t*>(value);
    case FieldKind::uint32:
      return *static_cast<const std::uint32_t*>(value);
    case FieldKind::uint64:
      return static_cast<std::int64_t>(*static_cast<const std::uint64_t*>(value));
    case FieldKind::boolean:
      return *static_cast<const bool*>(value) ? 1 : 0;
    default:
      return *static_cast<const std::int64_t*>(value);
  }
}

bool set_integer(FieldKind kind, void* value, std::int64_t integer) {
  switch (kind) {
    case FieldKind::uint16:
      return set_if_in_range<std::uint16_t>(value, integer);
    case FieldKind::int32:
      return set_if_in_range<std::int32_t>(value, integer);
    case FieldKind::uint32:
      return set_if_in_range<std::uint32_t>(value, integer);
    case FieldKind::uint64:
      return set_if_in_range<std::uint64_t>(value, integer);
    case FieldKind::boolean:
      *static_cast<bool*>(value) = integer != 0;
      return true;
    default:
      *static_cast<std::int64_t*>(value) = integer;
      return true;
  }
}

bool has_value(const FieldType& type, const void* field) {
  if (type.is_optional()) return type.value(field) != nullptr;
  switch (type.kind) {
    case FieldKind::boolean:
      return *static_cast<const bool*>(field);
    case FieldKind::text:
      return !static_cast<const std::string*>(field)->empty();
    case FieldKind::bytes:
      return !static_cast<const Bytes*>(field)->data.empty();
    case FieldKind::json:
      return !type.is_default(field);
    default:
      return true;
  }
}

const Column* column_named(Columns columns, std::string_view name) {
  for (const auto& column : columns) {
    if (column.name == name) return &column;
  }
  return nullptr;
}

std::string shown_field(const FieldType& type, const void* field) {
  const void* value = type.is_optional() ? type.value(field) : field;
  if (!value) return "";
  switch (type.kind) {
    case FieldKind::uuid:
      return static_cast<const Uuid*>(value)->to_string();
    case FieldKind::text:
      return *static_cast<const std::string*>(value);
    case FieldKind::bytes:
      return static_cast<const Bytes*>(value)->data;
    case FieldKind::word:
      return std::string(type.word(value));
    case FieldKind::json:
      return type.json(value);
    default:
      return std::to_string(integer_of(type.kind, value));
  }
}

}  // namespace flowfabric
