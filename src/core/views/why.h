// Why an execution does not run.
#pragma once

#include "core/context.h"
#include "core/unit.h"
#include "flowfabric/why.h"

namespace flowfabric::core {

Result<WaitingExplanation> explain(Unit& unit, const ExecutionId& id, Context& at);

}  // namespace flowfabric::core
