// What must be true of the counters of budgets and quota policies, and how to put them right.
#pragma once

#include <string>
#include <vector>

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

struct BudgetNeighbourhood {
  const Budget* budget{};
  std::vector<const Spend*> ledger;
};
std::vector<std::string> faults(const BudgetNeighbourhood& found);

struct QuotaNeighbourhood {
  const QuotaPolicy* policy{};
  std::size_t slots{};     // that are held
  std::size_t admitted{};  // that the rate counts, in its window or not trimmed yet
};
std::vector<std::string> faults(const QuotaNeighbourhood& found);

// Never takes back what is counted: not everything that is spent is in the ledger.
void repair(Unit& unit, const BudgetKey& key, Context& at);
void repair(Unit& unit, const QuotaPolicyKey& key, Context& at);

}  // namespace flowfabric::core
