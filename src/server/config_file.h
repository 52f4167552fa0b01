// Reads a configuration file: TOML with sections, dotted keys, strings, numbers, booleans and arrays of
// these.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "flowfabric/error.h"

namespace flowfabric::server {

// The values of each dotted key: one, or those of an array. `path` is named in errors, contents never are.
Result<std::map<std::string, std::vector<std::string>>> read_toml(const std::string& text,
                                                                  const std::string& path);

}  // namespace flowfabric::server
