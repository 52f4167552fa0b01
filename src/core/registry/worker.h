// The registry of workers: who is there, what it serves, and when it was last heard of.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<WorkerRegistration> apply(Unit& unit, const RegisterWorker& request, Context& at);
Result<Heartbeat> apply(Unit& unit, const HeartbeatWorker& request, Context& at);
Result<MarkedDead> apply(Unit& unit, const MarkWorkerDead& request, Context& at);

bool is_alive(const Worker& worker, const Context& at);
// Whether leases on executions of the namespace are this worker's: a worker without a namespace works for all
// of them, but for those where an instance of the same name is registered.
bool works_for(Unit& unit, const WorkerKey& worker, const std::string& name_space);
// Removes a worker that was not heard of in its time.
Rule run_worker_clock(Unit& unit, const WorkerKey& key, Context& at);

}  // namespace flowfabric::core
