// Walks a whole store and reports what does not fit together; see core/doctor/check.h for what must be true.
#pragma once

#include "engine/committers.h"
#include "engine/readers.h"

namespace flowfabric::engine {

// Reads page by page, each in a transaction of its own, so that the store goes on working meanwhile.
Result<StoreReport> check_store(Readers& readers, Committers& committer, const CheckStore& request,
                                const EngineOptions& options);

}  // namespace flowfabric::engine
