#include "core/doctor/limit_check.h"

#include <algorithm>
#include <limits>

namespace flowfabric::core {

namespace {

constexpr std::uint32_t kLedgerPage = 1000;

struct Sums {
  Amounts spent;  // since the last reset
  Amounts reserved;
};
void add(Sums& sums, const Budget& budget, const Spend& entry) {
  for (const auto& [dimension, amount] : entry.reserved) sums.reserved[dimension] += amount;
  if (entry.reset_count != budget.reset_count) return;
  for (const auto& [dimension, amount] : entry.spent) sums.spent[dimension] += amount;
}

std::uint64_t amount_of(const Amounts& amounts, const std::string& dimension) {
  const auto it = amounts.find(dimension);
  return it == amounts.end() ? 0 : it->second;
}

}  // namespace

std::vector<std::string> faults(const BudgetNeighbourhood& found) {
  Sums sums;
  for (const auto* entry : found.ledger) add(sums, *found.budget, *entry);
  std::vector<std::string> wrong;
  for (const auto& [dimension, spent] : sums.spent) {
    const auto counted = amount_of(found.budget->current_usage, dimension);
    if (counted < spent) {
      wrong.push_back("counts " + std::to_string(counted) + " of " + dimension +
                      ", its executions have spent " + std::to_string(spent));
    }
  }
  if (sums.reserved != found.budget->reserved) {
    wrong.push_back("does not have set aside what its executions have reserved");
  }
  return wrong;
}

std::vector<std::string> faults(const QuotaNeighbourhood& found) {
  std::vector<std::string> wrong;
  if (found.policy->active_concurrency != found.slots) {
    wrong.push_back("counts " + std::to_string(found.policy->active_concurrency) + " running, " +
                    std::to_string(found.slots) + " hold a slot");
  }
  if (found.policy->window_count != found.admitted) {
    wrong.push_back("counts " + std::to_string(found.policy->window_count) + " in its window, " +
                    std::to_string(found.admitted) + " are there");
  }
  return wrong;
}

void repair(Unit& unit, const BudgetKey& key, Context&) {
  if (!unit.find<Budget>(key)) return;
  auto& budget = unit.edit<Budget>(key);
  Sums sums;
  std::optional<ExecutionId> after;
  for (bool more = true; more;) {
    const auto page = unit.ask(SpendingOf{key.budget_id, after, kLedgerPage});
    unit.fetch<Spend>(page);
    for (const auto& entry : page) {
      if (const auto* spend = unit.find<Spend>(entry)) add(sums, budget, *spend);
    }
    more = page.size() == kLedgerPage;
    if (more) after = owner_of(page.back());
  }
  for (const auto& [dimension, spent] : sums.spent) {
    auto& counted = budget.current_usage[dimension];
    counted = std::max(counted, spent);
  }
  budget.reserved = std::move(sums.reserved);
}

void repair(Unit& unit, const QuotaPolicyKey& key, Context& at) {
  if (!unit.find<QuotaPolicy>(key)) return;
  auto& policy = unit.edit<QuotaPolicy>(key);
  policy.active_concurrency = unit.ask(SlotsOf{key}).size();
  policy.window_count = unit.ask(WindowOf{key, std::numeric_limits<std::uint32_t>::max()}).size();
  // And the clock looks after what waits.
  policy.reconcile_at_ms = policy.next_due_at_ms = at.now_ms;
}

}  // namespace flowfabric::core
