// Following the event logs.
#pragma once

#include "engine/readers.h"
#include "engine/watchers.h"

namespace flowfabric::engine {

// Answers now, or on a thread of the engine as soon as there is something.
void follow(Readers& readers, Watchers& watchers, FollowEvents request,
            std::function<void(Result<EventBatch>)> answer);

}  // namespace flowfabric::engine
