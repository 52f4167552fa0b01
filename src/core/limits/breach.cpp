#include "core/limits/breach.h"

#include "core/execution/report.h"
#include "core/transition.h"

namespace flowfabric::core {

namespace {

constexpr std::uint32_t kFetchedPlaces = 50;

// The place and those around it: who comes next in the batch will need the next one.
std::vector<BreachKey> places_around(const BreachKey& key) {
  std::vector<BreachKey> keys;
  const auto first = key.place - key.place % kFetchedPlaces;
  for (auto place = first; place < first + kFetchedPlaces; ++place) {
    keys.push_back({key.partition_key, key.budget_id, place});
  }
  return keys;
}

void remember(Unit& unit, const Budget& budget, const UsageReport& report, std::uint64_t reported,
              const std::optional<ExecutionId>& by, const Context& at) {
  const auto number = budget.breach_count + budget.soft_breach_count;
  const Breach breach{.partition_key = budget.partition_key,
                      .budget_id = budget.budget_id,
                      .place = static_cast<std::uint32_t>((number - 1) % kKeptBreaches),
                      .breach_number = number,
                      .occurred_at_ms = at.now_ms,
                      .kind = report.outcome,
                      .dimension = report.dimension,
                      .reported = reported,
                      .counted = report.current_usage,
                      .limit_then = report.limit,
                      .execution = by ? by->to_string() : ""};
  unit.fetch<Breach>(places_around(breach.key()));
  if (unit.find<Breach>(breach.key()))
    unit.edit<Breach>(breach.key()) = breach;
  else
    unit.insert(breach);
}

// Its worker may end it until then; an earlier timeout of its own stays.
void stop_after_grace(Unit& unit, const Budget& budget, const ExecutionId& id, const Context& at) {
  if (at.budget_grace_ms <= 0) return;
  auto& execution = unit.edit<Execution>(id);
  const auto stop_at = saturating_add(at.now_ms, static_cast<std::uint64_t>(at.budget_grace_ms));
  auto& timeout = execution.attempt.attempt_timeout_at_ms;
  if (timeout && *timeout <= stop_at) return;
  const auto own = own_timeout(execution);
  timeout = stop_at;
  if (own) execution.attempt.attempt_timeout_left_ms = *own - stop_at;
  execution.blocked_on = budget.budget_id.uuid;
  note_mutation(execution, at);
}

void pause(Unit& unit, Budget& budget, const ExecutionId& id, const std::string& dimension,
           const Context& at) {
  auto& execution = unit.edit<Execution>(id);
  pause_attempt(unit, execution, lease_end(execution, LeaseEnd::other), kPausedByBudget, kPausedByBudget, at);
  // Looked at again when the budget is reset, given more, or given back to: until then nothing has changed.
  budget.has_blocked = true;
  execution.blocked_on = budget.budget_id.uuid;
  move_to(unit, execution,
          vectors::blocked(BlockingReason::waiting_for_budget, AttemptState::attempt_interrupted),
          "paused_by_budget " + budget.budget_id.to_string() + ": " + dimension, at);
}

// Nothing, if there is no other tier.
void go_on_with_next_tier(Unit& unit, const ExecutionId& id, Context& at) {
  const auto& policy = unit.require<ExecutionSpec>(id).policy;
  if (!policy.fallback_policy || policy.fallback_policy->tiers.empty()) return;
  schedule_retry(unit, unit.edit<Execution>(id),
                 {.reason = kBudgetExceeded,
                  .category = kBudgetExceeded,
                  .ended_by = LeaseEnd::other,
                  .release_reason = "rerouted_by_budget"},
                 at);
}

}  // namespace

std::vector<BreachKey> breach_keys(const BudgetKey& budget) {
  std::vector<BreachKey> keys;
  for (std::uint32_t place = 0; place < kKeptBreaches; ++place) {
    keys.push_back({budget.partition_key, budget.budget_id, place});
  }
  return keys;
}

BudgetBreach view(const Breach& breach) {
  return {.number = breach.breach_number,
          .at = breach.occurred_at_ms,
          .kind = breach.kind,
          .dimension = breach.dimension,
          .reported = breach.reported,
          .usage = breach.counted,
          .limit = breach.limit_then,
          .execution_id = ExecutionId::parse(breach.execution)};
}

void follow_breach(Unit& unit, Budget& budget, const UsageReport& report, std::uint64_t reported,
                   const std::optional<ExecutionId>& by, Context& at) {
  remember(unit, budget, report, reported, by, at);
  if (!by || budget.enforcement_mode == EnforcementMode::advisory) return;
  const auto* execution = unit.find<Execution>(*by);
  if (!execution || execution->state.ownership_state != OwnershipState::leased) return;
  switch (report.outcome == UsageOutcome::hard_breach ? budget.on_hard_limit : budget.on_soft_limit) {
    case LimitAction::fail:
      stop_after_grace(unit, budget, *by, at);
      return;
    case LimitAction::suspend:
      pause(unit, budget, *by, report.dimension, at);
      return;
    case LimitAction::reroute_fallback:
      go_on_with_next_tier(unit, *by, at);
      return;
    // These concern what is not running (core/limits/admission.h).
    case LimitAction::reject:
    case LimitAction::warn:
    case LimitAction::deny_child:
    case LimitAction::close_scope:
    case LimitAction::cancel_pending:
      return;
  }
}

}  // namespace flowfabric::core
