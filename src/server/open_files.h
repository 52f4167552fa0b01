// The limit of open files, which also limits connections.
#pragma once

#include <cstddef>

namespace flowfabric::server {

// Raises the limit as far as the system allows.
void raise_limit_of_open_files();

// The number of connections that the limit allows, beside the files open now, those that stores and logs may
// still need, and `more`. At least a few.
std::size_t connections_that_fit(std::size_t more);

}  // namespace flowfabric::server
