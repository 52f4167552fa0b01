// Whole rows as parameters: an array of a table's row type, in binary. One such array is far cheaper for the
// database than an array per column.
//
// A row travels in the order of the table's columns, which need not be that of the record's fields:
// migrations add columns at the end.
#pragma once

#include <array>

#include "store/postgres/connection.h"
#include "store/postgres/flow_member.h"

namespace flowfabric::store::postgres {

// The row type of one table.
struct RowType {
  struct Field {
    const Column* column{};
    std::uint32_t oid{};
    std::size_t index{};  // in the record
    bool is_key{};
  };
  std::uint32_t oid{};
  std::vector<Field> fields;  // in the table's order

  Parameters parameters(std::span<const void* const> records) const;
  // Columns that were not chosen are null, which costs next to nothing.
  Parameters parameters(std::span<const void* const> records, const ColumnMask& chosen) const;
};

class RowTypes {
 public:
  // Asks the database. Throws StoreFailure when a table is not as this program expects it.
  explicit RowTypes(Connection& connection);

  const RowType& of(const RecordType& type) const { return records_[type.place]; }
  const RowType& of(const EventType& type) const { return events_[type.place]; }
  const RowType& of_flow_members() const { return flow_members_; }

 private:
  std::array<RowType, kRecordTypes> records_;
  std::array<RowType, kEventTypes> events_;
  RowType flow_members_;
};

}  // namespace flowfabric::store::postgres
