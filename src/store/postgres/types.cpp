#include "store/postgres/types.h"

namespace flowfabric::store::postgres {

namespace {

constexpr ColumnType kBool{"bool", 16};
constexpr ColumnType kInt4{"int4", 23};
constexpr ColumnType kInt8{"int8", 20};
constexpr ColumnType kUuid{"uuid", 2950};
constexpr ColumnType kText{"text", 25};
constexpr ColumnType kBytes{"bytea", 17};
constexpr ColumnType kJson{"jsonb", 3802};

// Integers of 32 bits without a sign need more.
bool is_int4(FieldKind kind) {
  return kind == FieldKind::uint16 || kind == FieldKind::int32;
}

template <class Wire>
void append_integer(std::string& out, std::int64_t value) {
  append_number(out, static_cast<std::int32_t>(sizeof(Wire)));
  append_number(out, static_cast<Wire>(value));
}

}  // namespace

ColumnType column_type(FieldKind kind) {
  switch (kind) {
    case FieldKind::boolean:
      return kBool;
    case FieldKind::uuid:
      return kUuid;
    case FieldKind::text:
    case FieldKind::word:
      return kText;
    case FieldKind::bytes:
      return kBytes;
    case FieldKind::json:
      return kJson;
    default:
      return is_int4(kind) ? kInt4 : kInt8;
  }
}

void append_field(std::string& out, const FieldType& type, const void* field) {
  const void* value = type.is_optional() ? type.value(field) : field;
  if (!value) return append_null(out);
  switch (type.kind) {
    case FieldKind::boolean:
      return append_bytes(
          out, *static_cast<const bool*>(value) ? std::string_view("\1", 1) : std::string_view("\0", 1));
    case FieldKind::uuid: {
      const auto& bytes = static_cast<const Uuid*>(value)->bytes;
      return append_bytes(out, {reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
    case FieldKind::text:
      return append_bytes(out, *static_cast<const std::string*>(value));
    case FieldKind::bytes:
      return append_bytes(out, static_cast<const Bytes*>(value)->data);
    case FieldKind::word:
      return append_bytes(out, type.word(value));
    case FieldKind::json: {
      const auto json = type.json(value);
      append_number(out, static_cast<std::int32_t>(json.size() + 1));
      out.push_back(1);  // the version of the format
      out.append(json);
      return;
    }
    default:
      if (is_int4(type.kind))
        append_integer<std::int32_t>(out, integer_of(type.kind, value));
      else
        append_integer<std::int64_t>(out, integer_of(type.kind, value));
  }
}

Parameters& Parameters::add_column(const Column& column, std::span<const void* const> structs) {
  return add_items(column_type(column.type->kind).oid, structs, [&](std::string& bytes, const void* each) {
    append_field(bytes, *column.type, column.in(each));
  });
}

void read_value(std::string_view bytes, const char* column, const FieldType& type, void* field) {
  void* value = type.is_optional() ? type.emplace(field) : field;
  const auto require = [&](bool is_good) {
    if (!is_good) fail_corrupt(column);
  };
  switch (type.kind) {
    case FieldKind::boolean:
      require(bytes.size() == 1);
      *static_cast<bool*>(value) = bytes.front() != 0;
      return;
    case FieldKind::uuid: {
      auto& uuid = *static_cast<Uuid*>(value);
      require(bytes.size() == uuid.bytes.size());
      std::memcpy(uuid.bytes.data(), bytes.data(), uuid.bytes.size());
      return;
    }
    case FieldKind::text:
      *static_cast<std::string*>(value) = bytes;
      return;
    case FieldKind::bytes:
      static_cast<Bytes*>(value)->data = bytes;
      return;
    case FieldKind::word:
      return require(type.set_word(value, bytes));
    case FieldKind::json:
      return require(!bytes.empty() && type.set_json(value, bytes.substr(1)));
    default:
      // A number below zero would become a limit that nothing reaches.
      return require(set_integer(type.kind, value,
                                 is_int4(type.kind) ? number_from<std::int32_t>(bytes, column)
                                                    : number_from<std::int64_t>(bytes, column)));
  }
}

}  // namespace flowfabric::store::postgres
