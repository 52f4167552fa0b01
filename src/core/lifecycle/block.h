// Holding executions back, and letting them go.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<EligibilityChange> apply(Unit& unit, const BlockExecution& request, Context& at);
Result<EligibilityChange> apply(Unit& unit, const UnblockExecution& request, Context& at);
Result<EligibilityChange> apply(Unit& unit, const HoldExecution& request, Context& at);
Result<EligibilityChange> apply(Unit& unit, const ReleaseExecution& request, Context& at);

}  // namespace flowfabric::core
