// The description of all routes (openapi.json), compiled into the program.
#pragma once

#include <string_view>

namespace flowfabric::api {

std::string_view openapi_document();

}  // namespace flowfabric::api
