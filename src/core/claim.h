// Claiming: workers take what is offered, under a lease.
#pragma once

#include "core/context.h"
#include "core/offer.h"
#include "core/unit.h"

namespace flowfabric::core {

// Refuses a malformed request, and says what its worker serves otherwise.
Result<WorkerScope> check_claim(const ClaimTasks& request);

// One claim path for everything: fresh work and retries, attempts that go on after a pause, and work whose
// lease was lost. An empty answer means that nothing is offered now.
Result<std::vector<ClaimedTask>> claim(Unit& unit, const ClaimTasks& request, Context& at);

}  // namespace flowfabric::core
