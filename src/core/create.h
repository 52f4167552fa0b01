// Submitting an execution: idempotent by its id, and by a key within the key's window.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// The request must carry an execution id; the engine mints one for callers that give none.
Result<Creation> create(Unit& unit, const CreateExecution& request, Context& at);

// Names the records that `create` will look for.
void want_for(Unit& unit, const CreateExecution& request);

}  // namespace flowfabric::core
