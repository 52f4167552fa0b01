#include "core/transition.h"

#include <algorithm>

#include "core/offer.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

std::optional<std::int64_t> end_of_retention(const Execution& execution, const Context& at) {
  if (execution.state.lifecycle_phase != LifecyclePhase::terminal) return std::nullopt;
  if (!execution.retention_ms && at.retention_ms == 0) return std::nullopt;
  const auto kept_for = static_cast<std::uint64_t>(execution.retention_ms.value_or(at.retention_ms));
  return saturating_add(*execution.terminal_at_ms, kept_for);
}

// Lost leases have no outcome of their own: another attempt takes their place.
std::optional<Noted> outcome_of(const AttemptEnd& end) {
  switch (end.how) {
    case AttemptLifecycle::ended_success:
      return Noted::attempt_ok;
    case AttemptLifecycle::ended_cancelled:
      return Noted::attempt_cancelled;
    case AttemptLifecycle::ended_failure:
      if (end.is_retried) return Noted::attempt_retry;
      if (end.failure_category == "timeout" || end.failure_reason.starts_with("suspension_timeout")) {
        return Noted::attempt_timeout;
      }
      return Noted::attempt_error;
    default:
      return std::nullopt;
  }
}

// For how long it has been worked on; what nobody ever claimed is not counted.
void note_end(Unit& unit, const Execution& execution, TerminalOutcome outcome, const Context& at) {
  if (!execution.started_at_ms) return;
  const auto note = [&](Noted what) {
    unit.note(what, execution.lane_id, at.now_ms - *execution.started_at_ms);
  };
  switch (outcome) {
    case TerminalOutcome::success:
      return note(Noted::execution_success);
    case TerminalOutcome::failed:
      return note(Noted::execution_failed);
    case TerminalOutcome::cancelled:
      return note(Noted::execution_cancelled);
    case TerminalOutcome::expired:
      return note(Noted::execution_expired);
    default:
      return;
  }
}

// What somebody or something held back may go on.
void note_if_unblocked(Unit& unit, const StateVector& before, const Execution& execution) {
  const auto was = before.eligibility_state;
  const bool was_blocked = is_blocked_by_limit(before) || was == EligibilityState::blocked_by_route ||
                           was == EligibilityState::blocked_by_operator;
  const auto is = execution.state.eligibility_state;
  if (was_blocked &&
      (is == EligibilityState::eligible_now || is == EligibilityState::not_eligible_until_time)) {
    unit.note(Noted::unblocked, std::string(enum_name(before.blocking_reason)));
  }
}

// A lost lease may be left to whoever lost it for a while: until then it is not offered to others.
std::optional<std::int64_t> end_of_reclaim_grace(const Execution& execution, const Context& at) {
  if (!is_lost(execution) || at.reclaim_grace_ms == 0) return std::nullopt;
  return saturating_add(at.now_ms, static_cast<std::uint64_t>(at.reclaim_grace_ms));
}

EligibilityState blocked_by(BlockingReason reason) {
  switch (reason) {
    case BlockingReason::waiting_for_budget:
      return EligibilityState::blocked_by_budget;
    case BlockingReason::waiting_for_quota:
      return EligibilityState::blocked_by_quota;
    case BlockingReason::waiting_for_capable_worker:
      return EligibilityState::blocked_by_route;
    case BlockingReason::waiting_for_children:
      return EligibilityState::blocked_by_dependencies;
    case BlockingReason::paused_by_policy:
      return EligibilityState::blocked_by_lane_state;
    default:
      return EligibilityState::blocked_by_operator;
  }
}

void settle(Unit& unit, Execution& execution, StateVector state, std::string blocking_detail,
            const Context& at) {
  // Whichever way it came back: what waits for others does not wait for a worker.
  if (execution.dependencies_pending && state.eligibility_state == EligibilityState::eligible_now) {
    state = vectors::blocked(BlockingReason::waiting_for_children, state.attempt_state);
    if (blocking_detail.empty()) blocking_detail = "dependencies unresolved";
  }
  state.public_state = derive_public_state(state);
  const bool was_lost = is_lost(execution);
  execution.state = state;
  if (was_lost != is_lost(execution)) execution.delay_until_ms = end_of_reclaim_grace(execution, at);
  if (!is_blocked_by_limit(state)) execution.blocked_on.reset();
  const bool waits = state.eligibility_state == EligibilityState::eligible_now || is_lost(state);
  if (waits) kFollowers.comes_in_line(unit, execution, at);
  execution.blocking_detail = std::move(blocking_detail);
  execution.last_transition_at_ms = at.now_ms;
  execution.purge_at_ms = end_of_retention(execution, at);
  renew_offer(execution, at);
}

}  // namespace

namespace vectors {

StateVector waiting(AttemptState attempt) {
  return {.lifecycle_phase = LifecyclePhase::runnable,
          .eligibility_state = EligibilityState::eligible_now,
          .blocking_reason = BlockingReason::waiting_for_worker,
          .attempt_state = attempt};
}

StateVector delayed(BlockingReason reason, AttemptState attempt) {
  return {.lifecycle_phase = LifecyclePhase::runnable,
          .eligibility_state = EligibilityState::not_eligible_until_time,
          .blocking_reason = reason,
          .attempt_state = attempt};
}

StateVector blocked(BlockingReason reason, AttemptState attempt) {
  return {.lifecycle_phase = LifecyclePhase::runnable,
          .eligibility_state = blocked_by(reason),
          .blocking_reason = reason,
          .attempt_state = attempt};
}

StateVector running() {
  return {.lifecycle_phase = LifecyclePhase::active,
          .ownership_state = OwnershipState::leased,
          .attempt_state = AttemptState::running_attempt};
}

StateVector lost(OwnershipState how) {
  return {.lifecycle_phase = LifecyclePhase::active,
          .ownership_state = how,
          .blocking_reason = BlockingReason::waiting_for_worker,
          .attempt_state = AttemptState::attempt_interrupted};
}

StateVector suspended(BlockingReason reason) {
  return {.lifecycle_phase = LifecyclePhase::suspended,
          .blocking_reason = reason,
          .attempt_state = AttemptState::attempt_interrupted};
}

StateVector terminal(TerminalOutcome outcome, AttemptState attempt) {
  return {.lifecycle_phase = LifecyclePhase::terminal, .terminal_outcome = outcome, .attempt_state = attempt};
}

}  // namespace vectors

void enter(Unit& unit, Execution& execution, StateVector state, std::string blocking_detail,
           const Context& at) {
  settle(unit, execution, state, std::move(blocking_detail), at);
  unit.count(execution.lane_id, execution.state.public_state, +1);
  unit.note(Noted::execution_created, execution.lane_id);
}

void move_to(Unit& unit, Execution& execution, StateVector state, std::string blocking_detail,
             const Context& at) {
  const auto vector_before = execution.state;
  const PublicState before = vector_before.public_state;
  drop_grant(unit, execution);
  if (state.ownership_state != OwnershipState::leased) kFollowers.leaves_worker(unit, execution, at);
  settle(unit, execution, state, std::move(blocking_detail), at);
  note_if_unblocked(unit, vector_before, execution);
  if (before == execution.state.public_state) return;
  unit.count(execution.lane_id, before, -1);
  unit.count(execution.lane_id, execution.state.public_state, +1);
}

void note_mutation(Execution& execution, const Context& at) {
  execution.last_mutation_at_ms = at.now_ms;
  // The clock may be early, never late: a renewal leaves the index alone.
  const auto due = earliest_clock(execution);
  if (due && (!execution.next_due_at_ms || *due < *execution.next_due_at_ms)) execution.next_due_at_ms = due;
}

void renew_offer(Execution& execution, const Context& at) {
  execution.last_mutation_at_ms = at.now_ms;
  execution.offer_order = offer_order(execution);
  execution.next_due_at_ms = earliest_clock(execution);
}

std::array<RuleClock, 7> clocks_of(const Execution& execution) {
  using Clock = std::optional<std::int64_t>;
  const auto& state = execution.state;
  const auto when = [](bool applies, const Clock& clock) { return applies ? clock : std::nullopt; };
  const bool leased = state.ownership_state == OwnershipState::leased;
  const bool waits = state.eligibility_state == EligibilityState::not_eligible_until_time;
  // A grant may still be used at the very moment it ends.
  const auto grant =
      execution.grant_expires_at_ms ? Clock(saturating_add(*execution.grant_expires_at_ms, 1)) : std::nullopt;
  // Lost work is offered again when its grace is over; what may not be taken again is failed then.
  const auto reclaim = execution.delay_until_ms
                           ? execution.delay_until_ms
                           : when(is_lost_for_good(execution), execution.last_transition_at_ms);
  return {{{Rule::execution_deadline, execution.deadline_at_ms},
           {Rule::attempt_timeout, when(leased, execution.attempt.attempt_timeout_at_ms)},
           {Rule::lease_expiry, when(leased, execution.lease.lease_expires_at_ms)},
           {Rule::reclaim, when(is_lost(execution), reclaim)},
           {Rule::grant_expiry, grant},
           {Rule::unblock,
            when(is_blocked_for_no_limit(execution), execution.last_transition_at_ms + kUnblockIntervalMs)},
           {Rule::delayed_promoter, when(waits, execution.delay_until_ms)}}};
}

std::optional<std::int64_t> earliest_clock(const Execution& execution, const RuleSet& off) {
  std::optional<std::int64_t> earliest;
  if (execution.state.lifecycle_phase == LifecyclePhase::terminal) return earliest;
  for (const auto& [rule, clock] : clocks_of(execution)) {
    if (clock && !off.has(rule)) earliest = std::min(earliest.value_or(*clock), *clock);
  }
  return earliest;
}

std::string instance_tag(const Tags& tags) {
  const auto it = tags.find("cairn.instance_id");
  return it == tags.end() ? std::string() : it->second;
}

void append_lease_event(Unit& unit, const Execution& execution, LeaseEventType type, std::string reason,
                        const Context& at) {
  unit.append(LeaseEvent{.partition_key = execution.partition_key,
                         .execution_id = execution.execution_id,
                         .event_type = type,
                         .lease_id = execution.lease.lease_id.value_or(LeaseId{}),
                         .lease_epoch = execution.lease_epoch,
                         .attempt_id = execution.attempt.attempt_id.value_or(AttemptId{}),
                         .attempt_index = execution.attempt.attempt_index,
                         .worker_id = execution.lease.worker_id,
                         .worker_instance_id = execution.lease.worker_instance_id,
                         .reason = std::move(reason),
                         .occurred_at_ms = at.now_ms,
                         .namespace_ = execution.namespace_,
                         .instance_tag = instance_tag(execution.tags),
                         .tags = execution.tags,
                         .lane_id = execution.lane_id,
                         .flow_id = execution.flow_id});
}

void append_operator_event(Unit& unit, const Execution& execution, OperatorEventType type, Tags details,
                           const Context& at) {
  unit.append(OperatorEvent{.partition_key = execution.partition_key,
                            .execution_id = execution.execution_id,
                            .event_type = type,
                            .details = std::move(details),
                            .occurred_at_ms = at.now_ms,
                            .namespace_ = execution.namespace_,
                            .instance_tag = instance_tag(execution.tags),
                            .tags = execution.tags,
                            .lane_id = execution.lane_id,
                            .flow_id = execution.flow_id});
}

void append_signal_event(Unit& unit, const Execution& execution, const Signal& signal, EventEffect effect,
                         const Context& at) {
  unit.append(SignalEvent{.partition_key = execution.partition_key,
                          .execution_id = execution.execution_id,
                          .signal_id = signal.signal_id,
                          .waitpoint_id = signal.waitpoint_id,
                          .source_identity = signal.source_identity,
                          .effect = std::move(effect.shown),
                          .occurred_at_ms = at.now_ms,
                          .namespace_ = execution.namespace_,
                          .instance_tag = instance_tag(execution.tags),
                          .tags = execution.tags,
                          .raw_effect = std::move(effect.raw),
                          .lane_id = execution.lane_id,
                          .flow_id = execution.flow_id});
}

void append_tag_event(Unit& unit, const Execution& execution, TagEventType type, const std::string& tag,
                      const std::string& value, const Context& at) {
  unit.append(TagEvent{.partition_key = execution.partition_key,
                       .execution_id = execution.execution_id,
                       .event_type = type,
                       .tag = tag,
                       .value = value,
                       .occurred_at_ms = at.now_ms,
                       .namespace_ = execution.namespace_,
                       .instance_tag = instance_tag(execution.tags),
                       .tags = {{tag, value}},
                       .lane_id = execution.lane_id,
                       .flow_id = execution.flow_id});
}

void drop_grant(Unit& unit, Execution& execution) {
  if (!execution.grant_expires_at_ms) return;
  unit.erase<Grant>(execution.key());
  execution.grant_expires_at_ms.reset();
}

LastLeaseEnd lease_end(const Execution& execution, LeaseEnd by) {
  return {.ended_by = by,
          .ended_lease_id = execution.lease.lease_id,
          .ended_lease_epoch = execution.lease_epoch,
          .ended_attempt_id = execution.attempt.attempt_id,
          .ended_delay_until_ms = std::nullopt,
          .ended_next_attempt_index = std::nullopt};
}

void release_lease(Unit& unit, Execution& execution, LastLeaseEnd end, std::string reason,
                   const Context& at) {
  // A lease that was lost has said so already.
  if (execution.state.ownership_state == OwnershipState::leased) {
    append_lease_event(unit, execution, LeaseEventType::released, std::move(reason), at);
  }
  execution.last_end = std::move(end);
  // The worker's names stay: a paused attempt still has to say in its history who ran it.
  execution.lease = Lease{.worker_id = std::move(execution.lease.worker_id),
                          .worker_instance_id = std::move(execution.lease.worker_instance_id)};
  execution.attempt.attempt_timeout_at_ms.reset();
}

void end_attempt(Unit& unit, const Execution& execution, AttemptEnd end, const Context& at) {
  const auto& attempt = execution.attempt;
  const auto& lease = execution.lease;
  if (const auto outcome = outcome_of(end)) unit.note(*outcome, execution.lane_id);
  unit.insert(Attempt{.partition_key = execution.partition_key,
                      .execution_id = execution.execution_id,
                      .attempt_index = attempt.attempt_index,
                      .attempt_id = attempt.attempt_id.value_or(AttemptId{}),
                      .attempt_type = attempt.attempt_type,
                      .attempt_state = end.how,
                      .lease_id = lease.lease_id ? lease.lease_id : execution.last_end.ended_lease_id,
                      .lease_epoch = execution.lease_epoch,
                      .worker_id = lease.worker_id,
                      .worker_instance_id = lease.worker_instance_id,
                      .started_at_ms = attempt.attempt_started_at_ms.value_or(at.now_ms),
                      .resumed_at_ms = attempt.attempt_resumed_at_ms,
                      .terminal_at_ms = at.now_ms,
                      .failure_reason = std::move(end.failure_reason),
                      .failure_category = std::move(end.failure_category),
                      .fallback_tier = attempt.fallback_tier,
                      .lineage = attempt.lineage,
                      .result = Bytes{std::move(end.result)}});
}

void pause_attempt(Unit& unit, Execution& execution, LastLeaseEnd end, const std::string& release_reason,
                   const std::string& suspension, const Context& at) {
  auto& attempt = execution.attempt;
  if (const auto timeout = own_timeout(execution)) {
    // Time does not run while the attempt is paused; an elapsed timer fires as soon as it goes on.
    attempt.attempt_timeout_left_ms = std::max<std::int64_t>(*timeout - at.now_ms, 1);
  }
  release_lease(unit, execution, std::move(end), release_reason, at);
  attempt.attempt_suspended_at_ms = at.now_ms;
  attempt.attempt_suspension = suspension;
}

void stop_attempt(Unit& unit, Execution& execution, const std::string& failure_reason, LeaseEnd by,
                  const std::string& release_reason, const Context& at) {
  if (has_live_attempt(execution)) {
    end_attempt(unit, execution, {.how = AttemptLifecycle::ended_cancelled, .failure_reason = failure_reason},
                at);
  }
  if (execution.state.lifecycle_phase == LifecyclePhase::active) {
    release_lease(unit, execution, lease_end(execution, by), release_reason, at);
  }
}

void back_in_line(Unit& unit, Execution& execution, const Context& at) {
  const auto attempt = execution.state.attempt_state;
  if (execution.delay_until_ms && *execution.delay_until_ms > at.now_ms) {
    const auto reason = attempt == AttemptState::pending_retry_attempt
                            ? BlockingReason::waiting_for_retry_backoff
                            : BlockingReason::waiting_for_delay;
    move_to(unit, execution, vectors::delayed(reason, attempt),
            "delayed until " + time_to_text(*execution.delay_until_ms), at);
    return;
  }
  execution.delay_until_ms.reset();
  move_to(unit, execution, vectors::waiting(attempt), "", at);
}

void end_execution(Unit& unit, Execution& execution, TerminalOutcome outcome, const Context& at) {
  if (execution.state.lifecycle_phase == LifecyclePhase::suspended) {
    const auto reason = outcome == TerminalOutcome::expired ? "expired:" + execution.failure_reason
                                                            : std::string(enum_name(outcome));
    kFollowers.ends_suspended(unit, execution, reason, at);
  }
  auto attempt = execution.state.attempt_state;
  if (execution.total_attempt_count > 0)
    attempt = AttemptState::attempt_terminal;
  else if (outcome == TerminalOutcome::skipped)
    attempt = AttemptState::none;
  execution.terminal_at_ms = at.now_ms;
  execution.delay_until_ms.reset();
  note_end(unit, execution, outcome, at);
  move_to(unit, execution, vectors::terminal(outcome, attempt), "", at);
  unit.append(CompletionEvent{.partition_key = execution.partition_key,
                              .execution_id = execution.execution_id,
                              .flow_id = execution.flow_id,
                              .outcome = outcome,
                              .occurred_at_ms = at.now_ms,
                              .namespace_ = execution.namespace_,
                              .instance_tag = instance_tag(execution.tags),
                              .tags = execution.tags,
                              .lane_id = execution.lane_id});
}

void follow_end(Unit& unit, const Execution& execution, const Context& at) {
  if (execution.flow_id) kFollowers.member_ended(unit, execution, at);
}

void finish(Unit& unit, Execution& execution, TerminalOutcome outcome, const Context& at) {
  end_execution(unit, execution, outcome, at);
  follow_end(unit, execution, at);
}

void want_dependents(Unit& unit, const ExecutionId& ending) {
  if (unit.remembered_flow(ending)) unit.want_answer(EdgesFrom{ending, std::nullopt, kEdgesPerStep});
}

}  // namespace flowfabric::core
