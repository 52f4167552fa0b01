// Budgets and quota policies that cannot be read, or whose counts are wrong: nothing is handed out on a guess
// (05 §8, §10.3; the numbers are those of §14). The damage is done behind the engine's back.
#include "support/damage.h"
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class LimitDamage : public ReopenTest {
 protected:
  const BudgetId budget_{*Uuid::parse("bbbbbbbb-0000-4000-8000-000000000001")};
  const QuotaPolicyId quota_{*Uuid::parse("cccccccc-0000-4000-8000-000000000001")};

  void damage(const std::string& sql) {
    const auto url = store().url();
    close();
    if (url.starts_with("postgres"))
      PostgresConnection(url).query(sql);
    else
      damage_file(store().file(), sql);
    reopen();
  }
  void spend_all() {
    must(CreateBudget{.budget_id = budget_,
                      .scope_type = "tenant",
                      .scope_id = "acme",
                      .dimensions = {"tokens"},
                      .hard_limits = {10},
                      .soft_limits = {0}});
    must(ReportUsage{.budget_id = budget_, .dimensions = {"tokens"}, .deltas = {10}});
  }
  ExecutionId limited() { return create({.namespace_ = "acme", .policy = {.quota_policy_id = quota_}}); }
  bool waits(const ExecutionId& id) { return state(id).public_state == PublicState::waiting; }
};
INSTANTIATE_TEST_SUITE_P(DurableStores, LimitDamage, kDurableStores, store_name);

TEST_P(LimitDamage, NothingIsGrantedOnALimitThatCannotBeRead) {  // 46
  spend_all();
  const auto id = limited();
  damage("update ff_budget_policy set hard_limits='[\"nonsense\"]'");
  expect_error(ClaimTasks{.worker_id = kWorker}, ErrorCode::corruption);
  EXPECT_TRUE(waits(id)) << "neither handed out nor held back";
}

TEST_P(LimitDamage, WhatIsNoIdIsNoLimit) {  // §6
  const auto id = create({.namespace_ = "globex", .policy = {.budget_ids = {budget_}}});
  spend_all();
  damage("update ff_exec_core set budget_ids=' , " + budget_.to_string() + " ,nonsense,'");
  EXPECT_TRUE(claim().empty()) << "spaces do not matter";
  must(DeleteBudget{budget_});
  run_due();
  damage("update ff_exec_core set budget_ids=',nonsense, '");
  EXPECT_EQ(claim_one().execution_id, id);
}

TEST_P(LimitDamage, AnUnreadableBudgetHoldsUpNoOtherAndLetsNothingGo) {  // §10.1, §10.4
  const BudgetId other{*Uuid::parse("bbbbbbbb-0000-4000-8000-000000000002")};
  for (const auto& [id, tenant] : {std::pair(budget_, "acme"), std::pair(other, "globex")}) {
    must(CreateBudget{.budget_id = id,
                      .scope_type = "tenant",
                      .scope_id = tenant,
                      .reset_interval_ms = 1000,
                      .dimensions = {"tokens"},
                      .hard_limits = {10},
                      .soft_limits = {0}});
    must(ReportUsage{.budget_id = id, .dimensions = {"tokens"}, .deltas = {10}});
  }
  const auto held = create({.namespace_ = "acme"});
  const auto free = create({.namespace_ = "globex"});
  EXPECT_TRUE(claim().empty());
  damage("update ff_budget_policy set hard_limits='[\"nonsense\"]' where scope_id='acme'");
  for (int i = 0; i < 5; ++i) advance(1000);
  EXPECT_TRUE(waits(free));
  EXPECT_EQ(state(held).eligibility_state, EligibilityState::blocked_by_budget);
  EXPECT_GT(engine().stats().clock_failures, 0u);
}

// A number below zero is no limit that anything could reach, and text is not 0, which would be none.
TEST_P(LimitDamage, NumbersThatNobodyWroteAreNotGuessedAt) {  // §7.1
  must(CreateQuotaPolicy{.quota_policy_id = quota_, .max_concurrent = 1});
  const auto id = limited();
  std::vector<std::string> bad{"-1", "-9223372036854775808"};
  if (!store().url().starts_with("postgres")) bad.insert(bad.end(), {"'many'", "1.5"});
  for (const auto* column : {"active_concurrency_cap", "max_requests_per_window",
                             "requests_per_window_seconds", "jitter_ms", "active_concurrency"}) {
    for (const auto& value : bad) {
      damage(std::string("update ff_quota_policy set ") + column + "=" + value);
      expect_error(ReadQuotaPolicy{quota_}, ErrorCode::corruption, std::string(column) + ": cannot be read");
      expect_error(ClaimTasks{.worker_id = kWorker}, ErrorCode::corruption);
      EXPECT_TRUE(waits(id)) << column << " " << value;
    }
    damage(std::string("update ff_quota_policy set ") + column + "=1");
  }
}

TEST_P(LimitDamage, WhatAnUnreadablePolicyHoldsBackStaysSo) {  // 56
  must(CreateQuotaPolicy{.quota_policy_id = quota_, .max_concurrent = 1});
  for (int i = 0; i < 2; ++i) limited();
  const auto task = claim_one({.lease_ttl_ms = kHour});
  const auto held = limited();
  EXPECT_TRUE(claim().empty());
  must(CheckAdmission{quota_, task.execution_id});
  damage("update ff_quota_policy set active_concurrency_cap=-1");
  for (int i = 0; i < 5; ++i) advance(kLeaseTtl);
  EXPECT_EQ(state(held).eligibility_state, EligibilityState::blocked_by_quota);
  damage("update ff_quota_policy set active_concurrency_cap=1");
  complete(task);
  for (int i = 0; i < 5; ++i) advance(kLeaseTtl);
  EXPECT_EQ(claim().size(), 1u) << "it goes on when it can be read again";
}

// A worker that cannot be told from a capable one may be capable: a claim will find out.
TEST_P(LimitDamage, WorkersThatCannotBeReadHoldUpNothing) {  // 56
  const auto id =
      create({.namespace_ = "acme",
              .policy = {.routing_requirements = RoutingRequirements{.required_capabilities = {"gpu"}}}});
  must(BlockExecution{id, BlockingReason::waiting_for_capable_worker, ""});
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "w", .namespace_ = "acme"});
  advance(5000);
  EXPECT_EQ(state(id).eligibility_state, EligibilityState::blocked_by_route);
  damage("update ff_worker_registry set lanes='{\"no\": \"list\"}'");
  advance(5000);
  EXPECT_TRUE(waits(id));
  EXPECT_TRUE(claim().empty());
  EXPECT_EQ(claim_one({.capabilities = {"gpu"}}).execution_id, id);
}

TEST_P(LimitDamage, WrongCountsArePutRightByTheClock) {  // 44
  must(CreateQuotaPolicy{
      .quota_policy_id = quota_, .window_seconds = 60, .max_requests_per_window = 5, .max_concurrent = 5});
  for (int i = 0; i < 3; ++i) limited();
  EXPECT_EQ(claim({.max_tasks = 2}).size(), 2u);
  damage("update ff_quota_policy set active_concurrency=5, window_count=5");
  EXPECT_TRUE(claim().empty());
  advance(kLeaseTtl - 1);
  advance(1);
  EXPECT_LE(must(ReadQuotaPolicy{quota_}).active, 2u);
  EXPECT_EQ(must(CheckStore{}).found, 0u);
  EXPECT_EQ(claim({.max_tasks = 3}).size(), 3u) << "two of them lost their leases meanwhile";
}

TEST_P(LimitDamage, WrongCountsArePutRightByARepair) {
  must(CreateQuotaPolicy{
      .quota_policy_id = quota_, .window_seconds = 60, .max_requests_per_window = 5, .max_concurrent = 5});
  for (int i = 0; i < 2; ++i) limited();
  EXPECT_EQ(claim({.max_tasks = 2}).size(), 2u);
  for (const char* what :
       {"active_concurrency=5", "window_count=4", "active_concurrency=0, window_count=0"}) {
    damage(std::string("update ff_quota_policy set ") + what);
    EXPECT_GT(must(CheckStore{}).found, 0u) << what;
    EXPECT_GT(must(CheckStore{.repair = true}).repaired, 0u) << what;
    EXPECT_EQ(must(CheckStore{}).found, 0u) << what;
    const auto status = must(ReadQuotaPolicy{quota_});
    EXPECT_EQ(status.active, 2u) << what;
    EXPECT_EQ(status.admitted_in_window, 2u) << what;
  }
}

}  // namespace
}  // namespace flowfabric
