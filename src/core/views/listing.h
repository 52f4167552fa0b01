// Listings: which executions a filter matches, and where a page goes on.
#pragma once

#include <compare>
#include <optional>
#include <string>

#include "flowfabric/listing.h"
#include "model/records.h"

namespace flowfabric::core {

// A place in the order of a listing: by time of creation.
struct ListPosition {
  std::int64_t created_at_ms{};
  ExecutionId execution_id;
  auto operator<=>(const ListPosition&) const = default;
};
BOOST_DESCRIBE_STRUCT(ListPosition, (), (created_at_ms, execution_id))

Result<void> check_filter(const ExecutionFilter& filter);
bool is_empty(const ExecutionFilter& filter);
bool matches(const ExecutionFilter& filter, const ListedExecution& execution, const Group& group);
ExecutionSummary summary(const ListedExecution& execution, const Group& group);

std::string cursor_of(const ListPosition& position, ListOrder order);
// The position that a cursor of the same order names.
Result<ListPosition> position_of(const std::string& cursor, ListOrder order);

std::unexpected<Error> bad_cursor(const std::string& cursor);

}  // namespace flowfabric::core
