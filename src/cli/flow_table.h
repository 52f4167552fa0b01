// How a flow is drawn: a row for each member, after all that it waits for, and further in the longer the way
// to it.
#pragma once

#include <string>

#include "api/json.h"

namespace flowfabric::cli {

// `graph`: what GET /v1/flows/{id}/graph answers.
std::string flow_table(api::JsonView graph);

}  // namespace flowfabric::cli
