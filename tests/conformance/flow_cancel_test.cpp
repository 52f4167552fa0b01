// Cancelling a flow (04 §9): the members that are cancelled, those that are not, and the answers.
#include <algorithm>
#include <cstdint>
#include <set>

#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;
using Ids = std::set<ExecutionId>;

// Longer than the clock needs to notice that nothing runs any more.
constexpr std::int64_t kSoon = 1000;

Ids set_of(const std::vector<ExecutionId>& ids) {
  return {ids.begin(), ids.end()};
}

// ---- every policy ----

struct PolicyCase {
  std::string name;
  CancellationPolicy policy;
  bool waiting_go;
  bool active_go;
};
void PrintTo(const PolicyCase& given, std::ostream* out) {
  *out << given.name;
}
const std::vector<PolicyCase> kPolicies{
    {"CancelAll", CancellationPolicy::cancel_all, true, true},
    {"CancelPending", CancellationPolicy::cancel_pending, true, false},
    {"CancelUnscheduledOnly", CancellationPolicy::cancel_unscheduled_only, true, false},
    {"FlowOnly", CancellationPolicy::flow_only, false, false},
    {"LetActiveFinish", CancellationPolicy::let_active_finish, true, false}};

class FlowCancelPolicy : public FlowCaseTest<PolicyCase> {
 protected:
  // One member in each state. No member waits for one that may be cancelled.
  void build() {
    start_flow();
    add_all({"active", "blocked", "done", "paused", "waiting"});
    add("delayed", {.delay_until = now() + 10 * kHour});
    set_join("blocked", quorum(2));
    connect("done", "blocked");
    succeeds("done");
    delay(take("paused"), now() + 10 * kHour);
    task_ = take("active");
  }
  PublicState after(bool goes, PublicState before) const { return goes ? PublicState::cancelled : before; }
  void expect_final_states() {
    const bool go = given().waiting_go;
    EXPECT_EQ(state_of("waiting").public_state, after(go, PublicState::waiting));
    EXPECT_EQ(state_of("delayed").public_state, after(go, PublicState::delayed));
    EXPECT_EQ(state_of("paused").public_state, after(go, PublicState::delayed));
    EXPECT_EQ(state_of("blocked").public_state, after(go, PublicState::waiting_children));
    EXPECT_EQ(state_of("done"), expected::completed());
  }
  ClaimedTask task_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowCancelPolicy, on_every_store(kPolicies), case_name<PolicyCase>);

TEST_P(FlowCancelPolicy, CancelsWhomItSays) {
  build();
  tick(5);
  const auto answer = cancel_flow(given().policy);
  EXPECT_EQ(answer.outcome, given().waiting_go ? CancelOutcome::scheduled : CancelOutcome::cancelled);
  EXPECT_EQ(answer.cancellation_policy, given().policy);
  EXPECT_FALSE(answer.already_terminal);
  EXPECT_EQ(set_of(answer.member_execution_ids),
            (Ids{id("active"), id("blocked"), id("done"), id("paused"), id("waiting"), id("delayed")}));
  run_due();

  EXPECT_EQ(state_of("active").public_state, after(given().active_go, PublicState::active));
  if (!given().active_go) complete(task_);
  advance(kSoon);
  expect_final_states();
  EXPECT_EQ(flow().public_flow_state, FlowState::cancelled);
  if (given().waiting_go) {
    EXPECT_EQ(flow().state, FlowState::cancelled);
  }
}

TEST_P(FlowCancelPolicy, FromItsAnswerOnNobodyIsClaimedWhoGoes) {
  build();
  must(IssueClaimGrant{id("waiting"), "waiting", {.worker_id = kWorker}});
  cancel_flow(given().policy);
  const bool granted = call(ClaimExecution{id("waiting"), {.worker_id = kWorker}}).has_value();
  EXPECT_EQ(granted, !given().waiting_go);
  if (given().waiting_go) expect_not_offered("waiting blocked delayed paused");
  run_due();  // until then they are counted as what they were
}

TEST_P(FlowCancelPolicy, IsWritten) {
  build();
  tick(5);
  cancel_flow(CancelFlow{.reason = "spring", .cancellation_policy = given().policy});
  const auto seen = flow();

  EXPECT_EQ(seen.public_flow_state, FlowState::cancelled);
  EXPECT_EQ(seen.cancelled_at, now());
  EXPECT_EQ(seen.last_mutation_at, now());
  EXPECT_EQ(seen.cancel_reason, "spring");
  EXPECT_EQ(seen.cancellation_policy, given().policy);
  run_due();
  EXPECT_EQ(member("waiting").cancellation_reason,
            state_of("waiting").public_state == PublicState::cancelled ? "spring" : "");
}

TEST_P(FlowCancelPolicy, IsSetByTheFirstCall) {
  build();
  cancel_flow(given().policy);
  run_due();
  tick(5);
  const auto before = flow_story();
  for (const auto& other : kPolicies) {
    const auto answer = cancel_flow(CancelFlow{.reason = "again", .cancellation_policy = other.policy});
    EXPECT_EQ(answer.outcome, CancelOutcome::cancelled);
    EXPECT_EQ(answer.cancellation_policy, given().policy);
    EXPECT_TRUE(answer.already_terminal);
    EXPECT_EQ(answer.member_execution_ids.size(), 6u);
  }
  run_due();
  EXPECT_EQ(flow_story(), before);
}

// ---- the cancels themselves ----

class FlowCancel : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowCancel, kStores, store_name);

TEST_P(FlowCancel, EndsAMemberLikeAnyOtherCancel) {
  submit(graph("a b"));
  const auto task = take("a");
  tick(5);
  cancel_flow(CancelFlow{.reason = "spring"});
  run_due();

  for (const char* name : {"a", "b"}) {
    EXPECT_EQ(member(name).cancellation_reason, "spring");
    EXPECT_EQ(member(name).cancelled_by, kOperatorOverride);
    EXPECT_EQ(outcomes(id(name)), std::vector{TerminalOutcome::cancelled});
  }
  EXPECT_EQ(attempt_log(id("a")), Log{"0 initial ended_cancelled cancelled: spring"});
  EXPECT_EQ(lease_log(id("a")), (Log{"1 acquired", "1 released cancelled"}));
  expect_refused(completion(task), ErrorCode::execution_not_active);
}

TEST_P(FlowCancel, HasAReasonOfItsOwn) {
  submit(graph("a"));
  cancel_flow();
  run_due();

  EXPECT_EQ(member("a").cancellation_reason, "flow_cancelled");
}

TEST_P(FlowCancel, CancelsRatherThanSkips) {
  submit(graph("a>b>c a>d"));
  cancel_flow();
  run_due();

  EXPECT_EQ(members(), "a:cancelled b:cancelled c:cancelled d:cancelled");
}

TEST_P(FlowCancel, LeavesOthersAlone) {
  submit(graph("a"));
  const auto cancelled = flow_id();
  const auto standalone = create();
  submit(graph("x>y"));
  const auto before = flow_story();
  must(CancelFlow{.flow_id = cancelled});
  run_due();

  EXPECT_EQ(flow_story(), before);
  EXPECT_EQ(state(standalone).public_state, PublicState::waiting);
}

TEST_P(FlowCancel, DoesThousands) {
  submit_many(fan_out(1500));
  EXPECT_EQ(cancel_flow().member_execution_ids.size(), 1501u);
  EXPECT_EQ(cancel_flow().member_execution_ids.size(), 1000u) << "later, only the first thousand are named";
  run_due();

  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::cancelled, 1501}}));
  EXPECT_EQ(flow().state, FlowState::cancelled);
}

TEST_P(FlowCancel, TellsOperators) {
  auto request = graph("a b c");
  request.namespace_ = "acme";
  request.tags = {{"a.b", "c"}};
  submit(request);
  tick(5);
  cancel_flow(CancelFlow{.reason = "spring", .cancellation_policy = CancellationPolicy::cancel_pending});
  cancel_flow();
  const auto events = must(ReadOperatorEvents{});

  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, OperatorEventType::flow_cancel_requested);
  EXPECT_EQ(events[0].details, (Tags{{"flow_id", flow_id().to_string()},
                                     {"cancellation_policy", "cancel_pending"},
                                     {"reason", "spring"},
                                     {"member_count", "3"}}));
  EXPECT_EQ(events[0].namespace_, "acme");
  EXPECT_EQ(events[0].occurred_at, now());
}

// ---- nobody to cancel ----

TEST_P(FlowCancel, OfAnEmptyFlowIsDoneAtOnce) {
  start_flow();
  const auto answer = cancel_flow();
  EXPECT_EQ(answer.outcome, CancelOutcome::cancelled);
  EXPECT_EQ(answer.member_execution_ids, std::vector<ExecutionId>{});
  make("a");

  refuse(AddFlowMember{flow_id(), id("a")}, ErrorCode::flow_already_terminal);
}

TEST_P(FlowCancel, OfAFlowThatIsOverIsDoneAtOnce) {
  submit(graph("a b"));
  succeeds("a");
  fails("b");
  const auto answer = cancel_flow();

  EXPECT_EQ(answer.outcome, CancelOutcome::cancelled);
  EXPECT_FALSE(answer.already_terminal);
  EXPECT_EQ(set_of(answer.member_execution_ids), (Ids{id("a"), id("b")}));
  EXPECT_EQ(members(), "a:completed b:failed");
  EXPECT_EQ(flow().state, FlowState::cancelled);
}

// ---- waiting for it ----

TEST_P(FlowCancel, WhoWaitsIsAnsweredWhenAllIsDone) {
  submit(graph("done a>b c"));
  succeeds("done");
  take("c");
  const auto answer = cancel_flow(CancelFlow{.wait = true});

  EXPECT_EQ(members(), "a:cancelled b:cancelled c:cancelled done:completed");
  EXPECT_EQ(answer.outcome, CancelOutcome::cancelled);
  EXPECT_EQ(answer.failed_member_execution_ids, std::vector<ExecutionId>{});
  EXPECT_EQ(answer.member_execution_ids.size(), 4u);
}

TEST_P(FlowCancel, WhoWaitsIsAnsweredWhenThousandsAreDone) {
  submit_many(fan_out(1500));
  EXPECT_EQ(cancel_flow(CancelFlow{.wait = true}).outcome, CancelOutcome::cancelled);

  EXPECT_EQ(flow().counts, (StateCounts{{PublicState::cancelled, 1501}}));
}

TEST_P(FlowCancel, WhoWaitsWaitsNoLongerThanItSaid) {
  submit(graph("a b"));
  const auto task = take("a");
  expect_error(CancelFlow{.flow_id = flow_id(),
                          .cancellation_policy = CancellationPolicy::let_active_finish,
                          .wait = true,
                          .wait_ms = 1},
               ErrorCode::timeout);
  complete(task);
  advance(30'000 + kSoon);

  EXPECT_EQ(members(), "a:completed b:cancelled") << "it goes on all the same";
}

TEST_P(FlowCancel, TheGraceIsWithinWhatANumberHolds) {
  submit(graph("a"));
  for (const std::int64_t grace : {std::int64_t{-1}, std::int64_t{1} << 53, INT64_MAX, INT64_MIN}) {
    refuse(CancelFlow{.flow_id = flow_id(), .grace_ms = grace}, ErrorCode::invalid_grace_ms);
  }
  for (const std::int64_t grace : {std::int64_t{0}, (std::int64_t{1} << 53) - 1}) {
    submit(graph("a"));
    EXPECT_EQ(cancel_flow(CancelFlow{.wait = true, .grace_ms = grace}).outcome, CancelOutcome::cancelled);
  }
}

TEST_P(FlowCancel, BadInputIsRefused) {
  submit(graph("a"));
  refuse(CancelFlow{.flow_id = flow_id(), .reason = "a\0b"s}, ErrorCode::invalid_input);
  refuse(CancelFlow{.flow_id = flow_id(), .wait = true, .wait_ms = -1}, ErrorCode::invalid_input);
  refuse(CancelFlow{.flow_id = neighbour(flow_id())}, ErrorCode::flow_not_found);
}

// ---- those who stay ----

TEST_P(FlowCancel, WhoStaysMayRetryAndResume) {
  for (const auto policy : {CancellationPolicy::cancel_pending, CancellationPolicy::flow_only}) {
    SCOPED_TRACE(enum_name(policy));
    auto request = graph("retried resumed lost");
    node(request, "retried").execution.policy = retries(1, FixedBackoff{0});
    submit(request);
    const auto retried = take("retried");
    const auto resumed = take("resumed");
    take("lost");
    cancel_flow(policy);
    fail(retried);
    delay(resumed, now());
    advance(kLeaseTtl);
    for (const char* name : {"retried", "resumed", "lost"}) succeeds(name);
    EXPECT_EQ(members(), "lost:completed resumed:completed retried:completed");
    EXPECT_EQ(flow().state, FlowState::cancelled);
  }
}

TEST_P(FlowCancel, WithFlowOnlyTheGraphGoesOn) {
  submit(graph("a>b bad>c"));
  cancel_flow(CancellationPolicy::flow_only);
  succeeds("a");
  fails("bad");
  succeeds("b");

  EXPECT_EQ(members(), "a:completed b:completed bad:failed c:skipped");
}

// ---- letting the active finish ----

TEST_P(FlowCancel, WhatHasNotBegunIsParkedWhileOthersFinish) {
  submit(graph("active>next other"));
  const auto task = take("active");
  cancel_flow(CancellationPolicy::let_active_finish);
  run_due();
  for (const char* name : {"next", "other"}) {
    EXPECT_EQ(state_of(name), expected::parked());
    EXPECT_EQ(member(name).blocking_detail,
              "flow " + flow_id().to_string() + " cancellation: let_active_finish");
    expect_refused(ReleaseExecution{id(name)}, ErrorCode::execution_not_eligible);
  }
  for (int i = 0; i < 10; ++i) {
    renew(task);
    advance(kLeaseTtl / 2);
  }
  EXPECT_EQ(members(), "active:active next:waiting other:waiting");
  expect_not_offered("next other");
  complete(task);
  advance(kSoon);

  EXPECT_EQ(members(), "active:completed next:cancelled other:cancelled");
  EXPECT_EQ(member("next").cancellation_reason, "enough");
  EXPECT_EQ(flow().state, FlowState::cancelled);
}

// The clock has yet to come to them.
TEST_P(FlowCancel, WhatHasNotBegunIsShownAsParkedAtOnce) {
  submit(graph("active>next other"));
  take("active");
  cancel_flow(CancellationPolicy::let_active_finish);
  for (const char* name : {"next", "other"}) {
    EXPECT_EQ(state_of(name), expected::parked()) << name;
    const auto detail = "flow " + flow_id().to_string() + " cancellation: let_active_finish";
    EXPECT_EQ(member(name).blocking_detail, detail) << name;
    const auto reasons = must(ExplainWaiting{id(name)}).reasons;
    const auto told = std::ranges::find(reasons, WaitingFor::operator_, &WaitingReason::waiting_for);
    ASSERT_NE(told, reasons.end()) << name;
    EXPECT_EQ(told->detail, detail) << name;
  }
  EXPECT_EQ(state_of("active").public_state, PublicState::active);
  run_due();  // until then they are counted as what they were
}

TEST_P(FlowCancel, WithNothingActiveWhatIsLeftGoesAtOnce) {
  submit(graph("a>b c"));
  cancel_flow(CancellationPolicy::let_active_finish);
  run_due();

  EXPECT_EQ(members(), "a:cancelled b:cancelled c:cancelled");
}

// ---- others who take care of it ----

TEST_P(FlowCancel, WhatSomebodyElseTakesCareOfIsNotOwedAnyMore) {
  submit(graph("a b"));
  cancel_flow();
  must(AckCancelMember{flow_id(), id("a")});
  must(AckCancelMember{flow_id(), id("a")});
  must(AckCancelMember{flow_id(), execution_id_for(flow_id(), uuid_of(777))});
  run_due();
  EXPECT_EQ(members(), "a:waiting b:cancelled");

  submit(graph("x"));
  cancel_flow();
  must(AckCancelMember{flow_id(), id("x")});
  advance(kHour);
  EXPECT_EQ(members(), "x:waiting");
  expect_error(AckCancelMember{neighbour(flow_id()), id("x")}, ErrorCode::flow_not_found);
}

// ---- those that never had a member ----

TEST_P(FlowCancel, WithoutAMemberItGoesAfterItsRetention) {
  constexpr std::int64_t day = 24 * kHour;
  const auto open = start_flow();
  const auto cancelled = start_flow();
  tick(5);
  EXPECT_EQ(cancel_flow().outcome, CancelOutcome::cancelled);
  must(AckCancelMember{cancelled, execution_id_for(cancelled, uuid_of(777))});
  EXPECT_EQ(must(ReadFigures{}).cancel_backlog, 0u) << "nobody is owed a cancel";
  EXPECT_EQ(must(CheckStore{}).found, 0u);
  advance(day - 1);
  EXPECT_EQ(must(DescribeFlow{cancelled}).state, FlowState::cancelled);
  advance(1);
  expect_error(DescribeFlow{cancelled}, ErrorCode::flow_not_found);
  forget_flow(cancelled);
  EXPECT_EQ(must(CheckStore{}).found, 0u);
  must(CreateFlow{.flow_id = cancelled, .flow_kind = "anew"});
  EXPECT_EQ(must(DescribeFlow{cancelled}).public_flow_state, FlowState::open);
  advance(100 * day);
  EXPECT_EQ(must(DescribeFlow{open}).public_flow_state, FlowState::open) << "it may wait for its first";
}

// ---- restarts ----

// Until its cancel comes, the member has not ended, and no answer may say so.
TEST_P(FlowCancel, WhatIsParkedHasNotEnded) {
  submit(graph("a>b>c x"));
  const auto a = take("a");
  take("x");
  cancel_flow({.cancellation_policy = CancellationPolicy::let_active_finish});
  run_due();
  fail(a, "boom", "permanent");

  EXPECT_EQ(state_of("b"), expected::parked());
  const auto edges = must(ListEdges{.execution_id = id("b")});
  ASSERT_EQ(edges.size(), 1u);
  EXPECT_EQ(edges[0].dependency_state, DependencyState::unsatisfied);
}

class FlowCancelRestart : public FlowTest {};
INSTANTIATE_TEST_SUITE_P(DurableStores, FlowCancelRestart, kDurableStores, store_name);

TEST_P(FlowCancelRestart, WhatIsOwedIsDoneAfterwards) {
  submit(graph("a b"));
  take("a");
  cancel_flow(CancelFlow{.reason = "spring"});
  reopen();
  expect_not_offered("b");
  run_due();

  EXPECT_EQ(members(), "a:cancelled b:cancelled");
  EXPECT_EQ(member("a").cancellation_reason, "spring");
}

}  // namespace
}  // namespace flowfabric
