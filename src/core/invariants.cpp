#include "core/invariants.h"

#include "core/index_rules.h"
#include "core/offer.h"
#include "core/transition.h"

namespace flowfabric::core {

namespace {

bool is_pending_or_interrupted(AttemptState attempt) {
  return attempt == AttemptState::pending_first_attempt || attempt == AttemptState::pending_retry_attempt ||
         attempt == AttemptState::pending_replay_attempt || attempt == AttemptState::attempt_interrupted;
}

}  // namespace

std::vector<std::string> broken_invariants(const Execution* before, const Execution& after) {
  std::vector<std::string> broken;
  const auto require = [&](bool holds, const char* name) {
    if (!holds) broken.emplace_back(name);
  };
  const auto& s = after.state;
  const auto& none = BlockingReason::none;
  const bool terminal = s.lifecycle_phase == LifecyclePhase::terminal;
  const bool active = s.lifecycle_phase == LifecyclePhase::active;
  const bool unowned = s.ownership_state == OwnershipState::unowned;
  const bool eligibility_applies = s.eligibility_state != EligibilityState::not_applicable;

  require(s.public_state == derive_public_state(s), "public state is the derived one");
  require(terminal == (s.terminal_outcome != TerminalOutcome::none), "I1: terminal iff outcome");
  require(!terminal || (unowned && !eligibility_applies && s.blocking_reason == none),
          "I1: terminal is unowned, not eligible, not blocked");
  require(active == !unowned, "I2: active iff owned or lost");
  require(!active || (!eligibility_applies && s.terminal_outcome == TerminalOutcome::none),
          "I2: active is neither eligible nor ended");
  if (s.ownership_state == OwnershipState::leased) {
    require(s.attempt_state == AttemptState::running_attempt && s.blocking_reason == none,
            "I3: leased runs an attempt and is not blocked");
    require(after.lease.lease_id && after.lease.lease_expires_at_ms, "I3: leased has a lease");
    require(after.attempt.attempt_id.has_value(), "I3: leased has an attempt");
  }
  require(!is_lost(s) || (s.attempt_state == AttemptState::attempt_interrupted &&
                          s.blocking_reason == BlockingReason::waiting_for_worker),
          "I4: lost is interrupted and waits for a worker");
  require(s.lifecycle_phase != LifecyclePhase::suspended ||
              (unowned && !eligibility_applies && s.attempt_state == AttemptState::attempt_interrupted),
          "I5: suspended is unowned and interrupted");
  require(s.lifecycle_phase != LifecyclePhase::runnable ||
              (unowned && eligibility_applies && s.terminal_outcome == TerminalOutcome::none &&
               is_pending_or_interrupted(s.attempt_state)),
          "I6: runnable is unowned, judged for eligibility, and waits for an attempt");
  require(s.eligibility_state != EligibilityState::not_eligible_until_time || after.delay_until_ms,
          "I7: delayed knows until when");
  require(s.attempt_state != AttemptState::running_attempt || active, "I8: a started attempt is active");
  require(!terminal || after.total_attempt_count == 0 || s.attempt_state == AttemptState::attempt_terminal,
          "I9: an attempt that existed has ended");
  require(
      !terminal || after.total_attempt_count > 0 || s.attempt_state == AttemptState::pending_first_attempt ||
          s.attempt_state == AttemptState::pending_replay_attempt || s.attempt_state == AttemptState::none,
      "I9: without an attempt the attempt state stays");
  require(!before || after.lease_epoch >= before->lease_epoch, "I10: the lease epoch never decreases");
  const bool may_be_granted = (s.lifecycle_phase == LifecyclePhase::runnable &&
                               s.eligibility_state == EligibilityState::eligible_now) ||
                              is_lost(s);
  require(!after.grant_expires_at_ms || may_be_granted, "only what a worker may take is granted");
  require(!after.dependencies_pending || s.eligibility_state != EligibilityState::eligible_now,
          "what waits for others does not wait for a worker");
  require(s.eligibility_state != EligibilityState::blocked_by_dependencies || after.dependencies_pending,
          "only an undecided join blocks");
  require(!after.blocked_on || is_blocked_by_limit(s) || is_lost(s) ||
              (s.ownership_state == OwnershipState::leased && after.attempt.attempt_timeout_at_ms),
          "only what waits for a worker is held back by a limit, or what is about to be stopped by one");
  require(after.admitted_by.empty() || may_hold_slot(after),
          "only what was handed out holds slots or reservations");
  require(after.offer_order == offer_order(after), "offered iff a worker may take it");
  require(!after.purge_at_ms || terminal, "only what has ended is removed");
  require(!terminal || !after.retention_ms || after.purge_at_ms, "what has ended is removed in its time");
  const auto clock = earliest_clock(after);
  require(!clock || (after.next_due_at_ms && *after.next_due_at_ms <= *clock), "the clock is never late");
  return broken;
}

Result<void> check_invariants(const Unit& unit) {
  std::string violation;
  unit.for_each_touched<Execution>([&](const Execution* before, const Execution* after) {
    if (!after || !violation.empty()) return;
    for (const auto& broken : broken_invariants(before, *after)) {
      violation += (violation.empty() ? "" : "; ") + broken;
    }
    if (!violation.empty()) violation = after->key().to_string() + ": " + violation;
  });
  unit.for_each_touched<EdgeGroup>([&](const EdgeGroup*, const EdgeGroup* after) {
    if (!after || !violation.empty()) return;
    if (after->success_count + after->fail_count + after->skip_count <= after->edge_count) return;
    violation = after->downstream().to_string() + ": Q2: a join counts no more ends than it has edges";
  });
  if (violation.empty()) return {};
  return fail_with(ErrorCode::invariant_violation, violation,
                   "This is a defect of the engine; nothing was changed. Please report it.");
}

}  // namespace flowfabric::core
