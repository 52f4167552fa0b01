// The transition table (01 §2.4), row by row: the whole vector after, the attempts, the lease events with
// their reasons, the completion event, the counts and the epoch. Cancelling and expiring have files of their
// own.
#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using Outcomes = std::vector<TerminalOutcome>;

class Transition : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Transition, kStores, store_name);

TEST_P(Transition, ClaimStartsTheAttempt) {
  const auto id = create();
  tick(5);
  claim_one();

  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::running());
  EXPECT_EQ(seen.lease_epoch, 1);
  EXPECT_EQ(seen.started_at, kStart + 5);
  EXPECT_EQ(seen.last_transition_at, kStart + 5);
  EXPECT_EQ(seen.last_mutation_at, kStart + 5);
  EXPECT_EQ(attempt_log(id), Log{"0 initial started"});
  EXPECT_EQ(lease_log(id), Log{"1 acquired"});
  EXPECT_EQ(outcomes(id), Outcomes{});
  EXPECT_EQ(count(), (StateCounts{{PublicState::active, 1}}));
}

TEST_P(Transition, RenewalLeavesTheStateAlone) {
  const auto task = running();
  tick(10);
  EXPECT_EQ(renew(task, 5000), (Renewal{kStart + 5010, 1}));

  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.state, expected::running());
  EXPECT_EQ(seen.lease_epoch, 1);
  EXPECT_EQ(seen.lease->expires_at, kStart + 5010);
  EXPECT_EQ(seen.lease->last_heartbeat_at, kStart + 10);
  EXPECT_EQ(seen.last_transition_at, kStart);
  EXPECT_EQ(seen.last_mutation_at, kStart + 10);
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 renewed"}));
}

TEST_P(Transition, ProgressLeavesTheStateAlone) {
  const auto task = running();
  tick(10);
  progress(task, 40);

  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.state, expected::running());
  EXPECT_EQ(seen.progress_percent, 40);
  EXPECT_EQ(seen.last_transition_at, kStart);
  EXPECT_EQ(seen.last_mutation_at, kStart + 10);
  EXPECT_EQ(lease_log(task.execution_id), Log{"1 acquired"});
}

TEST_P(Transition, CompleteEndsInSuccess) {
  const auto task = running();
  tick(10);
  complete(task, "42");

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::completed());
  EXPECT_EQ(seen.completed_at, kStart + 10);
  EXPECT_EQ(seen.lease_epoch, 1);
  EXPECT_EQ(seen.attempt_id, task.fence.attempt_id) << "kept at the end";
  EXPECT_EQ(result(id), "42");
  EXPECT_EQ(attempt_log(id), Log{"0 initial ended_success"});
  EXPECT_EQ(attempts(id).at(0).ended_at, kStart + 10);
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released completed"}));
  EXPECT_EQ(outcomes(id), Outcomes{TerminalOutcome::success});
  EXPECT_EQ(count(), (StateCounts{{PublicState::completed, 1}}));
}

TEST_P(Transition, CompleteWithoutAResultStoresNone) {
  const auto task = running();
  complete(task);

  EXPECT_EQ(result(task.execution_id), std::nullopt) << "02 §8: the result is stored iff it is not empty";
}

TEST_P(Transition, FailWithARetryWaitsOutTheBackoff) {
  const auto task = running(retries(2, FixedBackoff{750}));
  tick(10);
  EXPECT_EQ(fail(task, "no luck", "infra_crash"), (Failed{true, kStart + 760, 1}));

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::retrying());
  EXPECT_EQ(seen.blocking_detail, "retry backoff until 2025-06-15T15:06:40.760Z (attempt 0 failed: no luck)");
  EXPECT_EQ(seen.delay_until, kStart + 760);
  EXPECT_EQ(seen.retry_count, 1u);
  EXPECT_EQ(seen.failure_reason, "no luck");
  EXPECT_EQ(seen.attempt_id, std::nullopt) << "cleared until the retry is claimed";
  EXPECT_EQ(seen.current_attempt_index, 0u);
  EXPECT_EQ(seen.lease_epoch, 1);
  EXPECT_EQ(attempt_log(id), Log{"0 initial ended_failure no luck"});
  EXPECT_EQ(attempts(id).at(0).failure_category, "infra_crash");
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released failed_retry_scheduled"}));
  EXPECT_EQ(outcomes(id), Outcomes{});
  EXPECT_EQ(count(), (StateCounts{{PublicState::delayed, 1}}));
}

TEST_P(Transition, FailWithoutARetryEndsInFailure) {
  const auto task = running();
  tick(10);
  EXPECT_EQ(fail(task, "no luck", "permanent"), Failed{});

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::failed());
  EXPECT_EQ(seen.failure_reason, "no luck");
  EXPECT_EQ(seen.completed_at, kStart + 10);
  EXPECT_EQ(seen.attempt_id, task.fence.attempt_id);
  EXPECT_EQ(seen.retry_count, 0u);
  EXPECT_EQ(result(id), std::nullopt);
  EXPECT_EQ(attempt_log(id), Log{"0 initial ended_failure no luck"});
  EXPECT_EQ(attempts(id).at(0).failure_category, "permanent");
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released failed_terminal"}));
  EXPECT_EQ(outcomes(id), Outcomes{TerminalOutcome::failed});
  EXPECT_EQ(count(), (StateCounts{{PublicState::failed, 1}}));
}

TEST_P(Transition, DelayPausesTheAttempt) {
  const auto task = running();
  tick(10);
  EXPECT_EQ(delay(task, kStart + 500), Delayed{kStart + 500});

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::paused());
  EXPECT_EQ(seen.delay_until, kStart + 500);
  EXPECT_EQ(seen.attempt_id, task.fence.attempt_id);
  EXPECT_EQ(seen.lease_epoch, 1);
  EXPECT_EQ(seen.retry_count, 0u);
  EXPECT_EQ(attempt_log(id), Log{"0 initial suspended"});
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released worker_delay"}));
  EXPECT_EQ(outcomes(id), Outcomes{});
  EXPECT_EQ(count(), (StateCounts{{PublicState::delayed, 1}}));
}

TEST_P(Transition, TheResumedClaimGoesOnWithTheAttempt) {
  const auto task = running();
  delay(task, kStart + 500);
  advance(500);
  claim_one();

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::running());
  EXPECT_EQ(seen.lease_epoch, 2);
  EXPECT_EQ(seen.total_attempt_count, 1u);
  EXPECT_EQ(attempt_log(id), Log{"0 initial started"});
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released worker_delay", "2 acquired claim_resumed"}));
}

TEST_P(Transition, AnExpiredLeaseIsLost) {
  const auto task = running();
  advance(kLeaseTtl);

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::lost());
  EXPECT_EQ(seen.blocking_detail, "lease expired, awaiting reclaim");
  EXPECT_EQ(seen.lease->lease_id, task.fence.lease_id) << "the lease's identity stays";
  EXPECT_EQ(seen.lease_epoch, 1);
  EXPECT_EQ(seen.last_transition_at, kStart + kLeaseTtl);
  EXPECT_EQ(seen.lease_reclaim_count, 0u);
  EXPECT_EQ(attempt_log(id), Log{"0 initial started"}) << "not ended yet";
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 expired"}));
  EXPECT_EQ(outcomes(id), Outcomes{});
  EXPECT_EQ(count(), (StateCounts{{PublicState::active, 1}}));
}

TEST_P(Transition, ALostLeaseIsMarkedOnlyOnce) {
  const auto task = lost();
  const auto before = story(task.execution_id);
  advance(kHour);

  EXPECT_EQ(story(task.execution_id), before);
}

TEST_P(Transition, TheReclaimStartsANewAttempt) {
  const auto task = lost();
  claim_one({.worker_id = "second"});

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::running());
  EXPECT_EQ(seen.lease_epoch, 2);
  EXPECT_EQ(seen.lease_reclaim_count, 1u);
  EXPECT_EQ(seen.retry_count, 0u);
  EXPECT_EQ(seen.lease->worker_id, "second");
  EXPECT_EQ(seen.lease->expires_at, now() + kLeaseTtl);
  EXPECT_EQ(attempt_log(id), (Log{"0 initial interrupted_reclaimed lease_expired", "1 reclaim started"}));
  EXPECT_EQ(attempts(id).at(0).worker_id, kWorker);
  EXPECT_EQ(attempts(id).at(0).ended_at, now());
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 expired", "2 reclaimed lease_expired"}));
  EXPECT_EQ(outcomes(id), Outcomes{});
}

TEST_P(Transition, AtTheReclaimCapTheExecutionFails) {
  const auto task = lost(reclaim_cap(0));

  const auto id = task.execution_id;
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::failed());
  EXPECT_EQ(seen.failure_reason, "max_reclaims_exceeded");
  EXPECT_EQ(seen.completed_at, kStart + kLeaseTtl);
  EXPECT_EQ(seen.lease_epoch, 1);
  ASSERT_EQ(attempts(id).size(), 1u);
  EXPECT_EQ(attempts(id)[0].attempt_state, AttemptLifecycle::interrupted_reclaimed);
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 expired", "1 revoked max_reclaims_exceeded"}));
  EXPECT_EQ(outcomes(id), Outcomes{TerminalOutcome::failed});
  EXPECT_EQ(count(), (StateCounts{{PublicState::failed, 1}}));
}

TEST_P(Transition, ADelayThatEndsMakesItWait) {
  const auto id = create({.delay_until = kStart + 100});
  advance(99);
  EXPECT_EQ(state(id),
            expected::delayed(BlockingReason::waiting_for_delay, AttemptState::pending_first_attempt));
  advance(1);

  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(seen.delay_until, std::nullopt);
  EXPECT_EQ(seen.blocking_detail, "");
  EXPECT_EQ(seen.last_transition_at, kStart + 100);
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 1}}));
}

TEST_P(Transition, ABackoffThatEndsKeepsTheRetryPending) {
  const auto task = running(retries(1));
  fail(task);
  advance(999);
  EXPECT_EQ(state(task.execution_id), expected::retrying());
  advance(1);

  EXPECT_EQ(state(task.execution_id), expected::waiting(AttemptState::pending_retry_attempt));
}

TEST_P(Transition, APauseThatEndsKeepsTheAttemptInterrupted) {
  const auto task = running();
  delay(task, kStart + 100);
  advance(99);
  EXPECT_EQ(state(task.execution_id), expected::paused());
  advance(1);

  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.state, expected::waiting(AttemptState::attempt_interrupted));
  EXPECT_EQ(seen.attempt_id, task.fence.attempt_id);
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial suspended"});
}

TEST_P(Transition, ALongLifeIsToldInFull) {
  const auto first = running(retries(3));
  const auto id = first.execution_id;
  fail(first, "one");
  advance(1000);
  delay(claim_one(), now() + 50);
  advance(50);
  claim_one();
  advance(kLeaseTtl);
  complete(claim_one(), "done");

  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::completed());
  EXPECT_EQ(seen.lease_epoch, 4);
  EXPECT_EQ(seen.total_attempt_count, 3u);
  EXPECT_EQ(seen.retry_count, 1u);
  EXPECT_EQ(seen.lease_reclaim_count, 1u);
  EXPECT_EQ(result(id), "done");
  EXPECT_EQ(attempt_log(id), (Log{"0 initial ended_failure one",
                                  "1 retry interrupted_reclaimed lease_expired", "2 reclaim ended_success"}));
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released failed_retry_scheduled", "2 acquired",
                                "2 released worker_delay", "3 acquired claim_resumed", "3 expired",
                                "4 reclaimed lease_expired", "4 released completed"}));
  EXPECT_EQ(outcomes(id), Outcomes{TerminalOutcome::success});
}

}  // namespace
}  // namespace flowfabric
