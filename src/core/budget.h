// Budgets: what is spent, and what that means for the work that spends it.
#pragma once

#include "core/context.h"
#include "core/expiry.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<BudgetCreation> create_budget(Unit& unit, const CreateBudget& request, Context& at);
Result<UsageReport> report_usage(Unit& unit, const ReportUsage& request, Context& at);
Result<UsageReport> record_spend(Unit& unit, const RecordSpend& request, Context& at);
Result<BudgetReleased> release_budget(Unit& unit, const ReleaseBudget& request, Context& at);
Result<BudgetReset> reset_budget(Unit& unit, const ResetBudget& request, Context& at);
Result<BudgetStatus> set_limits(Unit& unit, const SetBudgetLimits& request, Context& at);
BudgetStatus view(const Budget& budget);

// A dimension at its hard limit.
struct Exhausted {
  std::string dimension;
  std::uint64_t used{};
  std::uint64_t limit{};
};
// The first such dimension, if the budget hands out no work because of one.
std::optional<Exhausted> exhausted(const Budget& budget);

// The budget was taken off a scope: what it holds back is looked at again.
void recheck_all(Unit& unit, const BudgetKey& key, const Context& at);

Rule run_due(Unit& unit, const BudgetKey& key, Context& at);
Rule run_due(Unit& unit, const UsageDedupKey& key, Context& at);

}  // namespace flowfabric::core
