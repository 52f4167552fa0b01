#include "store/postgres/row_types.h"

#include <algorithm>

namespace flowfabric::store::postgres {

namespace {

[[noreturn]] void refuse(const std::string& table, const std::string& what) {
  throw StoreFailure{
      {ErrorCode::invalid_input, table + ": " + what,
       "The table is not as this program made it: undo the change, or run `flowfabric migrate`."}};
}

template <class Record>
RowType<Record> row_type(const Rows& rows) {
  RowType<Record> type;
  for (int row = 0; row < rows.size(); ++row) {
    if (rows.bytes(row, 0) != Record::table) continue;
    type.oid = number_from<std::uint32_t>(rows.bytes(row, 1), "reltype");
    const auto& known = field_writers<Record>();
    const auto it = std::ranges::find(known, rows.bytes(row, 2), &FieldWriter::column);
    if (it == known.end()) refuse(Record::table, "unknown column " + std::string(rows.bytes(row, 2)));
    type.columns.push_back(*it);
  }
  if (type.columns.size() != column_count<Record>()) refuse(Record::table, "a column is missing");
  return type;
}

}  // namespace

RowTypes::RowTypes(Connection& connection) {
  connection.run(
      "select c.relname::text,c.reltype,a.attname::text from pg_class c join pg_attribute a on "
      "a.attrelid=c.oid "
      "where c.relkind='r' and c.relname like 'ff\\_%' and pg_table_is_visible(c.oid) and a.attnum>0 and "
      "not a.attisdropped order by c.relname,a.attnum",
      {}, [&](const Rows& rows) {
        for_each_type<Rowed>(
            [&]<class Record>() { std::get<RowType<Record>>(types_) = row_type<Record>(rows); });
      });
}

}  // namespace flowfabric::store::postgres
