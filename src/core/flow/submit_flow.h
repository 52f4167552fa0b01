// A whole flow in one operation: all of it is there, or nothing.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// The request must carry a flow id; the engine mints one for callers that give none.
Result<FlowSubmission> apply(Unit& unit, const SubmitFlow& request, Context& at);

}  // namespace flowfabric::core
