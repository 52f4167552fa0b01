// Using a grant (02 §5.5): fresh work, paused work, and whatever the grant is for.
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class GrantClaim : public SituationTest {
 protected:
  // A resumable execution with a live grant, or a waiting one.
  Placed granted(Situation situation, std::string worker = kWorker) {
    const auto placed = place(situation);
    grant_any(placed.id, std::move(worker));
    return placed;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, GrantClaim, kStores, store_name);

// ---- fresh work ----

TEST_P(GrantClaim, TheTaskIsAllThatAClaimGives) {
  const auto id = create({.namespace_ = "acme",
                          .lane_id = "images",
                          .execution_kind = "resize",
                          .input = "in\0put"s,
                          .payload_encoding = "raw",
                          .priority = 7,
                          .tags = {{"a.b", "c"}},
                          .policy = attempt_timeout(kHour),
                          .execution_deadline_at = kStart + 2 * kHour});
  const auto given = grant(id);
  tick(5);
  const auto task = must(ClaimExecution{id,
                                        {.worker_id = kWorker,
                                         .worker_instance_id = "instance-1",
                                         .grant_key = given.grant_key,
                                         .lease_id = some_lease(),
                                         .lease_ttl_ms = 2000,
                                         .attempt_id = some_attempt()}});

  EXPECT_EQ(task, (ClaimedTask{.execution_id = id,
                               .claim = ClaimKind::fresh,
                               .fence = {some_lease(), 1, some_attempt()},
                               .lease_expires_at = kStart + 2005,
                               .attempt_index = 0,
                               .attempt_type = AttemptType::initial,
                               .namespace_ = "acme",
                               .lane_id = "images",
                               .execution_kind = "resize",
                               .input = "in\0put"s,
                               .payload_encoding = "raw",
                               .tags = {{"a.b", "c"}},
                               .priority = 7,
                               .deadline_at = kStart + 2 * kHour,
                               .attempt_timeout_at = kStart + 5 + kHour}));
  EXPECT_EQ(state(id), expected::running());
  EXPECT_EQ(lease_log(id), Log{"1 acquired"});
  const auto attempt = attempts(id).at(0);
  EXPECT_EQ(attempt.attempt_id, some_attempt());
  EXPECT_EQ(attempt.worker_id, kWorker);
  EXPECT_EQ(attempt.worker_instance_id, "instance-1");
  complete(task);
}

TEST_P(GrantClaim, IdsAreMintedAndTheInstanceIsTheWorker) {
  const auto placed = granted(Situation::waiting);
  const auto task = must(ClaimExecution{placed.id, use_by()});

  EXPECT_NE(task.fence.lease_id, LeaseId{});
  EXPECT_NE(task.fence.attempt_id, AttemptId{});
  EXPECT_EQ(task.lease_expires_at, now() + kLeaseTtl);
  EXPECT_EQ(describe(placed.id).lease->worker_instance_id, kWorker);
}

TEST_P(GrantClaim, TheTypeOfTheAttemptFollowsFromItsPast) {
  const std::map<Situation, std::pair<AttemptType, std::uint32_t>> cases = {
      {Situation::waiting, {AttemptType::initial, 0}},
      {Situation::retry_due, {AttemptType::retry, 1}},
      {Situation::replayed, {AttemptType::replay, 1}},
  };
  for (const auto& [situation, expected_attempt] : cases) {
    SCOPED_TRACE(enum_name(situation));
    const auto placed = granted(situation);
    const auto task = must(ClaimExecution{
        .execution_id = placed.id, .use = use_by(), .expected_attempt_index = expected_attempt.second});
    EXPECT_EQ(task.attempt_type, expected_attempt.first);
    EXPECT_EQ(task.attempt_index, expected_attempt.second);
    EXPECT_EQ(task.claim, ClaimKind::fresh);
  }
}

TEST_P(GrantClaim, AnUnexpectedAttemptIsRefused) {
  const auto placed = granted(Situation::retry_due);
  for (const std::uint32_t index : {0u, 2u}) {
    expect_refused(
        ClaimExecution{.execution_id = placed.id, .use = use_by(), .expected_attempt_index = index},
        ErrorCode::execution_not_leaseable);
  }

  EXPECT_EQ(must(ClaimExecution{placed.id, use_by(), 1}).attempt_index, 1u);
}

TEST_P(GrantClaim, WhatCannotBeLeasedIsRefused) {
  in_all_but(kEligible, [&](const Placed& placed) {
    expect_refused(ClaimExecution{placed.id, use_by()}, ErrorCode::execution_not_leaseable);
  });
}

TEST_P(GrantClaim, PausedWorkIsPointedToTheOtherCallAndKeepsItsGrant) {
  const auto placed = granted(Situation::resumable);
  expect_refused(ClaimExecution{placed.id, use_by()}, ErrorCode::use_claim_resumed_execution);

  EXPECT_EQ(must(ClaimResumedExecution{placed.id, use_by()}).claim, ClaimKind::resumed);
}

// ---- paused work ----

TEST_P(GrantClaim, TheSameAttemptGoesOn) {
  const auto task = running(attempt_timeout(1000));
  tick(300);
  delay(task, now() + 50);
  advance(50);
  grant(task.execution_id, "second");
  tick(7);
  const auto resumed = must(ClaimResumedExecution{
      task.execution_id,
      {.worker_id = "second", .lease_id = some_lease(), .lease_ttl_ms = 5000, .attempt_id = some_attempt()}});

  EXPECT_EQ(resumed.claim, ClaimKind::resumed);
  EXPECT_EQ(resumed.fence, (LeaseFence{some_lease(), 2, task.fence.attempt_id}));
  EXPECT_EQ(resumed.attempt_index, 0u);
  EXPECT_EQ(resumed.lease_expires_at, now() + 5000);
  EXPECT_EQ(resumed.attempt_timeout_at, now() + 700) << "what was left";
  EXPECT_EQ(state(task.execution_id), expected::running());
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial started"});
  EXPECT_EQ(lease_log(task.execution_id),
            (Log{"1 acquired", "1 released worker_delay", "2 acquired claim_resumed"}));
  complete(resumed);
}

TEST_P(GrantClaim, WhatWasNotPausedIsNotResumed) {
  in_each({Situation::waiting, Situation::retry_due, Situation::replayed}, [&](const Placed& placed) {
    grant(placed.id);
    expect_refused(ClaimResumedExecution{placed.id, use_by()}, ErrorCode::not_a_resumed_execution);
    must(ClaimExecution{placed.id, use_by()});
  });
}

TEST_P(GrantClaim, WhatIsStillPausedOrDoesNotWaitIsNotResumed) {
  Situations others = kTerminal;
  others.insert(kLeaseless.begin(), kLeaseless.end());
  others.insert({Situation::paused, Situation::running});
  in_each(others, [&](const Placed& placed) {
    expect_refused(ClaimResumedExecution{placed.id, use_by()}, ErrorCode::execution_not_leaseable);
  });
}

// ---- whatever the grant is for ----

TEST_P(GrantClaim, TheGrantDecidesHowTheWorkIsTaken) {
  const std::vector<std::tuple<Situation, ClaimKind, AttemptType>> cases = {
      {Situation::waiting, ClaimKind::fresh, AttemptType::initial},
      {Situation::retry_due, ClaimKind::fresh, AttemptType::retry},
      {Situation::replayed, ClaimKind::fresh, AttemptType::replay},
      {Situation::resumable, ClaimKind::resumed, AttemptType::initial},
      {Situation::lapsed, ClaimKind::reclaimed, AttemptType::reclaim},
      {Situation::lost, ClaimKind::reclaimed, AttemptType::reclaim},
      {Situation::revoked, ClaimKind::reclaimed, AttemptType::reclaim},
  };
  for (const auto& [situation, kind, type] : cases) {
    SCOPED_TRACE(enum_name(situation));
    const auto placed = granted(situation);
    auto use = use_by();
    use.lease_id = some_lease();
    const auto task = must(ClaimGranted{placed.id, use});
    EXPECT_EQ(task.claim, kind);
    EXPECT_EQ(task.attempt_type, type);
    EXPECT_EQ(task.fence.lease_id, some_lease());
    EXPECT_EQ(state(placed.id), expected::running());
    complete(task);
  }
}

TEST_P(GrantClaim, LostWorkBeyondItsCapFailsForGood) {
  const auto task = running(reclaim_cap(0));
  tick(kLeaseTtl);
  expect_error(completion(task), ErrorCode::lease_expired);
  expect_error(ClaimGranted{task.execution_id, use_by()}, ErrorCode::max_reclaims_exceeded);

  EXPECT_EQ(state(task.execution_id), expected::failed());
}

TEST_P(GrantClaim, WhatIsHeldByAnotherIsNotTaken) {
  expect_refused(ClaimGranted{running().execution_id, use_by()}, ErrorCode::execution_not_reclaimable);
}

// ---- whose grant ----

// Every way to use a grant, on an execution for which it is right.
struct UseCase {
  std::string name;
  Situation situation;
  std::function<Result<ClaimedTask>(Engine&, const ExecutionId&, const GrantUse&)> use;
};
void PrintTo(const UseCase& use, std::ostream* out) {
  *out << use.name;
}
template <class Request>
Result<ClaimedTask> run(Engine& engine, const ExecutionId& id, const GrantUse& use) {
  return engine.call(Request{id, use});
}
std::vector<UseCase> use_cases() {
  return {{"claim", Situation::waiting, run<ClaimExecution>},
          {"resume", Situation::resumable, run<ClaimResumedExecution>},
          {"granted_claim", Situation::waiting, run<ClaimGranted>},
          {"granted_resume", Situation::resumable, run<ClaimGranted>},
          {"granted_reclaim", Situation::lost, run<ClaimGranted>}};
}

class GrantUseRules : public SituationTests<EngineCaseTest<UseCase>> {
 protected:
  Result<ClaimedTask> use(const ExecutionId& id, const GrantUse& how) {
    return given().use(engine(), id, how);
  }
  void refused(const ExecutionId& id, const GrantUse& how, ErrorCode code) {
    const auto before = story(id);
    const auto task = use(id, how);
    ASSERT_FALSE(task);
    EXPECT_EQ(error_name(task.error().code), error_name(code));
    EXPECT_FALSE(task.error().advice.empty());
    EXPECT_EQ(story(id), before);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, GrantUseRules, on_every_store(use_cases()), case_name<UseCase>);

TEST_P(GrantUseRules, WithoutAGrantThereIsNone) {
  refused(place(given().situation).id, use_by(), ErrorCode::invalid_claim_grant);
}

TEST_P(GrantUseRules, AnothersGrantOrAWrongKeyIsRefusedAndTheGrantStays) {
  const auto id = place(given().situation).id;
  const auto right = grant_any(id, "mine");
  refused(id, use_by("yours"), ErrorCode::invalid_claim_grant);
  refused(id, use_by("yours", right.grant_key), ErrorCode::invalid_claim_grant);
  refused(id, use_by("mine", right.grant_key + "x"), ErrorCode::invalid_claim_grant);

  EXPECT_TRUE(use(id, use_by("mine", right.grant_key)));
}

TEST_P(GrantUseRules, AnyInstanceOfTheWorkerMayUseIt) {
  const auto id = place(given().situation).id;
  auto by = use_by("pool");
  grant_any(id, "pool");
  by.worker_instance_id = "another process";
  refused(id, by, ErrorCode::invalid_input);
  by.worker_instance_id = "another-process";

  EXPECT_TRUE(use(id, by));
  EXPECT_EQ(describe(id).lease->worker_instance_id, "another-process");
}

TEST_P(GrantUseRules, AtTheInstantOfItsExpiryItStillCounts) {
  const auto id = place(given().situation).id;
  grant_any(id);
  tick(kGrantTtl);

  EXPECT_TRUE(use(id, use_by()));
}

TEST_P(GrantUseRules, AfterwardsItHasExpired) {
  const auto id = place(given().situation).id;
  grant_any(id);
  tick(kGrantTtl + 1);

  refused(id, use_by(), ErrorCode::claim_grant_expired);
}

TEST_P(GrantUseRules, ItIsUsedOnce) {
  const auto id = place(given().situation).id;
  const auto right = grant_any(id);
  const auto task = use(id, use_by());
  ASSERT_TRUE(task);
  delay(*task, now());
  run_due();

  EXPECT_EQ(grant(id).kind, GrantKind::resume) << "there is room for the next";
  expect_refused(ClaimResumedExecution{id, use_by(kWorker, right.grant_key)}, ErrorCode::invalid_claim_grant);
}

TEST_P(GrantUseRules, AClosedLaneHandsNothingOut) {
  const auto placed = place(given().situation);
  grant_any(placed.id);
  for (const auto closed : {LaneState::paused, LaneState::disabled}) {
    set_lane(placed.lane, closed);
    refused(placed.id, use_by(), ErrorCode::execution_not_leaseable);
  }
  set_lane(placed.lane, LaneState::draining);

  EXPECT_TRUE(use(placed.id, use_by()));
}

TEST_P(GrantUseRules, WhatIsOverdueIsNotTakenAndEnds) {
  const auto id = place(given().situation, deadline_after(5000)).id;
  grant_any(id);
  tick(5000);
  const auto task = use(id, use_by());

  ASSERT_FALSE(task);
  EXPECT_EQ(state(id).public_state, PublicState::expired);
}

TEST_P(GrantUseRules, BadInputIsRefused) {
  const auto id = place(given().situation).id;
  grant_any(id);
  const std::vector<GrantUse> all = {
      use_by(""),
      use_by("a b"),
      use_by("a\0b"s),
      use_by(std::string(257, 'w')),
      {.worker_id = kWorker, .worker_instance_id = "a\nb"},
      {.worker_id = kWorker, .lease_ttl_ms = 999},
      {.worker_id = kWorker, .lease_ttl_ms = 3'600'001},
      {.worker_id = kWorker, .lease_ttl_ms = -1},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    refused(id, all[i], ErrorCode::invalid_input);
  }
}

TEST_P(GrantUseRules, TheUnknownIsNotFound) {
  const auto task = use({1, {}}, use_by());

  ASSERT_FALSE(task);
  EXPECT_EQ(task.error().code, ErrorCode::execution_not_found);
}

}  // namespace
}  // namespace flowfabric
