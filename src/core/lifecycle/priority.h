// Moving an execution up or down the line.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<PriorityChanged> apply(Unit& unit, const ChangePriority& request, Context& at);

}  // namespace flowfabric::core
