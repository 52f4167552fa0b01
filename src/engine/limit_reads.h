// Which read of budgets and quota policies answers which request.
#pragma once

#include "engine/readers.h"
#include "flowfabric/why.h"

namespace flowfabric::engine {

Result<BudgetStatus> answer(Readers& readers, const ReadBudget& request);
Result<BudgetPage> answer(Readers& readers, const ListBudgets& request);
Result<BreachHistory> answer(Readers& readers, const ListBreaches& request);
Result<SpendingPage> answer(Readers& readers, const ListSpending& request);
Result<QuotaStatus> answer(Readers& readers, const ReadQuotaPolicy& request);
Result<QuotaPage> answer(Readers& readers, const ListQuotaPolicies& request);
Result<WaitingExplanation> answer(Readers& readers, const ExplainWaiting& request);

}  // namespace flowfabric::engine
