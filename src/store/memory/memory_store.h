// The memory store: nothing survives the process. Kept as simple as it can be, because the other stores are
// tested against it.
#pragma once

#include "store/store.h"
#include "store/url.h"

namespace flowfabric::store {

// `memory:?load=deferred` does not load on the spot: it makes operations meet records that are not there yet,
// as on a store across a network. For tests.
Result<std::unique_ptr<Store>> open_memory_store(const StoreUrl& url, const StoreOptions& options);

}  // namespace flowfabric::store
