#include "support/limit_support.h"

#include "model/describe.h"

namespace flowfabric::tests {

namespace {

Uuid numbered(const char* prefix, int number) {
  auto digits = std::to_string(number);
  digits.insert(0, 12 - digits.size(), '0');
  return *Uuid::parse(std::string(prefix) + "-0000-4000-8000-" + digits);
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const UsageReport& report) {
  return out << enum_name(report.outcome) << " " << report.dimension << " " << report.current_usage << "/"
             << report.limit;
}

std::ostream& operator<<(std::ostream& out, const Admission& admission) {
  return out << enum_name(admission.outcome) << " " << admission.retry_after_ms;
}

BudgetId LimitTest::budget_id(int number) {
  return {numbered("bbbbbbbb", number)};
}

QuotaPolicyId LimitTest::quota_id(int number) {
  return {numbered("cccccccc", number)};
}

CreateBudget LimitTest::tokens(const BudgetId& id, std::uint64_t hard, std::uint64_t soft) {
  return {.budget_id = id,
          .scope_type = "execution",
          .scope_id = "{fp:0}:" + id.to_string(),
          .dimensions = {"tokens"},
          .hard_limits = {hard},
          .soft_limits = {soft}};
}

BudgetId LimitTest::make_budget(std::uint64_t hard, std::uint64_t soft) {
  const auto id = budget_id(++made_);
  EXPECT_TRUE(must(tokens(id, hard, soft)).created);
  return id;
}

QuotaPolicyId LimitTest::make_quota(CreateQuotaPolicy request) {
  request.quota_policy_id = quota_id(++made_);
  EXPECT_TRUE(must(request).created);
  return request.quota_policy_id;
}

UsageReport LimitTest::spend(const BudgetId& id, std::uint64_t amount, const std::string& key) {
  return must(ReportUsage{.budget_id = id, .dimensions = {"tokens"}, .deltas = {amount}, .dedup_key = key});
}

void LimitTest::expect_blocked_by_budget(const ExecutionId& id, const std::string& detail) {
  const auto found = describe(id);
  EXPECT_EQ(found.state.eligibility_state, EligibilityState::blocked_by_budget);
  EXPECT_EQ(found.state.blocking_reason, BlockingReason::waiting_for_budget);
  EXPECT_EQ(found.state.public_state, PublicState::rate_limited);
  EXPECT_EQ(found.blocking_detail, detail);
}

void LimitTest::expect_blocked_by_quota(const ExecutionId& id, const std::string& detail) {
  const auto found = describe(id);
  EXPECT_EQ(found.state.eligibility_state, EligibilityState::blocked_by_quota);
  EXPECT_EQ(found.state.blocking_reason, BlockingReason::waiting_for_quota);
  EXPECT_EQ(found.state.public_state, PublicState::rate_limited);
  EXPECT_EQ(found.blocking_detail, detail);
}

}  // namespace flowfabric::tests
