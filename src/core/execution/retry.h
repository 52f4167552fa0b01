// The retry rule: whether a failure is retried, and after which wait.
#pragma once

#include <optional>
#include <string>

#include "flowfabric/policy.h"
#include "model/random.h"

namespace flowfabric::core {

struct NextTry {
  std::optional<std::uint64_t> wait_ms;  // absent: at once
  std::optional<std::uint32_t> fallback_tier;
  bool operator==(const NextTry&) const = default;
};

// What follows a failure; absent: it is final. `retries_so_far` does not count the first attempt, `tier` is
// the fallback tier of the attempt that failed. With a fallback policy each failure moves on to the next
// tier, and the retry policy only says which failures may, and after which wait.
std::optional<NextTry> next_try(const ExecutionPolicy& policy, std::uint32_t retries_so_far,
                                const std::optional<std::uint32_t>& tier, const std::string& category,
                                Random& random);

}  // namespace flowfabric::core
