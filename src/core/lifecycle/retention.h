// Retention: what has ended is kept for a while and then removed, with everything that belongs to it.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// Its time has come: it is removed, unless its flow goes on. Edges that are still to be resolved, siblings
// that are still to be cancelled, late edges and replays need every member until all have ended; then it is
// looked at again later.
Rule purge(Unit& unit, const ExecutionId& id, const Context& at);

}  // namespace flowfabric::core
