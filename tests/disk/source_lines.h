// Where in the source a site of syncs is.
#pragma once

#include <string>
#include <vector>

namespace flowfabric::disk {

// From the texts of `site` events, in words: the kind of file, what was called of SQLite, and the program's
// functions with file and line as far as addr2line knows them.
std::vector<std::string> describe_sites(const std::vector<std::string>& texts);

}  // namespace flowfabric::disk
