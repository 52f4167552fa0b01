// Explicit reclaim of a lost execution (02 §6): a grant first, then a new attempt, up to the cap.
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;
using Outcomes = std::vector<TerminalOutcome>;

class ReclaimGrant : public SituationTest {
 protected:
  ReclaimAnswer issue(const ExecutionId& id) { return must(IssueReclaimGrant{id, terms()}); }
  ReclaimAnswer reclaim(const ExecutionId& id, std::optional<std::uint32_t> cap = {}) {
    return must(ReclaimExecution{.execution_id = id, .use = use_by(), .max_reclaim_count = cap});
  }
  // The call is answered with this status and changes nothing.
  template <class Request>
  ReclaimAnswer expect_status(const Request& request, ReclaimStatus status, const std::string& detail = "") {
    const auto before = story(request.execution_id);
    const auto answer = must(request);
    EXPECT_EQ(answer.status, status);
    if (!detail.empty()) {
      EXPECT_EQ(answer.detail, detail);
    }
    EXPECT_EQ(answer.grant, std::nullopt);
    EXPECT_EQ(answer.task, std::nullopt);
    EXPECT_EQ(story(request.execution_id), before);
    return answer;
  }
  // Reclaimed once before.
  ExecutionId lost_twice(const ExecutionPolicy& policy = {}) {
    const auto placed = place(Situation::lost, policy);
    take_next(placed.lane, 1000);
    advance(1000);
    return placed.id;
  }
  void expect_ended_by_the_cap(const ExecutionId& id) {
    const auto seen = describe(id);
    EXPECT_EQ(seen.state, expected::failed());
    EXPECT_EQ(seen.failure_reason, "max_reclaims_exceeded");
    EXPECT_EQ(seen.completed_at, now());
    EXPECT_EQ(outcomes(id), Outcomes{TerminalOutcome::failed});
    EXPECT_EQ(lease_log(id).back(), std::to_string(seen.lease_epoch) + " revoked max_reclaims_exceeded");
    EXPECT_EQ(attempts(id).back().attempt_state, AttemptLifecycle::interrupted_reclaimed);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ReclaimGrant, kStores, store_name);

// ---- the grant ----

TEST_P(ReclaimGrant, ALostExecutionIsReservedWithoutAChange) {
  in_each({Situation::lost, Situation::revoked}, [&](const Placed& placed) {
    tick(3);
    const auto before = story(placed.id);
    const auto answer = issue(placed.id);
    EXPECT_EQ(answer.status, ReclaimStatus::granted);
    ASSERT_TRUE(answer.grant);
    EXPECT_EQ(answer.grant->execution_id, placed.id);
    EXPECT_EQ(answer.grant->kind, GrantKind::reclaim);
    EXPECT_EQ(answer.grant->partition_key, "{fp:" + std::to_string(placed.id.partition) + "}");
    EXPECT_FALSE(answer.grant->grant_key.empty());
    EXPECT_EQ(answer.grant->lane_id, placed.lane);
    EXPECT_EQ(answer.grant->expires_at, now() + kGrantTtl);
    expect_as_before(before);
  });
}

TEST_P(ReclaimGrant, ALeaseThatLapsedUnnoticedIsMarkedFirst) {
  const auto placed = place(Situation::lapsed);

  EXPECT_EQ(issue(placed.id).status, ReclaimStatus::granted);
  EXPECT_EQ(state(placed.id), expected::lost());
  EXPECT_EQ(lease_log(placed.id), (Log{"1 acquired", "1 expired"}));
}

TEST_P(ReclaimGrant, NothingElseIsReclaimable) {
  in_all_but(kLeaseless, [&](const Placed& placed) {
    expect_status(IssueReclaimGrant{placed.id, terms()}, ReclaimStatus::not_reclaimable,
                  "execution_not_reclaimable");
    expect_status(ReclaimExecution{placed.id, use_by()}, ReclaimStatus::not_reclaimable,
                  "execution_not_reclaimable");
  });
}

TEST_P(ReclaimGrant, TheUnknownIsNotFound) {
  expect_error(IssueReclaimGrant{{1, {}}, terms()}, ErrorCode::execution_not_found);
  expect_error(ReclaimExecution{{1, {}}, use_by()}, ErrorCode::execution_not_found);
}

TEST_P(ReclaimGrant, ThereIsOneAtATime) {
  const auto id = place(Situation::lost).id;
  issue(id);
  expect_refused(IssueReclaimGrant{id, terms("another")}, ErrorCode::grant_already_exists);
  tick(kGrantTtl);
  expect_refused(IssueReclaimGrant{id, terms()}, ErrorCode::grant_already_exists);
  tick(1);

  EXPECT_EQ(issue(id).status, ReclaimStatus::granted);
}

TEST_P(ReclaimGrant, WhileItIsAliveNobodyElseIsOfferedTheExecution) {
  in_each({Situation::lost, Situation::revoked}, [&](const Placed& placed) {
    issue(placed.id);
    advance(kGrantTtl);
    EXPECT_FALSE(is_offered(placed.lane));
    EXPECT_EQ(must(ClaimForWorker{.lane_id = placed.lane, .terms = terms()}), std::nullopt);
    advance(1);
    EXPECT_EQ(take_next(placed.lane).claim, ClaimKind::reclaimed);
  });
}

TEST_P(ReclaimGrant, AMissingCapabilityIsNamed) {
  const auto id = create(needs({"gpu", "cuda"}));
  claim_one({.capabilities = {"cuda", "gpu"}});
  advance(kLeaseTtl);
  auto expected = story(id);

  const auto refused = must(IssueReclaimGrant{id, terms(kWorker, {"x"})});
  EXPECT_EQ(refused.status, ReclaimStatus::not_reclaimable);
  EXPECT_EQ(refused.detail, "capability_mismatch: cuda,gpu");
  EXPECT_EQ(refused.grant, std::nullopt);
  expected.execution.last_capability_mismatch_at = now();
  EXPECT_EQ(story(id), expected) << "only the time of the mismatch stays";
  EXPECT_EQ(must(IssueReclaimGrant{id, terms(kWorker, {"cuda", "gpu"})}).status, ReclaimStatus::granted);
}

TEST_P(ReclaimGrant, OnlyALaneThatHandsOutWorkGivesItBack) {
  const auto placed = place(Situation::lost);
  set_lane(placed.lane, LaneState::paused);
  expect_status(IssueReclaimGrant{placed.id, terms()}, ReclaimStatus::not_reclaimable);
  set_lane(placed.lane, LaneState::draining);
  issue(placed.id);
  set_lane(placed.lane, LaneState::disabled);
  expect_status(ReclaimExecution{placed.id, use_by()}, ReclaimStatus::not_reclaimable);
  set_lane(placed.lane, LaneState::active);

  EXPECT_EQ(reclaim(placed.id).status, ReclaimStatus::claimed);
}

TEST_P(ReclaimGrant, BadInputIsRefused) {
  const auto id = place(Situation::lost).id;
  const std::vector<GrantTerms> bad_terms = {
      terms(""),
      terms("a b"),
      terms("a\0b"s),
      {.worker_id = kWorker, .worker_instance_id = " "},
      {.worker_id = kWorker, .grant_ttl_ms = 0},
      {.worker_id = kWorker, .grant_ttl_ms = 60'001},
      {.worker_id = kWorker, .admission_summary = "a\0b"s},
  };
  for (std::size_t i = 0; i < bad_terms.size(); ++i) {
    SCOPED_TRACE(i);
    expect_refused(IssueReclaimGrant{id, bad_terms[i]}, ErrorCode::invalid_input);
  }
  expect_refused(IssueReclaimGrant{id, terms(kWorker, {"a,b"})}, ErrorCode::invalid_capabilities);
  issue(id);
  for (const auto& use : {use_by(""), use_by("a b"), GrantUse{.worker_id = kWorker, .lease_ttl_ms = 999},
                          GrantUse{.worker_id = kWorker, .lease_ttl_ms = 3'600'001}}) {
    expect_refused(ReclaimExecution{id, use}, ErrorCode::invalid_input);
  }

  EXPECT_EQ(reclaim(id).status, ReclaimStatus::claimed);
}

// ---- the reclaim ----

TEST_P(ReclaimGrant, ANewAttemptBegins) {
  const auto placed = place(Situation::lost, attempt_timeout(kHour));
  const auto id = placed.id;
  const auto given = grant_reclaim(id, "second");
  tick(10);
  const auto answer = must(ReclaimExecution{id,
                                            {.worker_id = "second",
                                             .worker_instance_id = "second-1",
                                             .grant_key = given.grant_key,
                                             .lease_id = some_lease(),
                                             .lease_ttl_ms = 2000,
                                             .attempt_id = some_attempt()}});

  EXPECT_EQ(answer.status, ReclaimStatus::claimed);
  ASSERT_TRUE(answer.task);
  EXPECT_EQ(answer.task->claim, ClaimKind::reclaimed);
  EXPECT_EQ(answer.task->attempt_type, AttemptType::reclaim);
  EXPECT_EQ(answer.task->attempt_index, 1u);
  EXPECT_EQ(answer.task->fence, (LeaseFence{some_lease(), 2, some_attempt()}));
  EXPECT_EQ(answer.task->lease_expires_at, now() + 2000);
  EXPECT_EQ(answer.task->attempt_timeout_at, now() + kHour) << "the new attempt has all its time";
  const auto seen = describe(id);
  EXPECT_EQ(seen.state, expected::running());
  EXPECT_EQ(seen.lease_reclaim_count, 1u);
  EXPECT_EQ(seen.retry_count, 0u);
  EXPECT_EQ(seen.lease->worker_instance_id, "second-1");
  EXPECT_EQ(attempt_log(id), (Log{"0 initial interrupted_reclaimed lease_expired", "1 reclaim started"}));
  EXPECT_EQ(attempts(id).at(1).previous_attempt_index, 0u);
  EXPECT_EQ(attempts(id).at(1).reason, "lease_expired");
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 expired", "2 reclaimed lease_expired"}));
  expect_refused(completion(placed.task), ErrorCode::stale_lease);
  complete(*answer.task);
}

TEST_P(ReclaimGrant, ARevokedLeaseIsNamedAsTheReason) {
  const auto placed = place(Situation::revoked);
  issue(placed.id);
  reclaim(placed.id);

  EXPECT_EQ(attempt_log(placed.id),
            (Log{"0 initial interrupted_reclaimed lease_revoked", "1 reclaim started"}));
  EXPECT_EQ(lease_log(placed.id),
            (Log{"1 acquired", "1 revoked operator_revoke", "2 reclaimed lease_revoked"}));
}

TEST_P(ReclaimGrant, WithoutALiveGrantItIsNotFound) {
  const auto id = place(Situation::lost).id;
  expect_status(ReclaimExecution{id, use_by()}, ReclaimStatus::grant_not_found);
  issue(id);
  tick(kGrantTtl + 1);

  expect_status(ReclaimExecution{id, use_by()}, ReclaimStatus::grant_not_found);
}

TEST_P(ReclaimGrant, AnothersGrantOrAWrongKeyIsRefusedAndTheGrantStays) {
  const auto id = place(Situation::lost).id;
  const auto given = *issue(id).grant;
  expect_refused(ReclaimExecution{id, use_by("another")}, ErrorCode::invalid_claim_grant);
  expect_refused(ReclaimExecution{id, use_by("another", given.grant_key)}, ErrorCode::invalid_claim_grant);
  expect_refused(ReclaimExecution{id, use_by(kWorker, "made-up")}, ErrorCode::invalid_claim_grant);
  tick(kGrantTtl);

  EXPECT_EQ(must(ReclaimExecution{id, use_by(kWorker, given.grant_key)}).status, ReclaimStatus::claimed);
}

TEST_P(ReclaimGrant, ItIsUsedOnce) {
  const auto id = place(Situation::lost).id;
  issue(id);
  EXPECT_EQ(reclaim(id).status, ReclaimStatus::claimed);
  expect_status(ReclaimExecution{id, use_by()}, ReclaimStatus::not_reclaimable);
  advance(kLeaseTtl);

  expect_status(ReclaimExecution{id, use_by()}, ReclaimStatus::grant_not_found);
}

TEST_P(ReclaimGrant, EachGrantServesOnlyItsOwnCall) {
  const auto waiting = place(Situation::waiting).id;
  grant(waiting);
  expect_status(ReclaimExecution{waiting, use_by()}, ReclaimStatus::not_reclaimable);

  const auto lost_one = place(Situation::lost).id;
  issue(lost_one);
  expect_refused(ClaimExecution{lost_one, use_by()}, ErrorCode::execution_not_leaseable);
  expect_refused(ClaimResumedExecution{lost_one, use_by()}, ErrorCode::execution_not_leaseable);
}

TEST_P(ReclaimGrant, TheEndOfTheExecutionDropsIt) {
  const auto cancelled = place(Situation::lost).id;
  issue(cancelled);
  cancel(cancelled);
  expect_status(ReclaimExecution{cancelled, use_by()}, ReclaimStatus::not_reclaimable);

  const auto overdue = place(Situation::lost, deadline_after(5000)).id;
  issue(overdue);
  advance(5000);
  EXPECT_EQ(state(overdue), expected::expired());
  expect_status(ReclaimExecution{overdue, use_by()}, ReclaimStatus::not_reclaimable);
  replay(overdue);
  EXPECT_EQ(grant(overdue).kind, GrantKind::claim);
}

// ---- the cap ----

TEST_P(ReclaimGrant, BeyondTheCapTheGrantEndsTheExecution) {
  const auto id = place(Situation::lapsed, reclaim_cap(0)).id;
  const auto answer = issue(id);

  EXPECT_EQ(answer,
            (ReclaimAnswer{
                .status = ReclaimStatus::reclaim_cap_exceeded, .detail = answer.detail, .reclaim_count = 0}));
  expect_ended_by_the_cap(id);
}

TEST_P(ReclaimGrant, BeyondTheCallersCapTheReclaimEndsTheExecution) {
  const auto id = lost_twice();
  const auto answer = reclaim(id, 1);

  EXPECT_EQ(answer,
            (ReclaimAnswer{
                .status = ReclaimStatus::reclaim_cap_exceeded, .detail = answer.detail, .reclaim_count = 1}))
      << "even without a grant";
  expect_ended_by_the_cap(id);
}

TEST_P(ReclaimGrant, WithinTheCallersCapItGoesOn) {
  const auto id = lost_twice();
  issue(id);

  EXPECT_EQ(reclaim(id, 2).status, ReclaimStatus::claimed);
  EXPECT_EQ(describe(id).lease_reclaim_count, 2u);
}

TEST_P(ReclaimGrant, ThePolicysCapWinsOverTheCallers) {
  ExecutionPolicy in_timeouts;
  in_timeouts.timeout_policy = TimeoutPolicy{.max_reclaim_count = 2};
  for (const auto& policy : {reclaim_cap(2), in_timeouts}) {
    const auto id = lost_twice(policy);
    issue(id);
    EXPECT_EQ(reclaim(id, 0).status, ReclaimStatus::claimed);
    tick(kLeaseTtl);
    const auto answer = reclaim(id, 50);
    EXPECT_EQ(answer.status, ReclaimStatus::reclaim_cap_exceeded);
    EXPECT_EQ(answer.reclaim_count, 2u);
    expect_ended_by_the_cap(id);
  }
}

TEST_P(ReclaimGrant, ItsGrantDoesNotOutliveTheCap) {
  const auto id = lost_twice();
  issue(id);
  EXPECT_EQ(reclaim(id, 1).status, ReclaimStatus::reclaim_cap_exceeded);
  replay(id);

  EXPECT_EQ(grant(id).kind, GrantKind::claim);
}

}  // namespace
}  // namespace flowfabric
