// Taking a lease away from its holder (02 §7).
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class Revoke : public SituationTest {
 protected:
  // With nothing to revoke, the answer says so and nothing changes.
  void expect_satisfied(const RevokeLease& request, NotRevoked why) {
    const auto before = story(request.execution_id);
    EXPECT_EQ(must(request).already_satisfied, why);
    EXPECT_EQ(story(request.execution_id), before);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Revoke, kStores, store_name);

TEST_P(Revoke, TheLeaseIsGoneAndTheExecutionGoesOn) {
  const auto task = running();
  tick(5);
  const auto answer = must(RevokeLease{.execution_id = task.execution_id, .reason = "node drained"});

  EXPECT_EQ(answer, (Revocation{std::nullopt, *task.fence.lease_id, 1}));
  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.state, expected::revoked());
  EXPECT_EQ(seen.blocking_detail, "lease revoked: node drained");
  EXPECT_EQ(seen.lease, std::nullopt);
  EXPECT_EQ(seen.lease_epoch, 1);
  EXPECT_EQ(seen.attempt_id, task.fence.attempt_id);
  EXPECT_EQ(seen.last_transition_at, now());
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 revoked node drained"}));
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial started"});
}

TEST_P(Revoke, TheEventNamesTheLeaseThatWasTaken) {
  const auto task = running();
  revoke(task.execution_id);

  const auto event = lease_events(task.execution_id).back();
  EXPECT_EQ(event.type, LeaseEventType::revoked);
  EXPECT_EQ(event.reason, "operator_revoke");
  EXPECT_EQ(event.lease_id, task.fence.lease_id);
  EXPECT_EQ(event.attempt_id, task.fence.attempt_id);
  EXPECT_EQ(event.worker_id, kWorker);
}

TEST_P(Revoke, WhereNothingIsLeasedThereIsNothingToDo) {
  Situations unowned = kRunnable;
  unowned.insert(kTerminal.begin(), kTerminal.end());
  in_each(unowned, [&](const Placed& placed) {
    expect_satisfied({.execution_id = placed.id}, NotRevoked::no_active_lease);
  });
}

TEST_P(Revoke, WhatIsLostAlreadyIsSaidSo) {
  expect_satisfied({.execution_id = place(Situation::lost).id}, NotRevoked::already_expired);
  expect_satisfied({.execution_id = place(Situation::revoked).id}, NotRevoked::already_revoked);

  const auto lapsed = place(Situation::lapsed).id;
  EXPECT_EQ(revoke(lapsed).already_satisfied, NotRevoked::already_expired);
  EXPECT_EQ(state(lapsed), expected::lost());
}

TEST_P(Revoke, TheUnknownIsNotFound) {
  expect_error(RevokeLease{.execution_id = {1, {}}}, ErrorCode::execution_not_found);
}

TEST_P(Revoke, OnlyTheExpectedLease) {
  const auto task = running();
  expect_refused(RevokeLease{.execution_id = task.execution_id, .expected_lease_id = some_lease()},
                 ErrorCode::stale_lease);

  must(RevokeLease{.execution_id = task.execution_id, .expected_lease_id = task.fence.lease_id});
  EXPECT_EQ(state(task.execution_id), expected::revoked());
}

TEST_P(Revoke, OnlyOfTheNamedInstance) {
  const auto id = create();
  claim_one({.worker_id = "pool", .worker_instance_id = "pool-1"});
  for (const char* other : {"pool", "pool-2"}) {
    expect_satisfied({.execution_id = id, .worker_instance_id = other},
                     NotRevoked::different_worker_instance_id);
  }

  must(RevokeLease{.execution_id = id, .worker_instance_id = "pool-1"});
  EXPECT_EQ(state(id), expected::revoked());
}

TEST_P(Revoke, BadInputIsRefused) {
  const auto id = running().execution_id;

  expect_refused(RevokeLease{.execution_id = id, .reason = "a\0b"s}, ErrorCode::invalid_input);
  expect_refused(RevokeLease{.execution_id = id, .reason = "\xff"}, ErrorCode::invalid_input);
  expect_refused(RevokeLease{.execution_id = id, .worker_instance_id = "a\0b"s}, ErrorCode::invalid_input);
}

// ---- the holder ----

TEST_P(Revoke, TheHolderIsRefusedWhateverItDoes) {
  const auto task = running();
  const auto id = task.execution_id;
  revoke(id);
  const auto every_call_answers = [&](ErrorCode code) {
    expect_refused(RenewLease{id, task.fence, 0}, code);
    expect_refused(UpdateProgress{id, task.fence, 5, "late"}, code);
    expect_refused(completion(task), code);
    expect_refused(failure(task), code);
    expect_refused(postponement(task, now()), code);
    expect_refused(CancelExecution{id, "late", "worker", task.fence}, code);
  };
  every_call_answers(ErrorCode::lease_revoked);
  tick(kLeaseTtl);
  every_call_answers(ErrorCode::lease_revoked);
  claim_one({.worker_id = "second"});

  every_call_answers(ErrorCode::stale_lease);
}

// ---- the execution ----

TEST_P(Revoke, ItIsOfferedAgainAfterTheRestOfItsPriority) {
  const auto task = running();
  tick(1);
  const auto younger = create();
  const auto urgent = create({.priority = 1});
  revoke(task.execution_id);

  EXPECT_EQ(claim_all(), (std::vector{urgent, younger, task.execution_id}));
}

TEST_P(Revoke, TheNextWorkerBeginsANewAttempt) {
  const auto task = running();
  revoke(task.execution_id);
  const auto next = claim_one({.worker_id = "second"});

  EXPECT_EQ(next.claim, ClaimKind::reclaimed);
  EXPECT_EQ(next.attempt_type, AttemptType::reclaim);
  EXPECT_EQ(next.fence.lease_epoch, 2);
  EXPECT_EQ(describe(task.execution_id).lease_reclaim_count, 1u);
  EXPECT_EQ(attempt_log(task.execution_id),
            (Log{"0 initial interrupted_reclaimed lease_revoked", "1 reclaim started"}));
  EXPECT_EQ(lease_log(task.execution_id).back(), "2 reclaimed lease_revoked");
  complete(next);
}

TEST_P(Revoke, TheOldLeaseDoesNotExpireAnyMore) {
  const auto task = running(attempt_timeout(kLeaseTtl / 2));
  revoke(task.execution_id);
  const auto before = story(task.execution_id);
  advance(2 * kLeaseTtl);

  EXPECT_EQ(story(task.execution_id), before);
}

TEST_P(Revoke, BeyondTheCapTheExecutionFails) {
  const auto task = running(reclaim_cap(0));
  revoke(task.execution_id);
  run_due();

  EXPECT_EQ(state(task.execution_id), expected::failed());
  EXPECT_EQ(describe(task.execution_id).failure_reason, "max_reclaims_exceeded");
  EXPECT_TRUE(claim().empty());
}

TEST_P(Revoke, TheDeadlineStillEndsIt) {
  const auto task = running(deadline_after(1000));
  revoke(task.execution_id);
  advance(1000);

  EXPECT_EQ(state(task.execution_id), expected::expired());
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure execution_deadline"});
}

TEST_P(Revoke, ItCanBeCancelled) {
  const auto task = running();
  revoke(task.execution_id);
  cancel(task.execution_id);

  EXPECT_EQ(state(task.execution_id), expected::cancelled());
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_cancelled cancelled: enough"});
}

}  // namespace
}  // namespace flowfabric
