#include "support/checks.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "support/printing.h"

namespace flowfabric::tests {

namespace {

template <class Event>
void check_log(const ExecutionSnapshot& seen, const std::vector<Event>& events) {
  std::int64_t last_id = 0;
  std::int64_t last_time = seen.created_at;
  for (const auto& event : events) {
    SCOPED_TRACE(::testing::PrintToString(event));
    EXPECT_GT(event.event_id, last_id);
    EXPECT_GE(event.occurred_at, last_time);
    EXPECT_EQ(event.namespace_, seen.namespace_);
    last_id = event.event_id;
    last_time = event.occurred_at;
  }
}

}  // namespace

void check_snapshot(const ExecutionSnapshot& seen) {
  SCOPED_TRACE(::testing::PrintToString(seen));
  const auto& s = seen.state;
  const bool terminal = s.lifecycle_phase == LifecyclePhase::terminal;
  const bool active = s.lifecycle_phase == LifecyclePhase::active;
  const bool runnable = s.lifecycle_phase == LifecyclePhase::runnable;
  const bool leased = s.ownership_state == OwnershipState::leased;

  EXPECT_EQ(s.public_state, derive_public_state(s));
  EXPECT_EQ(terminal, s.terminal_outcome != TerminalOutcome::none) << "I1";
  EXPECT_EQ(active, s.ownership_state != OwnershipState::unowned) << "I2";
  EXPECT_EQ(runnable, s.eligibility_state != EligibilityState::not_applicable) << "I1, I2, I6";
  EXPECT_EQ(leased, s.attempt_state == AttemptState::running_attempt) << "I3, I8";
  if (terminal || leased) {
    EXPECT_EQ(s.blocking_reason, BlockingReason::none) << "I1, I3";
  } else {
    EXPECT_NE(s.blocking_reason, BlockingReason::none) << "I4";
  }
  if (active && !leased) {
    EXPECT_EQ(s.attempt_state, AttemptState::attempt_interrupted) << "I4";
  }
  if (s.eligibility_state == EligibilityState::not_eligible_until_time) {
    EXPECT_TRUE(seen.delay_until.has_value()) << "I7";
  }
  const bool held_back = s.eligibility_state == EligibilityState::not_eligible_until_time ||
                         s.blocking_reason == BlockingReason::paused_by_operator ||
                         s.blocking_reason == BlockingReason::paused_by_policy ||
                         s.blocking_reason == BlockingReason::waiting_for_capable_worker ||
                         s.blocking_reason == BlockingReason::waiting_for_children ||
                         s.blocking_reason == BlockingReason::paused_by_flow_cancel ||
                         s.ownership_state == OwnershipState::lease_expired_reclaimable ||
                         s.ownership_state == OwnershipState::lease_revoked ||
                         s.public_state == PublicState::rate_limited;
  if (seen.delay_until) {
    EXPECT_TRUE(held_back) << "a delay is over when it has ended";
  }
  if (terminal) {
    EXPECT_EQ(s.attempt_state == AttemptState::attempt_terminal, seen.total_attempt_count > 0) << "I9";
  }

  EXPECT_EQ(seen.lease.has_value(), active && s.ownership_state != OwnershipState::lease_revoked);
  if (seen.lease) {
    EXPECT_EQ(seen.lease->lease_epoch, seen.lease_epoch);
    EXPECT_EQ(seen.lease->attempt_index, seen.current_attempt_index);
    EXPECT_TRUE(seen.attempt_id);
  }
  EXPECT_EQ(seen.completed_at.has_value(), terminal);
  EXPECT_EQ(seen.started_at.has_value(), seen.total_attempt_count > 0);
  EXPECT_GE(seen.lease_epoch, seen.total_attempt_count);
  EXPECT_LE(seen.created_at, seen.last_transition_at);
  EXPECT_LE(seen.last_transition_at, seen.last_mutation_at);
}

void check_attempts(const ExecutionSnapshot& seen, const std::vector<AttemptSnapshot>& attempts) {
  SCOPED_TRACE(::testing::PrintToString(seen));
  ASSERT_EQ(attempts.size(), seen.total_attempt_count);
  const bool in_progress = seen.state.attempt_state == AttemptState::running_attempt ||
                           seen.state.attempt_state == AttemptState::attempt_interrupted;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    const bool may_be_open = i + 1 == attempts.size() && in_progress;
    EXPECT_EQ(attempts[i].attempt_index, i);
    EXPECT_EQ(attempts[i].ended_at.has_value(), !may_be_open) << attempts[i];
    EXPECT_EQ(attempts[i].attempt_state == AttemptLifecycle::started ||
                  attempts[i].attempt_state == AttemptLifecycle::suspended,
              may_be_open)
        << attempts[i];
  }
  const auto made_as = [&](AttemptType type) {
    return std::ranges::count(attempts, type, &AttemptSnapshot::attempt_type);
  };
  EXPECT_EQ(made_as(AttemptType::reclaim), seen.lease_reclaim_count);
  EXPECT_LE(made_as(AttemptType::replay), seen.replay_count);
  if (seen.replay_count == 0) {
    EXPECT_LE(made_as(AttemptType::retry), seen.retry_count);
  }
}

void check_events(const ExecutionSnapshot& seen, const std::vector<LeaseEventView>& events) {
  check_log(seen, events);
}
void check_events(const ExecutionSnapshot& seen, const std::vector<CompletionEventView>& events) {
  check_log(seen, events);
}

}  // namespace flowfabric::tests
