// A place in the order of a listing: by time of creation.
#pragma once

#include <boost/describe.hpp>
#include <compare>
#include <cstdint>

#include "flowfabric/ids.h"

namespace flowfabric::core {

struct ListPosition {
  std::int64_t created_at_ms{};
  ExecutionId execution_id;
  auto operator<=>(const ListPosition&) const = default;
};
BOOST_DESCRIBE_STRUCT(ListPosition, (), (created_at_ms, execution_id))

}  // namespace flowfabric::core
