// Budgets and quota policies at the claim: who is held back, and when they go on (05 §6–§10, numbers of §14).
#include <algorithm>
#include <functional>

#include "model/partition.h"
#include "support/limit_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class AdmissionAtClaim : public LimitTest {
 protected:
  std::string at_limit(const BudgetId& id, const std::string& amounts) {
    return "budget ff:budget:" + id.to_string() + ":usage: tokens " + amounts;
  }
  std::string at_cap(const QuotaPolicyId& id, int cap) {
    return "quota " + id.to_string() + ": concurrency cap " + std::to_string(cap);
  }
  // A worker that waits is given the execution when the limit is cleared.
  void expect_woken(const ExecutionId& id, const std::function<void()>& clear) {
    auto waiting = engine().submit(ClaimTasks{.worker_id = kWorker, .wait_ms = 8000});
    clear();
    run_due();
    ASSERT_EQ(waiting.wait_for(std::chrono::milliseconds(4000)), std::future_status::ready);
    const auto tasks = waiting.get();
    ASSERT_TRUE(tasks && tasks->size() == 1);
    EXPECT_EQ(tasks->front().execution_id, id);
  }
  BudgetId used_up() {
    const auto id = make_budget(10);
    spend(id, 10);
    return id;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, AdmissionAtClaim, kStores, store_name);

TEST_P(AdmissionAtClaim, AUsedUpBudgetHoldsItsWorkBack) {  // 8, 47, 48
  const auto budget = used_up();
  const auto held = create_with(budget);
  tick(1);
  const auto other = create();
  EXPECT_EQ(claim_one().execution_id, other);
  expect_blocked_by_budget(held, at_limit(budget, "10/10"));
  EXPECT_EQ(claim().size(), 0u);
}

TEST_P(AdmissionAtClaim, WhatRunsGoesOn) {
  const auto budget = make_budget(10);
  create_with(budget);
  const auto task = claim_one();
  spend(budget, 10);
  EXPECT_EQ(spend(budget, 1), refused("tokens", 10, 10));
  renew(task);
  complete(task);
}

TEST_P(AdmissionAtClaim, AResetLetsItGo) {  // 52
  const auto budget = used_up();
  const auto first = create_with(budget);
  tick(1);
  const auto second = create_with(budget);
  tick(1);
  claim();
  tick(1);
  const auto third = create();
  must(ResetBudget{budget});
  run_due();
  EXPECT_EQ(state(first), expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(describe(first).blocking_detail, "");
  EXPECT_EQ(claim_all(), (std::vector{first, second, third})) << "in their old places";
}

TEST_P(AdmissionAtClaim, ARaisedLimitOrAReleaseLetsItGo) {
  const auto budget = make_budget(10);
  const auto spender = ExecutionId{0, budget.uuid};
  must(RecordSpend{budget, spender, {{"tokens", 10}}, ""});
  const auto id = create_with(budget);
  claim();
  EXPECT_FALSE(waits(id));
  must(SetBudgetLimits{budget, {{"tokens", 11}}, {}});
  run_due();
  EXPECT_TRUE(waits(id));
  must(SetBudgetLimits{budget, {{"tokens", 10}}, {}});
  claim();
  EXPECT_FALSE(waits(id));
  must(ReleaseBudget{budget, spender});
  run_due();
  EXPECT_TRUE(waits(id));
}

TEST_P(AdmissionAtClaim, AllItsBudgetsMustBeBelowTheirLimits) {  // 53
  const auto one = used_up();
  const auto other = used_up();
  const auto id = create({.policy = {.budget_ids = {other, one}}});
  claim();
  expect_blocked_by_budget(id, at_limit(one, "10/10"));
  must(ResetBudget{one});
  run_due();
  expect_blocked_by_budget(id, at_limit(other, "10/10"));
  must(ResetBudget{other});
  run_due();
  EXPECT_TRUE(waits(id));
}

TEST_P(AdmissionAtClaim, AllThatWaitAreLetGo) {  // 54
  const auto lasting = used_up();
  const auto budget = used_up();
  std::vector<ExecutionId> all;
  for (int i = 0; i < 150; ++i) create_with(lasting);
  tick(1);
  for (int i = 0; i < 150; ++i) all.push_back(create_with(budget));
  while (!claim().empty() || count()[PublicState::waiting] > 0) {
  }
  must(ResetBudget{budget});
  run_due();
  for (const auto& id : all) EXPECT_TRUE(waits(id));
  EXPECT_EQ(count()[PublicState::rate_limited], 150);
}

TEST_P(AdmissionAtClaim, AnUnknownLimitIsNone) {
  create({.policy = {.budget_ids = {budget_id(99)}, .quota_policy_id = quota_id(99)}});
  EXPECT_EQ(claim().size(), 1u);
}

TEST_P(AdmissionAtClaim, AFullWindowHoldsBackUntilItMoves) {
  const auto policy = make_quota({.window_seconds = 10, .max_requests_per_window = 2});
  std::vector<ExecutionId> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(create_with(policy));
    tick(1);
  }
  const auto tasks = claim({.max_tasks = 10});
  ASSERT_EQ(tasks.size(), 2u);
  const auto detail = "quota " + policy.to_string() + ": rate limit 2/2 per 10s window";
  expect_blocked_by_quota(ids[2], detail);
  expect_blocked_by_quota(ids[3], detail);
  for (const auto& task : tasks) complete(task);
  advance(9'999);
  EXPECT_FALSE(waits(ids[2]));
  advance(1);
  EXPECT_EQ(claim_all(), (std::vector{ids[2], ids[3]}));
}

TEST_P(AdmissionAtClaim, AFreedSlotLetsTheNextOneGo) {  // 39
  const auto policy = make_quota({.max_concurrent = 2});
  std::vector<ExecutionId> ids;
  for (int i = 0; i < 4; ++i) {
    ids.push_back(create_with(policy));
    tick(1);
  }
  auto tasks = claim({.max_tasks = 10});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(quota(policy).active, 2u);
  expect_blocked_by_quota(ids[2], at_cap(policy, 2));
  complete(tasks[0]);
  EXPECT_EQ(quota(policy).active, 1u);
  run_due();
  EXPECT_TRUE(waits(ids[2]));
  EXPECT_FALSE(waits(ids[3]));
  EXPECT_EQ(claim_one().execution_id, ids[2]);
  EXPECT_EQ(quota(policy).active, 2u);
}

TEST_P(AdmissionAtClaim, EveryEndOfALeaseFreesTheSlot) {  // 7.4
  const auto policy = make_quota({.max_concurrent = 1});
  const ExecutionPolicy limited{.retry_policy = RetryPolicy{.backoff = FixedBackoff{1000}},
                                .quota_policy_id = policy};
  const auto expect_freed = [&](const char* how) { EXPECT_EQ(quota(policy).active, 0u) << how; };
  complete(running(limited));
  expect_freed("complete");
  fail(running(limited), "boom", "permanent");
  expect_freed("fail");
  const auto retried = running(limited);
  fail(retried);
  expect_freed("retry");
  cancel(retried.execution_id);
  const auto delayed = running(limited);
  delay(delayed, now() + kHour);
  expect_freed("delay");
  cancel(delayed.execution_id);
  cancel(running(limited).execution_id);
  expect_freed("cancel");
  const auto revoked = running(limited);
  must(RevokeLease{.execution_id = revoked.execution_id, .reason = "enough"});
  expect_freed("revoke");
  cancel(revoked.execution_id);
  const auto expired = running(limited);
  advance(kLeaseTtl);
  expect_freed("expiry");
  EXPECT_EQ(claim_one().execution_id, expired.execution_id) << "reclaimed";
  EXPECT_EQ(quota(policy).active, 1u);
}

TEST_P(AdmissionAtClaim, ALongRunKeepsItsSlot) {  // 45
  const auto policy = make_quota({.window_seconds = 1, .max_concurrent = 1});
  const auto task = running(ExecutionPolicy{.quota_policy_id = policy});
  const auto next = create_with(policy);
  claim();
  for (int i = 0; i < 10; ++i) {
    advance(20'000);
    renew(task);
  }
  EXPECT_EQ(quota(policy).active, 1u);
  EXPECT_FALSE(waits(next));
}

TEST_P(AdmissionAtClaim, ALostLeaseWaitsForItsLimitToo) {
  const auto policy = make_quota({.max_concurrent = 1});
  const auto task = running(ExecutionPolicy{.quota_policy_id = policy});
  const auto next = create_with(policy);
  claim();
  advance(kLeaseTtl);
  const auto other = claim_one();
  EXPECT_EQ(other.execution_id, next) << "the first of those that wait; lost ones come after them";
  EXPECT_EQ(claim().size(), 0u);
  EXPECT_EQ(describe(task.execution_id).blocking_detail, at_cap(policy, 1));
  EXPECT_EQ(state(task.execution_id).lifecycle_phase, LifecyclePhase::active);
  complete(other);
  run_due();
  EXPECT_EQ(claim_one().execution_id, task.execution_id);
}

TEST_P(AdmissionAtClaim, AGrantTakesTheSlotAndItsExpiryFreesIt) {
  const auto policy = make_quota({.max_concurrent = 1});
  const auto id = create_with(policy);
  const auto grant = must(ClaimForWorker{.lane_id = "default", .terms = {.worker_id = kWorker}});
  ASSERT_TRUE(grant);
  EXPECT_EQ(quota(policy).active, 1u);
  tick(1);
  const auto next = create_with(policy);
  expect_error(IssueClaimGrant{.execution_id = next, .lane_id = "default", .terms = {.worker_id = kWorker}},
               ErrorCode::concurrency_limit_exceeded, at_cap(policy, 1));
  expect_blocked_by_quota(next, at_cap(policy, 1));
  advance(60'001);
  EXPECT_EQ(quota(policy).active, 0u);
  EXPECT_TRUE(waits(id));
  EXPECT_TRUE(waits(next));
  EXPECT_EQ(claim_one().execution_id, id);
  EXPECT_EQ(quota(policy).active, 1u);
}

TEST_P(AdmissionAtClaim, NothingIsTakenForWhatIsNotHandedOut) {  // 42
  const auto policy = make_quota({.max_requests_per_window = 5, .max_concurrent = 5});
  create({.policy = {.quota_policy_id = policy}, .execution_deadline_at = now() + 10});
  tick(10);
  EXPECT_EQ(claim().size(), 0u);
  EXPECT_EQ(quota(policy).active + quota(policy).admitted_in_window, 0u);
}

TEST_P(AdmissionAtClaim, AnOperatorMayTakeItAnyway) {
  const auto budget = used_up();
  const auto id = create_with(budget);
  EXPECT_EQ(must(IssueGrantAndClaim{.execution_id = id, .lane_id = "default", .lease_duration_ms = 10'000})
                .execution_id,
            id);
}

TEST_P(AdmissionAtClaim, LimitsOfFlowLaneAndTenantCount) {  // §6
  const auto scoped = [&](int number, const char* type, const std::string& scope) {
    auto request = tokens(budget_id(number), 10);
    request.scope_type = type;
    request.scope_id = scope;
    must(request);
    spend(budget_id(number), 10);
  };
  const FlowId flow{budget_id(50).uuid};
  scoped(91, "lane", "fast");
  scoped(92, "namespace", "acme");
  scoped(93, "flow", flow.to_string());
  const auto in_lane = create({.lane_id = "fast"});
  const auto of_tenant = create({.namespace_ = "acme"});
  const auto submitted = must(SubmitFlow{.flow_id = flow, .flow_kind = "k", .nodes = {{.name = "a"}}});
  const auto in_flow = submitted.executions.at("a");
  remember(in_flow);
  const auto free = create({.namespace_ = "globex"});
  EXPECT_EQ(claim_all({.lanes = {"default", "fast"}}), std::vector{free});
  expect_blocked_by_budget(in_lane, at_limit(budget_id(91), "10/10"));
  expect_blocked_by_budget(of_tenant, at_limit(budget_id(92), "10/10"));
  expect_blocked_by_budget(in_flow, at_limit(budget_id(93), "10/10"));
}

TEST_P(AdmissionAtClaim, TheFirstLimitInTheWayIsNamed) {  // §6: its own by id, then flow, lane and tenant
  const FlowId flow{budget_id(50).uuid};
  const auto used_up_for = [&](int number, const char* type, const std::string& scope) {
    auto request = tokens(budget_id(number), 10);
    request.scope_type = type;
    request.scope_id = scope;
    must(request);
    spend(budget_id(number), 10);
  };
  used_up_for(91, "tenant", "acme");
  used_up_for(92, "lane", "fast");
  used_up_for(93, "flow", flow.to_string());
  for (const int own : {94, 95}) {
    must(tokens(budget_id(own), 10));
    spend(budget_id(own), 10);
  }
  const CreateExecution execution{.lane_id = "fast",
                                  .policy = {.budget_ids = {budget_id(95), budget_id(94)}}};
  const auto id = must(SubmitFlow{.flow_id = flow,
                                  .flow_kind = "k",
                                  .namespace_ = "acme",
                                  .nodes = {{.name = "a", .execution = execution}}})
                      .executions.at("a");
  remember(id);
  for (const int next : {94, 95, 93, 92, 91}) {
    EXPECT_TRUE(claim({.lanes = {"fast"}}).empty());
    expect_blocked_by_budget(id, at_limit(budget_id(next), "10/10"));
    must(ResetBudget{budget_id(next)});
    run_due();
  }
  EXPECT_EQ(claim_one({.lanes = {"fast"}}).execution_id, id);
}

TEST_P(AdmissionAtClaim, LimitsAreAttachedAndDetached) {
  const auto budget = used_up();
  const auto policy = make_quota({.max_concurrent = 1});
  must(AttachBudget{budget, "lane", "default"});
  expect_error(AttachBudget{budget, "lane", "default"}, ErrorCode::budget_attach_conflict);
  expect_error(AttachBudget{budget_id(99), "lane", "default"}, ErrorCode::budget_not_found);
  expect_error(AttachQuotaPolicy{quota_id(99), "lane", "default"}, ErrorCode::quota_policy_not_found);
  expect_error(AttachBudget{budget, "lane", ""}, ErrorCode::invalid_budget_scope);
  const auto id = create();
  claim();
  expect_blocked_by_budget(id, at_limit(budget, "10/10"));
  must(DetachBudget{budget, "lane", "default"});
  must(DetachBudget{budget, "lane", "default"});
  run_due();
  EXPECT_TRUE(waits(id));

  must(AttachQuotaPolicy{policy, "tenant", ""});
  expect_error(AttachQuotaPolicy{policy, "tenant", ""}, ErrorCode::quota_attach_conflict);
  claim_one();
  const auto next = create();
  claim();
  expect_blocked_by_quota(next, at_cap(policy, 1));
  must(DetachQuotaPolicy{policy, "tenant", ""});
  run_due();
  EXPECT_TRUE(waits(next));
}

TEST_P(AdmissionAtClaim, LimitsAreAttachedToAnExecution) {
  const auto budget = used_up();
  const auto policy = make_quota({.max_concurrent = 1});
  const auto id = create();
  must(AttachBudget{budget, "execution", id.to_string()});
  expect_error(AttachBudget{budget, "execution", id.to_string()}, ErrorCode::budget_attach_conflict);
  expect_error(AttachBudget{budget, "execution", ExecutionId{0, budget.uuid}.to_string()},
               ErrorCode::execution_not_found);
  claim();
  expect_blocked_by_budget(id, at_limit(budget, "10/10"));
  must(DetachBudget{budget, "execution", id.to_string()});
  run_due();
  EXPECT_TRUE(waits(id));
  must(AttachQuotaPolicy{policy, "execution", id.to_string()});
  expect_error(AttachQuotaPolicy{make_quota({}), "execution", id.to_string()},
               ErrorCode::quota_attach_conflict);
  claim_one();
  EXPECT_EQ(quota(policy).active, 1u);
}

TEST_P(AdmissionAtClaim, AFlowMayTakeNoMoreMembers) {
  const FlowId flow{budget_id(50).uuid};
  must(CreateFlow{.flow_id = flow, .flow_kind = "k"});
  auto request = tokens(budget_id(93), 10);
  request.scope_type = "flow";
  request.scope_id = flow.to_string();
  request.on_hard_limit = "deny_child";
  must(request);
  int members = 60;
  const auto member = [&] {
    return create({.execution_id = ExecutionId{partition_of(flow.uuid, 256), budget_id(++members).uuid}});
  };
  must(AddFlowMember{.flow_id = flow, .execution_id = member()});
  spend(budget_id(93), 10);
  expect_error(AddFlowMember{.flow_id = flow, .execution_id = member()}, ErrorCode::budget_exceeded,
               at_limit(budget_id(93), "10/10"));
  must(ResetBudget{budget_id(93)});
  must(AddFlowMember{.flow_id = flow, .execution_id = member()});
}

TEST_P(AdmissionAtClaim, WhatIsHeldBackMayBeCancelledAndExpire) {  // 57, 58
  const auto budget = used_up();
  const auto cancelled = create_with(budget);
  const auto late = create({.policy = {.budget_ids = {budget}}, .execution_deadline_at = now() + 1000});
  claim();
  cancel(cancelled);
  advance(1000);
  EXPECT_EQ(describe(late).state.public_state, PublicState::expired);
  must(ResetBudget{budget});
  run_due();
  EXPECT_EQ(claim().size(), 0u);
}

TEST_P(AdmissionAtClaim, AnOperatorsHoldIsNotLifted) {  // 49, 55
  const auto budget = used_up();
  const auto id = create_with(budget);
  claim();
  expect_error(UnblockExecution{id, BlockingReason::waiting_for_quota}, ErrorCode::execution_not_eligible);
  must(HoldExecution{.execution_id = id});
  must(ResetBudget{budget});
  run_due();
  EXPECT_EQ(state(id).blocking_reason, BlockingReason::paused_by_operator);
}

TEST_P(AdmissionAtClaim, WhatSomebodyBlockedForABudgetIsLookedAtSoon) {
  const auto budget = used_up();
  const auto limited = create_with(budget);
  const auto free = create();
  for (const auto& id : {limited, free})
    must(BlockExecution{id, BlockingReason::waiting_for_budget, "because"});
  advance(4'999);
  EXPECT_FALSE(waits(free));
  advance(1);
  EXPECT_TRUE(waits(free));
  expect_blocked_by_budget(limited, at_limit(budget, "10/10"));
  must(ResetBudget{budget});
  run_due();
  EXPECT_TRUE(waits(limited));
}

TEST_P(AdmissionAtClaim,
       TheNearestLimitIsNamedFirst) {  // §6: its own, then of the flow, the lane, the tenant
  const FlowId flow{budget_id(50).uuid};
  // The ids go the other way.
  const std::vector<std::tuple<int, std::string, std::string>> scopes{
      {97, "flow", flow.to_string()}, {96, "lane", "fast"}, {95, "tenant", "acme"}};
  for (const auto& [number, type, scope] : scopes) {
    auto request = tokens(budget_id(number), 10);
    request.scope_type = type;
    request.scope_id = scope;
    must(request);
    spend(budget_id(number), 10);
  }
  must(tokens(budget_id(98), 10));
  spend(budget_id(98), 10);
  SubmitFlow request{.flow_id = flow, .flow_kind = "k", .namespace_ = "acme"};
  request.nodes = {
      {.name = "a", .execution = {.lane_id = "fast", .policy = {.budget_ids = {budget_id(98)}}}}};
  const auto id = must(request).executions.at("a");
  remember(id);
  claim({.lanes = {"fast"}});
  for (const int number : {98, 97, 96, 95}) {
    expect_blocked_by_budget(id, at_limit(budget_id(number), "10/10"));
    must(ResetBudget{budget_id(number)});
    run_due();
  }
  EXPECT_EQ(claim_one({.lanes = {"fast"}}).execution_id, id);
}

TEST_P(AdmissionAtClaim, QuotaPoliciesOfFlowAndLaneCount) {  // §6
  const FlowId flow{budget_id(50).uuid};
  const auto of_flow = make_quota({.max_concurrent = 1});
  const auto of_lane = make_quota({.max_concurrent = 2});
  must(AttachQuotaPolicy{of_flow, "flow", flow.to_string()});
  must(AttachQuotaPolicy{of_lane, "lane", "fast"});
  SubmitFlow request{.flow_id = flow, .flow_kind = "k"};
  for (const char* name : {"a", "b"})
    request.nodes.push_back({.name = name, .execution = {.lane_id = "fast"}});
  for (const auto& [name, id] : must(request).executions) remember(id);
  tick(1);
  for (int i = 0; i < 2; ++i) create({.lane_id = "fast"});
  const auto tasks = claim({.lanes = {"fast"}, .max_tasks = 10});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(std::ranges::count(tasks, flow, &ClaimedTask::flow_id), 1);
  EXPECT_EQ(quota(of_flow).active, 1u);
  EXPECT_EQ(quota(of_lane).active, 2u);
  EXPECT_EQ(count("fast")[PublicState::rate_limited], 2);
}

TEST_P(AdmissionAtClaim, WhoComesBackInTheSameWindowNeedsOnlyASlot) {  // §7.4
  const auto policy = make_quota({.window_seconds = 60, .max_requests_per_window = 2, .max_concurrent = 1});
  const auto first = running(ExecutionPolicy{.quota_policy_id = policy});
  delay(first, now() + 1000);
  tick(1);
  const auto second = running(ExecutionPolicy{.quota_policy_id = policy});
  EXPECT_EQ(quota(policy).admitted_in_window, 2u) << "the window is full";
  advance(1000);
  EXPECT_TRUE(claim().empty());
  expect_blocked_by_quota(first.execution_id, at_cap(policy, 1));
  complete(second);
  run_due();
  EXPECT_EQ(claim_one().execution_id, first.execution_id);
  EXPECT_EQ(quota(policy).admitted_in_window, 2u) << "it was counted before";
  EXPECT_EQ(quota(policy).active, 1u);
}

TEST_P(AdmissionAtClaim, NothingHappensToWhatNobodyPicks) {  // §5, the table of states
  const auto budget = make_budget(10);
  const auto waiting = create_with(budget);
  const auto delayed = create({.policy = {.budget_ids = {budget}}, .delay_until = now() + 1000});
  spend(budget, 10);
  run_due();
  EXPECT_TRUE(waits(waiting));
  EXPECT_EQ(state(delayed).public_state, PublicState::delayed);
  advance(1000);
  EXPECT_TRUE(waits(delayed));
  EXPECT_TRUE(claim({.max_tasks = 2}).empty());
  expect_blocked_by_budget(waiting, at_limit(budget, "10/10"));
  expect_blocked_by_budget(delayed, at_limit(budget, "10/10"));
}

TEST_P(AdmissionAtClaim, AGrantIsNotCheckedAgain) {  // §5, the table of states
  const auto budget = make_budget(10);
  const auto id = create_with(budget);
  must(IssueClaimGrant{.execution_id = id, .lane_id = "default", .terms = {.worker_id = kWorker}});
  spend(budget, 10);
  EXPECT_EQ(must(ClaimExecution{.execution_id = id, .use = {.worker_id = kWorker}}).execution_id, id);
}

TEST_P(AdmissionAtClaim, AnUnlimitedPolicyRecordsNothing) {  // 36
  const auto policy = make_quota({});
  running(ExecutionPolicy{.quota_policy_id = policy});
  EXPECT_EQ(quota(policy).admitted_in_window + quota(policy).active, 0u);
}

// A limit that clears wakes parked claims; no interval has to pass.
TEST_P(AdmissionAtClaim, AWaitingWorkerIsWokenWhenALimitClears) {
  const auto budget = used_up();
  const auto policy = make_quota({.max_concurrent = 1});
  const auto task = running(ExecutionPolicy{.quota_policy_id = policy});
  const auto by_budget = create_with(budget);
  const auto by_quota = create_with(policy);
  EXPECT_TRUE(claim({.max_tasks = 2}).empty());
  expect_woken(by_budget, [&] { must(ResetBudget{budget}); });
  expect_woken(by_quota, [&] { complete(task); });
}

}  // namespace
}  // namespace flowfabric
