#include <gtest/gtest.h>

#include "core/context.h"
#include "core/invariants.h"
#include "core/offer.h"
#include "core/transition.h"

namespace flowfabric::core {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000;

// A sound execution in each phase, built by hand: the spec's vectors, not the code's.
Execution settled(StateVector state) {
  Execution execution{.lane_id = "lane", .created_at_ms = kNow};
  state.public_state = derive_public_state(state);
  execution.state = state;
  return execution;
}
void settle_indexes(Execution& execution) {
  execution.offer_order = offer_order(execution);
  execution.next_due_at_ms = earliest_clock(execution);
}

Execution waiting() {
  auto execution = settled({LifecyclePhase::runnable,
                            OwnershipState::unowned,
                            EligibilityState::eligible_now,
                            BlockingReason::waiting_for_worker,
                            TerminalOutcome::none,
                            AttemptState::pending_first_attempt,
                            {}});
  settle_indexes(execution);
  return execution;
}
Execution delayed() {
  auto execution = settled({LifecyclePhase::runnable,
                            OwnershipState::unowned,
                            EligibilityState::not_eligible_until_time,
                            BlockingReason::waiting_for_delay,
                            TerminalOutcome::none,
                            AttemptState::pending_first_attempt,
                            {}});
  execution.delay_until_ms = kNow + 1000;
  settle_indexes(execution);
  return execution;
}
Execution running() {
  auto execution = settled({LifecyclePhase::active,
                            OwnershipState::leased,
                            EligibilityState::not_applicable,
                            BlockingReason::none,
                            TerminalOutcome::none,
                            AttemptState::running_attempt,
                            {}});
  execution.lease_epoch = 1;
  execution.total_attempt_count = 1;
  execution.lease.lease_id = LeaseId{};
  execution.lease.lease_expires_at_ms = kNow + 30'000;
  execution.attempt.attempt_id = AttemptId{};
  settle_indexes(execution);
  return execution;
}
Execution lost() {
  auto execution = running();
  execution.state.ownership_state = OwnershipState::lease_expired_reclaimable;
  execution.state.blocking_reason = BlockingReason::waiting_for_worker;
  execution.state.attempt_state = AttemptState::attempt_interrupted;
  settle_indexes(execution);
  return execution;
}
Execution suspended() {
  auto execution = settled({LifecyclePhase::suspended,
                            OwnershipState::unowned,
                            EligibilityState::not_applicable,
                            BlockingReason::waiting_for_signal,
                            TerminalOutcome::none,
                            AttemptState::attempt_interrupted,
                            {}});
  execution.total_attempt_count = 1;
  return execution;
}
Execution ended() {
  auto execution = settled({LifecyclePhase::terminal,
                            OwnershipState::unowned,
                            EligibilityState::not_applicable,
                            BlockingReason::none,
                            TerminalOutcome::success,
                            AttemptState::attempt_terminal,
                            {}});
  execution.total_attempt_count = 1;
  return execution;
}

using Broken = std::vector<std::string>;

// The public state, the offer and the clock follow the change; only the invariant in question is broken.
Broken broken_by(Execution execution, const std::function<void(Execution&)>& change) {
  change(execution);
  execution.state.public_state = derive_public_state(execution.state);
  settle_indexes(execution);
  return broken_invariants(nullptr, execution);
}

bool names(const Broken& broken, const std::string& words) {
  for (const auto& line : broken) {
    if (line.find(words) != std::string::npos) return true;
  }
  return false;
}

TEST(Invariants, HoldForEveryPhase) {
  for (const auto& execution : {waiting(), delayed(), running(), lost(), suspended(), ended()}) {
    EXPECT_EQ(broken_invariants(nullptr, execution), Broken{})
        << enum_name(execution.state.lifecycle_phase) << "/" << enum_name(execution.state.ownership_state);
    EXPECT_EQ(broken_invariants(&execution, execution), Broken{});
  }
}

struct Case {
  const char* name;
  Execution (*from)();
  void (*change)(Execution&);
};

const std::vector<Case>& cases() {
  static const std::vector<Case> all{
      {"I1: terminal iff outcome", ended,
       [](Execution& e) { e.state.terminal_outcome = TerminalOutcome::none; }},
      {"I1: terminal iff outcome", waiting,
       [](Execution& e) { e.state.terminal_outcome = TerminalOutcome::failed; }},
      {"I1: terminal is", ended, [](Execution& e) { e.state.ownership_state = OwnershipState::leased; }},
      {"I1: terminal is", ended,
       [](Execution& e) { e.state.eligibility_state = EligibilityState::eligible_now; }},
      {"I1: terminal is", ended,
       [](Execution& e) { e.state.blocking_reason = BlockingReason::waiting_for_worker; }},
      {"I2: active iff", running, [](Execution& e) { e.state.ownership_state = OwnershipState::unowned; }},
      {"I2: active iff", waiting, [](Execution& e) { e.state.ownership_state = OwnershipState::leased; }},
      {"I2: active iff", suspended,
       [](Execution& e) { e.state.ownership_state = OwnershipState::lease_revoked; }},
      {"I2: active is", running,
       [](Execution& e) { e.state.eligibility_state = EligibilityState::eligible_now; }},
      {"I2: active is", running, [](Execution& e) { e.state.terminal_outcome = TerminalOutcome::success; }},
      {"I3: leased runs", running,
       [](Execution& e) { e.state.attempt_state = AttemptState::attempt_interrupted; }},
      {"I3: leased runs", running,
       [](Execution& e) { e.state.blocking_reason = BlockingReason::waiting_for_worker; }},
      {"I3: leased has a lease", running, [](Execution& e) { e.lease.lease_id.reset(); }},
      {"I3: leased has a lease", running, [](Execution& e) { e.lease.lease_expires_at_ms.reset(); }},
      {"I3: leased has an attempt", running, [](Execution& e) { e.attempt.attempt_id.reset(); }},
      {"I4:", lost, [](Execution& e) { e.state.attempt_state = AttemptState::running_attempt; }},
      {"I4:", lost, [](Execution& e) { e.state.blocking_reason = BlockingReason::none; }},
      {"I5:", suspended, [](Execution& e) { e.state.attempt_state = AttemptState::running_attempt; }},
      {"I5:", suspended, [](Execution& e) { e.state.ownership_state = OwnershipState::leased; }},
      {"I5:", suspended, [](Execution& e) { e.state.eligibility_state = EligibilityState::eligible_now; }},
      {"I6:", waiting, [](Execution& e) { e.state.eligibility_state = EligibilityState::not_applicable; }},
      {"I6:", waiting, [](Execution& e) { e.state.attempt_state = AttemptState::none; }},
      {"I6:", waiting, [](Execution& e) { e.state.attempt_state = AttemptState::attempt_terminal; }},
      {"I6:", waiting, [](Execution& e) { e.state.ownership_state = OwnershipState::leased; }},
      {"I7:", delayed, [](Execution& e) { e.delay_until_ms.reset(); }},
      {"I8:", waiting, [](Execution& e) { e.state.attempt_state = AttemptState::running_attempt; }},
      {"I9: an attempt that existed has ended", ended,
       [](Execution& e) { e.state.attempt_state = AttemptState::pending_retry_attempt; }},
      {"I9: without an attempt", ended, [](Execution& e) { e.total_attempt_count = 0; }},
  };
  return all;
}

TEST(Invariants, EachIsNamedWhenItIsBroken) {
  for (const auto& [name, from, change] : cases()) {
    const auto broken = broken_by(from(), change);
    EXPECT_TRUE(names(broken, name)) << name << " was not found broken: " << testing::PrintToString(broken);
  }
}

TEST(Invariants, AnEndWithoutAnyAttemptKeepsTheAttemptState) {
  for (const auto attempt : {AttemptState::pending_first_attempt, AttemptState::none}) {
    auto execution = ended();
    execution.total_attempt_count = 0;
    execution.state.attempt_state = attempt;
    EXPECT_EQ(broken_invariants(nullptr, execution), Broken{}) << enum_name(attempt);
  }
}

TEST(Invariants, TheEpochNeverDecreases) {
  auto before = running();
  before.lease_epoch = 5;
  auto after = before;
  EXPECT_EQ(broken_invariants(&before, after), Broken{});
  after.lease_epoch = 6;
  EXPECT_EQ(broken_invariants(&before, after), Broken{});
  after.lease_epoch = 4;
  EXPECT_TRUE(names(broken_invariants(&before, after), "I10"));
}

TEST(Invariants, ThePublicStateIsTheDerivedOne) {
  auto execution = waiting();
  execution.state.public_state = PublicState::resumable;
  EXPECT_TRUE(names(broken_invariants(nullptr, execution), "public state"));
}

TEST(Invariants, WhatIsOfferedIsOfferedInItsPlace) {
  auto hidden = waiting();
  hidden.offer_order.reset();
  EXPECT_TRUE(names(broken_invariants(nullptr, hidden), "offered"));
  auto misplaced = waiting();
  ++*misplaced.offer_order;
  EXPECT_TRUE(names(broken_invariants(nullptr, misplaced), "offered"));
  auto taken = running();
  taken.offer_order = 1;
  EXPECT_TRUE(names(broken_invariants(nullptr, taken), "offered"));
}

TEST(Invariants, TheClockMayBeEarlyButNeverLate) {
  auto execution = delayed();
  execution.next_due_at_ms = *execution.delay_until_ms - 1;
  EXPECT_EQ(broken_invariants(nullptr, execution), Broken{});
  execution.next_due_at_ms = *execution.delay_until_ms + 1;
  EXPECT_TRUE(names(broken_invariants(nullptr, execution), "clock"));
  execution.next_due_at_ms.reset();
  EXPECT_TRUE(names(broken_invariants(nullptr, execution), "clock"));
}

TEST(Invariants, TheEarliestClockCounts) {
  auto execution = running();
  execution.attempt.attempt_timeout_at_ms = kNow + 20'000;
  EXPECT_EQ(earliest_clock(execution), kNow + 20'000);
  execution.deadline_at_ms = kNow + 10'000;
  EXPECT_EQ(earliest_clock(execution), kNow + 10'000);
  execution.deadline_at_ms = kNow + 90'000;
  execution.attempt.attempt_timeout_at_ms = kNow + 80'000;
  EXPECT_EQ(earliest_clock(execution), kNow + 30'000) << "the lease's";
  EXPECT_EQ(earliest_clock(ended()), std::nullopt);
  EXPECT_EQ(earliest_clock(waiting()), std::nullopt);
}

}  // namespace
}  // namespace flowfabric::core
