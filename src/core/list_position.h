// A place in the order of a listing.
#pragma once

#include <compare>

#include "model/records.h"

namespace flowfabric::core {

// By time of creation.
struct ListPosition {
  std::int64_t created_at_ms{};
  ExecutionId execution_id;
  auto operator<=>(const ListPosition&) const = default;
};
BOOST_DESCRIBE_STRUCT(ListPosition, (), (created_at_ms, execution_id))

}  // namespace flowfabric::core
