// Short words for tests of budgets and quota policies.
#pragma once

#include "support/engine_fixture.h"

namespace flowfabric::tests {

std::ostream& operator<<(std::ostream& out, const UsageReport& report);
std::ostream& operator<<(std::ostream& out, const Admission& admission);

inline UsageReport counted() {
  return {UsageOutcome::ok};
}
inline UsageReport counted_before() {
  return {UsageOutcome::already_applied};
}
inline UsageReport over_soft(const std::string& dimension, std::uint64_t used, std::uint64_t limit) {
  return {UsageOutcome::soft_breach, dimension, used, limit};
}
inline UsageReport refused(const std::string& dimension, std::uint64_t used, std::uint64_t limit) {
  return {UsageOutcome::hard_breach, dimension, used, limit};
}

class LimitTest : public EngineTest {
 protected:
  // Ids that differ in their last number only.
  static BudgetId budget_id(int number);
  static QuotaPolicyId quota_id(int number);

  // The request for a budget with one dimension, `tokens`.
  static CreateBudget tokens(const BudgetId& id, std::uint64_t hard, std::uint64_t soft = 0);
  BudgetId make_budget(std::uint64_t hard, std::uint64_t soft = 0);
  QuotaPolicyId make_quota(CreateQuotaPolicy request);

  UsageReport spend(const BudgetId& id, std::uint64_t amount, const std::string& key = "");
  BudgetStatus status(const BudgetId& id) { return must(ReadBudget{id}); }
  QuotaStatus quota(const QuotaPolicyId& id) { return must(ReadQuotaPolicy{id}); }

  ExecutionId create_with(const BudgetId& id) { return create({.policy = {.budget_ids = {id}}}); }
  ExecutionId create_with(const QuotaPolicyId& id) { return create({.policy = {.quota_policy_id = id}}); }

  void expect_blocked_by_budget(const ExecutionId& id, const std::string& detail);
  void expect_blocked_by_quota(const ExecutionId& id, const std::string& detail);
  bool waits(const ExecutionId& id) { return describe(id).state.public_state == PublicState::waiting; }

 private:
  int made_{0};
};

}  // namespace flowfabric::tests
