// What limits an execution: its own budgets and quota policy, and those that are attached to its flow, its
// lane and its tenant.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// Unless it was deleted.
const Budget* find_budget(Unit& unit, const BudgetKey& key);
const QuotaPolicy* find_policy(Unit& unit, const QuotaPolicyKey& key);
Error no_such_budget(const BudgetId& id);
Error no_such_quota_policy(const QuotaPolicyId& id);

// A scope as callers name it; `namespace` is another word for tenant. Refuses what cannot be one.
Result<ScopeLimitsKey> scope_of(const std::string& type, const std::string& id);

Result<Attachment> apply(Unit& unit, const AttachBudget& request, Context& at);
Result<Attachment> apply(Unit& unit, const DetachBudget& request, Context& at);
Result<Attachment> apply(Unit& unit, const AttachQuotaPolicy& request, Context& at);
Result<Attachment> apply(Unit& unit, const DetachQuotaPolicy& request, Context& at);

// The same without the checks, for a budget that is made for a flow, a lane or a tenant.
void attach_new_budget(Unit& unit, const Budget& budget, const Context& at);
// It is being deleted: one that is made with the same id later limits nothing by itself. (An execution that
// names it goes on naming it.)
void detach_everywhere(Unit& unit, const BudgetId& id);
void detach_everywhere(Unit& unit, const QuotaPolicyId& id);

// In the order in which they are checked: its own, then of the flow, the lane and the tenant, each by id; and
// last the limit of its key in the lane (core/limits/fairness.h).
struct Limits {
  std::vector<BudgetId> budgets;
  std::vector<QuotaPolicyId> quotas;
};
Limits limits_of(Unit& unit, const Execution& execution, const Context& at);
// Something was attached to the flow before there was one.
bool has_limits(Unit& unit, const FlowId& id);
// Those of one scope.
Limits limits_of(Unit& unit, LimitScope type, const std::string& id);

}  // namespace flowfabric::core
