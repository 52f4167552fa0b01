// Executions that are blocked until a worker is there that can do the work.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

bool is_blocked_on_route(const Execution& execution);
// The clock is to look at the route by then. Counts as a change of the route even if it is armed already: see
// run_route_clock.
void arm_route(Unit& unit, std::int64_t route_id, std::int64_t due_ms);

// Lets go what is blocked on a route as soon as one live worker covers all it requires. A route that nothing
// needs any more is removed.
Rule run_route_clock(Unit& unit, const RouteKey& key, Context& at);
// The same when nobody can tell which workers there are: work that a claim may find is better off than work
// that waits for good.
void unblock_unseen(Unit& unit, const RouteKey& key, Context& at);
// A worker is there: looks at once whether something was blocked for the lack of it.
void look_for_blocked(Unit& unit, const Worker& worker, const Context& at);

}  // namespace flowfabric::core
