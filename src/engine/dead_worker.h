// Offering again what a dead worker held (core/lifecycle/dead_worker.h): while the caller waits, and by the
// clock.
#pragma once

#include "engine/committers.h"
#include "flowfabric/registry.h"

namespace flowfabric::engine {

using DeadAnswer = std::function<void(Result<MarkedDead>)>;

// What to do with the answer to the worker's own removal: one step, then answer. What is left then is left to
// the clock.
DeadAnswer offer_leases(const DeadWorkerKey& key, Committers& committers, const EngineOptions& options,
                        DeadAnswer answer);

// A step of the clock met an execution that it cannot offer: now each by itself. One that cannot be read
// holds up nobody but itself. False: there was other trouble, and the step is to be repeated.
bool offer_each(store::Session& session, Committers& committers, const DeadWorkerKey& key,
                const EngineOptions& options);

}  // namespace flowfabric::engine
