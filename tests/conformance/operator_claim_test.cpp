// An operator takes a named execution, without grant, capabilities or admission (02 §5.5).
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;

class OperatorClaim : public SituationTest {
 protected:
  static IssueGrantAndClaim claim_of(const Placed& placed) {
    return {.execution_id = placed.id, .lane_id = placed.lane};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, OperatorClaim, kStores, store_name);

TEST_P(OperatorClaim, TakesFreshWorkInItsOwnName) {
  const auto placed = place(Situation::waiting);
  const auto task = must(IssueGrantAndClaim{placed.id, placed.lane, 5000});

  EXPECT_EQ(task.claim, ClaimKind::fresh);
  EXPECT_EQ(task.attempt_index, 0u);
  EXPECT_EQ(task.fence.lease_epoch, 1);
  EXPECT_EQ(task.lease_expires_at, now() + 5000);
  EXPECT_EQ(state(placed.id), expected::running());
  EXPECT_EQ(lease_log(placed.id), Log{"1 acquired issue_grant_and_claim"});
  const auto lease = describe(placed.id).lease;
  EXPECT_EQ(lease->worker_id, "operator");
  EXPECT_EQ(lease->worker_instance_id, "operator");
  EXPECT_EQ(lease->lease_id, task.fence.lease_id);
  complete(task);
}

TEST_P(OperatorClaim, TakesRetriesAndReplaysAsWhatTheyAre) {
  EXPECT_EQ(must(claim_of(place(Situation::retry_due))).attempt_type, AttemptType::retry);
  EXPECT_EQ(must(claim_of(place(Situation::replayed))).attempt_type, AttemptType::replay);
}

TEST_P(OperatorClaim, GoesOnWithPausedWork) {
  const auto placed = place(Situation::resumable);
  const auto task = must(claim_of(placed));

  EXPECT_EQ(task.claim, ClaimKind::resumed);
  EXPECT_EQ(task.fence.attempt_id, placed.task.fence.attempt_id);
  EXPECT_EQ(task.fence.lease_epoch, 2);
  EXPECT_EQ(lease_log(placed.id).back(), "2 acquired issue_grant_and_claim_resumed");
}

TEST_P(OperatorClaim, AsksNeitherForCapabilitiesNorForTheLane) {
  const auto placed = place(Situation::waiting, needs({"gpu"}));
  set_lane(placed.lane, LaneState::paused);

  EXPECT_EQ(must(claim_of(placed)).execution_id, placed.id);
  const auto other = place(Situation::resumable);
  set_lane(other.lane, LaneState::disabled);
  EXPECT_EQ(must(claim_of(other)).execution_id, other.id);
}

TEST_P(OperatorClaim, WhatDoesNotWaitForAWorkerIsRefused) {
  in_all_but(kEligible, [&](const Placed& placed) {
    expect_refused(claim_of(placed), ErrorCode::execution_not_eligible);
  });
}

TEST_P(OperatorClaim, AReservedOneIsRefusedUntilTheGrantRunsOut) {
  const auto placed = place(Situation::waiting);
  grant(placed.id);
  tick(kGrantTtl);
  expect_refused(claim_of(placed), ErrorCode::grant_already_exists);
  tick(1);

  must(claim_of(placed));
}

TEST_P(OperatorClaim, AnotherLaneThanItsOwnIsRefused) {
  const auto placed = place(Situation::waiting);

  expect_refused(IssueGrantAndClaim{placed.id, "elsewhere"}, ErrorCode::execution_not_in_eligible_set);
}

TEST_P(OperatorClaim, BadInputIsRefused) {
  const auto placed = place(Situation::waiting);
  for (const std::int64_t ttl :
       {std::int64_t{999}, std::int64_t{3'600'001}, std::int64_t{0}, std::int64_t{-1}}) {
    expect_refused(IssueGrantAndClaim{placed.id, placed.lane, ttl}, ErrorCode::invalid_input);
  }
  expect_refused(IssueGrantAndClaim{placed.id, ""}, ErrorCode::invalid_input);

  expect_error(IssueGrantAndClaim{{1, {}}}, ErrorCode::execution_not_found);
}

}  // namespace
}  // namespace flowfabric
