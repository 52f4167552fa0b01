// Limits hold exactly, however many ask at once: on every store, and with two servers on PostgreSQL (05 §3.2,
// §7.2).
#include <mutex>
#include <thread>

#include "model/describe.h"
#include "support/limit_support.h"

namespace flowfabric {
namespace {

using namespace tests;

constexpr int kCallers = 64;

struct Case {
  const char* name;
  int servers;
};

// Runs on the machine's clock, so that held back executions are released by themselves.
class LimitRace : public testing::TestWithParam<std::tuple<const char*, Case>> {
 protected:
  LimitRace() : store_(std::get<0>(GetParam())) {
    for (int i = 0; i < std::get<1>(GetParam()).servers; ++i) {
      auto opened = Engine::open(store_.url());
      if (!opened) throw std::runtime_error(opened.error().to_string());
      engines_.push_back(*std::move(opened));
    }
  }
  Engine& server(int caller) { return engines_[static_cast<std::size_t>(caller) % engines_.size()]; }

  template <class Request>
  typename Request::Answer must(Request request) {
    auto answer = engines_.front().call(std::move(request));
    if (!answer) throw std::runtime_error(answer.error().to_string());
    return *std::move(answer);
  }
  // Runs f(caller) in this many threads.
  template <class F>
  static void at_once(F f) {
    std::vector<std::jthread> threads;
    for (int caller = 0; caller < kCallers; ++caller) threads.emplace_back([&f, caller] { f(caller); });
  }

  const BudgetId budget_{*Uuid::parse("bbbbbbbb-0000-4000-8000-000000000001")};
  const QuotaPolicyId quota_{*Uuid::parse("cccccccc-0000-4000-8000-000000000001")};

 private:
  TestStore store_;
  std::vector<Engine> engines_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, LimitRace,
                         testing::Combine(kStores, testing::Values(Case{"one_server", 1})), case_name<Case>);
INSTANTIATE_TEST_SUITE_P(TwoServers, LimitRace,
                         testing::Combine(testing::Values("postgres"),
                                          testing::Values(Case{"two_servers", 2})),
                         case_name<Case>);

TEST_P(LimitRace, ABudgetIsSpentExactly) {  // 20
  constexpr std::uint64_t kLimit = 200;
  must(CreateBudget{.budget_id = budget_,
                    .scope_type = "tenant",
                    .scope_id = "acme",
                    .dimensions = {"tokens"},
                    .hard_limits = {kLimit},
                    .soft_limits = {0}});
  std::atomic<std::uint64_t> counted{0};
  std::atomic<std::uint64_t> refusals{0};
  std::atomic<int> others{0};
  at_once([&](int caller) {
    Uuid spender;
    spender.bytes[0] = static_cast<std::uint8_t>(caller);
    for (int i = 0; i < 5; ++i) {
      const auto answer = server(caller).call(RecordSpend{budget_, {0, spender}, {{"tokens", 1}}, ""});
      if (answer && answer->outcome == UsageOutcome::ok)
        ++counted;
      else if (answer && answer->outcome == UsageOutcome::hard_breach)
        ++refusals;
      else
        ++others;
    }
  });
  EXPECT_EQ(others, 0);
  EXPECT_EQ(counted, kLimit);
  EXPECT_EQ(counted + refusals, 5u * kCallers);
  const auto status = must(ReadBudget{budget_});
  EXPECT_EQ(status.usage, (Amounts{{"tokens", kLimit}}));
  EXPECT_EQ(status.breach_count, refusals);
  std::uint64_t ledger = 0;
  for (const auto& spending : must(ListSpending{.budget_id = budget_}).spendings) {
    ledger += spending.spent.at("tokens");
  }
  EXPECT_EQ(ledger, kLimit);
}

class SlotRace : public LimitRace {
 protected:
  static constexpr int kCap = 7;

  void create_many(int count, std::uint64_t cap, std::uint64_t rate = 0) {
    must(
        CreateQuotaPolicy{.quota_policy_id = quota_, .max_requests_per_window = rate, .max_concurrent = cap});
    CreateExecutions all;
    for (int i = 0; i < count; ++i) all.executions.push_back({.policy = {.quota_policy_id = quota_}});
    for (const auto& created : must(all)) ASSERT_TRUE(created);
  }
  static ClaimTasks claim_of(int caller, std::int64_t wait_ms) {
    return {.worker_id = "w" + std::to_string(caller), .wait_ms = wait_ms};
  }
  bool complete(int caller, const ClaimedTask& task) {
    return server(caller)
        .call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence})
        .has_value();
  }
  void expect_counted(std::uint64_t running) {
    EXPECT_EQ(must(ReadQuotaPolicy{quota_}).active, running);
    const auto report = must(CheckStore{});
    EXPECT_EQ(report.found, 0u) << (report.violations.empty() ? "" : report.violations.front().what);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, SlotRace,
                         testing::Combine(kStores, testing::Values(Case{"one_server", 1})), case_name<Case>);
INSTANTIATE_TEST_SUITE_P(TwoServers, SlotRace,
                         testing::Combine(testing::Values("postgres"),
                                          testing::Values(Case{"two_servers", 2})),
                         case_name<Case>);

TEST_P(SlotRace, AsManyAreTakenAsThereAreSlots) {
  create_many(kCallers, kCap);
  std::mutex mutex;
  std::vector<std::pair<int, ClaimedTask>> taken;
  std::atomic<int> errors{0};
  // Another server's claim may hold a candidate just now, so each asks until there is nothing to wait for.
  at_once([&](int caller) {
    for (int i = 0; i < 3; ++i) {
      const auto tasks = server(caller).call(claim_of(caller, 50));
      if (!tasks) ++errors;
      std::lock_guard lock(mutex);
      for (const auto& task : tasks.value_or(std::vector<ClaimedTask>{})) taken.emplace_back(caller, task);
    }
  });
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(taken.size(), std::size_t{kCap});
  expect_counted(kCap);
  for (const auto& [caller, task] : taken) EXPECT_TRUE(complete(caller, task));
  expect_counted(0);
}

TEST_P(SlotRace, NoMoreRunThanThereAreSlots) {
  constexpr int kExecutions = 150;
  create_many(kExecutions, kCap);
  std::atomic<int> running{0};
  std::atomic<int> most{0};
  std::atomic<int> done{0};
  std::atomic<int> errors{0};
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  at_once([&](int caller) {
    while (done < kExecutions && std::chrono::steady_clock::now() < until) {
      const auto tasks = server(caller).call(claim_of(caller, 200));
      if (!tasks) {
        ++errors;
        continue;
      }
      for (const auto& task : *tasks) {
        const int now_running = ++running;
        for (int seen = most; seen < now_running && !most.compare_exchange_weak(seen, now_running);) {
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        --running;  // before the slot can be free
        if (complete(caller, task))
          ++done;
        else
          ++errors;
      }
    }
  });
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(done, kExecutions);
  EXPECT_LE(most, kCap);
  EXPECT_GT(most, 1) << "nobody was ever in the way";
  expect_counted(0);
}

// Nothing is ever held back here, but concurrent counts must add up all the same.
TEST_P(SlotRace, EverythingIsCountedWhereThereIsRoom) {
  constexpr int kExecutions = 500;
  create_many(kExecutions, 1'000'000, 1'000'000);
  std::atomic<int> done{0};
  std::atomic<int> errors{0};
  at_once([&](int caller) {
    for (int i = 0; i < 200 && done < kExecutions; ++i) {
      const auto tasks = server(caller).call(claim_of(caller, 20));
      if (!tasks) ++errors;
      for (const auto& task : tasks.value_or(std::vector<ClaimedTask>{})) {
        if (complete(caller, task))
          ++done;
        else
          ++errors;
      }
    }
  });
  EXPECT_EQ(errors, 0);
  EXPECT_EQ(done, kExecutions);
  EXPECT_EQ(must(ReadQuotaPolicy{quota_}).admitted_in_window, std::uint64_t{kExecutions});
  expect_counted(0);
}

TEST_P(SlotRace, NoMoreStartThanTheRateAllows) {
  constexpr std::uint64_t kRate = 20;
  create_many(100, 0, kRate);
  std::atomic<std::uint64_t> taken{0};
  at_once([&](int caller) {
    for (int i = 0; i < 3; ++i) {
      const auto tasks = server(caller).call(claim_of(caller, 50));
      taken += tasks ? tasks->size() : 0;
    }
  });
  EXPECT_EQ(taken, kRate);
  EXPECT_EQ(must(ReadQuotaPolicy{quota_}).admitted_in_window, kRate);
  expect_counted(0);
}

}  // namespace
}  // namespace flowfabric
