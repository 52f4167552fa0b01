// What an execution's own row says about where it stands. Each question is answered here and nowhere else.
#pragma once

#include <optional>

#include "model/records.h"

namespace flowfabric::core {

// Its lease has expired or was revoked, and nobody has taken it over.
bool is_lost(const StateVector& state);
bool is_lost(const Execution& execution);
// Every reclaim it may have is used up, and its lease is lost again.
bool is_lost_for_good(const Execution& execution);

// An attempt is in progress: running, paused, or lost and not reclaimed yet.
bool has_live_attempt(const Execution& execution);

// It waits for a budget or a quota policy to clear.
bool is_blocked_by_limit(const StateVector& state);
// The same, or its lost lease is not offered because of one.
bool is_held_back(const Execution& execution);
// Somebody has blocked it for a budget or a quota, and did not say which.
bool is_blocked_for_no_limit(const Execution& execution);

// A report of its attempt has passed a hard limit, and the attempt's clock is that of the limit.
bool is_stopped_by_budget(const Execution& execution);
// When the attempt would time out had no budget set its clock.
std::optional<std::int64_t> own_timeout(const Execution& execution);

}  // namespace flowfabric::core
