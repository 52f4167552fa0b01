// A copy of an embedded store, which may be in use.
#pragma once

#include <string>

#include "flowfabric/error.h"

namespace flowfabric {

// Copies the database of `sqlite:PATH` into a new file, with everything that was acknowledged before the
// call. This process or another may have it open. The copy is a complete database: open it to restore it.
// Returns a sentence about the copy. Other stores have their own tools, which the refusal names.
Result<std::string> backup(const std::string& url, const std::string& file);

}  // namespace flowfabric
