// The end of a member lets its dependents run, or skips them (04 §5, §6).
#include <chrono>
#include <future>

#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using Outcomes = std::vector<TerminalOutcome>;

class FlowResolve : public FlowTest {
 protected:
  // `b` runs while it is told to wait for `a`.
  ClaimedTask running_before_its_edge(ExecutionPolicy policy = {}) {
    start_flow();
    add("a");
    add("b", {.policy = std::move(policy)});
    auto task = take("b");
    connect("a", "b");
    EXPECT_EQ(state_of("b"), expected::running());
    return task;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowResolve, kStores, store_name);

// ---- promotion ----

TEST_P(FlowResolve, SuccessLetsTheNextOnesGo) {
  submit(graph("a>b a>c"));
  EXPECT_EQ(members(), "a:waiting b:waiting_children c:waiting_children");
  tick(5);
  succeeds("a");

  for (const char* name : {"b", "c"}) {
    EXPECT_EQ(state_of(name), expected::waiting(AttemptState::pending_first_attempt));
    EXPECT_EQ(member(name).blocking_detail, "");
    EXPECT_EQ(member(name).last_transition_at, now());
    succeeds(name);
  }
  EXPECT_EQ(flow().state, FlowState::completed);
}

TEST_P(FlowResolve, TheEdgeTellsWhenAndHow) {
  submit(graph("a>b c>d"));
  tick(5);
  succeeds("a");
  fails("c");
  for (const auto& edge : drawn().edges) {
    const bool good = edge.upstream_execution_id == id("a");
    EXPECT_EQ(edge.dependency_state, good ? DependencyState::satisfied : DependencyState::impossible);
    EXPECT_EQ(edge.resolved_at, now());
    EXPECT_EQ(edge.edge_state, EdgeState::applied);
  }
  EXPECT_EQ(join("b").satisfied_at, now());
  EXPECT_EQ(join("d").satisfied_at, std::nullopt);
}

TEST_P(FlowResolve, AllAreAwaited) {
  submit(graph("a>d b>d c>d"));
  succeeds("c");
  succeeds("a");
  EXPECT_EQ(state_of("d"), expected::waiting_children());
  expect_not_offered("d");
  succeeds("b");

  EXPECT_EQ(take("d").claim, ClaimKind::fresh);
}

TEST_P(FlowResolve, ARetryIsNoEnd) {
  auto request = graph("a>b");
  node(request, "a").execution.policy = retries(1, FixedBackoff{0});
  submit(request);
  fail(take("a"));
  EXPECT_EQ(tally("b"), "0,0,0,1 pending");
  run_due();
  succeeds("a");

  EXPECT_EQ(members(), "a:completed b:waiting");
}

TEST_P(FlowResolve, ARepeatedCallCountsOnce) {
  submit(graph("a>d b>d", {{"d", quorum(2)}}));
  const auto task = take("a");
  complete(task);
  complete(task);

  EXPECT_EQ(tally("d"), "1,0,0,1 pending");
}

TEST_P(FlowResolve, ThePromotedStandsWhereItsAgeAndPriorityPutIt) {
  auto request = graph("a>old");
  node(request, "old").execution.lane_id = "shared";
  submit(request);
  tick(5);
  const auto young = create({.lane_id = "shared"});
  const auto urgent = create({.lane_id = "shared", .priority = 5});
  succeeds("a");

  EXPECT_EQ(claim_all({.lanes = {"shared"}}), (std::vector{urgent, id("old"), young}));
}

TEST_P(FlowResolve, AnIdleWorkerIsWoken) {
  submit(graph("a>b"));
  auto answer = engine().submit(ClaimTasks{.worker_id = kWorker, .lanes = {"b"}, .wait_ms = 8000});
  succeeds("a");

  ASSERT_EQ(answer.wait_for(std::chrono::seconds(4)), std::future_status::ready);
  const auto tasks = answer.get().value();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].execution_id, id("b"));
}

TEST_P(FlowResolve, WhatWaitsCannotBeTakenInAnyOtherWay) {
  submit(graph("a>b"));
  const GrantTerms terms{.worker_id = kWorker};
  expect_refused(IssueClaimGrant{id("b"), "b", terms}, ErrorCode::execution_not_eligible);
  EXPECT_EQ(must(ClaimForWorker{.lane_id = "b", .terms = terms}), std::nullopt);
  EXPECT_FALSE(call(IssueGrantAndClaim{id("b"), "b"}));
  expect_refused(HoldExecution{.execution_id = id("b")}, ErrorCode::execution_not_eligible);

  EXPECT_EQ(state_of("b"), expected::waiting_children());
}

// ---- skipping ----

TEST_P(FlowResolve, AFailureSkipsWhatNeedsItAndNothingElse) {
  submit(graph("a>b a>c b>d c>d"));
  succeeds("a");
  tick(5);
  fails("b");
  EXPECT_EQ(state_of("d"), expected::skipped());
  EXPECT_EQ(member("d").completed_at, now());
  EXPECT_EQ(attempt_log(id("d")), Log{});
  succeeds("c");

  EXPECT_EQ(members(), "a:completed b:failed c:completed d:skipped");
  EXPECT_EQ(tally("d"), "1,1,0,0 impossible");
  EXPECT_EQ(flow().state, FlowState::failed);
}

TEST_P(FlowResolve, ASkipTravelsOverManyHops) {
  constexpr std::size_t kHops = 300;
  auto request = fan_out(kHops);
  for (std::size_t i = 1; i < kHops; ++i) request.edges[i].from = "n" + std::to_string(i);
  submit_many(std::move(request));
  fail(claim_one({.lanes = {"many"}}), "boom", "permanent");
  run_due();

  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::failed, 1}, {PublicState::skipped, kHops}}));
  EXPECT_EQ(state_of("n300"), expected::skipped());
}

TEST_P(FlowResolve, EveryEndButSuccessSkips) {
  auto request = graph("bad>b cancelled>c late>d b>e");
  node(request, "late").execution.execution_deadline_at = now() + 10;
  submit(request);
  fails("bad");
  cancel(id("cancelled"));
  advance(10);

  EXPECT_EQ(members(), "b:skipped bad:failed c:skipped cancelled:cancelled d:skipped e:skipped late:expired");
  EXPECT_EQ(tally("b"), "0,1,0,0 impossible");
  EXPECT_EQ(tally("c"), "0,1,0,0 impossible");
  EXPECT_EQ(tally("d"), "0,1,0,0 impossible");
  EXPECT_EQ(tally("e"), "0,0,1,0 impossible");
}

TEST_P(FlowResolve, TooManyReclaimsAreAFailureToo) {
  auto request = graph("a>b");
  node(request, "a").execution.policy = reclaim_cap(0);
  submit(request);
  take("a");
  advance(kLeaseTtl);

  EXPECT_EQ(members(), "a:failed b:skipped");
}

TEST_P(FlowResolve, EveryEndOfAMemberHasItsEvent) {
  auto request = graph("a>b>c d e f");
  node(request, "e").execution.execution_deadline_at = now() + 10;
  submit(request);
  const auto standalone = create();
  fails("a");
  cancel(standalone);
  cancel(id("d"));
  succeeds("f");
  advance(10);
  for (const auto& [name, outcome] :
       {std::pair{"a", TerminalOutcome::failed}, std::pair{"b", TerminalOutcome::skipped},
        std::pair{"c", TerminalOutcome::skipped}, std::pair{"d", TerminalOutcome::cancelled},
        std::pair{"e", TerminalOutcome::expired}, std::pair{"f", TerminalOutcome::success}}) {
    EXPECT_EQ(outcomes(id(name)), Outcomes{outcome});
    EXPECT_EQ(completions(id(name)).at(0).flow_id, flow_id());
  }
  EXPECT_EQ(completions(standalone).at(0).flow_id, std::nullopt);
}

TEST_P(FlowResolve, ARunningMemberIsSkippedUnderItsWorker) {
  const auto task = running_before_its_edge();
  tick(5);
  fails("a");

  EXPECT_EQ(state_of("b"), expected::skipped(AttemptState::attempt_terminal));
  EXPECT_EQ(attempt_log(id("b")), Log{"0 initial ended_cancelled dependency_impossible"});
  EXPECT_EQ(attempts(id("b")).at(0).ended_at, now());
  EXPECT_EQ(member("b").lease, std::nullopt);
  EXPECT_EQ(lease_events(id("b")).back().type, LeaseEventType::released);
  const auto stream = must(ReadStream{id("b"), task.attempt_index, "start", "end", 1});
  EXPECT_EQ(stream.closed_at, now());
  EXPECT_EQ(stream.closed_reason, "dependency_impossible");
  expect_refused(completion(task), ErrorCode::execution_not_active);
  advance(kHour);
  EXPECT_EQ(members(), "a:failed b:skipped");
}

// ---- a downstream that is not simply waiting ----

TEST_P(FlowResolve, WhoHasEndedIsLeftAlone) {
  submit(graph("a=>b"));
  cancel(id("b"));
  const auto before = story(id("b"));
  const auto input = input_of("b");
  tick(5);
  succeeds("a", "late");

  EXPECT_EQ(story(id("b")), before);
  EXPECT_EQ(input_of("b"), input);
}

TEST_P(FlowResolve, WhoWaitsMayStillExpireOrBeCancelled) {
  auto request = graph("a>b>c a>d>e");
  node(request, "b").execution.execution_deadline_at = now() + 10;
  submit(request);
  cancel(id("d"));
  advance(10);

  EXPECT_EQ(members(), "a:waiting b:expired c:skipped d:cancelled e:skipped");
  EXPECT_EQ(state_of("b"), expected::expired(AttemptState::pending_first_attempt));
  EXPECT_EQ(state_of("d"), expected::cancelled(AttemptState::pending_first_attempt));
}

TEST_P(FlowResolve, ARemainingDelayIsHonoured) {
  auto request = graph("a>b");
  node(request, "b").execution.delay_until = kStart + 1000;
  submit(request);
  EXPECT_EQ(members(), "a:waiting b:waiting_children");
  tick(10);
  succeeds("a");
  EXPECT_EQ(state_of("b"),
            expected::delayed(BlockingReason::waiting_for_delay, AttemptState::pending_first_attempt));
  advance(989);
  expect_not_offered("b");
  advance(1);

  take("b");
}

TEST_P(FlowResolve, ADelayThatIsOverEarlierChangesNothing) {
  auto request = graph("a>b");
  node(request, "b").execution.delay_until = kStart + 1000;
  submit(request);
  advance(1000);
  EXPECT_EQ(state_of("b"), expected::waiting_children());
  succeeds("a");

  EXPECT_EQ(state_of("b"), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(FlowResolve, ARetryWaitsForAnEdgeThatCameMeanwhile) {
  fail(running_before_its_edge(retries(1)));
  advance(1000);
  EXPECT_EQ(state_of("b"), expected::waiting_children(AttemptState::pending_retry_attempt));
  expect_not_offered("b");
  succeeds("a");

  EXPECT_EQ(take("b").attempt_type, AttemptType::retry);
}

TEST_P(FlowResolve, ABackoffIsHonouredAfterTheJoin) {
  fail(running_before_its_edge(retries(1)));
  tick(10);
  succeeds("a");
  EXPECT_EQ(state_of("b"), expected::retrying());
  advance(989);
  expect_not_offered("b");
  advance(1);

  take("b");
}

TEST_P(FlowResolve, APausedAttemptWaitsForAnEdgeThatCameMeanwhile) {
  const auto task = running_before_its_edge();
  delay(task, now() + 10);
  advance(10);
  EXPECT_EQ(state_of("b"), expected::waiting_children(AttemptState::attempt_interrupted));
  expect_not_offered("b");
  succeeds("a");
  const auto resumed = take("b");

  EXPECT_EQ(resumed.claim, ClaimKind::resumed);
  EXPECT_EQ(resumed.fence.attempt_id, task.fence.attempt_id);
}

TEST_P(FlowResolve, ALostLeaseIsNotOfferedBeforeItsJoinIsDecided) {
  running_before_its_edge();
  advance(kLeaseTtl);
  expect_not_offered("b");
  succeeds("a");

  EXPECT_EQ(take("b").claim, ClaimKind::reclaimed);
}

TEST_P(FlowResolve, ARevokedLeaseIsNotOfferedBeforeItsJoinIsDecided) {
  running_before_its_edge();
  must(RevokeLease{.execution_id = id("b")});
  expect_not_offered("b");
  fails("a");

  EXPECT_EQ(members(), "a:failed b:skipped");
}

TEST_P(FlowResolve, ARunningMemberDoesNotNoticeThatItsJoinIsSatisfied) {
  const auto task = running_before_its_edge();
  succeeds("a");
  EXPECT_EQ(state_of("b"), expected::running());
  renew(task);

  complete(task, "mine");
  EXPECT_EQ(result(id("b")), "mine");
}

// ---- beyond what one call does ----

TEST_P(FlowResolve, AWideFanOutGoesOnByTheClock) {
  submit_many(fan_out(1000));
  complete(claim_one({.lanes = {"many"}}));
  run_due();

  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::completed, 1}, {PublicState::waiting, 1000}}));
  EXPECT_EQ(claim({.lanes = {"many"}, .max_tasks = 256}).size(), 256u);
}

TEST_P(FlowResolve, AResultIsPassedToManyAtOnce) {
  auto request = fan_out(300);
  for (auto& edge : request.edges) edge.pass_result = true;
  submit_many(std::move(request));
  complete(claim_one({.lanes = {"many"}}), "for all of you");
  run_due();
  for (int i = 0; i < 2; ++i) {
    const auto tasks = claim({.lanes = {"many"}, .max_tasks = 150});
    ASSERT_EQ(tasks.size(), 150u);
    for (const auto& task : tasks) EXPECT_EQ(task.input, "for all of you");
  }
}

TEST_P(FlowResolve, AnEndThatWasReplayedMeanwhileIsForgotten) {
  submit_many(fan_out(1000));
  fail(claim_one({.lanes = {"many"}}), "boom", "permanent");
  const auto skipped = flow().counts[PublicState::skipped];
  must(ReplayExecution{.execution_id = id("root")});
  run_due();
  EXPECT_EQ(flow().counts[PublicState::skipped], skipped);
  EXPECT_EQ(flow().counts[PublicState::waiting_children], 1000 - skipped);
  complete(claim_one({.lanes = {"many"}}));
  run_due();

  EXPECT_EQ(flow().counts[PublicState::skipped], skipped);
  EXPECT_EQ(flow().counts[PublicState::waiting], 1000 - skipped);
}

// ---- restarts ----

class FlowResolveRestart : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(DurableStores, FlowResolveRestart, kDurableStores, store_name);

TEST_P(FlowResolveRestart, AWideFanOutGoesOnWhereItWas) {
  submit_many(fan_out(1000));
  complete(claim_one({.lanes = {"many"}}));
  reopen();
  run_due();

  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::completed, 1}, {PublicState::waiting, 1000}}));
}

// 04, case 40: what the first step did is not done again, and the rest is.
TEST_P(FlowResolveRestart, ASkipTravelsOnWhereItWas) {
  constexpr std::size_t kHops = 40;
  auto request = fan_out(kHops);
  for (std::size_t i = 1; i < kHops; ++i) request.edges[i].from = "n" + std::to_string(i);
  submit_many(std::move(request));
  fail(claim_one({.lanes = {"many"}}), "boom", "permanent");
  const auto skipped = flow().counts[PublicState::skipped];
  EXPECT_GT(skipped, 0);
  EXPECT_LT(skipped, static_cast<std::int64_t>(kHops)) << "the whole way was one step";
  reopen();
  run_due();

  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::failed, 1}, {PublicState::skipped, kHops}}));
  for (const char* name : {"n1", "n20", "n40"}) {
    EXPECT_EQ(outcomes(id(name)), Outcomes{TerminalOutcome::skipped}) << name;
    EXPECT_EQ(tally(name), name == std::string("n1") ? "0,1,0,0 impossible" : "0,0,1,0 impossible");
  }
}

TEST_P(FlowResolveRestart, JoinsAreAsTheyWere) {
  submit(graph("a>d b>d c>d", {{"d", quorum(2, OnSatisfied::let_run)}}));
  succeeds("a");
  const auto before = flow_story();
  reopen();
  EXPECT_EQ(flow_story(), before);
  succeeds("b");

  EXPECT_EQ(tally("d"), "2,0,0,1 satisfied");
}

}  // namespace
}  // namespace flowfabric
