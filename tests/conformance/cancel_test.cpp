// Cancelling (02 §9.1): from every state, by everyone who may, and what it leaves behind.
#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;
using Outcomes = std::vector<TerminalOutcome>;

class Cancel : public EngineTest {
 protected:
  // The effects that are the same in every state.
  void expect_cancelled(const ExecutionId& id, AttemptState attempt) {
    const auto seen = describe(id);
    EXPECT_EQ(seen.state, expected::cancelled(attempt));
    EXPECT_EQ(seen.cancellation_reason, "enough");
    EXPECT_EQ(seen.cancelled_by, "operator_override");
    EXPECT_EQ(seen.completed_at, now());
    EXPECT_EQ(seen.failure_reason, failure_reason_before_);
    EXPECT_EQ(outcomes(id), Outcomes{TerminalOutcome::cancelled});
    EXPECT_EQ(count(), (StateCounts{{PublicState::cancelled, 1}}));
    advance(20 * kHour);
    EXPECT_EQ(describe(id), seen) << "nothing is due any more";
    EXPECT_TRUE(claim().empty());
  }

  std::string failure_reason_before_{};
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Cancel, kStores, store_name);

// ---- from each state ----

TEST_P(Cancel, FromWaiting) {
  const auto id = create({.execution_deadline_at = kStart + kHour});
  tick(5);
  EXPECT_EQ(cancel(id), (Cancelled{id, PublicState::cancelled}));

  expect_cancelled(id, AttemptState::pending_first_attempt);
  EXPECT_EQ(attempt_log(id), Log{});
  EXPECT_EQ(lease_log(id), Log{});
}

TEST_P(Cancel, FromDelayed) {
  const auto id = create({.delay_until = kStart + kHour});
  cancel(id);

  expect_cancelled(id, AttemptState::pending_first_attempt);
  EXPECT_EQ(attempt_log(id), Log{});
}

TEST_P(Cancel, FromActive) {
  const auto task = running(attempt_timeout(kHour));
  tick(5);
  cancel(task.execution_id);

  expect_cancelled(task.execution_id, AttemptState::attempt_terminal);
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_cancelled cancelled: enough"});
  EXPECT_EQ(attempts(task.execution_id).at(0).ended_at, kStart + 5);
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 released cancelled"}));
  EXPECT_EQ(describe(task.execution_id).lease_epoch, 1);
}

TEST_P(Cancel, FromLost) {
  const auto task = lost();
  cancel(task.execution_id);

  expect_cancelled(task.execution_id, AttemptState::attempt_terminal);
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_cancelled cancelled: enough"});
  const auto log = lease_log(task.execution_id);
  ASSERT_GE(log.size(), 2u);
  EXPECT_EQ(log[1], "1 expired");
}

TEST_P(Cancel, FromActiveWithALeaseThatLapsedUnnoticed) {
  const auto task = running();
  tick(kLeaseTtl);
  cancel(task.execution_id);

  expect_cancelled(task.execution_id, AttemptState::attempt_terminal);
}

TEST_P(Cancel, FromRetryBackoff) {
  const auto task = running(retries(1));
  fail(task, "no luck");
  failure_reason_before_ = "no luck";
  cancel(task.execution_id);

  expect_cancelled(task.execution_id, AttemptState::attempt_terminal);
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure no luck"});
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 released failed_retry_scheduled"}));
}

TEST_P(Cancel, FromPaused) {
  const auto task = running();
  delay(task, kStart + kHour);
  tick(5);
  cancel(task.execution_id);

  expect_cancelled(task.execution_id, AttemptState::attempt_terminal);
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_cancelled cancelled: enough"});
  EXPECT_EQ(attempts(task.execution_id).at(0).worker_id, kWorker);
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 released worker_delay"}));
}

TEST_P(Cancel, FromPromotedAndWaitingToResume) {
  const auto task = running();
  delay(task, kStart + 10);
  advance(10);
  cancel(task.execution_id);

  expect_cancelled(task.execution_id, AttemptState::attempt_terminal);
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_cancelled cancelled: enough"});
}

TEST_P(Cancel, AfterAReclaimEndsOnlyTheNewAttempt) {
  const auto task = lost();
  claim_one();
  cancel(task.execution_id);

  EXPECT_EQ(attempt_log(task.execution_id), (Log{"0 initial interrupted_reclaimed lease_expired",
                                                 "1 reclaim ended_cancelled cancelled: enough"}));
}

// ---- what has ended ----

TEST_P(Cancel, OfTheCancelledSucceedsWithoutAChange) {
  const auto task = running();
  cancel(task.execution_id, "first");
  tick(5);
  const auto before = story(task.execution_id);

  EXPECT_EQ(cancel(task.execution_id, "second"), Cancelled{task.execution_id});
  EXPECT_EQ(story(task.execution_id), before);
}

TEST_P(Cancel, OfTheCompletedIsRefused) {
  const auto task = running();
  complete(task);

  expect_refused(CancelExecution{.execution_id = task.execution_id}, ErrorCode::terminal);
}

TEST_P(Cancel, OfTheFailedIsRefused) {
  const auto task = running();
  fail(task);

  expect_refused(CancelExecution{.execution_id = task.execution_id}, ErrorCode::terminal);
}

TEST_P(Cancel, OfTheExpiredIsRefused) {
  const auto id = create({.execution_deadline_at = kStart});
  run_due();

  expect_refused(CancelExecution{.execution_id = id}, ErrorCode::terminal);
}

TEST_P(Cancel, OfTheUnknownIsNotFound) {
  expect_error(CancelExecution{.execution_id = {1, {}}}, ErrorCode::execution_not_found);
}

// ---- who may ----

TEST_P(Cancel, TrustedSourcesNeedNoFence) {
  for (const char* source : {"operator_override", "flow_cascade", "system_timeout"}) {
    const auto id = running().execution_id;
    must(CancelExecution{.execution_id = id, .source = source});

    EXPECT_EQ(state(id), expected::cancelled()) << source;
    EXPECT_EQ(describe(id).cancelled_by, source);
  }
}

TEST_P(Cancel, OthersNeedTheFenceOfARunningExecution) {
  const auto task = running();

  for (const char* source : {"lease_holder", "worker", "somebody else", ""}) {
    expect_refused(CancelExecution{.execution_id = task.execution_id, .source = source},
                   ErrorCode::fence_required);
  }
}

TEST_P(Cancel, OthersNeedNoFenceWhenNothingRuns) {
  const auto id = create();
  must(CancelExecution{.execution_id = id, .source = "somebody else"});

  EXPECT_EQ(describe(id).cancelled_by, "somebody else");
}

TEST_P(Cancel, TheHolderCancelsWithItsFence) {
  const auto task = running();
  must(CancelExecution{task.execution_id, "not needed", "worker", task.fence});

  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.state, expected::cancelled());
  EXPECT_EQ(seen.cancelled_by, "worker");
  EXPECT_EQ(seen.cancellation_reason, "not needed");
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 released cancelled"}));
}

TEST_P(Cancel, WithoutASourceItIsByTheExecutionItself) {
  const auto task = running();
  must(CancelExecution{task.execution_id, "", "", task.fence});

  EXPECT_EQ(describe(task.execution_id).cancelled_by, task.execution_id.to_string());
}

TEST_P(Cancel, ThePartOfAFenceIsRefused) {
  const auto task = running();

  expect_refused(CancelExecution{.execution_id = task.execution_id, .fence = {.lease_epoch = 1}},
                 ErrorCode::partial_fence_triple);
}

TEST_P(Cancel, NulBytesAreRefused) {
  const auto id = create();

  expect_refused(CancelExecution{.execution_id = id, .reason = "a\0b"s}, ErrorCode::invalid_input);
  expect_refused(CancelExecution{.execution_id = id, .source = "a\0b"s}, ErrorCode::invalid_input);
}

// ---- afterwards ----

TEST_P(Cancel, TheWorkerLearnsItOnItsNextCall) {
  const auto task = running();
  cancel(task.execution_id);

  const auto error =
      expect_refused(RenewLease{task.execution_id, task.fence, 0}, ErrorCode::execution_not_active);
  EXPECT_EQ(error.not_active, (NotActiveDetails{LifecyclePhase::terminal, TerminalOutcome::cancelled, 1,
                                                task.fence.attempt_id->to_string()}));
}

TEST_P(Cancel, LeavesOthersAlone) {
  const auto first = running();
  const auto other = create();
  cancel(first.execution_id);

  EXPECT_EQ(state(other), expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(claim_one().execution_id, other);
}

}  // namespace
}  // namespace flowfabric
