// The registry of workers: who is there, what it serves, and when it was last heard of.
#pragma once

#include "core/context.h"
#include "core/lifecycle/expiry.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<WorkerRegistration> register_worker(Unit& unit, const RegisterWorker& request, Context& at);
Result<Heartbeat> heartbeat(Unit& unit, const HeartbeatWorker& request, Context& at);
Result<MarkedDead> mark_worker_dead(Unit& unit, const MarkWorkerDead& request, Context& at);

bool is_alive(const Worker& worker, const Context& at);
// Removes a worker that was not heard of in its time.
Rule run_worker_clock(Unit& unit, const WorkerKey& key, Context& at);

}  // namespace flowfabric::core
