// Checks of budgets and quota policies that hold after any operation.
#pragma once

#include <gtest/gtest.h>

#include "simulation/state.h"

namespace flowfabric::simulation {

inline void check_limits(const State& state) {
  std::map<QuotaPolicyId, std::pair<std::uint64_t, std::uint64_t>> counted;  // slots, window
  for (const auto& [key, admission] : state.rows<QuotaAdmission>()) {
    EXPECT_TRUE(admission.holds_slot || admission.window_at_ms) << "an admission that counts for nothing";
    counted[key.quota_policy_id].first += admission.holds_slot ? 1 : 0;
    counted[key.quota_policy_id].second += admission.window_at_ms ? 1 : 0;
  }
  for (const auto& [key, policy] : state.rows<QuotaPolicy>()) {
    const auto name = key.quota_policy_id.to_string();
    EXPECT_EQ(policy.active_concurrency, counted[key.quota_policy_id].first) << name;
    EXPECT_EQ(policy.window_count, counted[key.quota_policy_id].second) << name;
    // A lane may lower the limit of its keys below what runs.
    if (policy.active_concurrency_cap > 0 && policy.lane_id.empty()) {
      EXPECT_LE(policy.active_concurrency, policy.active_concurrency_cap) << name;
    }
    EXPECT_TRUE(policy.max_requests_per_window == 0 || policy.window_count <= policy.max_requests_per_window);
  }
  std::set<Uuid> watched;
  for (const auto& [key, budget] : state.rows<Budget>()) {
    if (budget.has_blocked) watched.insert(key.budget_id.uuid);
  }
  for (const auto& [key, policy] : state.rows<QuotaPolicy>()) {
    if (policy.has_blocked) watched.insert(key.quota_policy_id.uuid);
  }
  std::map<BudgetId, Amounts> reserved;
  for (const auto& [key, spend] : state.rows<Spend>()) {
    EXPECT_FALSE(spend.spent.empty() && spend.reserved.empty()) << "an entry of nothing";
    for (const auto& [dimension, amount] : spend.reserved) reserved[key.budget_id][dimension] += amount;
  }
  for (const auto& [key, budget] : state.rows<Budget>()) {
    EXPECT_EQ(budget.reserved, reserved[key.budget_id]) << key.budget_id.to_string();
  }
  for (const auto& [id, execution] : state.rows<Execution>()) {
    const bool runs = execution.state.ownership_state == OwnershipState::leased;
    if (execution.blocked_on && !runs) {
      EXPECT_TRUE(watched.contains(*execution.blocked_on)) << id.to_string() << " would wait for ever";
    }
  }
}

}  // namespace flowfabric::simulation
