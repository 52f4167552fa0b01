// Suspending (03 §7): refusals, stored records, and repeated calls.
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class Suspend : public SuspensionTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Suspend, kStores, store_name);

TEST_P(Suspend, StopsTheWorkerAndKeepsTheAttempt) {
  const auto answer = suspend_new();
  EXPECT_FALSE(answer.already_satisfied);
  ASSERT_EQ(answer.waitpoints.size(), 1u);
  EXPECT_EQ(waitpoint().waitpoint_key, "k");
  EXPECT_TRUE(waitpoint().waitpoint_token.starts_with("k1:")) << "a token";
  EXPECT_EQ(waitpoint().waitpoint_token.size(), 3u + 64);
  EXPECT_EQ(now_in(), expected::suspended());
  const auto seen_execution = describe(id());
  EXPECT_EQ(seen_execution.blocking_detail,
            "suspended: waitpoint " + waitpoint().waitpoint_id.to_string() + " awaiting waiting_for_signal");
  EXPECT_EQ(seen_execution.current_waitpoint, waitpoint().waitpoint_id);
  EXPECT_EQ(seen_execution.lease, std::nullopt);
  EXPECT_EQ(seen_execution.lease_epoch, 1);
  EXPECT_EQ(seen_execution.attempt_id, task().fence.attempt_id);
  EXPECT_EQ(lease_log(id()), (Log{"1 acquired", "1 released suspend"}));
  EXPECT_EQ(attempt_log(id()), Log{"0 initial suspended"});
  EXPECT_TRUE(claim().empty());
  const auto view = seen();
  EXPECT_EQ(view.suspension_id, answer.suspension_id);
  EXPECT_EQ(view.suspended_at, now());
  EXPECT_EQ(view.timeout_at, std::nullopt);
  EXPECT_FALSE(view.closed_at);
  ASSERT_EQ(view.waitpoints.size(), 1u);
  EXPECT_EQ(view.waitpoints[0].state, WaitpointState::active);
  EXPECT_EQ(view.waitpoints[0].activated_at, now());
  EXPECT_EQ(view.waitpoints[0].token_kid, "k1");
  EXPECT_EQ(view.waitpoints[0].token_fingerprint, waitpoint().waitpoint_token.substr(3, 16));
}

TEST_P(Suspend, BlocksForTheReasonGiven) {
  struct Case {
    SuspensionReason code;
    BlockingReason reason;
  };
  using enum SuspensionReason;
  for (const auto& [code, reason] : {Case{waiting_for_approval, BlockingReason::waiting_for_approval},
                                     Case{waiting_for_callback, BlockingReason::waiting_for_callback},
                                     Case{waiting_for_tool_result, BlockingReason::waiting_for_tool_result},
                                     Case{waiting_for_operator_review, BlockingReason::paused_by_operator},
                                     Case{paused_by_policy, BlockingReason::paused_by_policy},
                                     Case{paused_by_budget, BlockingReason::waiting_for_budget},
                                     Case{step_boundary, BlockingReason::waiting_for_signal},
                                     Case{manual_pause, BlockingReason::paused_by_operator}}) {
    auto request = suspension(running());
    request.reason_code = code;
    suspend(request);
    EXPECT_EQ(now_in(), expected::suspended(reason));
    EXPECT_EQ(seen().reason_code, code);
  }
}

// ---- repeated calls ----

TEST_P(Suspend, IsRepeatableByItsFence) {
  const auto task = running();
  const auto first = suspend(suspension(task));
  EXPECT_EQ(must(suspension(task)), first);
  EXPECT_EQ(lease_log(id()), (Log{"1 acquired", "1 released suspend"}));
}

// The next lease has not ended: its suspension was over before it began.
TEST_P(Suspend, IsRepeatableByItsFenceUntilTheNextLeaseEnds) {
  const auto stopped = running();
  const auto first = suspend(suspension(stopped));
  deliver(signal(waitpoint()));
  const auto resumed = claim_one();
  for (const auto* key : {"again", "and again"}) {
    const auto pending = make_waitpoint(resumed, key);
    deliver(signal(pending));
    auto next = suspension(resumed, single(key));
    next.waitpoints = {{.waitpoint_id = pending.waitpoint_id, .use_pending = true}};
    EXPECT_TRUE(must(next).already_satisfied);
    EXPECT_EQ(must(suspension(stopped)), first);
  }
  complete(resumed);
  expect_error(suspension(stopped), ErrorCode::execution_not_active);
}

TEST_P(Suspend, IsRepeatableByItsKey) {
  auto request = suspension(running());
  request.idempotency_key = "K";
  const auto first = suspend(request);
  request.fence.lease_epoch = 77;
  request.suspension_id = SuspensionId{first.waitpoints[0].waitpoint_id.uuid};
  EXPECT_EQ(must(request), first);
  // Also when it has been resumed, claimed and suspended again since.
  deliver(signal(waitpoint()));
  const auto again = claim_one();
  suspend(suspension(again));
  EXPECT_EQ(must(request), first);
}

TEST_P(Suspend, AKeyBelongsToItsExecution) {
  auto request = suspension(running());
  request.idempotency_key = "K";
  const auto first = suspend(request);
  auto other = suspension(running());
  other.idempotency_key = "K";
  EXPECT_NE(suspend(other).suspension_id, first.suspension_id);
}

TEST_P(Suspend, AnEmptyKeyIsNone) {
  const auto first = suspend_new();
  deliver(signal(waitpoint()));
  auto again = suspension(claim_one());
  again.idempotency_key = "";
  EXPECT_NE(suspend(again).suspension_id, first.suspension_id);
}

TEST_P(Suspend, AKeyEndsWithItsTime) {
  auto request = suspension(running());
  request.idempotency_key = "K";
  request.timeout_at = now() + 1000;
  request.timeout_behavior = TimeoutBehavior::escalate;
  suspend(request);
  tick(61'000);
  request.fence.lease_epoch = 77;
  expect_error(request, ErrorCode::execution_not_active);
}

// ---- who may ----

TEST_P(Suspend, NeedsTheLease) {
  const auto task = running();
  auto request = suspension(task);
  request.fence = {};
  expect_refused(request, ErrorCode::fence_required);
  request.fence.lease_id = task.fence.lease_id;
  expect_refused(request, ErrorCode::partial_fence_triple);
  request = suspension(task);
  request.fence.lease_epoch = 9;
  expect_refused(request, ErrorCode::stale_lease);
  request = suspension(task);
  request.attempt_index = 3;
  expect_refused(request, ErrorCode::invalid_lease_for_suspend);
  tick(kLeaseTtl);
  expect_error(suspension(task), ErrorCode::lease_expired);
  EXPECT_EQ(state(task.execution_id).ownership_state, OwnershipState::lease_expired_reclaimable);
}

TEST_P(Suspend, IsNotForWhatDoesNotRun) {
  const auto task = running();
  suspend(suspension(task));
  auto request = suspension(task);
  request.fence.lease_epoch = 2;
  expect_error(request, ErrorCode::execution_not_active);
  ExecutionId nobody = task.execution_id;
  nobody.uuid.bytes[7] ^= 1;
  request.execution_id = nobody;
  expect_error(request, ErrorCode::execution_not_found);
}

// ---- bindings ----

TEST_P(Suspend, BindsAWaitpointForEachKey) {
  suspend_new(all_of({single("a"), count_of(1, CountKind::distinct_signals, {"b", "c"})}));
  EXPECT_EQ(waitpoint(0).waitpoint_key, "a");
  EXPECT_EQ(waitpoint(1).waitpoint_key, "b");
  EXPECT_EQ(waitpoint(2).waitpoint_key, "c");
}

TEST_P(Suspend, MintsAKeyWhereNoneIsNamed) {
  suspend_new({OperatorOnly{}});
  EXPECT_EQ(waitpoint().waitpoint_key, "wpk:" + waitpoint().waitpoint_id.to_string());
  EXPECT_EQ(seen().waitpoints[0].required_signal_names, std::vector<std::string>{"__operator_only__"});
}

TEST_P(Suspend, AConditionWithoutAKeyIsAboutTheFirstWaitpoint) {
  const auto minted = [&] { return "wpk:" + waitpoint().waitpoint_id.to_string(); };
  const auto expect_resumes = [&](const std::string& key) {
    EXPECT_EQ(waitpoint().waitpoint_key, key);
    EXPECT_EQ(deliver(signal(waitpoint())).effect, SignalEffect::resume_condition_satisfied) << key;
    complete(claim_one());
  };
  suspend_new(ResumeCondition{});
  expect_resumes(minted());
  suspend_new(count_of(1, CountKind::distinct_sources, {""}));
  expect_resumes(minted());
  auto named = suspension(running(), ResumeCondition{});
  named.waitpoints = {{.waitpoint_key = "mine"}};
  suspend(named);
  expect_resumes("mine");
  const auto task = running();
  const auto early = make_waitpoint(task, "early");
  auto pending = suspension(task, ResumeCondition{});
  pending.waitpoints = {{.waitpoint_id = early.waitpoint_id, .use_pending = true}};
  suspend(pending);
  expect_resumes("early");
  suspend_new(all_of({single("b"), single("", {"go"})}));
  EXPECT_EQ(seen().resume_condition, all_of({single("b"), single("b", {"go"})}));
  expect_resumes("b");
  // Filled in, it would count the same waitpoint twice.
  auto twice = suspension(running(), count_of(2, CountKind::distinct_waitpoints, {"", "k"}));
  twice.waitpoints = {{.waitpoint_key = "k"}};
  expect_refused(twice, ErrorCode::invalid_input);
}

TEST_P(Suspend, RefusesBindingsThatDoNotFit) {
  const auto task = running();
  const auto refuse = [&](ResumeCondition condition, std::vector<WaitpointBinding> bindings,
                          const std::string& detail) {
    auto request = suspension(task, std::move(condition));
    request.waitpoints = std::move(bindings);
    const auto error = expect_refused(request, ErrorCode::invalid_input);
    EXPECT_EQ(error.detail, detail);
  };
  const WaitpointBinding a{.waitpoint_key = "a"};
  const WaitpointBinding b{.waitpoint_key = "b"};
  const WaitpointBinding pending{.waitpoint_id = WaitpointId{}, .use_pending = true};
  refuse(single("b"), {a}, "waitpoint_key_mismatch");
  refuse(single("b"), {a, b}, "waitpoint_key_mismatch");
  refuse(single("a"), {a, b}, "extra_binding_not_referenced_by_condition: b");
  refuse(all_of({single("a")}), {a, pending}, "additional_waitpoint_binding_must_be_fresh at waitpoints[1]");
  refuse(all_of({single("a")}), {a, {}}, "additional_waitpoint_binding_empty_key at waitpoints[1]");
  refuse(all_of({single("a")}), {pending, a}, "use_pending_with_extras_unsupported");
  refuse(all_of({single("a"), single("b"), single("c")}), {a, b},
         "referenced_waitpoint_key_missing_binding: c");
  refuse(all_of({single("a")}), {a, b}, "extra_binding_not_referenced_by_condition: b");
  refuse(all_of({single("a"), single("b")}), {a}, "referenced_waitpoint_key_missing_binding: b");
  refuse(all_of({single("a")}), {a, a}, "duplicate_waitpoint_binding");
  refuse({TimeoutOnly{}}, {}, "timeout_only_without_deadline");
  refuse(all_of({single("a"), {TimeoutOnly{}}}), {}, "timeout_only_without_deadline");
  refuse(single("a", {""}), {}, "resume_condition: empty signal name (use Wildcard instead)");
  refuse(all_of({}), {}, "allof_empty_members at path <root>");
  refuse(count_of(0, CountKind::distinct_signals, {"a"}), {}, "count_n_zero at path <root>");
  refuse(count_of(1, CountKind::distinct_signals, {}), {}, "count_waitpoints_empty at path <root>");
  refuse(count_of(3, CountKind::distinct_waitpoints, {"a", "b"}), {},
         "count_exceeds_waitpoint_set: n=3 > waitpoints.len()=2 at path <root>");
}

TEST_P(Suspend, ConditionsHaveTheirLimits) {
  const auto task = running();
  const auto nested = [](int depth) {
    auto condition = single("a");
    for (int i = 0; i < depth; ++i) condition = all_of({std::move(condition)});
    return condition;
  };
  const auto refuse = [&](ResumeCondition condition, const std::string& words) {
    const auto error = expect_refused(suspension(task, std::move(condition)), ErrorCode::invalid_input);
    EXPECT_NE(error.detail.find(words), std::string::npos) << error.detail;
  };
  refuse(nested(5), "depth 5 exceeds cap 4");
  refuse(nested(1000), "depth 5 exceeds cap 4");
  refuse(all_of(std::vector(100'000, single("a"))), "more than 256 nodes");
  refuse(count_of(1, CountKind::distinct_signals, std::vector<std::string>(100'000, "a")),
         "more than 256 nodes");
  std::vector<ResumeCondition> many;
  for (int i = 0; i < 65; ++i) many.push_back(single("k" + std::to_string(i)));
  refuse(all_of(many), "more than 64 waitpoints");
  refuse(single(std::string(257, 'k')), "longer than 256 bytes");
  refuse(single("a", {std::string(257, 'n')}), "longer than 256 bytes");
  refuse(single("a", {"\xff"}), "not valid UTF-8");
  refuse(single(std::string("a\0", 2)), "NUL");
  many.pop_back();
  EXPECT_EQ(suspend(suspension(task, all_of(many))).waitpoints.size(), 64u);
  must(ResumeExecution{id()});
  suspend(suspension(claim_one(), nested(4)));
  EXPECT_EQ(deliver(signal(waitpoint())).effect, SignalEffect::resume_condition_satisfied);
}

TEST_P(Suspend, TextsHaveTheirLimits) {
  const auto task = running();
  for (const auto field : {&SuspendExecution::idempotency_key, &SuspendExecution::timeout_signal_name,
                           &SuspendExecution::continuation_metadata_pointer}) {
    auto request = suspension(task);
    for (const auto& text : {std::string(1025, 't'), std::string("\xff"), std::string("a\0", 2)}) {
      request.*field = text;
      expect_refused(request, ErrorCode::invalid_input);
    }
  }
  auto reserved = suspension(task);
  reserved.timeout_signal_name = "__timeout__";
  expect_refused(reserved, ErrorCode::invalid_input);
  auto longest = suspension(task);
  longest.idempotency_key = std::string(1024, 't');
  EXPECT_EQ(must(longest), suspend(longest));
  expect_refused(ResumeExecution{.execution_id = id(), .trigger_type = "\xff"}, ErrorCode::invalid_input);
}

TEST_P(Suspend, RefusesWhatNothingWouldHonour) {
  const auto task = running();
  for (const auto field : {&ResumePolicy::consume_matched_signals, &ResumePolicy::close_waitpoint_on_resume,
                           &ResumePolicy::retain_signal_buffer_until_closed}) {
    auto request = suspension(task);
    request.resume_policy.*field = !(request.resume_policy.*field);
    EXPECT_EQ(expect_refused(request, ErrorCode::invalid_input).detail, "resume_policy: not supported");
  }
  auto request = suspension(task);
  request.resume_policy.resume_delay_ms = -1;
  expect_refused(request, ErrorCode::invalid_input);
}

TEST_P(Suspend, RefusesNamesThatAreNoText) {
  const auto task = running();
  for (const auto& bytes : {std::string("\xff"), std::string("a\0b", 3)}) {
    expect_refused(suspension(task, single("k", {bytes})), ErrorCode::invalid_input);
    expect_refused(suspension(task, count_of(1, CountKind::distinct_signals, {"k"}, {bytes})),
                   ErrorCode::invalid_input);
  }
}

TEST_P(Suspend, NeverUsesAnIdAgain) {
  suspend_new();
  const auto used = waitpoint().waitpoint_id;
  deliver(signal(waitpoint()));
  auto request = suspension(claim_one());
  request.waitpoints = {{.waitpoint_id = used}};
  expect_refused(request, ErrorCode::waitpoint_already_exists);
}

TEST_P(Suspend, NeverUsesAnIdOfAnotherExecution) {
  const auto pending = make_waitpoint(running()).waitpoint_id;
  suspend_new();
  const auto active = waitpoint().waitpoint_id;
  const auto task = running();
  for (const auto& used : {pending, active}) {
    auto request = suspension(task);
    request.waitpoints = {{.waitpoint_id = used}};
    expect_refused(request, ErrorCode::waitpoint_already_exists);
  }
  auto request = suspension(task);
  request.waitpoints = {{.waitpoint_id = WaitpointId{active.uuid}}};
  request.waitpoints[0].waitpoint_id->uuid.bytes[8] ^= 1;
  EXPECT_EQ(suspend(request).waitpoints[0].waitpoint_id, request.waitpoints[0].waitpoint_id);
}

// ---- timeouts ----

TEST_P(Suspend, ATimeoutMayBeAMomentAgo) {
  auto request = suspension(running());
  request.timeout_at = now() - kHour;
  EXPECT_EQ(expect_refused(request, ErrorCode::invalid_input).detail, "timeout_at_in_past");
  request.timeout_at = now() - 1000;
  suspend(request);
  run_due();
  EXPECT_EQ(now_in().public_state, PublicState::failed);
}

TEST_P(Suspend, ATimeoutMayBeALengthOfTime) {
  auto request = suspension(running());
  request.timeout_ms = 1500;
  request.timeout_at = now() + 1500;
  expect_refused(request, ErrorCode::invalid_input);
  request.timeout_at.reset();
  suspend(request);
  EXPECT_EQ(seen().timeout_at, now() + 1500) << "by the store's clock";
  advance(1500);
  EXPECT_EQ(now_in().public_state, PublicState::failed);
  request = suspension(running(), {TimeoutOnly{}});
  request.timeout_ms = std::numeric_limits<std::uint64_t>::max();
  suspend(request);
  EXPECT_EQ(seen().timeout_at, std::numeric_limits<std::int64_t>::max());
}

TEST_P(Suspend, TakesTheTimeoutOfThePolicy) {
  suspend_new(single("k"), {.suspension_policy =
                                SuspensionPolicy{.default_timeout_ms = 500, .timeout_behavior = "expire"}});
  EXPECT_EQ(seen().timeout_at, now() + 500);
  advance(500);
  EXPECT_EQ(now_in().public_state, PublicState::expired);
}

TEST_P(Suspend, WhatIsAskedForComesBeforeThePolicy) {
  const ExecutionPolicy policy{
      .suspension_policy = SuspensionPolicy{.default_timeout_ms = 500, .timeout_behavior = "auto_resume"}};
  auto request = suspension(running(policy));
  request.timeout_at = now() + 700;
  request.timeout_behavior = TimeoutBehavior::cancel;
  suspend(request);
  EXPECT_EQ(seen().timeout_at, now() + 700);
  EXPECT_EQ(seen().timeout_behavior, TimeoutBehavior::cancel);
  // Only the missing one of the two comes from the policy; a default deadline counts for TimeoutOnly.
  suspend(suspension(running(policy), {TimeoutOnly{}}));
  EXPECT_EQ(seen().timeout_behavior, TimeoutBehavior::auto_resume);
  advance(500);
  EXPECT_EQ(claim_one().execution_id, id());
  suspend_new(single("k"), {.suspension_policy = SuspensionPolicy{}});
  EXPECT_EQ(seen().timeout_at, std::nullopt);
  EXPECT_EQ(seen().timeout_behavior, TimeoutBehavior::fail);
}

TEST_P(Suspend, ResumesByItselfAlikeWhoeverAskedForIt) {
  const auto suspended_by = [&](bool by_policy, TimeoutBehavior behavior) {
    const SuspensionPolicy words{.default_timeout_ms = 500,
                                 .timeout_behavior = std::string(enum_name(behavior))};
    const auto policy = by_policy ? ExecutionPolicy{.suspension_policy = words} : ExecutionPolicy{};
    auto request = suspension(running(policy), all_of({single("k", {"a"}), single("k", {"b"})}));
    if (!by_policy) request.timeout_at = now() + 500;
    if (!by_policy) request.timeout_behavior = behavior;
    suspend(request);
    deliver(signal(waitpoint(), "a"));
    advance(500);
    EXPECT_EQ(seen().close_reason, "timed_out_auto_resume");
    EXPECT_EQ(seen().resume_trigger, ResumeTrigger::timeout);
    const auto task = claim_one();
    EXPECT_EQ(task.execution_id, id());
    return shown(task.resume_signals);
  };
  for (const bool by_policy : {true, false}) {
    EXPECT_EQ(suspended_by(by_policy, TimeoutBehavior::auto_resume), Log{"a:none"})
        << "what has come, and nothing that nobody sent";
    EXPECT_EQ(suspended_by(by_policy, TimeoutBehavior::auto_resume_with_timeout_signal),
              (Log{"a:none", "timeout:none"}));
  }
}

// ---- history ----

TEST_P(Suspend, AgainAndAgain) {
  const auto first = suspend_new();
  deliver(signal(waitpoint()));
  const auto second = suspend(suspension(claim_one()));
  EXPECT_NE(second.suspension_id, first.suspension_id);
  EXPECT_EQ(seen().suspension_id, second.suspension_id);
  EXPECT_EQ(deliver(signal(waitpoint())).effect, SignalEffect::resume_condition_satisfied);
  EXPECT_EQ(seen().signals.size(), 2u);
  EXPECT_EQ(describe(id()).current_waitpoint, std::nullopt);
  EXPECT_EQ(must(CheckStore{}).found, 0u) << "the first is kept, and fits";
}

}  // namespace
}  // namespace flowfabric
