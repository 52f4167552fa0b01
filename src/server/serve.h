// The server process: store, engine, routes and edge, from the start to the signal that ends it.
#pragma once

#include "server/config.h"

namespace flowfabric::server {

// Runs until SIGINT or SIGTERM, then finishes the requests in progress (ending.h). Returns the exit code.
int serve(const Config& config);

}  // namespace flowfabric::server
