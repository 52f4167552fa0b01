// Suspending: a worker gives its lease back and says what the execution waits for; and waitpoints that are
// made before that (specification 03 §5, §7).
#pragma once

#include "core/context.h"
#include "core/expiry.h"
#include "core/unit.h"

namespace flowfabric::core {

// What can be said against a request without knowing its execution.
Result<void> check_arguments(const SuspendExecution& request, std::int64_t now_ms);
Result<Suspended> suspend(Unit& unit, const SuspendExecution& request, Context& at);
// Names what that will need.
void want_for(Unit& unit, const SuspendExecution& request);

Result<TokenedWaitpoint> create_waitpoint(Unit& unit, const CreateWaitpoint& request, Context& at);
Result<WaitpointClosed> close_waitpoint(Unit& unit, const CloseWaitpoint& request, Context& at);

// A pending waitpoint that nobody was suspended on in time.
Rule run_due(Unit& unit, const WaitpointRecordKey& key, Context& at);

}  // namespace flowfabric::core
