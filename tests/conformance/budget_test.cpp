// Budgets: limits, reports, the ledger, resets (05 §2–§5, §10.1; the numbers are those of §14).
#include "support/limit_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class Budgets : public LimitTest {
 protected:
  static ReportUsage report(const BudgetId& id, const Amounts& amounts, const std::string& key = "") {
    ReportUsage request{.budget_id = id, .dedup_key = key};
    for (const auto& [dimension, amount] : amounts) {
      request.dimensions.push_back(dimension);
      request.deltas.push_back(amount);
    }
    return request;
  }
  RecordSpend spending(const BudgetId& id, const ExecutionId& execution, std::uint64_t amount) {
    return {.budget_id = id,
            .execution_id = execution,
            .deltas = {{"tokens", amount}},
            .idempotency_key = "spend-" + std::to_string(++spendings_)};
  }
  Amounts usage(const BudgetId& id) { return status(id).usage; }

 private:
  int spendings_{0};
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Budgets, kStores, store_name);

TEST_P(Budgets, AreCreatedOnce) {  // 1, 4
  const auto id = make_budget(100, 80);
  EXPECT_FALSE(must(tokens(id, 7)).created);
  const auto found = status(id);
  EXPECT_EQ(found.hard_limits, (Amounts{{"tokens", 100}}));
  EXPECT_EQ(found.soft_limits, (Amounts{{"tokens", 80}}));
  EXPECT_EQ(found.usage, Amounts{});
  EXPECT_EQ(found.breach_count + found.soft_breach_count, 0u);
  EXPECT_EQ(found.next_reset_at, std::nullopt);
  EXPECT_EQ(found.last_breach_at, std::nullopt);
  EXPECT_EQ(found.created_at, now());
  EXPECT_EQ(found.on_hard_limit, LimitAction::fail);
  EXPECT_EQ(found.on_soft_limit, LimitAction::warn);
}

TEST_P(Budgets, RefuseDefinitionsThatMakeNoSense) {  // 2, 3
  auto odd = tokens(budget_id(1), 10);
  odd.soft_limits.clear();
  expect_error(odd, ErrorCode::invalid_input,
               "create_budget: dimensions / hard_limits / soft_limits length mismatch");
  CreateBudget many = tokens(budget_id(1), 10);
  for (int i = 0; i < 64; ++i) {
    many.dimensions.push_back("d" + std::to_string(i));
    many.hard_limits.push_back(1);
    many.soft_limits.push_back(1);
  }
  expect_error(many, ErrorCode::invalid_input, "too_many_dimensions: limit=64, got=65");
  auto huge = tokens(budget_id(1), std::uint64_t{1} << 63);
  expect_error(huge, ErrorCode::invalid_input);
  auto twice = tokens(budget_id(1), 1);
  twice.dimensions.push_back("tokens");
  twice.hard_limits.push_back(1);
  twice.soft_limits.push_back(1);
  expect_error(twice, ErrorCode::invalid_input);
  auto nameless = tokens(budget_id(1), 1);
  nameless.dimensions = {""};
  expect_error(nameless, ErrorCode::invalid_input);
  for (const auto& [type, scope] : std::map<std::string, std::string>{
           {"", "x"}, {"planet", "x"}, {"flow", "not an id"}, {"execution", "not an id"}, {"lane", ""}}) {
    auto nowhere = tokens(budget_id(1), 1);
    nowhere.scope_type = type;
    nowhere.scope_id = scope;
    expect_error(nowhere, ErrorCode::invalid_budget_scope);
  }
  expect_error(ReadBudget{budget_id(1)}, ErrorCode::budget_not_found);
}

TEST_P(Budgets, KnowOtherWordsForModesAndActions) {
  auto request = tokens(budget_id(1), 10);
  request.enforcement_mode = "warn";
  request.on_hard_limit = "explode";
  request.on_soft_limit = "reject";
  must(request);
  EXPECT_EQ(status(budget_id(1)).enforcement_mode, EnforcementMode::advisory);
  EXPECT_EQ(status(budget_id(1)).on_hard_limit, LimitAction::reject);
  const std::map<std::string, EnforcementMode> modes{
      {"", EnforcementMode::strict},           {"strict", EnforcementMode::strict},
      {"hard", EnforcementMode::strict},       {"whatever", EnforcementMode::strict},
      {"advisory", EnforcementMode::advisory}, {"soft", EnforcementMode::advisory}};
  int number = 1;
  for (const auto& [word, mode] : modes) {
    auto other = tokens(budget_id(++number), 10, 20);  // a soft limit above the hard one is allowed
    other.enforcement_mode = word;
    EXPECT_TRUE(must(other).created);
    EXPECT_EQ(status(budget_id(number)).enforcement_mode, mode) << word;
  }
}

TEST_P(Budgets, CountUpToTheirLimits) {  // 6, 13, 14
  const auto id = make_budget(100, 80);
  EXPECT_EQ(spend(id, 60), counted());
  EXPECT_EQ(spend(id, 25), over_soft("tokens", 85, 80));
  tick(5);
  EXPECT_EQ(spend(id, 50), refused("tokens", 85, 100));
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 85}}));
  EXPECT_EQ(status(id).breach_count, 1u);
  EXPECT_EQ(status(id).last_breach_dim, "tokens");
  EXPECT_EQ(status(id).last_breach_at, now());
  EXPECT_EQ(spend(id, 1), over_soft("tokens", 86, 80));
  EXPECT_EQ(status(id).soft_breach_count, 2u);
}

TEST_P(Budgets, MayBeUsedUpExactly) {  // 7, 8
  const auto id = make_budget(10, 8);
  EXPECT_EQ(spend(id, 5), counted());
  EXPECT_EQ(spend(id, 3), counted()) << "8 is not above 8";
  EXPECT_EQ(spend(id, 2), over_soft("tokens", 10, 8));
  EXPECT_EQ(spend(id, 0), over_soft("tokens", 10, 8));
  EXPECT_EQ(spend(id, 1), refused("tokens", 10, 10));
}

TEST_P(Budgets, CountAllDimensionsOrNone) {  // 9, 10, 11, 12
  CreateBudget request{.budget_id = budget_id(1),
                       .scope_type = "tenant",
                       .scope_id = "acme",
                       .dimensions = {"tokens", "cost", "free"},
                       .hard_limits = {1000, 50, 0},
                       .soft_limits = {0, 0, 0}};
  must(request);
  EXPECT_EQ(must(report(budget_id(1), {{"tokens", 100}, {"cost", 60}})), refused("cost", 0, 50));
  EXPECT_EQ(usage(budget_id(1)), Amounts{});
  EXPECT_EQ(must(report(budget_id(1), {{"tokens", 1001}, {"cost", 51}})), refused("cost", 0, 50));
  EXPECT_EQ(must(report(budget_id(1), {{"free", 1u << 30}, {"unheard", 3}})), counted());
  EXPECT_EQ(usage(budget_id(1)), (Amounts{{"free", 1u << 30}, {"unheard", 3}}));
}

TEST_P(Budgets, NeverOverflow) {
  const auto id = make_budget(0);
  const std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(spend(id, most), counted());
  EXPECT_EQ(spend(id, most), counted());
  EXPECT_EQ(usage(id), (Amounts{{"tokens", most}}));
  expect_error(report(id, {{"tokens", most + 1}}), ErrorCode::invalid_input);
}

TEST_P(Budgets, CountAReportWithAKeyOnce) {  // 15, 18, 19
  const auto id = make_budget(100);
  EXPECT_EQ(spend(id, 10, "k"), counted());
  EXPECT_EQ(spend(id, 10, "k"), counted_before());
  EXPECT_EQ(spend(id, 99, "k"), counted_before());
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 10}}));
  tick(24 * kHour - 1);
  EXPECT_EQ(spend(id, 10, "k"), counted_before());
  tick(1);
  EXPECT_EQ(spend(id, 10, "k"), counted());
  advance(24 * kHour);
  EXPECT_EQ(spend(id, 10, "k"), counted()) << "also when it was swept";
  EXPECT_EQ(spend(id, 1), counted());
  EXPECT_EQ(spend(id, 1), counted());
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 32}}));
}

TEST_P(Budgets, MayBeToldAgainWhatTheyRefused) {  // 16
  const auto id = make_budget(10);
  EXPECT_EQ(spend(id, 11, "k"), refused("tokens", 0, 10));
  EXPECT_EQ(spend(id, 10), counted());
  EXPECT_EQ(spend(id, 5, "k"), refused("tokens", 10, 10));
  must(ResetBudget{id});
  EXPECT_EQ(spend(id, 5, "k"), counted());
}

TEST_P(Budgets, DoNotShareTheirKeys) {  // 17
  const auto one = make_budget(10);
  const auto other = make_budget(10);
  EXPECT_EQ(spend(one, 1, "k"), counted());
  EXPECT_EQ(spend(other, 1, "k"), counted());
  EXPECT_EQ(must(RecordSpend{one, {0, one.uuid}, {{"tokens", 1}}, "k"}), counted_before());
}

TEST_P(Budgets, ThatDoNotExistCountNothing) {  // 21, 22
  const auto id = budget_id(9);
  expect_error(report(id, {{"tokens", 1}}), ErrorCode::budget_not_found);
  expect_error(RecordSpend{id, {0, id.uuid}, {{"tokens", 1}}, "k"}, ErrorCode::budget_not_found);
  expect_error(ReleaseBudget{id, {0, id.uuid}}, ErrorCode::budget_not_found);
  expect_error(ResetBudget{id}, ErrorCode::budget_not_found);
  expect_error(ReadBudget{id}, ErrorCode::budget_not_found);
  expect_error(ListSpending{.budget_id = id}, ErrorCode::budget_not_found);
  EXPECT_TRUE(must(tokens(id, 5)).created);
  EXPECT_EQ(usage(id), Amounts{});
}

TEST_P(Budgets, RefuseReportsThatMakeNoSense) {  // 23
  const auto id = make_budget(10);
  expect_error(ReportUsage{.budget_id = id, .dimensions = {"tokens"}}, ErrorCode::invalid_input,
               "report_usage: dimensions / deltas length mismatch");
  expect_error(ReportUsage{.budget_id = id, .dimensions = {"tokens", "tokens"}, .deltas = {1, 1}},
               ErrorCode::invalid_input, "duplicate dimension");
  Amounts many;
  for (int i = 0; i < 65; ++i) many["d" + std::to_string(i)] = 1;
  expect_error(report(id, many), ErrorCode::invalid_input, "too_many_dimensions: limit=64, got=65");
  expect_error(RecordSpend{id, {0, id.uuid}, many, ""}, ErrorCode::invalid_input);
  expect_error(report(id, {{"tokens", 1}}, std::string("\xff", 1)), ErrorCode::invalid_input);
  expect_error(report(id, {{std::string("a\0b", 3), 1}}), ErrorCode::invalid_input);
  EXPECT_EQ(usage(id), Amounts{});
}

TEST_P(Budgets, RememberWhoSpentWhat) {  // 25–30
  const auto id = make_budget(100);
  const ExecutionId a{0, budget_id(71).uuid};
  const ExecutionId b{3, budget_id(72).uuid};
  auto seven = spending(id, a, 7);
  EXPECT_EQ(must(seven), counted());
  EXPECT_EQ(must(seven), counted_before());
  EXPECT_EQ(must(spending(id, a, 5)), counted());
  EXPECT_EQ(must(spending(id, b, 20)), counted());
  EXPECT_EQ(must(spending(id, b, 90)), refused("tokens", 32, 100));
  const std::vector<Spending> ledger{{a, {{"tokens", 12}}}, {b, {{"tokens", 20}}}};
  EXPECT_EQ(must(ListSpending{.budget_id = id}), (SpendingPage{ledger, std::nullopt}));
  EXPECT_EQ(must(ListSpending{.budget_id = id, .limit = 1}), (SpendingPage{{ledger[0]}, a}));
  EXPECT_EQ(must(ListSpending{.budget_id = id, .cursor = a}), (SpendingPage{{ledger[1]}, std::nullopt}));
  must(ReleaseBudget{id, a});
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 20}}));
  must(ReleaseBudget{id, a});
  must(ReleaseBudget{id, {9, id.uuid}});
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 20}}));
  EXPECT_EQ(must(seven), counted_before()) << "keys are not released";
  EXPECT_EQ(must(ListSpending{.budget_id = id}).spendings.size(), 1u);
}

TEST_P(Budgets, ForgetTheLedgerWithAReset) {  // 31
  const auto id = make_budget(100);
  const ExecutionId a{0, budget_id(71).uuid};
  const ExecutionId b{3, budget_id(72).uuid};
  must(spending(id, a, 30));
  must(ResetBudget{id});
  EXPECT_EQ(must(ListSpending{.budget_id = id}).spendings.size(), 0u);
  must(spending(id, b, 20));
  must(ReleaseBudget{id, a});
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 20}}));
  must(spending(id, a, 1));
  must(ReleaseBudget{id, a});
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 20}}));
}

TEST_P(Budgets, ForgetWhatRemovedExecutionsSpent) {
  const auto id = make_budget(100);
  const auto task = running();
  must(spending(id, task.execution_id, 5));
  complete(task);
  advance(25 * kHour);
  forget(task.execution_id);
  EXPECT_EQ(must(ListSpending{.budget_id = id}).spendings.size(), 0u);
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 5}}));
}

TEST_P(Budgets, AreResetInTheirTime) {  // 5, 32, 33
  auto request = tokens(budget_id(1), 10, 5);
  request.reset_interval_ms = kHour;
  must(request);
  EXPECT_EQ(status(budget_id(1)).next_reset_at, now() + kHour);
  spend(budget_id(1), 8);
  spend(budget_id(1), 8);
  advance(kHour - 1);
  EXPECT_EQ(usage(budget_id(1)), (Amounts{{"tokens", 8}}));
  advance(1);
  auto found = status(budget_id(1));
  EXPECT_EQ(found.usage, (Amounts{{"tokens", 0}}));
  EXPECT_EQ(found.next_reset_at, now() + kHour);
  EXPECT_EQ(found.last_reset_at, now());
  EXPECT_EQ(found.reset_count, 1u);
  EXPECT_EQ(found.breach_count, 1u);
  EXPECT_EQ(found.soft_breach_count, 1u);
  EXPECT_EQ(found.last_breach_at, std::nullopt);
  EXPECT_EQ(found.last_breach_dim, std::nullopt);
  tick(kHour - 1);
  EXPECT_EQ(must(ResetBudget{budget_id(1)}).next_reset_at, now() + kHour);
  advance(1);
  EXPECT_EQ(status(budget_id(1)).reset_count, 2u) << "the clock has nothing to do";
}

TEST_P(Budgets, WithoutAnIntervalAreResetByHand) {  // 34
  const auto id = make_budget(10);
  spend(id, 8);
  EXPECT_EQ(must(ResetBudget{id}).next_reset_at, 0);
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 0}}));
  EXPECT_EQ(status(id).next_reset_at, std::nullopt);
}

TEST_P(Budgets, ThatOnlyAdviseCountEverything) {
  auto request = tokens(budget_id(1), 10, 5);
  request.enforcement_mode = "advisory";
  must(request);
  EXPECT_EQ(spend(budget_id(1), 12), over_soft("tokens", 12, 10));
  EXPECT_EQ(status(budget_id(1)).breach_count, 1u);
  EXPECT_EQ(usage(budget_id(1)), (Amounts{{"tokens", 12}}));
  const auto id = create_with(budget_id(1));
  EXPECT_EQ(claim_one().execution_id, id);
}

TEST_P(Budgets, GetNewLimits) {
  const auto id = make_budget(10, 5);
  spend(id, 10);
  const auto changed = must(SetBudgetLimits{id, {{"tokens", 20}, {"cost", 7}}, {}});
  EXPECT_EQ(changed.hard_limits, (Amounts{{"cost", 7}, {"tokens", 20}}));
  EXPECT_EQ(changed.soft_limits, (Amounts{{"cost", 0}, {"tokens", 5}}));
  EXPECT_EQ(spend(id, 10), over_soft("tokens", 20, 5));
  expect_error(SetBudgetLimits{id, {{"", 20}}, {}}, ErrorCode::invalid_input);
  expect_error(SetBudgetLimits{budget_id(9), {}, {}}, ErrorCode::budget_not_found);
  EXPECT_EQ(status(id).hard_limits, changed.hard_limits);
}

TEST_P(Budgets, CountWhatWasSpentWithoutALease) {  // 24
  const auto id = make_budget(100);
  const auto task = lost();
  ReportUsage by_loser{.budget_id = id, .dimensions = {"tokens"}, .deltas = {7}};
  by_loser.execution_id = task.execution_id;
  EXPECT_EQ(must(by_loser), counted());
  EXPECT_EQ(must(spending(id, task.execution_id, 5)), counted());
  cancel(task.execution_id);
  EXPECT_EQ(must(by_loser), counted());
  EXPECT_EQ(usage(id), (Amounts{{"tokens", 19}}));
  EXPECT_EQ(status(id).breach_count, 0u);
}

}  // namespace
}  // namespace flowfabric
