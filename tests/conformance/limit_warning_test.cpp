// Warnings about budgets and quota policies although nothing failed (05 §2.3, §5, §10.3).
#include <mutex>

#include "support/limit_support.h"
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class LimitWarnings : public ReopenTest {
 protected:
  LimitWarnings() {
    reopen({.warning = [this](const std::string& words) {
      std::lock_guard lock(mutex_);
      warnings_.push_back(words);
    }});
  }
  void TearDown() override {
    ReopenTest::TearDown();
    close();
  }

  static CreateBudget budget(std::uint64_t hard, std::uint64_t soft) {
    return {.budget_id = {*Uuid::parse("bbbbbbbb-0000-4000-8000-000000000001")},
            .scope_type = "tenant",
            .scope_id = "acme",
            .dimensions = {"tokens"},
            .hard_limits = {hard},
            .soft_limits = {soft}};
  }
  UsageReport spend(std::uint64_t amount) {
    return must(
        ReportUsage{.budget_id = budget(0, 0).budget_id, .dimensions = {"tokens"}, .deltas = {amount}});
  }
  // Since it was asked last.
  std::vector<std::string> warnings() {
    std::lock_guard lock(mutex_);
    return std::exchange(warnings_, {});
  }
  static std::vector<std::string> of_budget(const std::string& what) {
    return {"budget bbbbbbbb-0000-4000-8000-000000000001: " + what};
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> warnings_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, LimitWarnings, kStores, store_name);

TEST_P(LimitWarnings, ASoftLimitAboveTheHardOne) {
  must(budget(10, 11));
  EXPECT_EQ(warnings(), of_budget("the soft limit of tokens, 11, is above the hard limit, 10"));
  must(budget(10, 11));
  EXPECT_TRUE(warnings().empty()) << "it was there already";
  must(SetBudgetLimits{budget(0, 0).budget_id, {}, {{"tokens", 12}}});
  EXPECT_EQ(warnings(), of_budget("the soft limit of tokens, 12, is above the hard limit, 10"));
  must(SetBudgetLimits{budget(0, 0).budget_id, {{"tokens", 0}}, {}});
  EXPECT_TRUE(warnings().empty()) << "there is no hard limit";
}

TEST_P(LimitWarnings, WordsThatNobodyKnows) {
  auto request = budget(10, 5);
  request.enforcement_mode = "gentle";
  request.on_soft_limit = "dance";
  must(request);
  EXPECT_EQ(warnings(), (std::vector{of_budget("enforcement_mode is not a known word, and means strict")[0],
                                     of_budget("on_soft_limit is not a known word, and means reject")[0]}));
}

TEST_P(LimitWarnings, ASoftLimitThatIsPassed) {
  must(budget(100, 10));
  spend(10);
  EXPECT_TRUE(warnings().empty());
  spend(1);
  EXPECT_EQ(warnings(), of_budget("tokens 11/10, soft limit passed"));
  spend(1);
  EXPECT_TRUE(warnings().empty()) << "it was said";
  must(ResetBudget{budget(0, 0).budget_id});
  spend(20);
  EXPECT_EQ(warnings(), of_budget("tokens 20/10, soft limit passed"));
  EXPECT_EQ(engine().stats().budget_breaches, (Counts{{"soft", 3}}));
  spend(100);
  EXPECT_TRUE(warnings().empty()) << "the worker has been told, and ends its attempt";
  EXPECT_EQ(engine().stats().budget_breaches, (Counts{{"hard", 1}, {"soft", 3}}));
}

TEST_P(LimitWarnings, AHardLimitThatOnlyWarns) {
  auto request = budget(10, 0);
  request.enforcement_mode = "advisory";
  must(request);
  for (int i = 0; i < 3; ++i) spend(8);
  EXPECT_EQ(warnings(), of_budget("tokens 16/10, hard limit passed"));
}

TEST_P(LimitWarnings, SlotsThatNobodyUses) {
  const QuotaPolicyId quota{*Uuid::parse("cccccccc-0000-4000-8000-000000000001")};
  must(CreateQuotaPolicy{.quota_policy_id = quota, .max_concurrent = 1});
  must(CheckAdmission{quota, {0, budget(0, 0).budget_id.uuid}});
  for (int i = 0; i < 3; ++i) advance(30'000);
  EXPECT_EQ(warnings(), std::vector<std::string>{"quota " + quota.to_string() +
                                                 ": freed 1 of its slots, whose executions do not run"});
}

}  // namespace
}  // namespace flowfabric
