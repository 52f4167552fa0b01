// JSON Merge Patch (RFC 7396) on texts, with the specification's limits (06 §3.2).
#pragma once

#include <string>
#include <string_view>

#include "flowfabric/error.h"

namespace flowfabric {

// The document as the patch leaves it. A string `__ff_null__` becomes null, which a patch could not say
// otherwise. Refuses a patch that is no object, or is nested too deeply; and a document that is none.
Result<std::string> merge_patch(std::string_view document, std::string_view patch);

}  // namespace flowfabric
