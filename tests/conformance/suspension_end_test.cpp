// Ends of suspensions other than by a signal: operators, timeouts, cancels, deadlines (03 §9, §10).
#include "model/text.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using enum SignalEffect;

class SuspensionEnds : public SuspensionTest {
 protected:
  void suspend_until(std::int64_t timeout, TimeoutBehavior behavior,
                     ResumeCondition condition = single("k")) {
    auto request = suspension(running(), std::move(condition));
    request.timeout_at = now() + timeout;
    request.timeout_behavior = behavior;
    suspend(request);
  }
  void expect_closed(const std::string& reason) {
    const auto view = seen();
    EXPECT_TRUE(view.closed_at);
    EXPECT_EQ(view.close_reason, reason);
    EXPECT_TRUE(view.satisfied.empty());
    for (const auto& each : view.waitpoints) {
      EXPECT_EQ(each.state, WaitpointState::closed);
      EXPECT_EQ(each.close_reason, reason);
    }
    EXPECT_TRUE(must(ListPendingWaitpoints{id()}).waitpoints.empty());
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, SuspensionEnds, kStores, store_name);

// ---- operators ----

TEST_P(SuspensionEnds, ByAnOperator) {
  suspend_new();
  EXPECT_EQ(must(ResumeExecution{.execution_id = id(), .resume_delay_ms = 700}).public_state,
            PublicState::delayed);
  EXPECT_EQ(describe(id()).blocking_detail, "resume delay 700ms");
  expect_closed("resumed");
  expect_refused(signal(waitpoint()), ErrorCode::target_not_signalable);
  advance(700);
  EXPECT_TRUE(claim_one().resume_signals.empty());
  EXPECT_TRUE(must(ObserveSignals{id(), 0}).empty());
}

TEST_P(SuspensionEnds, OnlyWhatIsSuspendedIsResumed) {
  const auto task = running();
  expect_refused(ResumeExecution{task.execution_id}, ErrorCode::execution_not_suspended);
  ExecutionId nobody = task.execution_id;
  nobody.uuid.bytes[9] ^= 1;
  expect_error(ResumeExecution{nobody}, ErrorCode::execution_not_found);
}

// ---- timeouts ----

TEST_P(SuspensionEnds, ByATimeoutThatIsGivenFromNowOn) {
  auto request = suspension(running(), single("k"));
  request.timeout_ms = 1000;
  suspend(request);
  EXPECT_EQ(seen().timeout_at, now() + 1000);
  advance(1000);
  EXPECT_EQ(now_in().public_state, PublicState::failed);
}

TEST_P(SuspensionEnds, OneTimeoutIsEnough) {
  auto request = suspension(running(), single("k"));
  request.timeout_at = now() + 1000;
  request.timeout_ms = 1000;
  expect_error(request, ErrorCode::invalid_input);
}

TEST_P(SuspensionEnds, ByATimeoutThatFails) {
  suspend_until(1000, TimeoutBehavior::fail);
  advance(999);
  EXPECT_EQ(now_in(), expected::suspended());
  advance(1);
  EXPECT_EQ(now_in().public_state, PublicState::failed);
  EXPECT_EQ(describe(id()).failure_reason, "suspension_timeout:fail");
  EXPECT_EQ(describe(id()).cancellation_reason, "suspension_timeout_fail");
  EXPECT_EQ(outcomes(id()), std::vector{TerminalOutcome::failed});
  EXPECT_EQ(attempt_log(id()), Log{"0 initial ended_failure suspension_timeout:fail"});
  expect_closed("timed_out_fail");
  expect_refused(signal(waitpoint()), ErrorCode::target_not_signalable);
}

TEST_P(SuspensionEnds, ByATimeoutThatCancels) {
  suspend_until(1000, TimeoutBehavior::cancel, all_of({single("a"), single("b"), single("c")}));
  deliver(signal(waitpoint(1)));
  advance(1000);
  EXPECT_EQ(now_in().public_state, PublicState::cancelled);
  EXPECT_EQ(describe(id()).failure_reason, "suspension_timeout:cancel");
  EXPECT_EQ(describe(id()).cancellation_reason, "suspension_timeout_cancel");
  EXPECT_EQ(outcomes(id()), std::vector{TerminalOutcome::cancelled});
  EXPECT_EQ(attempt_log(id()), Log{"0 initial ended_cancelled suspension_timeout:cancel"});
  expect_closed("timed_out_cancel");
}

TEST_P(SuspensionEnds, ByATimeoutThatExpires) {
  suspend_until(1000, TimeoutBehavior::expire);
  advance(1000);
  EXPECT_EQ(now_in().public_state, PublicState::expired);
  EXPECT_EQ(describe(id()).failure_reason, "suspension_timeout:expire");
  EXPECT_EQ(describe(id()).cancellation_reason, "suspension_timeout_expire");
  EXPECT_EQ(outcomes(id()), std::vector{TerminalOutcome::expired});
  EXPECT_EQ(attempt_log(id()), Log{"0 initial ended_failure suspension_timeout:expire"});
  expect_closed("timed_out_expire");
}

// Waiting callers learn of the execution's end, and of nothing before.
TEST_P(SuspensionEnds, InAFlow) {
  const auto flow = must(SubmitFlow{.flow_kind = "f",
                                    .nodes = {{.name = "a", .execution = {.execution_kind = "k"}},
                                              {.name = "b", .execution = {.execution_kind = "k"}}},
                                    .edges = {{"a", "b"}}});
  for (const auto& [name, member] : flow.executions) remember(member);
  const auto& follower = flow.executions.at("b");
  auto request = suspension(claim_one());
  request.timeout_at = now() + 1000;
  suspend(request);
  EXPECT_EQ(id(), flow.executions.at("a"));
  EXPECT_EQ(state(follower).public_state, PublicState::waiting_children);
  advance(1000);
  EXPECT_EQ(now_in().public_state, PublicState::failed);
  EXPECT_EQ(state(follower).public_state, PublicState::skipped);
}

TEST_P(SuspensionEnds, ByATimeoutThatResumes) {
  suspend_until(1000, TimeoutBehavior::auto_resume_with_timeout_signal,
                all_of({single("k", {"a"}), single("k", {"b"})}));
  deliver(signal(waitpoint(), "a"));
  advance(1000);
  EXPECT_EQ(now_in(), expected::waiting(AttemptState::attempt_interrupted));
  expect_closed("timed_out_auto_resume");
  EXPECT_EQ(seen().resume_trigger, ResumeTrigger::timeout);
  const auto resumed = claim_one();
  EXPECT_EQ(shown(resumed.resume_signals), (Log{"a:none", "timeout:none"}));
  EXPECT_EQ(resumed.resume_signals[1].source_identity, "suspension_timeout");
  EXPECT_EQ(resumed.resume_signals[1].signal_category, "timeout");
  EXPECT_EQ(resumed.resume_signals[1].source_type, "system");
  EXPECT_EQ(resumed.resume_signals[1].correlation_id, seen().suspension_id.to_string());
  EXPECT_EQ(resumed.resume_signals[1].waitpoint_id, waitpoint().waitpoint_id);
  EXPECT_EQ(seen().closer_signal_id, resumed.resume_signals[1].signal_id);
  complete(resumed);
}

TEST_P(SuspensionEnds, ByATimeoutWithANameOfItsOwn) {
  auto request = suspension(running(), {TimeoutOnly{}});
  request.timeout_at = now() + 10;
  request.timeout_behavior = TimeoutBehavior::auto_resume_with_timeout_signal;
  request.timeout_signal_name = "woke_up";
  suspend(request);
  advance(10);
  EXPECT_EQ(shown(claim_one().resume_signals), Log{"woke_up:none"});
}

TEST_P(SuspensionEnds, NotByATimeoutThatEscalates) {
  suspend_until(1000, TimeoutBehavior::escalate);
  const auto due = now() + 1000;
  advance(1000);
  EXPECT_EQ(now_in(), expected::suspended(BlockingReason::paused_by_operator));
  EXPECT_EQ(describe(id()).blocking_detail, "suspension escalated: timeout at " + time_to_text(due));
  EXPECT_EQ(seen().reason_code, SuspensionReason::waiting_for_operator_review);
  EXPECT_EQ(seen().timeout_at, std::nullopt);
  EXPECT_EQ(seen().timeout_behavior, std::nullopt);
  EXPECT_EQ(seen().waitpoints[0].expires_at, std::nullopt);
  const auto listed = must(ListSuspended{id().partition}).suspended.at(0);
  EXPECT_EQ(listed.reason, SuspensionReason::waiting_for_operator_review);
  EXPECT_EQ(listed.timeout_at, std::nullopt);
  const auto events = must(ReadOperatorEvents{});
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, OperatorEventType::suspension_escalated);
  EXPECT_EQ(events[0].execution_id, id());
  EXPECT_EQ(events[0].details, (Tags{{"suspension_id", seen().suspension_id.to_string()}}));
  const auto before = story(id());
  advance(kHour);
  EXPECT_EQ(story(id()), before) << "once";
  EXPECT_EQ(must(ReadOperatorEvents{}).size(), 1u);
  EXPECT_EQ(effect_of(signal(waitpoint())), resume_condition_satisfied);
  EXPECT_TRUE(completions(id()).empty()) << "a resume is no end";
}

TEST_P(SuspensionEnds, AnOperatorMayResumeWhatWasEscalated) {
  suspend_until(1000, TimeoutBehavior::escalate, {OperatorOnly{}});
  advance(1000);
  EXPECT_EQ(must(ResumeExecution{id()}).public_state, PublicState::waiting);
  expect_closed("resumed");
}

TEST_P(SuspensionEnds, WhatIsResumedIsClaimedAsSuch) {
  suspend_new();
  const ClaimResumedExecution resume{id(), {.worker_id = "w"}};
  expect_refused(resume, ErrorCode::execution_not_leaseable);
  deliver(signal(waitpoint()));
  must(IssueClaimGrant{.execution_id = id(), .terms = {.worker_id = "w"}});
  const auto resumed = must(resume);
  EXPECT_EQ(resumed.claim, ClaimKind::resumed);
  EXPECT_EQ(resumed.attempt_index, task().attempt_index);
  EXPECT_EQ(resumed.fence.attempt_id, task().fence.attempt_id);
  EXPECT_EQ(resumed.fence.lease_epoch, *task().fence.lease_epoch + 1);
  EXPECT_EQ(shown(resumed.resume_signals), Log{"go:none"});
  EXPECT_EQ(now_in(), expected::running());
}

TEST_P(SuspensionEnds, ATimeoutOfThePastMeansNothing) {
  suspend_until(1000, TimeoutBehavior::fail);
  deliver(signal(waitpoint()));
  const auto resumed = claim_one();
  advance(1000);
  EXPECT_EQ(now_in(), expected::running());
  complete(resumed);
  advance(5000);
  EXPECT_EQ(now_in().public_state, PublicState::completed);
}

// ---- the execution ends ----

TEST_P(SuspensionEnds, WithACancel) {
  const auto task = running();
  const auto pending = make_waitpoint(task, "spare");
  suspend(suspension(task, all_of({single("a"), single("b")})));
  cancel(id(), "enough");
  EXPECT_EQ(now_in().public_state, PublicState::cancelled);
  EXPECT_EQ(attempt_log(id()), Log{"0 initial ended_cancelled cancelled: enough"});
  expect_closed("cancelled");
  expect_refused(signal(pending), ErrorCode::target_not_signalable);
}

TEST_P(SuspensionEnds, WithTheDeadline) {
  const auto task = running(CreateExecution{.execution_deadline_at = now() + 5000});
  suspend(suspension(task));
  advance(5000);
  EXPECT_EQ(now_in().public_state, PublicState::expired);
  expect_closed("expired:execution_deadline");
}

TEST_P(SuspensionEnds, TheAttemptsTimeStandsStill) {
  const auto task = running(ExecutionPolicy{.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = 1000}});
  tick(400);
  suspend(suspension(task));
  advance(kHour);
  deliver(signal(waitpoint()));
  const auto resumed = claim_one();
  EXPECT_EQ(resumed.attempt_timeout_at, now() + 600);
}

TEST_P(SuspensionEnds, EverythingIsRemovedWithTheExecution) {
  const auto task = running();
  suspend(suspension(task));
  deliver(signal(waitpoint()));
  complete(claim_one());
  advance(25 * kHour);
  forget(id());
  expect_error(DescribeSuspension{id()}, ErrorCode::execution_not_found);
  EXPECT_EQ(must(CheckStore{}).found, 0u);
}

}  // namespace
}  // namespace flowfabric
