#include "store/postgres/row_types.h"

#include <algorithm>

namespace flowfabric::store::postgres {

namespace {

[[noreturn]] void refuse(const std::string& table, const std::string& what) {
  throw StoreFailure{
      {ErrorCode::invalid_input, table + ": " + what,
       "The table is not as this program made it: undo the change, or run `flowfabric migrate`."}};
}

RowType row_type(const Rows& rows, const TableType& table) {
  RowType type;
  for (int row = 0; row < rows.size(); ++row) {
    if (rows.bytes(row, 0) != table.table) continue;
    type.oid = number_from<std::uint32_t>(rows.bytes(row, 1), "reltype");
    const auto* column = column_named(table.columns, rows.bytes(row, 2));
    if (!column) refuse(table.table, "unknown column " + std::string(rows.bytes(row, 2)));
    const auto index = static_cast<std::size_t>(column - table.columns.data());
    type.fields.push_back({column, column_type(column->type->kind).oid, index, index < table.keys});
  }
  if (type.fields.size() != table.columns.size()) refuse(table.table, "a column is missing");
  return type;
}

}  // namespace

Parameters RowType::parameters(std::span<const void* const> records) const {
  return parameters(records, ColumnMask().set());
}

Parameters RowType::parameters(std::span<const void* const> records, const ColumnMask& chosen) const {
  Parameters parameters;
  parameters.add_rows(oid, records, [&](std::string& bytes, const void* record) {
    append_number(bytes, static_cast<std::int32_t>(fields.size()));
    for (const auto& [column, column_oid, index, is_key] : fields) {
      append_number(bytes, column_oid);
      const void* field = column->in(record);
      if (is_key || (chosen.test(index) && has_value(*column->type, field)))
        append_field(bytes, *column->type, field);
      else
        append_null(bytes);
    }
  });
  return parameters;
}

RowTypes::RowTypes(Connection& connection) {
  connection.run(
      "select c.relname::text,c.reltype,a.attname::text from pg_class c join pg_attribute a on "
      "a.attrelid=c.oid "
      "where c.relkind='r' and c.relname like 'ff\\_%' and pg_table_is_visible(c.oid) and a.attnum>0 and "
      "not a.attisdropped order by c.relname,a.attnum",
      {}, [&](const Rows& rows) {
        for (const auto& type : record_types()) records_[type.place] = row_type(rows, type);
        for (const auto& type : event_types()) events_[type.place] = row_type(rows, type);
        flow_members_ = row_type(rows, flow_member_type());
      });
}

}  // namespace flowfabric::store::postgres
