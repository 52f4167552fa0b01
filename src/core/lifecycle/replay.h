// Replay: an execution that has ended runs once more, as a new attempt.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<Replayed> apply(Unit& unit, const ReplayExecution& request, Context& at);

}  // namespace flowfabric::core
