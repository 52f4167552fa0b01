// Requests that come with a handle in place of an id and a fence (specification 01 §6, 03 §7).
#pragma once

#include "flowfabric/handle.h"
#include "flowfabric/suspension.h"

namespace flowfabric::engine {

HandleBackend backend_of(const std::string& url);

OpaqueHandle handle_of(const ClaimedTask& task, HandleBackend backend, const std::string& worker_instance_id,
                       std::int64_t lease_ttl_ms);

// Fills in what the handle says. Refused before the store is asked: a handle that holds no lease, first of
// all; then what is wrong with the rest of the request; then bytes that are no handle of this store.
Result<void> resolve_handle(SuspendExecution& request, HandleBackend backend, std::int64_t now_ms);

}  // namespace flowfabric::engine
