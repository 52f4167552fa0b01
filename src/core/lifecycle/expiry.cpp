#include "core/lifecycle/expiry.h"

#include "core/execution/lease.h"
#include "core/execution/report.h"
#include "core/lifecycle/retention.h"
#include "core/limits/admission.h"
#include "core/limits/breach.h"
#include "core/transition.h"

namespace flowfabric::core {

namespace {

bool is_due(const std::optional<std::int64_t>& clock, const Context& at) {
  return clock && *clock <= at.now_ms;
}

// Lease subscribers learn that the lease ended by a clock, not by its holder.
void note_expiry_of_lease(Unit& unit, const Execution& execution, const std::string& reason,
                          const Context& at) {
  if (execution.state.ownership_state != OwnershipState::leased) return;
  append_lease_event(unit, execution, LeaseEventType::expired, reason, at);
}

void stop_for_budget(Unit& unit, Execution& execution, Context& at) {
  note_expiry_of_lease(unit, execution, kBudgetExceeded, at);
  const AttemptFailure failure{.reason = kBudgetExceeded,
                               .category = kBudgetExceeded,
                               .ended_by = LeaseEnd::other,
                               .release_reason = "stopped_by_budget"};
  fail_attempt(unit, execution, failure, "stopped_by_budget", at);
}

void time_out_attempt(Unit& unit, Execution& execution, Context& at) {
  if (is_stopped_by_budget(execution)) return stop_for_budget(unit, execution, at);
  note_expiry_of_lease(unit, execution, kAttemptTimeout, at);
  execution.last_failure_message = kAttemptTimeout;
  const AttemptFailure failure{.reason = kAttemptTimeout,
                               .category = "timeout",
                               .ended_by = LeaseEnd::other,
                               .release_reason = "expired:attempt_timeout"};
  if (schedule_retry(unit, execution, failure, at)) return;
  expire(unit, execution, kAttemptTimeout, at);
}

void promote(Unit& unit, Execution& execution, const Context& at) {
  execution.delay_until_ms.reset();
  // The attempt state is kept: it tells the next claim which attempt to make, or to go on with.
  move_to(unit, execution, vectors::waiting(execution.state.attempt_state), "", at);
}

Rule due_rule(const Execution& execution, const Context& at) {
  if (execution.state.lifecycle_phase == LifecyclePhase::terminal) {
    const bool goes = is_due(execution.purge_at_ms, at) && !at.off.has(Rule::retention_trimmer);
    return goes ? Rule::retention_trimmer : Rule::none;
  }
  for (const auto& [rule, clock] : clocks_of(execution)) {
    if (is_due(clock, at) && !at.off.has(rule)) return rule;
  }
  return Rule::none;
}

}  // namespace

void give_up_reclaiming(Unit& unit, Execution& execution, Context& at) {
  end_attempt(unit, execution,
              {.how = AttemptLifecycle::interrupted_reclaimed, .failure_reason = kMaxReclaimsExceeded}, at);
  unit.note(Noted::attempt_error, execution.lane_id);
  append_lease_event(unit, execution, LeaseEventType::revoked, kMaxReclaimsExceeded, at);
  release_lease(unit, execution, lease_end(execution, LeaseEnd::other), "", at);
  execution.failure_reason = kMaxReclaimsExceeded;
  finish(unit, execution, TerminalOutcome::failed, at);
}

void expire(Unit& unit, Execution& execution, const std::string& reason, const Context& at) {
  if (has_live_attempt(execution)) {
    end_attempt(
        unit, execution,
        {.how = AttemptLifecycle::ended_failure, .failure_reason = reason, .failure_category = "timeout"},
        at);
  }
  if (execution.state.lifecycle_phase == LifecyclePhase::active) {
    release_lease(unit, execution, lease_end(execution, LeaseEnd::other), "expired:" + reason, at);
  }
  execution.failure_reason = reason;
  finish(unit, execution, TerminalOutcome::expired, at);
}

Rule run_execution_clock(Unit& unit, const ExecutionId& id, Context& at) {
  const auto* found = unit.find<Execution>(id);
  if (!found) return Rule::none;
  const Rule rule = due_rule(*found, at);
  if (rule == Rule::none) {
    // It was looked at too early, on purpose: put the exact time into the index.
    const auto exact = earliest_clock(*found);
    if (found->next_due_at_ms != exact) unit.edit<Execution>(id).next_due_at_ms = exact;
    return rule;
  }
  if (rule == Rule::retention_trimmer) return purge(unit, id, at);
  if (rule == Rule::unblock) {
    recheck(unit, id, at);
    return rule;
  }
  auto& execution = unit.edit<Execution>(id);
  switch (rule) {
    case Rule::execution_deadline:
      note_expiry_of_lease(unit, execution, kExecutionDeadline, at);
      expire(unit, execution, kExecutionDeadline, at);
      break;
    case Rule::attempt_timeout:
      time_out_attempt(unit, execution, at);
      break;
    case Rule::lease_expiry:
      mark_lease_expired(unit, execution, at);
      break;
    case Rule::reclaim:
      execution.delay_until_ms.reset();
      if (is_lost_for_good(execution))
        give_up_reclaiming(unit, execution, at);
      else
        renew_offer(execution, at);
      break;
    case Rule::grant_expiry:
      drop_grant(unit, execution);
      give_back(unit, execution, at);
      renew_offer(execution, at);
      break;
    default:
      promote(unit, execution, at);
      break;
  }
  return rule;
}

Rule run_create_dedup_clock(Unit& unit, const CreateDedupKey& key, Context& at) {
  const auto* dedup = unit.find<CreateDedup>(key);
  if (!dedup || !is_due(dedup->next_due_at_ms, at)) return Rule::none;
  unit.erase<CreateDedup>(key);
  return Rule::ttl_sweep;
}

}  // namespace flowfabric::core
