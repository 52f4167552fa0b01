#include "core/limits/attachment.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/limits/budget.h"
#include "core/limits/fairness.h"
#include "core/limits/quota.h"
#include "core/operation.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

// The list of a scope that holds ids of this kind.
std::vector<std::string>& list_of(ScopeLimits& limits, const BudgetId&) {
  return limits.budget_ids;
}
std::vector<std::string>& list_of(ScopeLimits& limits, const QuotaPolicyId&) {
  return limits.quota_policy_ids;
}

template <class Id>
bool detach_from(Unit& unit, const ScopeLimitsKey& scope, const Id& id) {
  return unit.find<ScopeLimits>(scope) &&
         std::erase(list_of(unit.edit<ScopeLimits>(scope), id), id.to_string()) > 0;
}

template <class Id>
void detach_from_all(Unit& unit, const Id& id) {
  for (const auto& scope : unit.ask_with_changes<ScopeLimits>(ScopesOf{id.uuid})) {
    detach_from(unit, scope, id);
  }
}

template <class Id>
std::vector<Id> parsed(const std::vector<std::string>& texts) {
  std::vector<Id> ids;
  for (const auto& text : texts) {
    if (const auto id = Id::parse(text)) ids.push_back(*id);
  }
  return ids;
}

// What it holds back is looked at again: it may not apply any more.
void look_again(Unit& unit, const BudgetId& id, const Context& at) {
  recheck_all(unit, budget_key(id, at.partitions), at);
}
void look_again(Unit& unit, const QuotaPolicyId& id, const Context& at) {
  recheck_all(unit, quota_key(id, at.partitions), at);
}

bool exists(Unit& unit, const BudgetId& id, const Context& at) {
  return find_budget(unit, budget_key(id, at.partitions)) != nullptr;
}
bool exists(Unit& unit, const QuotaPolicyId& id, const Context& at) {
  return find_policy(unit, quota_key(id, at.partitions)) != nullptr;
}

// So that nobody deletes it while it is being attached.
void keep_in_place(Unit& unit, const BudgetId& id, const Context& at) {
  unit.edit<Budget>(budget_key(id, at.partitions));
}
void keep_in_place(Unit& unit, const QuotaPolicyId& id, const Context& at) {
  unit.edit<QuotaPolicy>(quota_key(id, at.partitions));
}
Error missing(const BudgetId& id) {
  return no_such_budget(id);
}
Error missing(const QuotaPolicyId& id) {
  return no_such_quota_policy(id);
}

std::unexpected<Error> conflict(const BudgetId&) {
  return fail_with(ErrorCode::budget_attach_conflict, "", "The budget is attached to this scope already.");
}
std::unexpected<Error> conflict(const QuotaPolicyId&) {
  return fail_with(
      ErrorCode::quota_attach_conflict, "",
      "This quota policy, or for an execution another one, is attached already: detach it first.");
}

// Of an execution, on its own record. False: it was so already, or another one is in the way.
bool attach_to(Execution& execution, const BudgetId& id) {
  auto ids = split_ids<BudgetId>(execution.budget_ids);
  if (std::ranges::find(ids, id) != ids.end()) return false;
  ids.push_back(id);
  execution.budget_ids = join_ids(ids);
  return true;
}
bool attach_to(Execution& execution, const QuotaPolicyId& id) {
  if (execution.quota_policy_id) return false;
  execution.quota_policy_id = id;
  return true;
}
bool detach_from(Execution& execution, const BudgetId& id) {
  auto ids = split_ids<BudgetId>(execution.budget_ids);
  const bool found = std::erase(ids, id) > 0;
  execution.budget_ids = join_ids(ids);
  return found;
}
bool detach_from(Execution& execution, const QuotaPolicyId& id) {
  if (execution.quota_policy_id != id) return false;
  execution.quota_policy_id.reset();
  return true;
}

void note_on_flow(Unit& unit, const ScopeLimitsKey& scope, const Context& at) {
  if (scope.scope_type != LimitScope::flow) return;
  const auto id = FlowId::parse(scope.scope_id);
  const FlowKey key{partition_of(id->uuid, at.partitions.flow), *id};
  const auto* flow = unit.find<Flow>(key);
  if (flow && !flow->has_limits) unit.edit<Flow>(key).has_limits = true;
}

template <class Id>
bool attach_to(Unit& unit, const ScopeLimitsKey& scope, const Id& id, const Context& at) {
  if (!unit.find<ScopeLimits>(scope)) {
    unit.insert(ScopeLimits{.scope_type = scope.scope_type, .scope_id = scope.scope_id});
  }
  auto& ids = list_of(unit.edit<ScopeLimits>(scope), id);
  const auto text = id.to_string();
  const auto place = std::ranges::lower_bound(ids, text);
  if (place != ids.end() && *place == text) return false;
  ids.insert(place, text);
  note_on_flow(unit, scope, at);
  return true;
}

template <class Id>
Result<Attachment> attach_limit(Unit& unit, const Id& id, const std::string& type,
                                const std::string& scope_id, Context& at) {
  const auto scope = scope_of(type, scope_id);
  if (!scope) return std::unexpected(scope.error());
  if (!exists(unit, id, at)) return std::unexpected(missing(id));
  keep_in_place(unit, id, at);
  const Attachment attachment{scope->scope_type, scope->scope_id};
  if (scope->scope_type == LimitScope::execution) {
    const auto execution_id = *ExecutionId::parse(scope->scope_id);
    if (!unit.find<Execution>(execution_id)) return std::unexpected(not_found(execution_id));
    auto& execution = unit.edit<Execution>(execution_id);
    if (!attach_to(execution, id)) return conflict(id);
    note_mutation(execution, at);
    return attachment;
  }
  if (!attach_to(unit, *scope, id, at)) return conflict(id);
  return attachment;
}

template <class Id>
Result<Attachment> detach_limit(Unit& unit, const Id& id, const std::string& type,
                                const std::string& scope_id, Context& at) {
  const auto scope = scope_of(type, scope_id);
  if (!scope) return std::unexpected(scope.error());
  if (!exists(unit, id, at)) return std::unexpected(missing(id));
  bool detached = false;
  if (scope->scope_type == LimitScope::execution) {
    const auto execution_id = *ExecutionId::parse(scope->scope_id);
    if (!unit.find<Execution>(execution_id)) return std::unexpected(not_found(execution_id));
    auto& execution = unit.edit<Execution>(execution_id);
    detached = detach_from(execution, id);
    note_mutation(execution, at);
  } else {
    detached = detach_from(unit, *scope, id);
  }
  if (detached) look_again(unit, id, at);
  return Attachment{scope->scope_type, scope->scope_id};
}

template <class Id>
void add_new(std::vector<Id>& all, const std::vector<Id>& more) {
  for (const auto& id : more) {
    if (std::ranges::find(all, id) == all.end()) all.push_back(id);
  }
}

}  // namespace

const Budget* find_budget(Unit& unit, const BudgetKey& key) {
  const auto* budget = unit.find<Budget>(key);
  return budget && !budget->deleted_at_ms ? budget : nullptr;
}

const QuotaPolicy* find_policy(Unit& unit, const QuotaPolicyKey& key) {
  const auto* policy = unit.find<QuotaPolicy>(key);
  return policy && !policy->is_deleted ? policy : nullptr;
}

Error no_such_budget(const BudgetId& id) {
  return {ErrorCode::budget_not_found, id.to_string(), "No such budget: check the id, or create it first."};
}

Error no_such_quota_policy(const QuotaPolicyId& id) {
  return {ErrorCode::quota_policy_not_found, id.to_string(),
          "No such quota policy: check the id, or create it first."};
}

Result<ScopeLimitsKey> scope_of(const std::string& type, const std::string& id) {
  const auto refused = [](const std::string& advice) {
    return fail_with(ErrorCode::invalid_budget_scope, "", advice);
  };
  const auto known = enum_from_name<LimitScope>(type == "namespace" ? "tenant" : type);
  if (!known) return refused("Give execution, flow, lane or tenant as the scope's type.");
  switch (*known) {
    case LimitScope::execution: {
      const auto execution = ExecutionId::parse(id);
      if (!execution) return refused("The scope's id is not that of an execution ({fp:N}:<uuid>).");
      return ScopeLimitsKey{*known, execution->to_string()};
    }
    case LimitScope::flow: {
      const auto flow = FlowId::parse(id);
      if (!flow) return refused("The scope's id is not that of a flow (a UUID).");
      return ScopeLimitsKey{*known, flow->to_string()};
    }
    case LimitScope::lane:
      if (!check_lane(id)) return refused("The scope's id is not the name of a lane.");
      break;
    case LimitScope::tenant:
      if (!check_namespace(id)) return refused("The scope's id is not a namespace.");
      break;
  }
  return ScopeLimitsKey{*known, id};
}

Result<Attachment> apply(Unit& unit, const AttachBudget& request, Context& at) {
  return attach_limit(unit, request.budget_id, request.scope_type, request.scope_id, at);
}
Result<Attachment> apply(Unit& unit, const DetachBudget& request, Context& at) {
  return detach_limit(unit, request.budget_id, request.scope_type, request.scope_id, at);
}
Result<Attachment> apply(Unit& unit, const AttachQuotaPolicy& request, Context& at) {
  return attach_limit(unit, request.quota_policy_id, request.scope_type, request.scope_id, at);
}
Result<Attachment> apply(Unit& unit, const DetachQuotaPolicy& request, Context& at) {
  return detach_limit(unit, request.quota_policy_id, request.scope_type, request.scope_id, at);
}

void attach_new_budget(Unit& unit, const Budget& budget, const Context& at) {
  if (budget.scope_type == LimitScope::execution) return;
  attach_to(unit, {budget.scope_type, budget.scope_id}, budget.budget_id, at);
}

void detach_everywhere(Unit& unit, const BudgetId& id) {
  detach_from_all(unit, id);
}
void detach_everywhere(Unit& unit, const QuotaPolicyId& id) {
  detach_from_all(unit, id);
}

bool has_limits(Unit& unit, const FlowId& id) {
  return unit.find<ScopeLimits>({LimitScope::flow, id.to_string()}) != nullptr;
}

Limits limits_of(Unit& unit, LimitScope type, const std::string& id) {
  const auto* limits = unit.find<ScopeLimits>({type, id});
  if (!limits) return {};
  return {parsed<BudgetId>(limits->budget_ids), parsed<QuotaPolicyId>(limits->quota_policy_ids)};
}

Limits limits_of(Unit& unit, const Execution& execution, const Context& at) {
  Limits limits{split_ids<BudgetId>(execution.budget_ids), {}};
  std::ranges::sort(limits.budgets);
  if (execution.quota_policy_id) limits.quotas.push_back(*execution.quota_policy_id);
  const auto add = [&](LimitScope type, const std::string& id) {
    const auto more = limits_of(unit, type, id);
    add_new(limits.budgets, more.budgets);
    add_new(limits.quotas, more.quotas);
  };
  if (execution.flow_id) {
    const auto* flow = unit.find<Flow>({execution.partition_key, *execution.flow_id});
    if (flow && flow->has_limits) add(LimitScope::flow, execution.flow_id->to_string());
  }
  add(LimitScope::lane, execution.lane_id);
  add(LimitScope::tenant, execution.namespace_);
  if (const auto key = limit_of_key(unit, execution, at)) limits.quotas.push_back(key->quota_policy_id);
  return limits;
}

FLOWFABRIC_OPERATION(AttachBudget)
FLOWFABRIC_OPERATION(DetachBudget)
FLOWFABRIC_OPERATION(AttachQuotaPolicy)
FLOWFABRIC_OPERATION(DetachQuotaPolicy)

}  // namespace flowfabric::core
