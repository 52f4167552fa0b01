// The fence of a cancel: it must be that of the current lease, or of the last one if that was ended with a
// cancel, whose answer it gets again.
#include "support/situations.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

const std::vector<std::string> kSources = {"lease_holder", "worker", "", kOperatorOverride, "flow_cascade"};

CancelExecution cancel_by(const ClaimedTask& task, const std::string& source = kLeaseHolder) {
  return {task.execution_id, "mine", source, task.fence};
}

class CancelFence : public SituationTest {
 protected:
  // Stale for every source, and nothing changes.
  void expect_stale(const ClaimedTask& task) {
    for (const auto& source : kSources) {
      SCOPED_TRACE(source);
      expect_refused(cancel_by(task, source), ErrorCode::stale_lease);
    }
  }
  ClaimedTask invented(const ExecutionId& id) {
    ClaimedTask task;
    task.execution_id = id;
    task.fence = {some_lease(), describe(id).lease_epoch, some_attempt()};
    return task;
  }
  void expect_answered_again(const ClaimedTask& task) {
    const auto before = story(task.execution_id);
    EXPECT_EQ(must(cancel_by(task)), Cancelled{task.execution_id});
    EXPECT_EQ(story(task.execution_id), before);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, CancelFence, kStores, store_name);

TEST_P(CancelFence, OfALeaseThatWasLostIsStaleWhileTheNextOneWaitsForItsRetry) {
  const auto first = lost(retries(3));
  fail(claim_one({.worker_id = "second"}));

  expect_refused(completion(first), ErrorCode::stale_lease);
  expect_stale(first);
}

TEST_P(CancelFence, OfALeaseThatEndedIsStaleOnceALaterOneHasEnded) {
  const auto first = running(retries(3));
  fail(first);
  advance(kHour);
  const auto second = claim_one({.worker_id = "second"});
  expect_stale(first);
  delay(second, now() + kHour);
  expect_stale(first);
  cancel(first.execution_id);

  expect_stale(first);
}

TEST_P(CancelFence, ThatNobodyWasGivenIsStaleWhereverNobodyRuns) {
  const auto check = [&](const Placed& placed) { expect_stale(invented(placed.id)); };
  in_each(kRunnable, check);
  in_each(kTerminal, check);
}

TEST_P(CancelFence, OfTheLastLeaseIsStaleWhenItEndedOtherwise) {
  in_each({Situation::retry_due, Situation::resumable, Situation::retrying, Situation::paused,
           Situation::replayed},
          [&](const Placed& placed) { expect_stale(placed.task); });
}

TEST_P(CancelFence, OfTheLastLeaseIsToldHowTheExecutionEnded) {
  in_each({Situation::completed, Situation::failed},
          [&](const Placed& placed) { expect_refused(cancel_by(placed.task), ErrorCode::terminal); });
}

TEST_P(CancelFence, OfTheLeaseThatAnOperatorCancelledGetsTheSameAnswer) {
  const auto task = running();
  cancel(task.execution_id);

  expect_answered_again(task);
}

TEST_P(CancelFence, OfAPausedAttemptThatAnOperatorCancelledGetsTheSameAnswer) {
  const auto task = running();
  delay(task, now() + kHour);
  cancel(task.execution_id);

  expect_answered_again(task);
}

// ---- after a replay ----

TEST_P(CancelFence, SentAgainAfterAReplayCancelsNothing) {
  const auto task = running();
  must(cancel_by(task));
  replay(task.execution_id);

  expect_answered_again(task);
  EXPECT_EQ(state(task.execution_id), expected::waiting(AttemptState::pending_replay_attempt));
}

TEST_P(CancelFence, SentAgainWhileTheReplayRunsCancelsNothing) {
  const auto task = running();
  must(cancel_by(task));
  replay(task.execution_id);
  const auto again = claim_one();

  expect_answered_again(task);
  complete(again);
  expect_stale(task);
}

// ---- suspension ----

class CancelFenceSuspended : public SuspensionTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, CancelFenceSuspended, kStores, store_name);

TEST_P(CancelFenceSuspended, AnOlderLeaseIsStale) {
  const auto first = lost();
  suspend(suspension(claim_one({.worker_id = "second"})));

  expect_refused(cancel_by(first), ErrorCode::stale_lease);
  EXPECT_EQ(now_in(), expected::suspended());
}

TEST_P(CancelFenceSuspended, TheLeaseThatWasSuspendedIsStale) {
  suspend_new();

  expect_refused(cancel_by(task()), ErrorCode::stale_lease);
}

TEST_P(CancelFenceSuspended, TheOperatorGivesNone) {
  suspend_new();
  cancel(id());

  EXPECT_EQ(now_in(), expected::cancelled());
}

}  // namespace
}  // namespace flowfabric
