// Listings: which executions a filter matches, and where a page goes on.
#pragma once

#include <optional>
#include <string>

#include "core/list_position.h"
#include "flowfabric/listing.h"
#include "model/records.h"

namespace flowfabric::core {

Result<void> check_filter(const ExecutionFilter& filter);
bool is_empty(const ExecutionFilter& filter);
bool matches(const ExecutionFilter& filter, const ListedExecution& execution, const Group& group);
ExecutionSummary summary(const ListedExecution& execution, const Group& group);

std::string cursor_of(const ListPosition& position, ListOrder order);
// The position that a cursor of the same order names.
Result<ListPosition> position_of(const std::string& cursor, ListOrder order);

std::unexpected<Error> bad_cursor(const std::string& cursor);

}  // namespace flowfabric::core
