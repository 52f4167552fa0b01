// Where in the source a site of syncs is.
#pragma once

#include <string>

namespace flowfabric::disk {

// From the text of a `site` event, in words: the kind of file, what was called of SQLite, and the program's
// functions with file and line as far as addr2line knows them.
std::string describe_site(const std::string& text);

}  // namespace flowfabric::disk
