// A running member gives its lease back until those that it has added to its flow have ended (04 §4.10).
#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class Children : public FlowTest {
 protected:
  ClaimedTask running_parent(CreateExecution request = {}) {
    start_flow();
    add("parent", std::move(request));
    return take("parent");
  }
  void give_child(const std::string& name, const std::string& data_passing_ref = "") {
    add(name);
    connect(name, "parent", data_passing_ref);
  }
  static WaitForChildren wait(const ClaimedTask& task) { return {task.execution_id, task.fence}; }
  static StateVector interrupted() { return expected::waiting(AttemptState::attempt_interrupted); }
  static LeaseId some_lease() { return *LeaseId::parse("11111111-1111-4111-8111-111111111111"); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Children, kStores, store_name);

// ---- waiting and going on ----

TEST_P(Children, AreAddedWhileTheParentRuns) {
  const auto task = running_parent();
  const auto before = story(id("parent"));
  give_child("a");

  EXPECT_EQ(state_of("parent"), expected::running());
  EXPECT_EQ(story(id("parent")).lease_events, before.lease_events);
  renew(task);
  EXPECT_EQ(tally("parent"), "0,0,0,1 pending");
}

TEST_P(Children, TheParentWaitsWithoutALease) {
  const auto task = running_parent();
  give_child("a");
  tick(5);
  must(wait(task));

  EXPECT_EQ(state_of("parent"), expected::waiting_children(AttemptState::attempt_interrupted));
  EXPECT_EQ(member("parent").blocking_detail, "waiting for child executions to complete");
  EXPECT_EQ(member("parent").lease, std::nullopt);
  EXPECT_EQ(lease_log(id("parent")), (Log{"1 acquired", "1 released waiting_children"}));
  EXPECT_EQ(attempt_log(id("parent")), Log{"0 initial suspended"});
  expect_not_offered("parent");
  advance(2 * kLeaseTtl);
  EXPECT_EQ(state_of("parent"), expected::waiting_children(AttemptState::attempt_interrupted));
}

TEST_P(Children, TheSameAttemptGoesOnWhenAllHaveSucceeded) {
  const auto first = running_parent();
  give_child("a");
  give_child("b");
  must(wait(first));
  succeeds("a");
  expect_not_offered("parent");
  tick(5);
  succeeds("b");
  EXPECT_EQ(state_of("parent"), interrupted());
  const auto second = take("parent");

  EXPECT_EQ(second.claim, ClaimKind::resumed);
  EXPECT_EQ(second.fence.attempt_id, first.fence.attempt_id);
  EXPECT_EQ(second.attempt_index, first.attempt_index);
  EXPECT_EQ(second.attempt_type, AttemptType::initial);
  EXPECT_EQ(second.fence.lease_epoch, 2);
  complete(second, "whole");
  EXPECT_EQ(attempt_log(id("parent")), Log{"0 initial ended_success"});
  EXPECT_EQ(members(), "a:completed b:completed parent:completed");
}

TEST_P(Children, AFailureSkipsTheParent) {
  const auto task = running_parent();
  give_child("a");
  give_child("b");
  must(wait(task));
  fails("a");

  EXPECT_EQ(state_of("parent"), expected::skipped(AttemptState::attempt_terminal));
  EXPECT_EQ(attempt_log(id("parent")), Log{"0 initial ended_cancelled dependency_impossible"});
  succeeds("b");
}

TEST_P(Children, AFailureBeforeTheWaitSkipsTheParentToo) {
  const auto task = running_parent();
  give_child("a");
  fails("a");

  EXPECT_EQ(state_of("parent"), expected::skipped(AttemptState::attempt_terminal));
  expect_refused(wait(task), ErrorCode::execution_not_active);
}

TEST_P(Children, OneOfSeveralMayBeEnough) {
  const auto task = running_parent();
  set_join("parent", any_of());
  give_child("a");
  give_child("b");
  must(wait(task));
  fails("a");
  EXPECT_EQ(state_of("parent"), expected::waiting_children(AttemptState::attempt_interrupted));
  succeeds("b");

  EXPECT_EQ(take("parent").claim, ClaimKind::resumed);
}

TEST_P(Children, PassTheirResultToTheParent) {
  const auto task = running_parent({.input = "original"});
  EXPECT_EQ(task.input, "original");
  give_child("a", "result");
  must(wait(task));
  succeeds("a", "of the child");

  EXPECT_EQ(take("parent").input, "of the child");
}

TEST_P(Children, MayHaveChildrenThemselves) {
  const auto task = running_parent();
  give_child("a");
  must(wait(task));
  const auto child = take("a");
  add("grandchild");
  connect("grandchild", "a");
  must(wait(child));
  EXPECT_EQ(members(), "a:waiting_children grandchild:waiting parent:waiting_children");
  succeeds("grandchild");
  succeeds("a");

  succeeds("parent");
}

TEST_P(Children, AParentWithUpstreamsOfItsOwnWaitsForItsChildrenOnly) {
  start_flow();
  add_all({"before", "parent"});
  connect("before", "parent");
  succeeds("before");
  const auto task = take("parent");
  give_child("a");
  EXPECT_EQ(state_of("parent"), expected::running());
  must(wait(task));
  expect_not_offered("parent");
  succeeds("a");

  EXPECT_EQ(take("parent").claim, ClaimKind::resumed);
  EXPECT_EQ(tally("parent"), "2,0,0,0 satisfied");
}

TEST_P(Children, MayComeInSeveralRounds) {
  auto task = running_parent();
  for (const char* name : {"a", "b", "c"}) {
    give_child(name);
    must(wait(task));
    succeeds(name);
    task = take("parent");
    EXPECT_EQ(task.claim, ClaimKind::resumed);
  }
  complete(task);

  EXPECT_EQ(attempt_log(id("parent")), Log{"0 initial ended_success"});
  EXPECT_EQ(member("parent").lease_epoch, 4);
}

// ---- nothing to wait for ----

TEST_P(Children, WithoutAnyTheParentGoesOnAtOnce) {
  const auto task = running_parent();
  must(wait(task));
  EXPECT_EQ(state_of("parent"), interrupted());

  EXPECT_EQ(take("parent").claim, ClaimKind::resumed);
}

TEST_P(Children, OutsideOfAFlowThereAreNone) {
  const auto task = running();
  must(wait(task));
  EXPECT_EQ(state(task.execution_id), interrupted());
  EXPECT_EQ(lease_log(task.execution_id), (Log{"1 acquired", "1 released waiting_children"}));

  EXPECT_EQ(claim_one().fence.attempt_id, task.fence.attempt_id);
}

TEST_P(Children, ThatHaveSucceededAreNotAwaited) {
  const auto task = running_parent();
  give_child("a");
  succeeds("a");
  EXPECT_EQ(state_of("parent"), expected::running());
  must(wait(task));

  EXPECT_EQ(state_of("parent"), interrupted());
  EXPECT_EQ(take("parent").claim, ClaimKind::resumed);
}

// ---- while the parent waits ----

TEST_P(Children, TheTimerOfTheAttemptPauses) {
  const auto task = running_parent({.policy = attempt_timeout(10'000)});
  give_child("a");
  tick(4000);
  must(wait(task));
  advance(kHour);
  EXPECT_EQ(state_of("parent"), expected::waiting_children(AttemptState::attempt_interrupted));
  succeeds("a");

  EXPECT_EQ(take("parent").attempt_timeout_at, now() + 6000);
}

TEST_P(Children, TheDeadlineDoesNot) {
  const auto task = running_parent({.execution_deadline_at = now() + 1000});
  give_child("a");
  must(wait(task));
  advance(1000);

  EXPECT_EQ(state_of("parent"), expected::expired());
  EXPECT_EQ(state_of("a").public_state, PublicState::waiting);
}

TEST_P(Children, TheParentCanBeCancelled) {
  const auto task = running_parent();
  give_child("a");
  must(wait(task));
  cancel(id("parent"));

  EXPECT_EQ(state_of("parent"), expected::cancelled());
  EXPECT_EQ(attempt_log(id("parent")), Log{"0 initial ended_cancelled cancelled: enough"});
  succeeds("a");
}

TEST_P(Children, TheOldLeaseIsGone) {
  const auto task = running_parent();
  give_child("a");
  must(wait(task));
  expect_refused(completion(task), ErrorCode::execution_not_active);
  succeeds("a");
  take("parent");

  expect_refused(completion(task), ErrorCode::stale_lease);
}

// ---- asking again, and asking wrongly ----

TEST_P(Children, TheSameCallAgainGetsTheSameAnswer) {
  const auto task = running_parent();
  give_child("a");
  must(wait(task));
  tick(100);
  const auto before = flow_story();
  must(wait(task));
  EXPECT_EQ(flow_story(), before);
  succeeds("a");
  must(wait(task));
  EXPECT_EQ(state_of("parent"), interrupted()) << "also once the children have ended";
  const auto resumed = take("parent");
  must(wait(task));
  EXPECT_EQ(state_of("parent"), expected::running()) << "also while the next lease is held";
  complete(resumed);

  expect_refused(wait(task), ErrorCode::stale_lease);
}

TEST_P(Children, OnlyTheHolderMayWait) {
  const auto task = running_parent();
  give_child("a");
  auto request = wait(task);
  request.fence = {};
  expect_refused(request, ErrorCode::fence_required);
  request.fence = {.lease_id = task.fence.lease_id};
  expect_refused(request, ErrorCode::partial_fence_triple);
  request.fence = task.fence;
  request.fence.lease_id = some_lease();
  expect_refused(request, ErrorCode::stale_lease);
  request.fence = task.fence;
  request.fence.lease_epoch = 7;
  expect_refused(request, ErrorCode::stale_lease);
  request = wait(task);
  request.execution_id.partition ^= 1;
  expect_error(request, ErrorCode::execution_not_found);
  request.execution_id = id("a");
  expect_refused(request, ErrorCode::execution_not_active);
}

TEST_P(Children, ALeaseThatIsLostOrRevokedIsRefused) {
  const auto task = running_parent();
  give_child("a");
  tick(kLeaseTtl);
  expect_error(wait(task), ErrorCode::lease_expired);
  EXPECT_EQ(state_of("parent"), expected::lost());
  succeeds("a");
  const auto next = take("parent");
  must(RevokeLease{.execution_id = id("parent")});

  expect_refused(wait(next), ErrorCode::lease_revoked);
}

TEST_P(Children, TheOperatorNeedsNoFence) {
  const auto task = running_parent();
  give_child("a");
  must(WaitForChildren{.execution_id = id("parent"), .source = kOperatorOverride});
  EXPECT_EQ(state_of("parent"), expected::waiting_children(AttemptState::attempt_interrupted));

  expect_refused(completion(task), ErrorCode::execution_not_active);
}

// ---- restarts ----

class ChildrenRestart : public Children {};
INSTANTIATE_TEST_SUITE_P(DurableStores, ChildrenRestart, kDurableStores, store_name);

TEST_P(ChildrenRestart, TheParentStillWaits) {
  const auto task = running_parent();
  give_child("a");
  must(wait(task));
  const auto before = flow_story();
  reopen();
  EXPECT_EQ(flow_story(), before);
  must(wait(task));
  succeeds("a");

  EXPECT_EQ(take("parent").fence.attempt_id, task.fence.attempt_id);
}

}  // namespace
}  // namespace flowfabric
