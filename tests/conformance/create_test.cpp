// Creating executions: the stored records, the answers, and the defaults (02 §3).
#include <limits>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class Create : public EngineTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Create, kStores, store_name);

const ExecutionId kChosenId = *ExecutionId::parse("{fp:7}:0190a000-0000-7000-8000-000000000001");

std::string every_byte() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

TEST_P(Create, AnswersTheChosenIdAndThePublicState) {
  const auto answer = must(CreateExecution{.execution_id = kChosenId, .execution_kind = "test"});

  EXPECT_EQ(answer, (Creation{kChosenId, false, PublicState::waiting}));
}

TEST_P(Create, MintsAnIdInThePartitionOfTheLane) {
  const auto on_default = create({.lane_id = "default"});
  const auto on_lane_1 = create({.lane_id = "lane-1"});

  EXPECT_EQ(on_default.partition, 86);  // the vectors of 01 §1.5
  EXPECT_EQ(on_lane_1.partition, 173);
}

TEST_P(Create, MintsADifferentIdEachTime) {
  EXPECT_NE(create(), create());
}

TEST_P(Create, StartsWithTheDefaults) {
  const auto seen = describe(create({.execution_kind = "resize"}));

  ExecutionSnapshot fresh{.execution_id = seen.execution_id,
                          .lane_id = "default",
                          .execution_kind = "resize",
                          .state = expected::waiting(AttemptState::pending_first_attempt),
                          .created_at = kStart,
                          .last_transition_at = kStart,
                          .last_mutation_at = kStart};
  EXPECT_EQ(seen, fresh);
}

TEST_P(Create, HasNoAttemptNoEventAndNoResultYet) {
  const auto id = create();

  EXPECT_TRUE(attempts(id).empty());
  EXPECT_TRUE(lease_events(id).empty());
  EXPECT_TRUE(completions(id).empty());
  EXPECT_EQ(result(id), std::nullopt);
}

TEST_P(Create, KeepsWhatItWasGiven) {
  const auto id = create({.namespace_ = "tenant {a}",
                          .lane_id = "gpu lane",
                          .execution_kind = "train",
                          .priority = 17,
                          .tags = {{"team.name", "vision"}, {"Any Key!", ""}, {"unicode", "schön"}}});

  const auto seen = describe(id);
  EXPECT_EQ(seen.namespace_, "tenant {a}");
  EXPECT_EQ(seen.lane_id, "gpu lane");
  EXPECT_EQ(seen.execution_kind, "train");
  EXPECT_EQ(seen.priority, 17);
  EXPECT_EQ(seen.tags, (Tags{{"team.name", "vision"}, {"Any Key!", ""}, {"unicode", "schön"}}));
}

TEST_P(Create, HandsAllOfItToTheWorker) {
  const auto id = create({.namespace_ = "tenant",
                          .execution_kind = "train",
                          .input = "{}",
                          .payload_encoding = "json",
                          .priority = 3,
                          .tags = {{"a.b", "c"}}});

  const auto task = claim_one();
  EXPECT_EQ(task.execution_id, id);
  EXPECT_EQ(task.namespace_, "tenant");
  EXPECT_EQ(task.lane_id, "default");
  EXPECT_EQ(task.execution_kind, "train");
  EXPECT_EQ(task.input, "{}");
  EXPECT_EQ(task.payload_encoding, "json");
  EXPECT_EQ(task.priority, 3);
  EXPECT_EQ(task.tags, (Tags{{"a.b", "c"}}));
}

TEST_P(Create, KeepsEveryByteOfABinaryPayload) {
  create({.input = every_byte()});

  EXPECT_EQ(claim_one().input, every_byte());
}

TEST_P(Create, KeepsALargePayload) {
  const std::string megabyte(1 << 20, '\xff');
  create({.input = megabyte});

  EXPECT_EQ(claim_one().input, megabyte);
}

TEST_P(Create, KeepsEveryByteOfABinaryResult) {
  const auto task = running();
  complete(task, every_byte());

  EXPECT_EQ(result(task.execution_id), every_byte());
  EXPECT_EQ(attempts(task.execution_id).at(0).result, every_byte());
}

TEST_P(Create, RefusesAPartitionBeyondTheConfiguredCount) {
  const ExecutionId beyond{256, kChosenId.uuid};
  expect_error(CreateExecution{.execution_id = beyond, .execution_kind = "test"}, ErrorCode::invalid_input);

  expect_error(DescribeExecution{beyond}, ErrorCode::execution_not_found);
  EXPECT_EQ(count(), StateCounts{});
  EXPECT_TRUE(claim().empty());
}

TEST_P(Create, AcceptsTheLastPartition) {
  const ExecutionId last{255, kChosenId.uuid};

  EXPECT_EQ(create({.execution_id = last}), last);
}

// ---- delay ----

TEST_P(Create, WithAFutureDelayIsDelayed) {
  const auto answer = must(CreateExecution{.execution_kind = "test", .delay_until = kStart + 1});

  EXPECT_EQ(answer.public_state, PublicState::delayed);
  const auto seen = describe(answer.execution_id);
  EXPECT_EQ(seen.state,
            expected::delayed(BlockingReason::waiting_for_delay, AttemptState::pending_first_attempt));
  EXPECT_EQ(seen.delay_until, kStart + 1);
  EXPECT_EQ(seen.blocking_detail, "delayed until 2025-06-15T15:06:40.001Z");
  EXPECT_TRUE(claim().empty());
}

TEST_P(Create, WithADelayThatEndsNowIsWaiting) {
  const auto id = create({.delay_until = kStart});

  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(seen.delay_until, std::nullopt);
  EXPECT_EQ(claim_one().execution_id, id);
}

TEST_P(Create, WithADelayInThePastIsWaiting) {
  const auto id = create({.delay_until = 0});

  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(claim_one().execution_id, id);
}

TEST_P(Create, TakesTheDelayOfThePolicyWhenTheCallHasNone) {
  ExecutionPolicy policy;
  policy.delay_until = kStart + 500;

  EXPECT_EQ(describe(create(policy)).delay_until, kStart + 500);
}

TEST_P(Create, PrefersTheDelayOfTheCallToThatOfThePolicy) {
  ExecutionPolicy policy;
  policy.delay_until = kStart + 500;

  EXPECT_EQ(describe(create({.policy = policy, .delay_until = kStart + 900})).delay_until, kStart + 900);
}

// ---- deadline ----

TEST_P(Create, KeepsAnAbsoluteDeadline) {
  EXPECT_EQ(describe(create({.execution_deadline_at = kStart + 700})).deadline_at, kStart + 700);
}

TEST_P(Create, CountsTheDeadlineOfThePolicyFromItsCreation) {
  EXPECT_EQ(describe(create(deadline_after(700))).deadline_at, kStart + 700);
}

TEST_P(Create, PrefersTheAbsoluteDeadlineToThatOfThePolicy) {
  const auto id = create({.policy = deadline_after(700), .execution_deadline_at = kStart + 9000});

  EXPECT_EQ(describe(id).deadline_at, kStart + 9000);
}

TEST_P(Create, TellsTheWorkerItsDeadline) {
  create(deadline_after(700));

  EXPECT_EQ(claim_one().deadline_at, kStart + 700);
}

TEST_P(Create, WithADeadlineInThePastIsStoredAndExpiresAtOnce) {
  const auto id = create({.execution_deadline_at = kStart - 1});
  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));

  run_due();
  EXPECT_EQ(state(id), expected::expired(AttemptState::pending_first_attempt));
}

TEST_P(Create, WithADeadlineBeyondAllTimeNeverExpires) {
  const auto id = create(deadline_after(std::numeric_limits<std::uint64_t>::max()));

  advance(1000 * kHour);
  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
}

// ---- priority ----

TEST_P(Create, ClampsThePriority) {
  EXPECT_EQ(describe(create({.priority = -5})).priority, 0);
  EXPECT_EQ(describe(create({.priority = 9000})).priority, 9000);
  EXPECT_EQ(describe(create({.priority = 9001})).priority, 9000);
  EXPECT_EQ(describe(create({.priority = std::numeric_limits<std::int32_t>::max()})).priority, 9000);
}

TEST_P(Create, TakesThePriorityOfThePolicyWhenTheCallHasNone) {
  ExecutionPolicy policy;
  policy.priority = 40;

  EXPECT_EQ(describe(create(policy)).priority, 40);
  EXPECT_EQ(describe(create({.priority = 2, .policy = policy})).priority, 2);
}

TEST_P(Create, ClampsThePriorityOfThePolicy) {
  ExecutionPolicy policy;
  policy.priority = 100'000;

  EXPECT_EQ(describe(create(policy)).priority, 9000);
}

// ---- lanes ----

TEST_P(Create, CountsTheLanesExecutionsByState) {
  create({.lane_id = "a"});
  create({.lane_id = "a", .delay_until = kStart + 1});
  create({.lane_id = "b"});

  EXPECT_EQ(count("a"), (StateCounts{{PublicState::waiting, 1}, {PublicState::delayed, 1}}));
  EXPECT_EQ(count("b"), (StateCounts{{PublicState::waiting, 1}}));
  EXPECT_EQ(count("never used"), StateCounts{});
}

TEST_P(Create, MovesTheCountsAlongWithTheExecution) {
  const auto task = running();
  EXPECT_EQ(count(), (StateCounts{{PublicState::active, 1}}));
  complete(task);

  EXPECT_EQ(count(), (StateCounts{{PublicState::completed, 1}}));
}

TEST_P(Create, AcceptsALaneOf64PrintableBytes) {
  const std::string longest(64, '~');
  create({.lane_id = longest});

  EXPECT_EQ(count(longest), (StateCounts{{PublicState::waiting, 1}}));
}

TEST_P(Create, CountingABadLaneIsRefused) {
  expect_error(CountLane{""}, ErrorCode::invalid_input);
  expect_error(CountLane{std::string(65, 'x')}, ErrorCode::invalid_input);
}

// ---- reading what is not there ----

TEST_P(Create, ReadingAnUnknownExecutionIsNotFound) {
  expect_error(DescribeExecution{kChosenId}, ErrorCode::execution_not_found);
  expect_error(ReadResult{kChosenId}, ErrorCode::execution_not_found);
  expect_error(ListAttempts{kChosenId}, ErrorCode::execution_not_found);
}

TEST_P(Create, TheSameUuidInAnotherPartitionIsAnotherExecution) {
  create({.execution_id = kChosenId});

  expect_error(DescribeExecution{{8, kChosenId.uuid}}, ErrorCode::execution_not_found);
  create({.execution_id = ExecutionId{8, kChosenId.uuid}});
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 2}}));
}

}  // namespace
}  // namespace flowfabric
