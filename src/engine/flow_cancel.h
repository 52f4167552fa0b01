// Cancelling a flow while its caller waits: after the flow itself, its members, step by step.
#pragma once

#include "engine/committers.h"
#include "engine/readers.h"
#include "flowfabric/flows.h"

namespace flowfabric::engine {

using CancelAnswer = std::function<void(Result<FlowCancellation>)>;

struct FlowCancel {
  Committers& committers;
  const EngineOptions& options;
  FlowId flow_id;
};

// What to do with the answer to the flow's own cancel: cancel its members, then answer. What still runs and
// is allowed to finish is not waited for here.
CancelAnswer finish_cancel(const FlowCancel& cancel, CancelAnswer answer);

// Repeating the call would meet the same trouble.
bool is_hopeless(ErrorCode code);

// A step of the clock met a member that cannot be cancelled: now each by itself. One that cannot even be read
// is given up, so that it holds up nobody. False: there was other trouble, and the step is to be repeated.
bool cancel_each(store::Session& session, Committers& committers, const FlowKey& key,
                 const EngineOptions& options);

// Waits on the calling thread for what may finish by itself.
Result<FlowCancellation> await_cancel(Readers& readers, const CancelFlow& request,
                                      Result<FlowCancellation> answer);

}  // namespace flowfabric::engine
