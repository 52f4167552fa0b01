// The fate of the upstreams that a decided join does not need any more (04 §8).
#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using Outcomes = std::vector<TerminalOutcome>;

class Siblings : public FlowTest {
 protected:
  // Upstreams u1 … of `d`; each of `taken` has a worker.
  std::map<std::string, ClaimedTask> race(std::size_t count, const JoinPolicy& policy,
                                          const std::vector<std::string>& taken = {},
                                          const std::string& more = "") {
    submit(graph(fan_in(count) + more, {{"d", policy}}));
    std::map<std::string, ClaimedTask> tasks;
    for (const auto& name : taken) tasks[name] = take(name);
    return tasks;
  }
  void expect_owed(const char* reason) {
    EXPECT_TRUE(join("d").cancel_siblings_pending);
    EXPECT_EQ(join("d").cancel_siblings_reason, reason);
  }
  void expect_settled(const char* reason) {
    EXPECT_FALSE(join("d").cancel_siblings_pending);
    EXPECT_EQ(join("d").cancel_siblings_reason, reason);
  }
  void expect_cancelled(const std::string& name, const char* reason) {
    SCOPED_TRACE(name);
    const auto seen = member(name);
    EXPECT_EQ(seen.state.public_state, PublicState::cancelled);
    EXPECT_EQ(seen.cancellation_reason, reason);
    EXPECT_EQ(seen.cancelled_by, kOperatorOverride);
    EXPECT_EQ(outcomes(id(name)), Outcomes{TerminalOutcome::cancelled});
    EXPECT_EQ(completions(id(name)).at(0).flow_id, flow_id());
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Siblings, kStores, store_name);

// ---- the winner is known ----

TEST_P(Siblings, LoseWhenTheFirstHasSucceeded) {
  const auto tasks = race(3, any_of(), {"u1", "u2"});
  tick(5);
  complete(tasks.at("u1"));
  EXPECT_EQ(members(), "d:waiting u1:completed u2:active u3:waiting") << "not yet";
  expect_owed(kSiblingQuorumSatisfied);
  run_due();

  EXPECT_EQ(members(), "d:waiting u1:completed u2:cancelled u3:cancelled");
  expect_settled(kSiblingQuorumSatisfied);
  expect_cancelled("u2", kSiblingQuorumSatisfied);
  expect_cancelled("u3", kSiblingQuorumSatisfied);
  EXPECT_EQ(tally("d"), "1,2,0,0 satisfied");
  EXPECT_EQ(join("d").satisfied_at, now());
}

TEST_P(Siblings, AreStoppedLikeAnyOther) {
  const auto tasks = race(2, any_of(), {"u1", "u2"});
  tick(5);
  complete(tasks.at("u1"));
  run_due();

  EXPECT_EQ(attempt_log(id("u2")), Log{"0 initial ended_cancelled cancelled: sibling_quorum_satisfied"});
  EXPECT_EQ(attempts(id("u2")).at(0).ended_at, now());
  EXPECT_EQ(lease_log(id("u2")), (Log{"1 acquired", "1 released cancelled"}));
  EXPECT_EQ(member("u2").lease, std::nullopt);
  expect_refused(completion(tasks.at("u2"), "too late"), ErrorCode::execution_not_active);
  EXPECT_EQ(result(id("u2")), std::nullopt);
}

TEST_P(Siblings, LoseInWhateverState) {
  auto request = graph(fan_in(7) + "other>u5", {{"d", any_of()}});
  node(request, "u2").execution.delay_until = now() + 10 * kHour;
  node(request, "u3").execution.policy = retries(3, FixedBackoff{36'000'000});
  submit(request);
  fail(take("u3"));
  delay(take("u4"), now() + 10 * kHour);
  must(HoldExecution{.execution_id = id("u6")});
  take("u7");
  advance(kLeaseTtl);
  succeeds("u1");
  run_due();

  for (const char* name : {"u2", "u3", "u4", "u5", "u6", "u7"}) {
    expect_cancelled(name, kSiblingQuorumSatisfied);
  }
  EXPECT_EQ(state_of("other").public_state, PublicState::waiting) << "it is nobody's sibling";
}

TEST_P(Siblings, AreNotRetried) {
  auto request = graph(fan_in(2), {{"d", any_of()}});
  node(request, "u2").execution.policy = retries(3, FixedBackoff{0});
  submit(request);
  take("u2");
  succeeds("u1");
  run_due();
  advance(kHour);

  expect_cancelled("u2", kSiblingQuorumSatisfied);
  expect_not_offered("u2");
}

TEST_P(Siblings, LoseWhenTheQuorumIsReached) {
  race(5, quorum(3));
  succeeds("u1");
  succeeds("u2");
  run_due();
  EXPECT_EQ(members(), "d:waiting_children u1:completed u2:completed u3:waiting u4:waiting u5:waiting");
  fails("u3");
  succeeds("u4");
  run_due();

  EXPECT_EQ(members(), "d:waiting u1:completed u2:completed u3:failed u4:completed u5:cancelled");
  expect_cancelled("u5", kSiblingQuorumSatisfied);
}

TEST_P(Siblings, LoseTogetherWithAQuorumOutOfReach) {
  race(5, quorum(3));
  for (const char* name : {"u1", "u2", "u3"}) fails(name);
  EXPECT_EQ(state_of("d"), expected::skipped());
  EXPECT_EQ(state_of("u4").public_state, PublicState::waiting);
  expect_owed(kSiblingQuorumImpossible);
  run_due();

  expect_cancelled("u4", kSiblingQuorumImpossible);
  expect_cancelled("u5", kSiblingQuorumImpossible);
  expect_settled(kSiblingQuorumImpossible);
  EXPECT_EQ(tally("d"), "0,5,0,0 impossible");
}

TEST_P(Siblings, ManyLoseToOne) {
  race(50, quorum(1));
  succeeds("u17");
  run_due();

  EXPECT_EQ(
      flow().counts,
      (StateCounts{{PublicState::waiting, 1}, {PublicState::completed, 1}, {PublicState::cancelled, 49}}));
  expect_cancelled("u1", kSiblingQuorumSatisfied);
  expect_cancelled("u50", kSiblingQuorumSatisfied);
  EXPECT_EQ(state_of("d"), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(Siblings, NoneIsForgottenHoweverManyThereAre) {
  constexpr std::int64_t kMany = 1500;
  SubmitFlow request = fan_out(kMany);
  for (auto& edge : request.edges) std::swap(edge.from, edge.to);
  node(request, "root").join = any_of();
  submit_many(std::move(request));
  complete(claim_one({.lanes = {"many"}}));
  run_due();

  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::waiting, 1},
                                        {PublicState::completed, 1},
                                        {PublicState::cancelled, kMany - 1}}));
  EXPECT_FALSE(join("root").cancel_siblings_pending);
}

// ---- the losers may go on ----

TEST_P(Siblings, GoOnWhereTheyAreLetRun) {
  race(3, any_of(OnSatisfied::let_run));
  succeeds("u1");
  expect_settled("");
  advance(2000);
  EXPECT_EQ(members(), "d:waiting u1:completed u2:waiting u3:waiting");
  succeeds("u2");
  fails("u3");

  EXPECT_EQ(tally("d"), "2,1,0,0 satisfied");
  EXPECT_EQ(join("d").satisfied_at, kStart);
  EXPECT_EQ(state_of("d"), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(Siblings, GoOnThoughTheQuorumIsOutOfReach) {
  race(5, quorum(3, OnSatisfied::let_run));
  for (const char* name : {"u1", "u2", "u3"}) fails(name);
  expect_settled("");
  advance(2000);

  EXPECT_EQ(members(), "d:skipped u1:failed u2:failed u3:failed u4:waiting u5:waiting");
}

TEST_P(Siblings, OfAJoinOfAllGoOn) {
  race(3, {});
  fails("u1");
  run_due();

  expect_settled("");
  EXPECT_EQ(members(), "d:skipped u1:failed u2:waiting u3:waiting");
}

// ---- after the decision ----

TEST_P(Siblings, WhoFinishesBeforeItsCancelHasFinished) {
  const auto tasks = race(4, any_of(), {"u1", "u2", "u3"});
  complete(tasks.at("u1"));
  complete(tasks.at("u2"), "in time");
  fail(tasks.at("u3"), "boom", "permanent");
  run_due();

  EXPECT_EQ(members(), "d:waiting u1:completed u2:completed u3:failed u4:cancelled");
  EXPECT_EQ(result(id("u2")), "in time");
  EXPECT_EQ(tally("d"), "2,2,0,0 satisfied");
  expect_settled(kSiblingQuorumSatisfied);
}

TEST_P(Siblings, AreCancelledOnce) {
  race(4, any_of());
  succeeds("u1");
  run_due();
  const auto before = flow_story();
  run_due();
  advance(kHour);

  EXPECT_EQ(flow_story(), before);
}

TEST_P(Siblings, ADecidedJoinIsNotDecidedAgain) {
  race(3, any_of());
  succeeds("u1");
  run_due();
  expect_settled(kSiblingQuorumSatisfied);
  const auto satisfied_at = join("d").satisfied_at;
  tick(5);
  must(ReplayExecution{.execution_id = id("u2")});
  succeeds("u2");

  expect_settled(kSiblingQuorumSatisfied);
  EXPECT_EQ(join("d").satisfied_at, satisfied_at);
}

TEST_P(Siblings, WithNobodyLeftThereIsNothingToDo) {
  race(2, any_of());
  fails("u1");
  succeeds("u2");
  run_due();

  EXPECT_EQ(members(), "d:waiting u1:failed u2:completed");
  expect_settled(kSiblingQuorumSatisfied);
}

TEST_P(Siblings, AMemberThatRunsAlreadyIsNotDisturbed) {
  race(3, any_of());
  succeeds("u1");
  const auto task = take("d");
  run_due();
  EXPECT_EQ(state_of("d"), expected::running());

  complete(task);
  EXPECT_EQ(flow().state, FlowState::completed);
}

// ---- the rest of the graph ----

TEST_P(Siblings, TheirOtherDependentsAreSkipped) {
  race(3, any_of(), {}, "u2>x other>y u3>y");
  succeeds("u1");
  run_due();

  EXPECT_EQ(members(), "d:waiting other:waiting u1:completed u2:cancelled u3:cancelled x:skipped y:skipped");
  EXPECT_EQ(tally("x"), "0,1,0,0 impossible");
}

TEST_P(Siblings, AQuorumOutOfReachSkipsWhatFollows) {
  race(3, quorum(3), {}, "d>tail");
  fails("u2");
  run_due();

  EXPECT_EQ(members(), "d:skipped tail:skipped u1:cancelled u2:failed u3:cancelled");
}

TEST_P(Siblings, OneThatServesTwoJoinsIsCancelledOnce) {
  submit(graph("a>p shared>p b>q shared>q", {{"p", any_of()}, {"q", any_of()}}));
  succeeds("a");
  succeeds("b");
  run_due();

  EXPECT_EQ(members(), "a:completed b:completed p:waiting q:waiting shared:cancelled");
  expect_cancelled("shared", kSiblingQuorumSatisfied);
}

TEST_P(Siblings, TheCancelOfOneMayDecideTheNextJoin) {
  submit(graph("a>p shared>p shared>q c>q", {{"p", any_of()}, {"q", quorum(2)}}));
  succeeds("a");
  run_due();

  EXPECT_EQ(members(), "a:completed c:cancelled p:waiting q:skipped shared:cancelled");
  expect_cancelled("c", kSiblingQuorumImpossible);
}

TEST_P(Siblings, ManyJoinsAtOnceEachLoseTheirOwn) {
  std::string drawing;
  Joins joins;
  for (const std::string group : {"a", "b", "c", "d", "e", "f", "g", "h"}) {
    for (const std::string n : {"1", "2", "3"}) drawing += group + n + ">" + group + " ";
    joins[group] = any_of();
  }
  submit(graph(drawing, joins));
  for (const auto& [group, policy] : joins) succeeds(group + "2");
  run_due();

  EXPECT_EQ(
      flow().counts,
      (StateCounts{{PublicState::waiting, 8}, {PublicState::completed, 8}, {PublicState::cancelled, 16}}));
  for (const auto& [group, policy] : joins) {
    EXPECT_FALSE(join(group).cancel_siblings_pending);
    expect_cancelled(group + "1", kSiblingQuorumSatisfied);
    expect_cancelled(group + "3", kSiblingQuorumSatisfied);
  }
}

// ---- the flow ----

TEST_P(Siblings, TheirCancelIsNoFailureOfTheFlow) {
  race(3, any_of(), {}, "u3>x");
  succeeds("u1");
  run_due();
  succeeds("d");

  EXPECT_EQ(members(), "d:completed u1:completed u2:cancelled u3:cancelled x:skipped");
  EXPECT_EQ(flow().state, FlowState::completed);
  EXPECT_EQ(flow().public_flow_state, FlowState::open);
}

TEST_P(Siblings, AnyOtherCancelIsOne) {
  race(3, any_of());
  cancel(id("u2"), "by hand");
  succeeds("u1");
  run_due();
  succeeds("d");

  EXPECT_EQ(flow().state, FlowState::failed);
}

TEST_P(Siblings, TheirCancelDoesNotFailAFlowFast) {
  auto request = graph(fan_in(3), {{"d", any_of()}});
  request.failure_policy = FailurePolicy::fail_fast;
  submit(request);
  succeeds("u1");
  run_due();
  succeeds("d");

  EXPECT_EQ(flow().public_flow_state, FlowState::open);
  EXPECT_EQ(flow().state, FlowState::completed);
}

// ---- restarts ----

class SiblingsRestart : public Siblings {};
INSTANTIATE_TEST_SUITE_P(DurableStores, SiblingsRestart, kDurableStores, store_name);

TEST_P(SiblingsRestart, WhatIsOwedIsDoneAfterwards) {
  race(3, any_of(), {"u2"});
  succeeds("u1");
  reopen();
  expect_owed(kSiblingQuorumSatisfied);
  run_due();

  EXPECT_EQ(members(), "d:waiting u1:completed u2:cancelled u3:cancelled");
  expect_settled(kSiblingQuorumSatisfied);
}

}  // namespace
}  // namespace flowfabric
