// Environment variables of the reference implementation that are not settings of ours: its choice of a store,
// and variables that are only checked, or ignored.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/config.h"

namespace flowfabric::server {

struct ChosenStore {
  std::string url;
  std::string variable;  // that chose it
};

// The store of FF_BACKEND, FF_SQLITE_PATH and FF_POSTGRES_URL; absent if none of them is set. Adds to
// `warnings`.
Result<std::optional<ChosenStore>> store_of_reference(const Variables& environment,
                                                      std::vector<std::string>& warnings);
// Warns of those variables that have no effect, because `origin` gives `store`.
void warn_of_unused_store_variables(const Variables& environment, const std::string& origin,
                                    std::vector<std::string>& warnings);

Result<void> check_retired_variables(const Variables& environment, std::vector<std::string>& warnings);

// The names of all of these variables.
std::vector<std::string> reference_variables();

}  // namespace flowfabric::server
