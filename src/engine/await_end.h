// Waiting for an execution to end.
#pragma once

#include "engine/readers.h"
#include "engine/watchers.h"

namespace flowfabric::engine {

// Answers now, or on a thread of the engine when it has ended.
void await_end(Readers& readers, Watchers& watchers, AwaitExecution request,
               std::function<void(Result<ExecutionEnd>)> answer);

}  // namespace flowfabric::engine
