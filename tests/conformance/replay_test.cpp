// Running an execution that has ended once more (02 §9.5).
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;
using Outcomes = std::vector<TerminalOutcome>;

class Replay : public SituationTest {
 protected:
  static ExecutionPolicy replays(std::uint32_t max) {
    ExecutionPolicy policy;
    policy.max_replay_count = max;
    return policy;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Replay, kStores, store_name);

// ---- when ----

TEST_P(Replay, WhateverHasEndedWaitsAgain) {
  in_each(kTerminal, [&](const Placed& placed) {
    tick(5);
    const auto before = describe(placed.id);
    EXPECT_EQ(replay(placed.id), Replayed{PublicState::waiting});

    auto expected = before;
    expected.state = expected::waiting(AttemptState::pending_replay_attempt);
    expected.replay_count = 1;
    expected.completed_at.reset();
    expected.failure_reason.clear();
    expected.cancellation_reason.clear();
    expected.cancelled_by.clear();
    expected.attempt_id.reset();
    expected.deadline_at.reset();
    expected.last_transition_at = expected.last_mutation_at = now();
    EXPECT_EQ(describe(placed.id), expected);
    EXPECT_EQ(take_next(placed.lane).attempt_type, AttemptType::replay);
  });
}

TEST_P(Replay, WhateverHasNotEndedIsRefused) {
  in_all_but(kTerminal, [&](const Placed& placed) {
    expect_refused(ReplayExecution{.execution_id = placed.id}, ErrorCode::execution_not_terminal);
  });
}

TEST_P(Replay, TheUnknownIsNotFound) {
  expect_error(ReplayExecution{.execution_id = {1, {}}}, ErrorCode::execution_not_found);
}

TEST_P(Replay, BadInputIsRefused) {
  const auto id = place(Situation::completed).id;
  expect_refused(ReplayExecution{.execution_id = id, .reason = "a\0b"s}, ErrorCode::invalid_input);
  expect_refused(ReplayExecution{.execution_id = id, .requested_by = "a\0b"s}, ErrorCode::invalid_input);
  expect_refused(ReplayExecution{.execution_id = id, .reason = "\xff"}, ErrorCode::invalid_input);
}

TEST_P(Replay, TenTimesUnlessThePolicySaysOtherwise) {
  for (const auto& [policy, times] :
       {std::pair{ExecutionPolicy{}, 10u}, std::pair{replays(2), 2u}, std::pair{replays(0), 0u}}) {
    const auto placed = place(Situation::completed, policy);
    for (std::uint32_t i = 0; i < times; ++i) {
      replay(placed.id);
      complete(take_next(placed.lane));
    }
    expect_refused(ReplayExecution{.execution_id = placed.id}, ErrorCode::max_replays_exhausted);
    EXPECT_EQ(describe(placed.id).replay_count, times);
  }
}

TEST_P(Replay, WhatStillHasNotRunCanEndAgain) {
  const auto cancelled = place(Situation::cancelled_unstarted).id;
  replay(cancelled);
  cancel(cancelled);
  EXPECT_EQ(state(cancelled).public_state, PublicState::cancelled);
  EXPECT_EQ(outcomes(cancelled), (Outcomes{TerminalOutcome::cancelled, TerminalOutcome::cancelled}));

  const auto expired = create({.execution_deadline_at = now() + 1000});
  cancel(expired);
  replay(expired);
  advance(1000);
  EXPECT_EQ(state(expired).public_state, PublicState::expired);
}

// ---- what is kept, and what is not ----

TEST_P(Replay, TheOldResultStaysInTheHistoryOnly) {
  const auto task = running();
  complete(task, "old");
  replay(task.execution_id);

  EXPECT_EQ(result(task.execution_id), std::nullopt);
  EXPECT_EQ(attempts(task.execution_id).at(0).result, "old");
  complete(claim_one(), "new");
  EXPECT_EQ(result(task.execution_id), "new");
  EXPECT_EQ(attempts(task.execution_id).at(0).result, "old");
  EXPECT_EQ(attempts(task.execution_id).at(1).result, "new");
  EXPECT_EQ(outcomes(task.execution_id), (Outcomes{TerminalOutcome::success, TerminalOutcome::success}));
}

TEST_P(Replay, ARunWithoutAResultHasNone) {
  const auto task = running();
  complete(task, "old");
  replay(task.execution_id);
  complete(claim_one());

  EXPECT_EQ(result(task.execution_id), std::nullopt);
}

TEST_P(Replay, TheNewAttemptTellsWhyAndForWhom) {
  const auto first = running();
  fail(first, "boom");
  must(ReplayExecution{first.execution_id, "disk was full", "alice"});
  const auto task = claim_one();

  EXPECT_EQ(task.claim, ClaimKind::fresh);
  EXPECT_EQ(task.attempt_index, 1u);
  EXPECT_EQ(task.fence.lease_epoch, 2);
  const auto attempt = attempts(first.execution_id).at(1);
  EXPECT_EQ(attempt.attempt_type, AttemptType::replay);
  EXPECT_EQ(attempt.previous_attempt_index, 0u);
  EXPECT_EQ(attempt.reason, "disk was full");
  EXPECT_EQ(attempt.requested_by, "alice");
  complete(task);
  EXPECT_EQ(attempts(first.execution_id).at(1).requested_by, "alice") << "also once it has ended";
  EXPECT_EQ(attempt_log(first.execution_id), (Log{"0 initial ended_failure boom", "1 replay ended_success"}));
  EXPECT_EQ(attempts(first.execution_id).at(0).requested_by, "");
}

TEST_P(Replay, WhatNeverRanBeginsWithItsFirstAttempt) {
  const auto placed = place(Situation::cancelled_unstarted);
  replay(placed.id);
  const auto task = take_next(placed.lane);

  EXPECT_EQ(task.attempt_index, 0u);
  EXPECT_EQ(task.attempt_type, AttemptType::replay);
  EXPECT_EQ(attempts(placed.id).at(0).previous_attempt_index, std::nullopt);
}

TEST_P(Replay, RetriesBeginAnew) {
  const auto id = create(retries(1, FixedBackoff{0}));
  for (int run = 0; run < 2; ++run) {
    EXPECT_TRUE(fail(claim_one()).retry_scheduled);
    run_due();
    EXPECT_EQ(describe(id).retry_count, 1u);
    EXPECT_FALSE(fail(claim_one()).retry_scheduled);
    if (run == 0) replay(id);
    EXPECT_EQ(describe(id).retry_count, run == 0 ? 0u : 1u);
  }

  EXPECT_EQ(attempt_log(id), (Log{"0 initial ended_failure boom", "1 retry ended_failure boom",
                                  "2 replay ended_failure boom", "3 retry ended_failure boom"}));
}

TEST_P(Replay, ReclaimsAndTheEpochGoOn) {
  const auto placed = place(Situation::lost, reclaim_cap(1));
  complete(take_next(placed.lane));
  replay(placed.id);
  const auto task = take_next(placed.lane);
  EXPECT_EQ(task.fence.lease_epoch, 3);
  EXPECT_EQ(describe(placed.id).lease_reclaim_count, 1u);
  advance(kLeaseTtl);

  EXPECT_EQ(state(placed.id), expected::failed()) << "its only reclaim was used before the replay";
}

TEST_P(Replay, ProgressIsCleared) {
  const auto task = running();
  must(UpdateProgress{task.execution_id, task.fence, 80, "nearly"});
  complete(task);
  replay(task.execution_id);

  EXPECT_EQ(describe(task.execution_id).progress_percent, std::nullopt);
  EXPECT_EQ(describe(task.execution_id).progress_message, "");
}

TEST_P(Replay, ADeadlineInTheFutureStillCounts) {
  const auto task = running({.execution_deadline_at = kStart + 1000});
  complete(task);
  replay(task.execution_id);
  EXPECT_EQ(describe(task.execution_id).deadline_at, kStart + 1000);
  advance(1000);

  EXPECT_EQ(state(task.execution_id), expected::expired());
}

TEST_P(Replay, ADeadlineThatHasPassedIsDropped) {
  const auto task = running({.execution_deadline_at = kStart + 1000});
  complete(task);
  tick(1000);
  replay(task.execution_id);
  EXPECT_EQ(describe(task.execution_id).deadline_at, std::nullopt);
  advance(kHour);

  EXPECT_EQ(claim_one().execution_id, task.execution_id);
}

TEST_P(Replay, TheAttemptHasAllItsTime) {
  const auto task = running(attempt_timeout(1000));
  complete(task);
  tick(5000);
  replay(task.execution_id);

  EXPECT_EQ(claim_one().attempt_timeout_at, now() + 1000);
}

TEST_P(Replay, ItStandsWhereItsAgeAndPriorityPutIt) {
  const auto old = running({.priority = 2});
  complete(old);
  tick(10);
  const auto young = create({.priority = 2});
  const auto urgent = create({.priority = 3});
  replay(old.execution_id);

  EXPECT_EQ(claim_all(), (std::vector{urgent, old.execution_id, young}));
}

// ---- what others learn ----

TEST_P(Replay, TheEventsTellOfIt) {
  const auto task = running({.namespace_ = "acme", .tags = {{"a.b", "c"}}});
  complete(task);
  tick(5);
  replay(task.execution_id);

  EXPECT_EQ(lease_log(task.execution_id),
            (Log{"1 acquired", "1 released completed", "1 replay_initiated normal"}));
  const auto events = operator_events(task.execution_id);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, OperatorEventType::replayed);
  EXPECT_EQ(events[0].details, (Tags{{"branch", "normal"}}));
  EXPECT_EQ(events[0].namespace_, "acme");
  EXPECT_EQ(events[0].tags, (Tags{{"a.b", "c"}}));
  EXPECT_EQ(events[0].occurred_at, now());
}

TEST_P(Replay, TheOldWorkerCanStillRepeatItsLastCall) {
  const auto task = running();
  complete(task, "old");
  replay(task.execution_id);
  const auto before = story(task.execution_id);

  EXPECT_TRUE(call(completion(task, "old")));
  EXPECT_EQ(story(task.execution_id), before);
  expect_refused(failure(task), ErrorCode::execution_not_active);
  claim_one();
  expect_refused(failure(task), ErrorCode::stale_lease);
}

// ---- retention ----

TEST_P(Replay, WhatWasReplayedIsNotRemovedForItsFirstEnd) {
  const auto task = running();
  complete(task);
  tick(23 * kHour);
  replay(task.execution_id);
  advance(2 * kHour);

  EXPECT_EQ(state(task.execution_id), expected::waiting(AttemptState::pending_replay_attempt));
}

TEST_P(Replay, AfterItsRetentionThereIsNothingToReplay) {
  ExecutionPolicy policy;
  policy.stream_policy = StreamPolicy{.retention_ttl_ms = 1000};
  const auto task = running(policy);
  complete(task);
  advance(1000);
  forget(task.execution_id);

  expect_error(ReplayExecution{.execution_id = task.execution_id}, ErrorCode::execution_not_found);
  expect_error(DescribeExecution{task.execution_id}, ErrorCode::execution_not_found);
}

}  // namespace
}  // namespace flowfabric
