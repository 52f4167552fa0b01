// Draws a flow: one row per member, below all of its upstreams, indented by the length of its longest path.
#pragma once

#include <string>

#include "api/json.h"

namespace flowfabric::cli {

// `graph` is the answer of GET /v1/flows/{id}/graph.
std::string flow_table(api::JsonView graph);

}  // namespace flowfabric::cli
