// A table of this store's own that members of flows are found by. An index on the executions would say the
// same, but here every change of a row writes all of its indexes anew, and who belongs to a flow hardly ever
// changes.
#pragma once

#include <boost/describe.hpp>

#include "model/record_type.h"

namespace flowfabric::store::postgres {

struct FlowMember {
  FlowId flow_id;
  std::int64_t created_at_ms{};
  std::uint16_t partition_key{};
  Uuid execution_id;
  auto operator<=>(const FlowMember&) const = default;
};
BOOST_DESCRIBE_STRUCT(FlowMember, (), (flow_id, created_at_ms, partition_key, execution_id))

const TableType& flow_member_type();

}  // namespace flowfabric::store::postgres
