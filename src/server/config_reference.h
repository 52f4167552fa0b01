// Variables of the reference implementation that are no settings of ours: how it chooses its store, and what
// is only checked, or ignored.
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

// From FF_BACKEND, FF_SQLITE_PATH and FF_POSTGRES_URL. Absent: none of them is set. Adds to `warnings`.
Result<std::optional<ChosenStore>> store_of_reference(const Variables& environment,
                                                      std::vector<std::string>& warnings);
// Says which of those variables are set in vain, because `store` is given by `origin`.
void warn_of_unused_store_variables(const Variables& environment, const std::string& origin,
                                    std::vector<std::string>& warnings);

Result<void> check_retired_variables(const Variables& environment, std::vector<std::string>& warnings);

// All of them.
std::vector<std::string> reference_variables();

}  // namespace flowfabric::server
