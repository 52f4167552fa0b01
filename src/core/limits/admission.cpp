#include "core/limits/admission.h"

#include <algorithm>

#include "core/execution/cancel.h"
#include "core/keys.h"
#include "core/limits/attachment.h"
#include "core/limits/budget.h"
#include "core/limits/fairness.h"
#include "core/limits/quota.h"
#include "core/transition.h"

namespace flowfabric::core {

namespace {

std::vector<BudgetKey> keys_of(const std::vector<BudgetId>& ids, const Context& at) {
  std::vector<BudgetKey> keys;
  for (const auto& id : ids) keys.push_back(budget_key(id, at.partitions));
  return keys;
}
std::vector<QuotaPolicyKey> keys_of(const std::vector<QuotaPolicyId>& ids, const Context& at) {
  std::vector<QuotaPolicyKey> keys;
  for (const auto& id : ids) keys.push_back(quota_key(id, at.partitions));
  return keys;
}

std::string detail_of(const Budget& budget, const Exhausted& full) {
  return "budget ff:budget:" + budget.budget_id.to_string() + ":usage: " + full.dimension + " " +
         std::to_string(full.used) + "/" + std::to_string(full.limit);
}

std::optional<LimitRefusal> refusal_of_budget(const Budget& budget) {
  const auto full = exhausted(budget);
  if (!full) return std::nullopt;
  return LimitRefusal{.code = ErrorCode::budget_exceeded,
                      .reason = BlockingReason::waiting_for_budget,
                      .limit_id = budget.budget_id.uuid,
                      .detail = detail_of(budget, *full),
                      .exhausted = full->dimension,
                      .clears_at_ms = budget.next_reset_at_ms,
                      .cancels = full->action == LimitAction::cancel_pending};
}

std::optional<LimitRefusal> refusal_of_quota(Unit& unit, const QuotaPolicyKey& key, const ExecutionId& id,
                                             Context& at) {
  const auto admission = look(unit, key, id, at);
  if (admission.outcome == AdmissionOutcome::rate_exceeded) {
    const auto& policy = unit.require<QuotaPolicy>(key);
    const auto rate = std::to_string(policy.max_requests_per_window);
    return LimitRefusal{.code = ErrorCode::rate_limit_exceeded,
                        .reason = BlockingReason::waiting_for_quota,
                        .limit_id = key.quota_policy_id.uuid,
                        .detail = name_of(policy) + " rate limit " + rate + "/" + rate + " per " +
                                  std::to_string(window_ms(policy) / 1000) + "s window",
                        .exhausted = "rate",
                        .clears_at_ms = saturating_add(at.now_ms, admission.retry_after_ms)};
  }
  if (admission.outcome == AdmissionOutcome::concurrency_exceeded) {
    const auto& policy = unit.require<QuotaPolicy>(key);
    return LimitRefusal{
        .code = ErrorCode::concurrency_limit_exceeded,
        .reason = BlockingReason::waiting_for_quota,
        .limit_id = key.quota_policy_id.uuid,
        .detail = name_of(policy) + " concurrency cap " + std::to_string(policy.active_concurrency_cap),
        .exhausted = "concurrency"};
  }
  return std::nullopt;
}

// Calls f(refusal) for everything in the way, budgets first, until it says true.
template <class F>
void for_each_refusal(Unit& unit, const Execution& execution, const Limits& limits, Context& at, F&& f) {
  for (const auto& key : keys_of(limits.budgets, at)) {
    const auto* budget = unit.find<Budget>(key);
    auto refusal = budget ? refusal_of_budget(*budget) : std::nullopt;
    if (refusal && f(*std::move(refusal))) return;
  }
  for (const auto& key : keys_of(limits.quotas, at)) {
    auto refusal = refusal_of_quota(unit, key, execution.key(), at);
    if (refusal && f(*std::move(refusal))) return;
  }
}

std::optional<LimitRefusal> find_refusal(Unit& unit, const Execution& execution, const Limits& limits,
                                         Context& at) {
  std::optional<LimitRefusal> first;
  for_each_refusal(unit, execution, limits, at, [&](LimitRefusal refusal) {
    first = std::move(refusal);
    return true;
  });
  return first;
}

// So that whatever clears the limit looks for it.
void note_on_limit(Unit& unit, const LimitRefusal& refusal, Context& at) {
  if (refusal.reason == BlockingReason::waiting_for_budget) {
    unit.edit<Budget>(budget_key({refusal.limit_id}, at.partitions)).has_blocked = true;
    return;
  }
  const auto key = quota_key({refusal.limit_id}, at.partitions);
  if (!refusal.clears_at_ms) {
    unit.edit<QuotaPolicy>(key).has_blocked = true;
    return;
  }
  const auto jitter = at.random.between(0, unit.require<QuotaPolicy>(key).jitter_ms);
  expect_room(unit, key, saturating_add(*refusal.clears_at_ms, jitter));
}

std::vector<ExecutionId> ids_of(const std::vector<ListPosition>& positions) {
  std::vector<ExecutionId> ids;
  for (const auto& position : positions) ids.push_back(position.execution_id);
  return ids;
}

void recheck_all(Unit& unit, const std::vector<ListPosition>& positions, Context& at) {
  const auto ids = ids_of(positions);
  unit.fetch<Execution>(ids);
  fetch_limits(unit, ids, at);
  for (const auto& id : ids) recheck(unit, id, at);
}

}  // namespace

Error to_error(const LimitRefusal& refusal) {
  return {refusal.code, refusal.detail,
          refusal.cancels ? "The budget's action is to cancel what waits: the execution was cancelled."
                          : "The execution waits until the limit clears; nothing need be done."};
}

void fetch_limits(Unit& unit, const std::vector<ExecutionId>& ids, const Context& at) {
  std::vector<FlowKey> flows;
  std::vector<ScopeLimitsKey> scopes;
  for (const auto& id : ids) {
    const auto* execution = unit.find<Execution>(id);
    if (!execution) continue;
    if (execution->flow_id) flows.push_back({execution->partition_key, *execution->flow_id});
    scopes.push_back({LimitScope::lane, execution->lane_id});
    scopes.push_back({LimitScope::tenant, execution->namespace_});
  }
  unit.fetch<Flow, ScopeLimits>(flows, scopes);
  std::vector<ScopeLimitsKey> of_flows;
  for (const auto& key : flows) {
    const auto* flow = unit.find<Flow>(key);
    if (flow && flow->has_limits) of_flows.push_back({LimitScope::flow, key.flow_id.to_string()});
  }
  unit.fetch<ScopeLimits>(of_flows);
  std::vector<BudgetKey> budgets;
  std::vector<QuotaPolicyKey> quotas;
  std::vector<QuotaAdmissionKey> admissions;
  for (const auto& id : ids) {
    const auto* execution = unit.find<Execution>(id);
    if (!execution) continue;
    const auto limits = limits_of(unit, *execution, at);
    for (const auto& key : keys_of(limits.budgets, at)) budgets.push_back(key);
    for (const auto& key : keys_of(limits.quotas, at)) {
      quotas.push_back(key);
      admissions.push_back({key.partition_key, key.quota_policy_id, id.partition, id.uuid});
    }
  }
  unit.fetch<Budget, QuotaPolicy>(budgets, quotas);
  unit.fetch<QuotaAdmission>(admissions);
}

std::optional<LimitRefusal> admit(Unit& unit, const ExecutionId& id, Context& at) {
  const auto& execution = unit.require<Execution>(id);
  const auto limits = limits_of(unit, execution, at);
  if (const auto key = limit_of_key(unit, execution, at)) apply_limit_of_lane(unit, *key);
  if (limits.budgets.empty() && limits.quotas.empty()) return std::nullopt;
  fetch_limits(unit, {id}, at);
  if (auto refusal = find_refusal(unit, execution, limits, at)) {
    const bool by_budget = refusal->reason == BlockingReason::waiting_for_budget;
    unit.note(by_budget ? Noted::budget_hit : Noted::quota_hit, refusal->exhausted);
    return refusal;
  }
  auto& admitted = unit.edit<Execution>(id);
  for (const auto& key : keys_of(limits.budgets, at)) reserve(unit, key, admitted, at);
  for (const auto& key : keys_of(limits.quotas, at)) record_admission(unit, key, admitted, at);
  return std::nullopt;
}

std::vector<LimitRefusal> refusals_of(Unit& unit, const Execution& execution, Context& at) {
  fetch_limits(unit, {execution.key()}, at);
  std::vector<LimitRefusal> all;
  for_each_refusal(unit, execution, limits_of(unit, execution, at), at, [&](LimitRefusal refusal) {
    all.push_back(std::move(refusal));
    return false;
  });
  return all;
}

void withdraw(Unit& unit, const ExecutionId& id, const Context& at) {
  const auto& execution = unit.require<Execution>(id);
  for (const auto& key : keys_of(limits_of(unit, execution, at).quotas, at)) withdraw(unit, key, id, at);
  if (!execution.admitted_by.empty()) give_back(unit, unit.edit<Execution>(id), at);
}

void give_back(Unit& unit, Execution& execution, const Context& at) {
  const auto held = std::exchange(execution.admitted_by, "");
  if (held.empty()) return;
  free_slots(unit, execution.key(), split_ids<QuotaPolicyId>(held), at);
  give_back_reservations(unit, execution.key(), split_ids<BudgetId>(held, kReservation), at);
}

void fetch_to_give_back(Unit& unit, const std::vector<ExecutionId>& ids, const Context& at) {
  std::vector<QuotaPolicyKey> policies;
  std::vector<QuotaAdmissionKey> admissions;
  for (const auto& id : ids) {
    const auto* execution = unit.find<Execution>(id);
    if (!execution) continue;
    for (const auto& key : keys_of(split_ids<QuotaPolicyId>(execution->admitted_by), at)) {
      policies.push_back(key);
      admissions.push_back({key.partition_key, key.quota_policy_id, id.partition, id.uuid});
    }
  }
  unit.fetch<QuotaPolicy, QuotaAdmission>(policies, admissions);
}

void hold_back(Unit& unit, const ExecutionId& id, const LimitRefusal& refusal, Context& at) {
  if (refusal.cancels) {
    auto& execution = unit.edit<Execution>(id);
    stop(unit, execution, refusal.detail, "budget", at);
    follow_end(unit, execution, at);
    return;
  }
  note_on_limit(unit, refusal, at);
  auto& execution = unit.edit<Execution>(id);
  execution.blocked_on = refusal.limit_id;
  if (is_lost(execution)) {
    // It is still the running attempt's: it is only not offered.
    execution.blocking_detail = refusal.detail;
    renew_offer(execution, at);
    return;
  }
  move_to(unit, execution, vectors::blocked(refusal.reason, execution.state.attempt_state), refusal.detail,
          at);
}

void recheck(Unit& unit, const ExecutionId& id, Context& at) {
  const auto* execution = unit.find<Execution>(id);
  if (!execution || !is_held_back(*execution)) return;
  if (const auto refusal = find_refusal(unit, *execution, limits_of(unit, *execution, at), at)) {
    hold_back(unit, id, *refusal, at);
    return;
  }
  auto& free = unit.edit<Execution>(id);
  if (!is_lost(free)) return back_in_line(unit, free, at);
  free.blocked_on.reset();
  free.blocking_detail = "awaiting reclaim";
  renew_offer(free, at);
}

bool let_go(Unit& unit, const Uuid& limit_id, std::uint32_t count, Context& at) {
  const auto oldest = unit.ask(BlockedOn{limit_id, std::nullopt, count});
  recheck_all(unit, oldest, at);
  return oldest.size() == count;
}

void look_at_blocked(Unit& unit, const Uuid& limit_id, Recheck& recheck, bool& has_blocked,
                     bool changed_before, Context& at) {
  std::optional<ListPosition> after;
  if (const auto id = ExecutionId::parse(recheck.recheck_after_id)) after = {*recheck.recheck_after_ms, *id};
  const auto page = unit.ask(BlockedOn{limit_id, after, kLookedAtPerStep});
  recheck = {};
  recheck_all(unit, page, at);
  if (page.size() == kLookedAtPerStep) {
    recheck = {at.now_ms, page.back().created_at_ms, page.back().execution_id.to_string()};
  } else if (changed_before) {
    // What this batch has held back is not among the answers yet.
    recheck.recheck_at_ms = at.now_ms + 1;
  } else if (page.empty() && !after) {
    has_blocked = false;
  }
}

Result<void> check_takes_members(Unit& unit, const FlowId& flow, const Context& at) {
  const auto limits = limits_of(unit, LimitScope::flow, flow.to_string());
  for (const auto& budget_id : keys_of(limits.budgets, at)) {
    const auto* budget = unit.find<Budget>(budget_id);
    const auto full = budget ? takes_no_members(*budget) : std::nullopt;
    if (full) {
      return fail_with(ErrorCode::budget_exceeded, detail_of(*budget, *full),
                       "The flow takes no more members until its budget is below its limit.");
    }
  }
  return {};
}

}  // namespace flowfabric::core
