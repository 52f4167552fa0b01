// Cancelling an execution, from whatever state it is in.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<Cancelled> cancel(Unit& unit, const CancelExecution& request, Context& at);

}  // namespace flowfabric::core
