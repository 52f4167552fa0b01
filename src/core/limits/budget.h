// Budgets: what is spent, and what that means for the work that spends it.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<BudgetCreation> apply(Unit& unit, const CreateBudget& request, Context& at);
Result<UsageReport> apply(Unit& unit, const ReportUsage& request, Context& at);
Result<UsageReport> apply(Unit& unit, const RecordSpend& request, Context& at);
Result<BudgetReleased> apply(Unit& unit, const ReleaseBudget& request, Context& at);
Result<BudgetReset> apply(Unit& unit, const ResetBudget& request, Context& at);
Result<BudgetStatus> apply(Unit& unit, const SetBudgetLimits& request, Context& at);
Result<BudgetDeleted> apply(Unit& unit, const DeleteBudget& request, Context& at);
BudgetStatus view(const Budget& budget);

// A dimension at its limit.
struct Exhausted {
  std::string dimension;
  std::uint64_t used{};
  std::uint64_t limit{};
  LimitAction action{};
};
// The first dimension because of which no work is handed out.
std::optional<Exhausted> exhausted(const Budget& budget);
// The first dimension because of which a flow takes no more members.
std::optional<Exhausted> takes_no_members(const Budget& budget);

// How the record of an execution marks a budget of which something is set aside for it.
inline const std::string kReservation = "b:";
// Sets aside what the budget says, for an execution that is handed out.
void reserve(Unit& unit, const BudgetKey& key, Execution& execution, const Context& at);
void give_back_reservations(Unit& unit, const ExecutionId& id, const std::vector<BudgetId>& budgets,
                            const Context& at);

// The budget was taken off a scope: what it holds back is looked at again.
void recheck_all(Unit& unit, const BudgetKey& key, const Context& at);

// When the budget is due next, by rules that are not off.
std::optional<std::int64_t> next_clock(const Budget& budget, const RuleSet& off = {});
Rule run_budget_clock(Unit& unit, const BudgetKey& key, Context& at);
Rule run_usage_dedup_clock(Unit& unit, const UsageDedupKey& key, Context& at);

}  // namespace flowfabric::core
