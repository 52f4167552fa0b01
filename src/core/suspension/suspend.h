// Suspending: a worker gives its lease back and says what the execution waits for (specification 03 §7).
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// What can be said against a request without knowing its execution.
Result<void> check_arguments(const SuspendExecution& request, std::int64_t now_ms);
Result<Suspended> apply(Unit& unit, const SuspendExecution& request, Context& at);

}  // namespace flowfabric::core
