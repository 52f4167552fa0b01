// A snapshot beside the state: an execution's limits, and the marks that refusals and timeouts leave. (For
// tokens and capabilities: signal_test.cpp, grant_issue_test.cpp.)
#include "support/limit_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class Snapshot : public LimitTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Snapshot, kStores, store_name);

TEST_P(Snapshot, NamesTheLimitsOfTheExecution) {
  const auto first = make_budget(100);
  const auto second = make_budget(100);
  const auto policy = make_quota({});
  const auto seen = describe(create({.policy = {.budget_ids = {first, second}, .quota_policy_id = policy}}));

  EXPECT_EQ(seen.budget_ids, (std::vector{first, second}));
  EXPECT_EQ(seen.quota_policy_id, policy);
}

TEST_P(Snapshot, KeepsTheMessageOfATimeoutThroughTheRetry) {
  auto policy = retries(1);
  policy.timeout_policy = TimeoutPolicy{.attempt_timeout_ms = 100};
  const auto task = running(policy);
  EXPECT_EQ(describe(task.execution_id).last_failure_message, "");
  advance(100);
  EXPECT_EQ(describe(task.execution_id).last_failure_message, "attempt_timeout");
  advance(kHour);
  complete(claim_one());

  const auto seen = describe(task.execution_id);
  EXPECT_EQ(seen.state, expected::completed());
  EXPECT_EQ(seen.last_failure_message, "attempt_timeout");
}

}  // namespace
}  // namespace flowfabric
