// Which route a request is for.
#pragma once

#include <string_view>
#include <vector>

#include "api/call.h"

namespace flowfabric::api {

struct Match {
  const Route* route{};
  std::vector<std::string_view> open{};  // what stands where the pattern has braces
  std::string_view allowed{};            // methods of a path that is known
  std::string_view pattern{};            // of the path, whatever the method
};
// What it finds in the path lives as long as that.
Match match(std::string_view method, std::string_view path);

}  // namespace flowfabric::api
