// Runs the steps of bulk operations: lists the next executions that the filter matches, does one operation on
// each, and records how far it came.
#pragma once

#include "engine/committers.h"
#include "store/store.h"

namespace flowfabric::engine {

// One step of a running bulk operation whose time has come. False: it failed, and is to be tried again.
bool run_bulk_step(store::Session& session, Committers& committer, const BulkJobKey& key,
                   const EngineOptions& options);

}  // namespace flowfabric::engine
