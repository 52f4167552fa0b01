// The retry rule: whether a failure is retried, and after which wait.
#pragma once

#include <optional>
#include <string>

#include "flowfabric/policy.h"
#include "model/random.h"

namespace flowfabric::core {

// How long to wait before the next attempt; absent: the failure is final. `retries_so_far` does not count
// the first attempt.
std::optional<std::uint64_t> retry_after_ms(const std::optional<RetryPolicy>& policy,
                                            std::uint32_t retries_so_far, const std::string& category,
                                            Random& random);

}  // namespace flowfabric::core
