// Which read of budgets and quota policies answers which request.
#pragma once

#include "engine/readers.h"
#include "flowfabric/why.h"

namespace flowfabric::engine {

Result<BudgetStatus> answer(Readers& readers, const ReadBudget& request);
Result<SpendingPage> answer(Readers& readers, const ListSpending& request);
Result<QuotaStatus> answer(Readers& readers, const ReadQuotaPolicy& request);
Result<WaitingExplanation> answer(Readers& readers, const ExplainWaiting& request);

}  // namespace flowfabric::engine
