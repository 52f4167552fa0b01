// Rules of time that are turned off (08 §3.1): what they would do is not done, and everything else is.
#include "support/flow_support.h"
#include "support/limit_support.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class RulesOff : public FlowTest {
 protected:
  void turn_off(std::set<std::string> rules) { reopen({.rules_off = std::move(rules)}); }
  std::uint64_t fired(const std::string& rule) { return engine().stats().clock_rules[rule]; }

  // Something that the rule does after `ms` was prepared: not by an engine that has it turned off, by the
  // next.
  void expect_left_to_others(const std::string& rule, std::int64_t ms) {
    turn_off({rule});
    advance(ms);
    EXPECT_EQ(fired(rule), 0u) << rule;
    const auto looked_at = engine().stats().clock_operations;
    run_due();
    EXPECT_EQ(engine().stats().clock_operations, looked_at) << rule << ": it is looked at once";
    turn_off({});
    run_due();
    EXPECT_GE(fired(rule), 1u) << rule;
  }
};
INSTANTIATE_TEST_SUITE_P(DurableStores, RulesOff, kDurableStores, store_name);

TEST_P(RulesOff, NamesThatAreNoneAreRefused) {
  for (const std::string name : {"none", "flow_projector", "ttl_sweep", ""}) {
    const auto opened = Engine::open("memory:", {.rules_off = {name}});
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().code, ErrorCode::invalid_input);
  }
}

TEST_P(RulesOff, NothingIsRemoved) {
  const auto id = create();
  cancel(id);
  turn_off({"retention_trimmer"});
  advance(25 * kHour);
  EXPECT_EQ(state(id).public_state, PublicState::cancelled);
  EXPECT_EQ(engine().stats().clock_operations, 0u);
  turn_off({});
  run_due();
  expect_error(DescribeExecution{id}, ErrorCode::execution_not_found);
  forget(id);
}

TEST_P(RulesOff, LeaseExpiry) {
  running();
  expect_left_to_others("lease_expiry", kLeaseTtl + 1);
}
TEST_P(RulesOff, DelayedPromoter) {
  create({.delay_until = now() + 1000});
  expect_left_to_others("delayed_promoter", 1000);
}
TEST_P(RulesOff, AttemptTimeout) {
  running(ExecutionPolicy{.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = 1000}});
  expect_left_to_others("attempt_timeout", 1001);
}
TEST_P(RulesOff, ExecutionDeadline) {
  create({.execution_deadline_at = now() + 1000});
  expect_left_to_others("execution_deadline", 1001);
}
TEST_P(RulesOff, Reclaim) {
  running(ExecutionPolicy{.max_reclaim_count = 0});
  turn_off({"reclaim"});
  advance(kLeaseTtl + 1);
  expect_left_to_others("reclaim", 1);
}
TEST_P(RulesOff, Unblock) {
  const auto id = create();
  must(BlockExecution{id, BlockingReason::waiting_for_budget, "by hand"});
  expect_left_to_others("unblock", 6000);
}
TEST_P(RulesOff, UnblockOfARoute) {
  const auto id = create();
  must(BlockExecution{id, BlockingReason::waiting_for_capable_worker, "by hand"});
  expect_left_to_others("unblock", 6000);
}
TEST_P(RulesOff, WorkerSweep) {
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i", .liveness_ttl_ms = 1000});
  expect_left_to_others("worker_registry_ttl_sweep", 2000);
}
TEST_P(RulesOff, BudgetReset) {
  const BudgetId budget{uuid_of(1)};
  must(CreateBudget{.budget_id = budget,
                    .scope_type = "tenant",
                    .scope_id = "acme",
                    .reset_interval_ms = 1000,
                    .dimensions = {"tokens"},
                    .hard_limits = {10},
                    .soft_limits = {0}});
  expect_left_to_others("budget_reset", 1001);
}
TEST_P(RulesOff, QuotaReconciler) {
  const QuotaPolicyId quota{uuid_of(1)};
  must(CreateQuotaPolicy{.quota_policy_id = quota, .max_concurrent = 1});
  create({.policy = {.quota_policy_id = quota}});
  claim_one({.lease_ttl_ms = 600'000});
  expect_left_to_others("quota_reconciler", 31'000);
}
TEST_P(RulesOff, PendingWaitpoints) {
  const auto task = running();
  must(CreateWaitpoint{
      .execution_id = task.execution_id, .fence = task.fence, .waitpoint_key = "k", .expires_in_ms = 1000});
  expect_left_to_others("pending_wp_expiry", 1001);
}
TEST_P(RulesOff, Suspensions) {
  const auto task = running();
  must(SuspendExecution{.execution_id = task.execution_id,
                        .fence = task.fence,
                        .waitpoints = {{.waitpoint_key = "k"}},
                        .resume_condition = single("k"),
                        .timeout_at = now() + 1000});
  expect_left_to_others("suspension_timeout", 1001);
}
TEST_P(RulesOff, FlowCancel) {
  submit(graph("a b"));
  turn_off({"cancel_reconciler"});
  cancel_flow();
  expect_left_to_others("cancel_reconciler", 60'000);
  EXPECT_EQ(members(), "a:cancelled b:cancelled");
}
TEST_P(RulesOff, Dependents) {
  submit_many(fan_out(600));
  turn_off({"dependency_reconciler"});
  complete(claim_one({.lanes = {"many"}}));
  expect_left_to_others("dependency_reconciler", 1);
}

// The one cancels siblings, the other only forgets joins that owe them nothing.
TEST_P(RulesOff, SiblingsAreOnlyReconciled) {
  submit(graph("u1>d u2>d", {{"d", any_of()}}));
  turn_off({"edge_cancel_dispatcher"});
  succeeds("u1");
  run_due();
  EXPECT_EQ(members(), "d:waiting u1:completed u2:waiting");
  succeeds("u2");
  advance(20'000);
  EXPECT_EQ(fired("edge_cancel_reconciler"), 1u);
  EXPECT_EQ(engine().stats().sibling_reconciliations["completed_drain"], 1u);
}
TEST_P(RulesOff, SiblingsAreCancelledWithoutTheReconciler) {
  submit(graph("u1>d u2>d", {{"d", any_of()}}));
  turn_off({"edge_cancel_reconciler"});
  succeeds("u1");
  run_due();
  EXPECT_EQ(members(), "d:waiting u1:completed u2:cancelled");
}

// A record that is due by a rule that is off is still due by the others.
TEST_P(RulesOff, OtherRulesOfTheSameRecordGoOn) {
  const auto task = running(CreateExecution{.execution_deadline_at = now() + 2 * kLeaseTtl});
  turn_off({"lease_expiry"});
  advance(kLeaseTtl + 1);
  EXPECT_EQ(state(task.execution_id).ownership_state, OwnershipState::leased);
  advance(kLeaseTtl);
  EXPECT_EQ(state(task.execution_id).public_state, PublicState::expired);
}
TEST_P(RulesOff, ARecordThatHasChangedIsLookedAtAgain) {
  const auto id = create({.delay_until = now() + 1000});
  turn_off({"delayed_promoter"});
  advance(1000);
  EXPECT_EQ(state(id).public_state, PublicState::delayed);
  must(BlockExecution{id, BlockingReason::waiting_for_budget, "by hand"});
  advance(6000);
  EXPECT_EQ(fired("unblock"), 1u);
}

// Records whose rules are off do not fill the page of due records.
TEST_P(RulesOff, DoesNotHoldUpOthers) {
  for (int i = 0; i < 600; ++i) create({.lane_id = "slow", .delay_until = now() + 1000});
  const auto task = running();
  turn_off({"delayed_promoter"});
  advance(kLeaseTtl + 1);
  EXPECT_EQ(fired("lease_expiry"), 1u);
  EXPECT_EQ(state(task.execution_id).ownership_state, OwnershipState::lease_expired_reclaimable);
}

}  // namespace
}  // namespace flowfabric
