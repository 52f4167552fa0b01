// Cancelling an execution, from whatever state it is in.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// It has not ended yet, and the caller may. `follow_end` is left to the caller.
void stop(Unit& unit, Execution& execution, const std::string& reason, const std::string& by,
          const Context& at);

Result<Cancelled> apply(Unit& unit, const CancelExecution& request, Context& at);

}  // namespace flowfabric::core
