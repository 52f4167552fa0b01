// Whole rows as parameters: an array of a table's row type, in binary. One such array is far cheaper for the
// database than an array per column.
//
// A row travels in the order of the table's columns, which need not be that of the record's fields:
// migrations add columns at the end.
#pragma once

#include <array>
#include <tuple>

#include "store/postgres/connection.h"
#include "store/postgres/flow_member.h"

namespace flowfabric::store::postgres {

using AppendField = void(std::string& out, const void* field, bool is_key);

// How one field of a record is written.
struct FieldWriter {
  std::string_view column;
  std::uint32_t oid{};
  std::ptrdiff_t offset{};
  AppendField* append{};
  bool is_key{};
  std::size_t index{};  // of the field in the record
};

template <class Field>
void append_field(std::string& out, const void* field, bool is_key) {
  const auto& value = *static_cast<const Field*>(field);
  if (is_key || has_value(value))
    append_value(out, value);
  else
    append_null(out);
}

template <class Record>
const std::array<FieldWriter, column_count<Record>()>& field_writers() {
  static const auto writers = [] {
    const auto fields = fields_with<AppendField, Record>([]<class Field>() { return &append_field<Field>; });
    std::array<FieldWriter, column_count<Record>()> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = {kColumnNames<Record>[i], kColumnTypes<Record>[i].oid, fields[i].offset,
                fields[i].function,      i < key_columns<Record>,     i};
    }
    return all;
  }();
  return writers;
}

// The row type of one record's table.
template <class Record>
struct RowType {
  std::uint32_t oid{};
  std::vector<FieldWriter> columns;  // in the table's order

  // Columns that were not chosen are null, which costs next to nothing.
  template <class Records>
  Parameters parameters(const Records& records,
                        const ColumnMask<Record>& chosen = ColumnMask<Record>().set()) const {
    Parameters parameters;
    parameters.add_rows(oid, records, [&](std::string& bytes, const Record* record) {
      append_number(bytes, static_cast<std::int32_t>(columns.size()));
      for (const auto& column : columns) {
        append_number(bytes, column.oid);
        if (column.is_key || chosen.test(column.index))
          column.append(bytes, reinterpret_cast<const char*>(record) + column.offset, column.is_key);
        else
          append_null(bytes);
      }
    });
    return parameters;
  }
};

// Everything that is written as whole rows.
using Rowed = boost::mp11::mp_append<Records, Events, boost::mp11::mp_list<FlowMember>>;

class RowTypes {
 public:
  // Asks the database. Throws StoreFailure when a table is not as this program expects it.
  explicit RowTypes(Connection& connection);

  template <class Record>
  const RowType<Record>& of() const {
    return std::get<RowType<Record>>(types_);
  }

 private:
  template <class List>
  using TupleOf = boost::mp11::mp_rename<boost::mp11::mp_transform<RowType, List>, std::tuple>;
  TupleOf<Rowed> types_;
};

}  // namespace flowfabric::store::postgres
