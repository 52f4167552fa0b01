// The effects of a budget's limits on the work that spends it (05 §5, §15): actions, reservations, the
// history of breaches, and what becomes of a budget that is deleted.
#include "support/limit_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class BudgetActions : public LimitTest {
 protected:
  BudgetId make(CreateBudget request) {
    request.budget_id = budget_id(++made_);
    EXPECT_TRUE(must(request).created);
    return request.budget_id;
  }
  BudgetId make_with(const std::string& on_hard, const std::string& on_soft = "warn",
                     std::uint64_t soft = 0) {
    auto request = tokens({}, 100, soft);
    request.on_hard_limit = on_hard;
    request.on_soft_limit = on_soft;
    return make(std::move(request));
  }
  BudgetId make_reserving(std::uint64_t hard, std::uint64_t reserve) {
    auto request = tokens({}, hard);
    request.reserve_per_claim = {{"tokens", reserve}};
    return make(std::move(request));
  }
  UsageReport report(const BudgetId& id, std::uint64_t amount, const ExecutionId& by) {
    return must(
        ReportUsage{.budget_id = id, .dimensions = {"tokens"}, .deltas = {amount}, .execution_id = by});
  }
  ClaimedTask running_with(const BudgetId& id, ExecutionPolicy policy = {}) {
    policy.budget_ids = {id};
    return running(std::move(policy));
  }
  Amounts reserved(const BudgetId& id) { return status(id).reserved; }
  static Amounts just(std::uint64_t amount) { return {{"tokens", amount}}; }

 private:
  int made_{100};
};
INSTANTIATE_TEST_SUITE_P(EveryStore, BudgetActions, kStores, store_name);

// ---- fail ----

TEST_P(BudgetActions, FailIsLeftToTheWorkerByDefault) {
  const auto id = make_with("fail");
  const auto task = running_with(id);
  EXPECT_EQ(report(id, 101, task.execution_id), refused("tokens", 0, 100));
  advance(kLeaseTtl - 1);
  EXPECT_EQ(state(task.execution_id), expected::running());
  complete(task);
}

// An engine of its own, which stops attempts that go on after a breach.
class BudgetGrace : public BudgetActions {
 protected:
  static constexpr std::int64_t kGrace = 5000;

  template <class Request>
  typename Request::Answer ask(Request request) {
    auto answer = strict_.call(std::move(request));
    if (!answer) throw std::runtime_error(answer.error().to_string());
    return *std::move(answer);
  }
  // An attempt that has passed the limit of a budget whose action is `fail`.
  ClaimedTask broken(const ExecutionPolicy& policy = {}) {
    ask(tokens(budget_id(1), 100));
    ask(CreateExecution{.execution_kind = "k", .policy = policy});
    auto task = ask(ClaimTasks{.worker_id = kWorker, .lease_ttl_ms = kLeaseTtl}).front();
    const ReportUsage report{.budget_id = budget_id(1),
                             .dimensions = {"tokens"},
                             .deltas = {101},
                             .execution_id = task.execution_id};
    EXPECT_EQ(ask(report), refused("tokens", 0, 100));
    return task;
  }
  ExecutionSnapshot after(const ClaimedTask& task, std::int64_t ms) {
    tick(ms);
    EXPECT_TRUE(strict_.run_due());
    return ask(DescribeExecution{task.execution_id});
  }

 private:
  TestStore own_{GetParam()};
  Engine strict_{open(own_.url(), {.budget_grace = std::chrono::milliseconds(kGrace)})};
};
INSTANTIATE_TEST_SUITE_P(EveryStore, BudgetGrace, kStores, store_name);

TEST_P(BudgetGrace, AnAttemptThatGoesOnIsFailed) {
  const auto task = broken({.retry_policy = RetryPolicy{.max_retries = 0}});
  EXPECT_EQ(after(task, kGrace - 1).state, expected::running());
  const auto found = after(task, 1);
  EXPECT_EQ(found.state.terminal_outcome, TerminalOutcome::failed);
  EXPECT_EQ(found.failure_reason, "budget_exceeded");
}

TEST_P(BudgetGrace, ItIsRetriedLikeAnyOther) {
  const auto task = broken({.retry_policy = RetryPolicy{.max_retries = 1}});
  EXPECT_EQ(after(task, kGrace).state.blocking_reason, BlockingReason::waiting_for_retry_backoff);
}

TEST_P(BudgetGrace, AWorkerThatEndsItInTimeHasItsWay) {
  const auto task = broken();
  after(task, kGrace - 1);
  ask(completion(task, "saved"));
  EXPECT_EQ(after(task, kGrace).state.terminal_outcome, TerminalOutcome::success);
}

TEST_P(BudgetGrace, AnEarlierTimeoutComesFirst) {
  ExecutionPolicy policy{.retry_policy = RetryPolicy{.max_retries = 0}};
  policy.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = 1000};
  const auto task = broken(policy);
  EXPECT_EQ(after(task, 1000).failure_reason, "attempt_timeout");
}

TEST_P(BudgetGrace, APauseEndsIt) {
  const auto task = broken();
  ask(postponement(task, now() + 10));
  after(task, 10);
  const auto again = ask(ClaimTasks{.worker_id = kWorker, .lease_ttl_ms = kLeaseTtl}).front();
  EXPECT_EQ(after(again, kGrace).state, expected::running());
}

TEST_P(BudgetGrace, APauseLeavesTheAttemptItsOwnTimeout) {
  ExecutionPolicy policy{.retry_policy = RetryPolicy{.max_retries = 0}};
  policy.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = 20'000};
  const auto task = broken(policy);
  after(task, 1000);
  ask(postponement(task, now() + 10));
  after(task, 10);
  const auto again = ask(ClaimTasks{.worker_id = kWorker, .lease_ttl_ms = kLeaseTtl}).front();
  EXPECT_EQ(again.attempt_timeout_at, now() + 19'000) << "time has run until the pause, and not in it";
  EXPECT_EQ(after(again, 18'999).state, expected::running());
  EXPECT_EQ(after(again, 1).failure_reason, "attempt_timeout");
}

TEST_P(BudgetGrace, APauseAfterASecondBreachLeavesItToo) {
  ExecutionPolicy policy{.retry_policy = RetryPolicy{.max_retries = 0}};
  policy.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = 20'000};
  const auto task = broken(policy);
  after(task, 1000);
  ask(ReportUsage{.budget_id = budget_id(1),
                  .dimensions = {"tokens"},
                  .deltas = {101},
                  .execution_id = task.execution_id});
  ask(postponement(task, now()));
  after(task, 0);
  const auto again = ask(ClaimTasks{.worker_id = kWorker, .lease_ttl_ms = kLeaseTtl}).front();
  EXPECT_EQ(again.attempt_timeout_at, now() + 19'000);
}

// ---- suspend ----

TEST_P(BudgetActions, SuspendPausesTheAttemptUntilThereIsMore) {
  const auto id = make_with("suspend");
  const auto task = running_with(id);
  EXPECT_EQ(report(id, 60, task.execution_id), counted());
  EXPECT_EQ(report(id, 60, task.execution_id), refused("tokens", 60, 100));
  expect_blocked_by_budget(task.execution_id, "paused_by_budget " + id.to_string() + ": tokens");
  EXPECT_EQ(lease_log(task.execution_id).back(), "1 released paused_by_budget");
  expect_refused(completion(task), ErrorCode::execution_not_active);
  advance(kHour);
  EXPECT_TRUE(claim().empty()) << "nothing has changed";

  must(SetBudgetLimits{id, just(200), {}});
  run_due();
  const auto again = claim_one();
  EXPECT_EQ(again.execution_id, task.execution_id);
  EXPECT_EQ(again.attempt_index, task.attempt_index) << "the same attempt goes on";
  EXPECT_EQ(report(id, 60, task.execution_id), counted());
  complete(again);
}

TEST_P(BudgetActions, AResetResumesWhatWasPaused) {
  auto request = tokens({}, 100);
  request.on_hard_limit = "suspend";
  request.reset_interval_ms = 10'000;
  const auto id = make(request);
  const auto task = running_with(id);
  report(id, 101, task.execution_id);
  advance(9999);
  EXPECT_TRUE(claim().empty());
  advance(1);
  EXPECT_EQ(claim_one().execution_id, task.execution_id);
}

TEST_P(BudgetActions, OnlyTheOneThatSpendsIsPaused) {
  const auto id = make_with("suspend");
  const auto other = running_with(id);
  const auto task = running_with(id);
  report(id, 101, task.execution_id);
  EXPECT_EQ(state(other.execution_id), expected::running());
  // A report that names no execution pauses none.
  EXPECT_EQ(spend(id, 101), refused("tokens", 0, 100));
  EXPECT_EQ(state(other.execution_id), expected::running());
  complete(other);
}

TEST_P(BudgetActions, ASoftLimitHasAnActionToo) {
  const auto id = make_with("fail", "suspend", 50);
  const auto task = running_with(id);
  EXPECT_EQ(report(id, 60, task.execution_id), over_soft("tokens", 60, 50));
  expect_blocked_by_budget(task.execution_id, "paused_by_budget " + id.to_string() + ": tokens");
}

TEST_P(BudgetActions, AnAdvisoryBudgetDoesNothing) {
  auto request = tokens({}, 100);
  request.on_hard_limit = "suspend";
  request.enforcement_mode = "advisory";
  const auto id = make(request);
  const auto task = running_with(id);
  EXPECT_EQ(report(id, 101, task.execution_id), over_soft("tokens", 101, 100));
  EXPECT_EQ(state(task.execution_id), expected::running());
}

// ---- reroute_fallback ----

TEST_P(BudgetActions, RerouteGoesOnWithTheNextTier) {
  const auto id = make_with("reroute_fallback");
  ExecutionPolicy policy;
  policy.fallback_policy = FallbackPolicy{{{.provider = "small", .model = "m", .timeout_ms = {}}}};
  const auto task = running_with(id, policy);
  EXPECT_EQ(report(id, 101, task.execution_id), refused("tokens", 0, 100));
  EXPECT_EQ(attempt_log(task.execution_id), Log{"0 initial ended_failure budget_exceeded"});
  const auto next = claim_one();
  EXPECT_EQ(next.fallback, (Fallback{0, "small", "m"}));
  // There is no further tier, so the attempt continues.
  EXPECT_EQ(report(id, 101, next.execution_id), refused("tokens", 0, 100));
  EXPECT_EQ(state(next.execution_id), expected::running());
}

TEST_P(BudgetActions, RerouteWithoutTiersChangesNothing) {
  const auto id = make_with("reroute_fallback");
  const auto task = running_with(id);
  report(id, 101, task.execution_id);
  EXPECT_EQ(state(task.execution_id), expected::running());
  EXPECT_TRUE(must(ReadBudget{id}).breach_count == 1u);
}

// ---- cancel_pending, close_scope, deny_child ----

TEST_P(BudgetActions, PendingWorkIsCancelled) {
  const auto id = make_with("cancel_pending");
  const auto running_one = running_with(id);
  const auto first = create_with(id);
  tick(1);
  const auto free_one = create();
  EXPECT_EQ(spend(id, 100), counted());
  EXPECT_EQ(claim_all(), std::vector{free_one}) << "the next candidate is tried";
  EXPECT_EQ(state(first).terminal_outcome, TerminalOutcome::cancelled);
  const auto detail = "budget ff:budget:" + id.to_string() + ":usage: tokens 100/100";
  EXPECT_EQ(describe(first).cancellation_reason, detail);
  EXPECT_EQ(outcomes(first), std::vector{TerminalOutcome::cancelled});
  EXPECT_EQ(state(running_one.execution_id), expected::running());
}

TEST_P(BudgetActions, ACancelledMemberSkipsWhatFollowsIt) {
  const auto id = make_with("cancel_pending");
  SubmitFlow flow{.flow_kind = "chain"};
  flow.nodes = {{.name = "a"}, {.name = "b"}};
  for (auto& node : flow.nodes) node.execution.policy.budget_ids = {id};
  flow.edges = {{.from = "a", .to = "b"}};
  const auto submitted = must(flow);
  spend(id, 100);
  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(state(submitted.executions.at("a")).terminal_outcome, TerminalOutcome::cancelled);
  EXPECT_EQ(state(submitted.executions.at("b")).terminal_outcome, TerminalOutcome::skipped);
}

TEST_P(BudgetActions, ASoftLimitMayCloseTheScope) {
  const auto id = make_with("fail", "close_scope", 50);
  const auto waiting = create_with(id);
  EXPECT_EQ(spend(id, 50), counted());
  EXPECT_EQ(claim_one().execution_id, waiting);
  const auto next = create_with(id);
  spend(id, 1);
  EXPECT_TRUE(claim().empty());
  expect_blocked_by_budget(next, "budget ff:budget:" + id.to_string() + ":usage: tokens 51/50");
  must(ResetBudget{id});
  run_due();
  EXPECT_EQ(claim_one().execution_id, next);
}

// ---- reservations ----

TEST_P(BudgetActions, WorkIsHandedOutAsFarAsItCanBeReserved) {
  const auto id = make_reserving(100, 40);
  const auto one = running_with(id);
  const auto two = running_with(id);
  const auto three = create_with(id);
  EXPECT_EQ(reserved(id), just(80));
  EXPECT_EQ(status(id).usage, Amounts{});
  EXPECT_TRUE(claim().empty()) << "20 are left, and 40 are needed";
  expect_blocked_by_budget(three, "budget ff:budget:" + id.to_string() + ":usage: tokens 80/100");

  // One has spent less than was set aside; the rest is free when it ends.
  EXPECT_EQ(report(id, 10, one.execution_id), counted());
  EXPECT_EQ(reserved(id), just(70));
  EXPECT_EQ(status(id).usage, just(10));
  complete(one);
  EXPECT_EQ(reserved(id), just(40));
  run_due();
  EXPECT_EQ(claim_one().execution_id, three);
  EXPECT_EQ(reserved(id), just(80));
}

TEST_P(BudgetActions, WhatIsReservedIsNotForOthers) {
  const auto id = make_reserving(100, 40);
  const auto task = running_with(id);
  EXPECT_EQ(spend(id, 61), refused("tokens", 0, 100));
  EXPECT_EQ(spend(id, 60), counted());
  EXPECT_EQ(report(id, 41, task.execution_id), refused("tokens", 60, 100));
  EXPECT_EQ(report(id, 30, task.execution_id), counted());
  EXPECT_EQ(must(RecordSpend{id, task.execution_id, just(10), "k"}), counted());
  EXPECT_EQ(status(id).usage, just(100));
  EXPECT_EQ(reserved(id), Amounts{});
  EXPECT_EQ(must(ListSpending{id}).spendings, (std::vector<Spending>{{task.execution_id, just(10)}}));
  complete(task);
}

TEST_P(BudgetActions, EveryEndOfALeaseGivesTheReservationBack) {
  const auto id = make_reserving(100, 100);
  const auto ends = std::vector<std::function<void(const ClaimedTask&)>>{
      [&](const ClaimedTask& task) { fail(task); },
      [&](const ClaimedTask& task) { delay(task, now() + kHour); },
      [&](const ClaimedTask& task) { cancel(task.execution_id); },
      [&](const ClaimedTask&) { advance(kLeaseTtl); },
  };
  for (const auto& end : ends) {
    const auto task = running_with(id);
    EXPECT_EQ(reserved(id), just(100));
    end(task);
    EXPECT_EQ(reserved(id), Amounts{});
    call(CancelExecution{.execution_id = task.execution_id, .source = "operator_override"});
  }
}

TEST_P(BudgetActions, AReleaseLeavesTheReservation) {
  const auto id = make_reserving(100, 40);
  const auto task = running_with(id);
  must(RecordSpend{id, task.execution_id, just(10), "k"});
  must(ReleaseBudget{id, task.execution_id});
  EXPECT_EQ(status(id).usage, just(0));
  EXPECT_EQ(reserved(id), just(30));
  must(ResetBudget{id});
  EXPECT_EQ(reserved(id), just(30));
  complete(task);
  EXPECT_EQ(reserved(id), Amounts{});
}

TEST_P(BudgetActions, AReservationMustBePossible) {
  for (const auto& bad : {just(101), just(0), Amounts{{"cost", 1}}, Amounts{{"", 1}}}) {
    auto request = tokens(budget_id(1), 100);
    request.reserve_per_claim = bad;
    expect_error(request, ErrorCode::invalid_input);
  }
  expect_error(ReadBudget{budget_id(1)}, ErrorCode::budget_not_found);
}

// ---- history ----

TEST_P(BudgetActions, BreachesAreRemembered) {
  const auto id = make_budget(100, 50);
  const auto task = running_with(id);
  EXPECT_EQ(must(ListBreaches{id}), BreachHistory{});
  spend(id, 60);
  tick(10);
  EXPECT_EQ(report(id, 50, task.execution_id), refused("tokens", 60, 100));
  const BudgetBreach soft{.number = 1,
                          .at = kStart,
                          .kind = UsageOutcome::soft_breach,
                          .dimension = "tokens",
                          .reported = 60,
                          .usage = 60,
                          .limit = 50,
                          .execution_id = {}};
  const BudgetBreach hard{.number = 2,
                          .at = now(),
                          .kind = UsageOutcome::hard_breach,
                          .dimension = "tokens",
                          .reported = 50,
                          .usage = 60,
                          .limit = 100,
                          .execution_id = task.execution_id};
  EXPECT_EQ(must(ListBreaches{id}).breaches, (std::vector{hard, soft}));
  must(ResetBudget{id});
  EXPECT_EQ(must(ListBreaches{id}).breaches.size(), 2u) << "a reset forgets nothing";
  expect_error(ListBreaches{budget_id(99)}, ErrorCode::budget_not_found);
}

TEST_P(BudgetActions, TheLatestBreachesAreKept) {
  const auto id = make_budget(1);
  for (int i = 0; i < 103; ++i) spend(id, 2);
  const auto breaches = must(ListBreaches{id}).breaches;
  ASSERT_EQ(breaches.size(), kKeptBreaches);
  EXPECT_EQ(breaches.front().number, 103u);
  EXPECT_EQ(breaches.back().number, 4u);
}

// ---- list and delete ----

TEST_P(BudgetActions, AreListedPageByPage) {
  std::set<BudgetId> made;
  for (int i = 0; i < 5; ++i) made.insert(make_budget(10));
  std::set<BudgetId> seen;
  ListBudgets request{.cursor = {}, .limit = 2};
  for (;;) {
    const auto page = must(request);
    EXPECT_LE(page.budgets.size(), 2u);
    for (const auto& budget : page.budgets) {
      EXPECT_TRUE(seen.insert(budget.budget_id).second) << "listed twice";
      EXPECT_EQ(budget, status(budget.budget_id));
    }
    if (!page.next_cursor) break;
    request.cursor = page.next_cursor;
  }
  EXPECT_EQ(seen, made);
  expect_error(ListBudgets{.cursor = {}, .limit = 0}, ErrorCode::invalid_input);
  expect_error(ListBudgets{.cursor = {}, .limit = 1001}, ErrorCode::invalid_input);
}

TEST_P(BudgetActions, ADeletedBudgetLetsGoWhatItHeldBack) {
  auto request = tokens({}, 10);
  request.scope_type = "lane";
  request.scope_id = "default";
  const auto id = make(request);
  spend(id, 10);
  const auto held = create();
  EXPECT_TRUE(claim().empty());
  must(DeleteBudget{id});
  expect_error(ReadBudget{id}, ErrorCode::budget_not_found);
  expect_error(ListBreaches{id}, ErrorCode::budget_not_found);
  expect_error(DeleteBudget{id}, ErrorCode::budget_not_found);
  expect_error(ReportUsage{.budget_id = id, .dimensions = {"tokens"}, .deltas = {1}},
               ErrorCode::budget_not_found);
  EXPECT_TRUE(must(ListBudgets{}).budgets.empty());
  run_due();
  EXPECT_EQ(claim_one().execution_id, held);
  // The id is free again when all that was counted under it is forgotten.
  request.budget_id = id;
  expect_error(request, ErrorCode::invalid_input, "budget_id: deleted");
  advance(24 * kHour);
  EXPECT_TRUE(must(request).created);
  EXPECT_EQ(status(id).usage, Amounts{});
}

TEST_P(BudgetActions, ADeletedLimitIsDetachedFromEverything) {
  auto request = tokens(budget_id(70), 10);
  must(request);
  const CreateQuotaPolicy policy{.quota_policy_id = quota_id(70), .max_concurrent = 1};
  must(policy);
  const std::vector<std::pair<std::string, std::string>> scopes{{"lane", "default"}, {"tenant", "acme"}};
  for (const auto& [type, id] : scopes) {
    must(AttachBudget{request.budget_id, type, id});
    must(AttachQuotaPolicy{policy.quota_policy_id, type, id});
  }
  must(DeleteBudget{request.budget_id});
  must(DeleteQuotaPolicy{policy.quota_policy_id});
  advance(24 * kHour);
  EXPECT_TRUE(must(request).created);
  EXPECT_TRUE(must(policy).created);
  spend(request.budget_id, 10);
  for (int i = 0; i < 2; ++i) create({.namespace_ = "acme"});
  EXPECT_EQ(claim({.max_tasks = 2}).size(), 2u) << "nobody has attached the new ones";
  for (const auto& [type, id] : scopes) {
    must(AttachBudget{request.budget_id, type, id});
    must(AttachQuotaPolicy{policy.quota_policy_id, type, id});
  }
}

TEST_P(BudgetActions, ADeletedQuotaPolicyLetsGoWhatItHeldBack) {
  const auto id = make_quota({.max_concurrent = 1});
  const auto first = running(ExecutionPolicy{.quota_policy_id = id});
  const auto held = create_with(id);
  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(must(ListQuotaPolicies{}).policies, std::vector{quota(id)});
  must(DeleteQuotaPolicy{id});
  expect_error(ReadQuotaPolicy{id}, ErrorCode::quota_policy_not_found);
  expect_error(DeleteQuotaPolicy{id}, ErrorCode::quota_policy_not_found);
  expect_error(CheckAdmission{id, held}, ErrorCode::quota_policy_not_found);
  expect_error(AttachQuotaPolicy{id, "lane", "default"}, ErrorCode::quota_policy_not_found);
  EXPECT_TRUE(must(ListQuotaPolicies{}).policies.empty());
  run_due();
  EXPECT_EQ(claim_one().execution_id, held);
  expect_error(CreateQuotaPolicy{.quota_policy_id = id}, ErrorCode::invalid_quota_spec);
  complete(first);
  advance(kLeaseTtl);
  advance(kLeaseTtl);
  EXPECT_TRUE(must(CreateQuotaPolicy{.quota_policy_id = id}).created);
}

}  // namespace
}  // namespace flowfabric
