// Store URLs: `scheme:rest?key=value&…`.
#pragma once

#include <map>
#include <string>

#include "flowfabric/error.h"

namespace flowfabric::store {

struct StoreUrl {
  std::string scheme;
  std::string path;
  std::map<std::string, std::string> options;
};

Result<StoreUrl> parse_store_url(const std::string& url);

}  // namespace flowfabric::store
