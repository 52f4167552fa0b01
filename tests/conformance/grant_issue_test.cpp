// Reserving a named execution for a worker (02 §5.2, §5.3): who gets a grant, and what it does to the others.
#include <future>

#include "support/parked.h"
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class GrantIssue : public SituationTest {
 protected:
  static IssueClaimGrant request_for(const ExecutionId& id, GrantTerms by = terms()) {
    return {.execution_id = id, .terms = std::move(by)};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, GrantIssue, kStores, store_name);

TEST_P(GrantIssue, TheGrantSaysWhatItIsFor) {
  const auto id = create({.lane_id = "images"});
  auto by = terms();
  by.grant_ttl_ms = 1234;
  const auto given = must(IssueClaimGrant{id, "images", by});

  EXPECT_EQ(given.execution_id, id);
  EXPECT_EQ(given.kind, GrantKind::claim);
  EXPECT_EQ(given.partition_key, "{fp:" + std::to_string(id.partition) + "}");
  EXPECT_FALSE(given.grant_key.empty());
  EXPECT_EQ(given.lane_id, "images");
  EXPECT_EQ(given.expires_at, kStart + 1234);
}

TEST_P(GrantIssue, TheExecutionStaysAsItWas) {
  in_each(kEligible, [&](const Placed& placed) {
    tick(5);
    const auto before = story(placed.id);
    grant(placed.id);
    expect_as_before(before);
  });
}

TEST_P(GrantIssue, TheKindFollowsFromTheAttempt) {
  in_each(kEligible, [&](const Placed& placed) {
    const bool interrupted = state(placed.id).attempt_state == AttemptState::attempt_interrupted;
    EXPECT_EQ(grant(placed.id).kind, interrupted ? GrantKind::resume : GrantKind::claim);
  });
}

TEST_P(GrantIssue, EveryGrantHasAKeyOfItsOwn) {
  const auto id = create();
  const auto first = grant(id).grant_key;
  tick(kGrantTtl + 1);

  EXPECT_NE(grant(id).grant_key, first);
  EXPECT_NE(grant(create()).grant_key, first);
}

// ---- refused ----

TEST_P(GrantIssue, WhatDoesNotWaitForAWorkerIsRefused) {
  in_all_but(kEligible, [&](const Placed& placed) {
    expect_refused(IssueClaimGrant{placed.id, placed.lane, terms()}, ErrorCode::execution_not_eligible);
  });
}

TEST_P(GrantIssue, TheUnknownIsNotFound) {
  expect_error(request_for({1, {}}), ErrorCode::execution_not_found);
}

TEST_P(GrantIssue, TheOverdueIsRefused) {
  const auto id = create({.execution_deadline_at = kStart + 1000});
  tick(1000);

  expect_refused(request_for(id), ErrorCode::execution_not_eligible);
}

TEST_P(GrantIssue, AnotherLaneThanItsOwnIsRefused) {
  const auto id = create();

  expect_refused(IssueClaimGrant{id, "elsewhere", terms()}, ErrorCode::execution_not_in_eligible_set);
}

TEST_P(GrantIssue, AMissingCapabilityIsNamed) {
  const auto id = create(needs({"gpu", "b", "a"}));
  auto expected = story(id);
  tick(5);
  expect_error(request_for(id, terms(kWorker, {"gpu", "x"})), ErrorCode::capability_mismatch, "a,b");
  expected.execution.last_capability_mismatch_at = now();
  EXPECT_EQ(story(id), expected) << "only the time of the mismatch stays";
  EXPECT_EQ(must(request_for(id, terms(kWorker, {"gpu", "x", "b", "a"}))).kind, GrantKind::claim);
}

TEST_P(GrantIssue, TheFirstThingThatIsWrongIsAnswered) {
  const auto id = create(needs({"gpu"}));
  const auto wrong = terms(kWorker, {"not,one"});
  expect_refused(IssueClaimGrant{id, "elsewhere", wrong}, ErrorCode::execution_not_in_eligible_set);
  const auto error = expect_refused(request_for(id, wrong), ErrorCode::invalid_capabilities);
  EXPECT_EQ(error.detail, "worker:comma_in_token");

  must(request_for(id, terms(kWorker, {"gpu"})));
  expect_refused(IssueClaimGrant{id, "elsewhere", wrong}, ErrorCode::grant_already_exists);
  hold(id);
  expect_refused(IssueClaimGrant{id, "elsewhere", wrong}, ErrorCode::execution_not_eligible);
}

TEST_P(GrantIssue, CapabilitiesAreCheckedAsInAClaim) {
  const auto id = create();
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases = {
      {{""}, "worker:empty_token"},
      {{"a,b"}, "worker:comma_in_token"},
      {{"a b"}, "worker:control_or_whitespace"},
      {{"a\0b"s}, "worker:control_or_whitespace"},
      {{std::string(4097, 'x')}, "worker:too_many_bytes"},
  };
  for (const auto& [capabilities, detail] : cases) {
    const auto error =
        expect_refused(request_for(id, terms(kWorker, capabilities)), ErrorCode::invalid_capabilities);
    EXPECT_EQ(error.detail, detail);
  }
}

TEST_P(GrantIssue, BadInputIsRefused) {
  const auto id = create();
  const auto worker = [](std::string worker_id) { return terms(std::move(worker_id)); };
  const auto instance = [](std::string name) {
    auto by = terms();
    by.worker_instance_id = std::move(name);
    return by;
  };
  const auto ttl = [](std::int64_t ms) {
    auto by = terms();
    by.grant_ttl_ms = ms;
    return by;
  };
  const std::vector<GrantTerms> all = {
      worker(""),
      worker("a b"),
      worker("a\0b"s),
      worker("\xff"),
      instance("a b"),
      worker(std::string(257, 'w')),
      instance("\n"),
      ttl(0),
      instance(std::string(257, 'w')),
      ttl(-1),
      ttl(60'001),
      ttl(std::numeric_limits<std::int64_t>::max()),
      {kWorker, "", {}, kGrantTtl, "a\0b"s},
      {kWorker, "", {}, kGrantTtl, "", "a\0b"s},
      {kWorker, "", {}, kGrantTtl, "", "", "a\0b"s},
  };
  for (std::size_t i = 0; i < all.size(); ++i) {
    SCOPED_TRACE(i);
    expect_refused(request_for(id, all[i]), ErrorCode::invalid_input);
  }
  for (const auto& lane : {""s, std::string(65, 'l'), "a\nb"s}) {
    expect_refused(IssueClaimGrant{id, lane, terms()}, ErrorCode::invalid_input);
  }
}

TEST_P(GrantIssue, TheWidestTermsAreFine) {
  for (const std::int64_t ttl : {std::int64_t{1}, std::int64_t{60'000}}) {
    const GrantTerms by{.worker_id = std::string(256, 'w'),
                        .worker_instance_id = std::string(256, 'i'),
                        .grant_ttl_ms = ttl,
                        .capability_hash = "1f",
                        .route_snapshot_json = "{}",
                        .admission_summary = "fine"};
    EXPECT_EQ(must(request_for(create(), by)).expires_at, kStart + ttl);
  }
}

TEST_P(GrantIssue, OnlyALaneThatHandsOutWorkGivesGrants) {
  const auto id = create();
  for (const auto closed : {LaneState::paused, LaneState::disabled}) {
    set_lane("default", closed);
    expect_refused(request_for(id), ErrorCode::execution_not_eligible);
  }
  set_lane("default", LaneState::draining);

  grant(id);
}

// ---- one at a time ----

TEST_P(GrantIssue, ThereIsOneAtATime) {
  in_each(kEligible, [&](const Placed& placed) {
    grant(placed.id, "first");
    for (const char* worker : {"first", "second"}) {
      expect_refused(IssueClaimGrant{placed.id, placed.lane, terms(worker)}, ErrorCode::grant_already_exists);
    }
  });
}

TEST_P(GrantIssue, WhileItIsAliveNobodyElseIsOfferedTheExecution) {
  in_each(kEligible, [&](const Placed& placed) {
    grant(placed.id);
    EXPECT_FALSE(is_offered(placed.lane));
    EXPECT_EQ(must(ClaimForWorker{.lane_id = placed.lane, .terms = terms()}), std::nullopt);
    advance(kGrantTtl);
    EXPECT_FALSE(is_offered(placed.lane)) << "it is alive to the last moment";
    expect_refused(IssueClaimGrant{placed.id, placed.lane, terms()}, ErrorCode::grant_already_exists);
  });
}

TEST_P(GrantIssue, TheOthersOfTheLaneAreOfferedMeanwhile) {
  const auto granted = create({.priority = 9});
  const auto other = create();
  grant(granted);

  EXPECT_EQ(claim_all(), std::vector{other});
}

TEST_P(GrantIssue, WhenItRanOutEverybodyIsOfferedTheExecutionAgain) {
  in_each(kEligible, [&](const Placed& placed) {
    const auto before = story(placed.id);
    grant(placed.id);
    advance(kGrantTtl + 1);
    expect_as_before(before);
    EXPECT_TRUE(is_offered(placed.lane));
  });
}

TEST_P(GrantIssue, ItComesBackInItsOldPlace) {
  const auto oldest = create();
  tick(1);
  const auto younger = create();
  grant(oldest);
  advance(kGrantTtl + 1);

  EXPECT_EQ(claim_all(), (std::vector{oldest, younger}));
}

TEST_P(GrantIssue, AWaitingWorkerIsWokenWhenItRunsOut) {
  const auto id = create();
  grant(id);
  auto waiting = engine().submit(ClaimTasks{.worker_id = "patient", .wait_ms = 8000});
  await_parked(engine(), 1);
  EXPECT_EQ(waiting.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  advance(kGrantTtl + 1);

  ASSERT_EQ(waiting.wait_for(std::chrono::milliseconds(4000)), std::future_status::ready);
  const auto tasks = waiting.get();
  ASSERT_TRUE(tasks && tasks->size() == 1);
  EXPECT_EQ(tasks->front().execution_id, id);
}

TEST_P(GrantIssue, AfterItsTimeItCountsAsAbsentEvenUnnoticed) {
  const auto id = create();
  grant(id, "first");
  tick(kGrantTtl + 1);

  EXPECT_EQ(grant(id, "second").expires_at, now() + kGrantTtl);
  expect_refused(ClaimExecution{id, use_by("first")}, ErrorCode::invalid_claim_grant);
  must(ClaimExecution{id, use_by("second")});
}

// ---- what ends it ----

TEST_P(GrantIssue, EveryTransitionDropsIt) {
  const auto held = create();
  grant(held);
  hold(held);
  must(ReleaseExecution{held});
  expect_refused(ClaimExecution{held, use_by()}, ErrorCode::invalid_claim_grant);
  EXPECT_EQ(claim_all(), std::vector{held});

  const auto blocked = create();
  grant(blocked);
  must(BlockExecution{blocked, BlockingReason::waiting_for_quota, "too many"});
  must(UnblockExecution{blocked, BlockingReason::waiting_for_quota});
  expect_refused(ClaimExecution{blocked, use_by()}, ErrorCode::invalid_claim_grant);
  EXPECT_EQ(claim_all(), std::vector{blocked});

  const auto cancelled = create();
  grant(cancelled);
  cancel(cancelled);
  replay(cancelled);
  expect_refused(ClaimExecution{cancelled, use_by()}, ErrorCode::invalid_claim_grant);
  EXPECT_EQ(claim_all(), std::vector{cancelled});

  const auto expired = create({.execution_deadline_at = now() + 1});
  grant(expired);
  advance(1);
  EXPECT_EQ(state(expired), expected::expired(AttemptState::pending_first_attempt));
  replay(expired);
  expect_refused(ClaimExecution{expired, use_by()}, ErrorCode::invalid_claim_grant);
  EXPECT_EQ(claim_all(), std::vector{expired});
}

TEST_P(GrantIssue, WhatIsNoTransitionLeavesItAlone) {
  const auto id = create();
  const auto given = grant(id);
  must(ChangePriority{id, 9000});
  must(SetTags{id, {{"a.b", "c"}}});
  EXPECT_TRUE(claim().empty());

  EXPECT_EQ(must(ClaimExecution{id, use_by(kWorker, given.grant_key)}).priority, 9000);
}

TEST_P(GrantIssue, APriorityGivenMeanwhileCountsAfterwards) {
  const auto first = create();
  const auto granted = create();
  grant(granted);
  must(ChangePriority{granted, 9});
  advance(kGrantTtl + 1);

  EXPECT_EQ(claim_all(), (std::vector{granted, first}));
}

}  // namespace
}  // namespace flowfabric
