// What happens because time passed. The clock finds what is due; here it is decided, under the batch's lock,
// which rule really applies. Deadline comes before attempt timeout, and that before lease expiry.
#pragma once

#include "core/context.h"
#include "core/rule.h"
#include "core/unit.h"

namespace flowfabric::core {

inline constexpr const char* kAttemptTimeout = "attempt_timeout";
inline constexpr const char* kExecutionDeadline = "execution_deadline";
inline constexpr const char* kMaxReclaimsExceeded = "max_reclaims_exceeded";

// Applies at most one rule; what is due after that is found by the clock's next look.
Rule run_execution_clock(Unit& unit, const ExecutionId& id, Context& at);
Rule run_create_dedup_clock(Unit& unit, const CreateDedupKey& key, Context& at);

// Its last reclaim is used up: the execution fails for good.
void give_up_reclaiming(Unit& unit, Execution& execution, Context& at);

// Ends the execution as expired.
void expire(Unit& unit, Execution& execution, const std::string& reason, const Context& at);

}  // namespace flowfabric::core
