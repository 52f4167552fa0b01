// Many executions resume at once: what each was sent is found for all of them together, so that neither one
// large claim nor many small ones take longer than a batch may.
#include <future>
#include <set>

#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class ResumedTogether : public SuspensionTest {
 protected:
  static constexpr std::uint32_t kMany = 80;
  // Each was suspended, sent two signals, and is offered again.
  void SetUp() override {
    for (std::uint32_t i = 0; i < kMany; ++i) ids_.insert(create());
    for (const auto& task : claim({.max_tasks = kMany})) {
      suspend(suspension(task, all_of({single("a"), single("b")})));
      for (std::size_t i = 0; i < 2; ++i) {
        auto request = signal(waitpoint(i));
        request.payload = task.execution_id.to_string();
        deliver(std::move(request));
      }
    }
  }
  // Takes it off the list of those that are expected.
  void expect_resumed(const ClaimedTask& task) {
    EXPECT_EQ(ids_.erase(task.execution_id), 1u);
    EXPECT_EQ(task.claim, ClaimKind::resumed);
    const auto signal = "go:" + task.execution_id.to_string();
    EXPECT_EQ(shown(task.resume_signals), (Log{signal, signal}));
  }
  std::set<ExecutionId> ids_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ResumedTogether, kStores, store_name);

TEST_P(ResumedTogether, ByOneClaim) {
  for (const auto& task : claim({.max_tasks = kMany})) expect_resumed(task);
  EXPECT_TRUE(ids_.empty()) << ids_.size() << " are missing";
}

TEST_P(ResumedTogether, ByManyClaims) {
  std::vector<std::future<Result<std::vector<ClaimedTask>>>> claims;
  for (std::uint32_t i = 0; i < kMany; ++i) {
    claims.push_back(engine().submit(ClaimTasks{.worker_id = "w" + std::to_string(i), .wait_ms = 8'000}));
  }
  for (auto& each : claims) {
    const auto tasks = each.get();
    ASSERT_TRUE(tasks) << tasks.error().to_string();
    ASSERT_EQ(tasks->size(), 1u);
    expect_resumed(tasks->front());
  }
  EXPECT_TRUE(ids_.empty()) << ids_.size() << " are missing";
}

}  // namespace
}  // namespace flowfabric
