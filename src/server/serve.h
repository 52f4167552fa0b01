// The server process: a store, an engine, the routes, the edge; from its start to a signal that ends it.
#pragma once

#include "server/config.h"

namespace flowfabric::server {

// Runs until SIGINT or SIGTERM, and answers then what is being answered (ending.h). Returns the exit code.
int serve(const Config& config);

}  // namespace flowfabric::server
