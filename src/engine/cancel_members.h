// Cancelling a flow while its caller waits: after the flow itself, its members, step by step.
#pragma once

#include "engine/committers.h"
#include "engine/readers.h"
#include "engine/watchers.h"
#include "flowfabric/flows.h"

namespace flowfabric::engine {

using CancelAnswer = std::function<void(Result<FlowCancellation>)>;

struct FlowCancel {
  Committers& committers;
  Readers& readers;
  Watchers& watchers;
  const EngineOptions& options;
  CancelFlow request;
};

// What to do with the answer to the flow's own cancel: cancel its members, wait for what may finish by
// itself, then answer, on a thread of the engine.
CancelAnswer finish_cancel(const FlowCancel& cancel, CancelAnswer answer);

// Repeating the call would meet the same trouble.
bool is_hopeless(ErrorCode code);

// A step of the clock met a member that cannot be cancelled: now each by itself. One that cannot even be read
// is given up, so that it holds up nobody. False: there was other trouble, and the step is to be repeated.
bool cancel_each(store::Session& session, Committers& committers, const FlowKey& key,
                 const EngineOptions& options);

}  // namespace flowfabric::engine
