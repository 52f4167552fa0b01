// Tells whether a file has changed.
#pragma once

#include <string>

namespace flowfabric::http {

// Another text whenever the file is another one, or was written to.
std::string file_stamp(const std::string& path);

}  // namespace flowfabric::http
