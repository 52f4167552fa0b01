// What follows from a report over a limit: it is remembered, and the limit's action is taken on the attempt
// that has spent.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// The places of a budget's history.
std::vector<BreachKey> breach_keys(const BudgetKey& budget);
BudgetBreach view(const Breach& breach);

// `by` has reported so much in the dimension of `report`; absent: nobody has said who.
void follow_breach(Unit& unit, Budget& budget, const UsageReport& report, std::uint64_t reported,
                   const std::optional<ExecutionId>& by, Context& at);

inline constexpr const char* kBudgetExceeded = "budget_exceeded";

}  // namespace flowfabric::core
