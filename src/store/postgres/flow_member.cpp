#include "store/postgres/flow_member.h"

namespace flowfabric::store::postgres {

const TableType& flow_member_type() {
  static const TableType type = [] {
    TableType made{.table = "ff_flow_member", .columns = described_columns<FlowMember>()};
    made.keys = made.columns.size();
    for (const auto& column : made.columns) made.names.push_back(column.name);
    return made;
  }();
  return type;
}

}  // namespace flowfabric::store::postgres
