// How many files, and so connections, the process may have open at a time.
#pragma once

#include <cstddef>

namespace flowfabric::server {

// Raises the limit as far as the system lets this process.
void raise_limit_of_open_files();

// How many connections the limit allows, beside what is open now, what stores and logs may yet need, and
// `more`. At least a few.
std::size_t connections_that_fit(std::size_t more);

}  // namespace flowfabric::server
