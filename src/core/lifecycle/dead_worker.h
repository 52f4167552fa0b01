// The leases of a worker that was taken out of the registry. They are offered again at once: it is written
// down that the worker is dead (ff_dead_worker), and then its leases are ended, a page in one step, so that a
// crash in the middle loses nothing.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// One step.
Rule run_dead_worker_clock(Unit& unit, const DeadWorkerKey& key, Context& at);

// The parts of a step, for when one of its executions cannot be read: what it is about, one of them alone,
// and its end.
LeasesOf next_page(const DeadWorker& dead);
void end_lease_if_dead(Unit& unit, const DeadWorkerKey& key, const ExecutionId& id, const Context& at);
void pass(Unit& unit, const DeadWorkerKey& key, const std::vector<ExecutionId>& page, const Context& at);

}  // namespace flowfabric::core
