// Finds the route of a request.
#pragma once

#include <string_view>
#include <vector>

#include "api/call.h"

namespace flowfabric::api {

struct Match {
  const Route* route{};
  std::vector<std::string_view> open{};  // the parts of the path in place of the pattern's braces
  std::string_view allowed{};            // methods of a known path
  std::string_view pattern{};            // of the path, whatever the method
};
// The answer refers to the path, which must outlive it.
Match match(std::string_view method, std::string_view path);

}  // namespace flowfabric::api
