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
