// Tells whether a file has changed.
#pragma once

#include <string>

namespace flowfabric::http {

// A text that changes when the file is replaced or written to.
std::string file_stamp(const std::string& path);

}  // namespace flowfabric::http
