// Holding executions back, and letting them go: by an operator, by admission, or until a worker is there that
// can do the work.
#pragma once

#include "core/context.h"
#include "core/lifecycle/expiry.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<EligibilityChange> block(Unit& unit, const BlockExecution& request, Context& at);
Result<EligibilityChange> unblock(Unit& unit, const UnblockExecution& request, Context& at);
Result<EligibilityChange> hold(Unit& unit, const HoldExecution& request, Context& at);
Result<EligibilityChange> release(Unit& unit, const ReleaseExecution& request, Context& at);

// Lets go what is blocked on a route as soon as one live worker covers all it requires. A route that nothing
// needs any more is removed.
Rule run_route_clock(Unit& unit, const RouteKey& key, Context& at);
// The same when nobody can tell which workers there are: work that a claim may find is better off than work
// that waits for good.
void unblock_unseen(Unit& unit, const RouteKey& key, Context& at);
// A worker is there: looks at once whether something was blocked for the lack of it.
void look_for_blocked(Unit& unit, const Worker& worker, const Context& at);

}  // namespace flowfabric::core
