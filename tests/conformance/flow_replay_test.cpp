// Replaying members of a flow (04 §11).
#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using Outcomes = std::vector<TerminalOutcome>;

class FlowReplay : public FlowTest {
 protected:
  Replayed replay(const std::string& name) { return must(ReplayExecution{.execution_id = id(name)}); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowReplay, kStores, store_name);

// ---- what was skipped ----

TEST_P(FlowReplay, TheSkippedIsSkippedAgainWhileItsUpstreamIsFailed) {
  submit(graph("a>b"));
  fails("a");
  tick(5);
  replay("b");

  EXPECT_EQ(members(), "a:failed b:skipped");
  EXPECT_EQ(state_of("b"), expected::skipped());
  EXPECT_EQ(member("b").completed_at, now());
  EXPECT_EQ(member("b").replay_count, 1u);
  EXPECT_EQ(outcomes(id("b")), (Outcomes{TerminalOutcome::skipped, TerminalOutcome::skipped}));
  EXPECT_EQ(tally("b"), "0,1,0,0 impossible");
}

TEST_P(FlowReplay, TheSkippedWaitsForAnUpstreamThatRunsAgain) {
  submit(graph("a>b"));
  fails("a");
  replay("a");
  EXPECT_EQ(members(), "a:waiting b:skipped") << "each is replayed by itself";
  tick(5);
  EXPECT_EQ(replay("b"), Replayed{PublicState::waiting_children});
  EXPECT_EQ(state_of("b"), expected::waiting_children(AttemptState::pending_replay_attempt));
  EXPECT_EQ(member("b").blocking_detail, "1 dep(s) unsatisfied after replay");
  EXPECT_EQ(member("b").completed_at, std::nullopt);
  EXPECT_EQ(tally("b"), "0,0,0,1 pending");
  EXPECT_EQ(drawn().edges.at(0).dependency_state, DependencyState::unsatisfied);
  EXPECT_EQ(drawn().edges.at(0).resolved_at, std::nullopt);
  succeeds("a");
  EXPECT_EQ(state_of("b"), expected::waiting(AttemptState::pending_replay_attempt));
  const auto task = take("b");
  EXPECT_EQ(task.attempt_type, AttemptType::replay);
  EXPECT_EQ(task.attempt_index, 0u);
  complete(task);

  EXPECT_EQ(members(), "a:completed b:completed");
  EXPECT_EQ(flow().state, FlowState::completed);
}

TEST_P(FlowReplay, TheSkippedRunsAtOnceIfItsUpstreamHasSucceededSince) {
  submit(graph("a=>b"));
  fails("a");
  replay("a");
  succeeds("a", "second try");
  EXPECT_EQ(state_of("b"), expected::skipped()) << "its edge has counted already";
  replay("b");

  EXPECT_EQ(state_of("b"), expected::waiting(AttemptState::pending_replay_attempt));
  EXPECT_EQ(tally("b"), "1,0,0,0 satisfied");
  EXPECT_EQ(take("b").input, "second try");
}

TEST_P(FlowReplay, WhatHadSucceededStaysSatisfied) {
  submit(graph("a>d b>d c>d"));
  succeeds("a");
  fails("b");
  replay("b");
  replay("d");
  EXPECT_EQ(tally("d"), "1,0,0,2 pending");
  EXPECT_EQ(member("d").blocking_detail, "2 dep(s) unsatisfied after replay");
  succeeds("b");
  succeeds("c");

  EXPECT_EQ(tally("d"), "3,0,0,0 satisfied");
  succeeds("d");
}

TEST_P(FlowReplay, AChainIsReplayedFromItsBeginning) {
  submit(graph("a>b>c"));
  fails("a");
  for (const char* name : {"a", "b", "c"}) replay(name);
  EXPECT_EQ(members(), "a:waiting b:waiting_children c:waiting_children");
  for (const char* name : {"a", "b", "c"}) succeeds(name);

  EXPECT_EQ(flow().state, FlowState::completed);
}

TEST_P(FlowReplay, WhatIsSkippedAgainSkipsWhatFollowsItAgain) {
  submit(graph("a>b>c"));
  fails("a");
  replay("a");
  replay("b");
  replay("c");
  fails("a");

  EXPECT_EQ(members(), "a:failed b:skipped c:skipped");
  EXPECT_EQ(outcomes(id("c")), (Outcomes{TerminalOutcome::skipped, TerminalOutcome::skipped}));
}

TEST_P(FlowReplay, AQuorumIsCountedAnew) {
  submit(graph(fan_in(3), {{"d", quorum(2, OnSatisfied::let_run)}}));
  succeeds("u1");
  fails("u2");
  fails("u3");
  EXPECT_EQ(tally("d"), "1,2,0,0 impossible");
  replay("u2");
  replay("d");
  EXPECT_EQ(tally("d"), "1,1,0,1 pending") << "u3 is still failed";
  EXPECT_EQ(state_of("d"), expected::waiting_children(AttemptState::pending_replay_attempt));
  tick(5);
  succeeds("u2");

  EXPECT_EQ(tally("d"), "2,1,0,0 satisfied");
  EXPECT_EQ(join("d").satisfied_at, now());
  succeeds("d");
}

TEST_P(FlowReplay, WhatWasOwedToTheSiblingsIsForgotten) {
  submit(graph(fan_in(3), {{"d", quorum(3)}}));
  fails("u1");
  EXPECT_TRUE(join("d").cancel_siblings_pending);
  replay("u1");
  replay("d");
  EXPECT_FALSE(join("d").cancel_siblings_pending);
  run_due();
  EXPECT_EQ(members(), "d:waiting_children u1:waiting u2:waiting u3:waiting");
  for (const char* name : {"u1", "u2", "u3"}) succeeds(name);

  EXPECT_EQ(members(), "d:waiting u1:completed u2:completed u3:completed");
}

TEST_P(FlowReplay, ARunningMemberThatWasSkippedRunsAgain) {
  start_flow();
  add_all({"a", "b"});
  take("b");
  connect("a", "b");
  fails("a");
  replay("a");
  replay("b");
  EXPECT_EQ(state_of("b"), expected::waiting_children(AttemptState::pending_replay_attempt));
  succeeds("a");
  succeeds("b");

  EXPECT_EQ(attempt_log(id("b")),
            (Log{"0 initial ended_cancelled dependency_impossible", "1 replay ended_success"}));
}

TEST_P(FlowReplay, EventsTellWhichKindItWas) {
  submit(graph("a>b"));
  fails("a");
  replay("a");
  replay("b");
  EXPECT_EQ(lease_log(id("a")).back(), "1 replay_initiated normal");
  EXPECT_EQ(lease_log(id("b")).back(), "0 replay_initiated skipped_flow_member");
  const auto events = must(ReadOperatorEvents{});

  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].details, (Tags{{"branch", "normal"}}));
  EXPECT_EQ(events[1].details, (Tags{{"branch", "skipped_flow_member"}, {"groups_reset", "1"}}));
}

TEST_P(FlowReplay, TheCapCountsHereToo) {
  auto request = graph("a>b");
  node(request, "b").execution.policy.max_replay_count = 1;
  submit(request);
  fails("a");
  replay("b");

  refuse(ReplayExecution{.execution_id = id("b")}, ErrorCode::max_replays_exhausted);
}

// ---- everything else ----

TEST_P(FlowReplay, ASatisfiedJoinStaysSatisfied) {
  submit(graph("a>b>c"));
  succeeds("a");
  succeeds("b", "old");
  EXPECT_EQ(replay("b"), Replayed{PublicState::waiting});
  EXPECT_EQ(state_of("b"), expected::waiting(AttemptState::pending_replay_attempt));
  EXPECT_EQ(tally("b"), "1,0,0,0 satisfied");
  EXPECT_EQ(state_of("c").public_state, PublicState::waiting);
  fails("b");

  EXPECT_EQ(members(), "a:completed b:failed c:waiting") << "its edge has counted already";
  EXPECT_EQ(tally("c"), "1,0,0,0 satisfied");
}

TEST_P(FlowReplay, AFailedMemberRunsAgainWithoutWaiting) {
  submit(graph("a>b"));
  succeeds("a");
  fails("b");
  EXPECT_EQ(replay("b"), Replayed{PublicState::waiting});
  succeeds("b");

  EXPECT_EQ(flow().state, FlowState::completed);
}

TEST_P(FlowReplay, AnUpstreamMaySucceedAgainWhileItsDependentRuns) {
  submit(graph("a=>b"));
  succeeds("a", "first");
  const auto task = take("b");
  const auto before = story(id("b"));
  replay("a");
  succeeds("a", "second");

  EXPECT_EQ(story(id("b")), before);
  EXPECT_EQ(input_of("b"), "first");
  complete(task);
}

TEST_P(FlowReplay, AnUpstreamThatSucceedsLateDoesNotBringBackTheSkipped) {
  submit(graph("a>b c>b"));
  fails("a");
  replay("a");
  succeeds("a");
  succeeds("c");

  EXPECT_EQ(state_of("b"), expected::skipped());
  EXPECT_EQ(tally("b"), "1,1,0,0 impossible");
}

TEST_P(FlowReplay, AQuorumDoesNotCountTheSameUpstreamTwice) {
  submit(graph(fan_in(3), {{"d", quorum(2)}}));
  succeeds("u1");
  replay("u1");
  succeeds("u1");

  EXPECT_EQ(tally("d"), "1,0,0,2 pending");
}

TEST_P(FlowReplay, TheCancelledWaitsAgainWhileItsJoinIsUndecided) {
  submit(graph("a>b"));
  cancel(id("b"));
  EXPECT_EQ(replay("b"), Replayed{PublicState::waiting_children});
  EXPECT_EQ(state_of("b"), expected::waiting_children(AttemptState::pending_replay_attempt));
  expect_not_offered("b");
  succeeds("a");

  succeeds("b");
}

TEST_P(FlowReplay, TheCancelledRunsIfItsJoinWasSatisfiedSince) {
  submit(graph("a>b"));
  cancel(id("b"));
  succeeds("a");
  EXPECT_EQ(replay("b"), Replayed{PublicState::waiting});

  succeeds("b");
}

// ---- restarts ----

class FlowReplayRestart : public FlowReplay {};
INSTANTIATE_TEST_SUITE_P(DurableStores, FlowReplayRestart, kDurableStores, store_name);

TEST_P(FlowReplayRestart, AReopenedJoinIsAsItWas) {
  submit(graph("a>d b>d"));
  succeeds("a");
  fails("b");
  replay("b");
  replay("d");
  const auto before = flow_story();
  reopen();
  EXPECT_EQ(flow_story(), before);
  succeeds("b");

  succeeds("d");
}

}  // namespace
}  // namespace flowfabric
