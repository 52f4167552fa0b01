// A copy of an embedded store, made while it is in use or not.
#pragma once

#include <string>

#include "flowfabric/error.h"

namespace flowfabric {

// Copies the database of `sqlite:PATH` into a new file, with everything that was acknowledged before the
// call. It may be in use, by this process or another. The copy is a database of its own: opening it is how it
// is restored. Says what it did. Other stores have tools of their own for that, which the refusal names.
Result<std::string> backup(const std::string& url, const std::string& file);

}  // namespace flowfabric
