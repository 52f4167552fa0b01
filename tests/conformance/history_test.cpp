// What happened to one execution, in order (06 §12).
#include "support/stream_support.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class History : public SuspensionTest {
 protected:
  std::vector<HistoryEntry> told(const ExecutionId& id) { return must(ReadHistory{id}); }
  Log words(const ExecutionId& id) {
    Log found;
    std::int64_t before = 0;
    for (const auto& entry : told(id)) {
      EXPECT_LE(before, entry.at) << "out of order";
      before = entry.at;
      found.push_back(entry.what);
    }
    return found;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, History, kStores, store_name);

TEST_P(History, TellsAShortLife) {
  const auto task = running();
  tick(5);
  complete(task);
  EXPECT_EQ(words(task.execution_id), (Log{"created", "attempt_started", "attempt_ended", "ended"}));
  const auto entries = told(task.execution_id);
  EXPECT_EQ(entries[0].fields.at("lane_id"), "default");
  EXPECT_EQ(entries[1].fields.at("worker_instance_id"), kWorker);
  EXPECT_EQ(entries[2].fields.at("attempt_state"), "ended_success");
  EXPECT_EQ(entries[3].fields.at("outcome"), "success");
  EXPECT_EQ(entries[3].at, now());
}

TEST_P(History, TellsOfRetriesAndLostLeases) {
  const auto task = running(ExecutionPolicy{.retry_policy = RetryPolicy{.max_retries = 1}});
  const auto& id = task.execution_id;
  fail(task, "boom");
  advance(kHour);
  claim_one();
  advance(kLeaseTtl);
  EXPECT_EQ(words(id), (Log{"created", "attempt_started", "attempt_ended", "attempt_started", "lease_lost"}));
  EXPECT_EQ(told(id)[2].fields.at("failure_reason"), "boom");
  cancel(id, "enough");
  EXPECT_EQ(told(id).back().fields.at("cancellation_reason"), "enough");
}

TEST_P(History, TellsOfSuspensionsSignalsAndOperators) {
  const auto task = running();
  const auto& id = task.execution_id;
  tick(1);
  suspend(suspension(task));
  tick(1);
  deliver(signal(waitpoint()));
  tick(1);
  must(ChangePriority{.execution_id = id, .new_priority = 7});
  tick(1);
  const auto again = claim_one();
  EXPECT_EQ(words(id), (Log{"created", "attempt_started", "suspended", "signal", "resumed",
                            "priority_changed", "attempt_resumed"}));
  EXPECT_EQ(told(id)[4].fields.at("trigger"), "signal");
  EXPECT_EQ(told(id)[5].fields.at("new_priority"), "7");
  complete(again);
}

TEST_P(History, TellsOfASuspensionThatEndsWithItsExecution) {
  const auto task = running();
  tick(1);
  suspend(suspension(task));
  tick(1);
  cancel(task.execution_id, "enough");
  EXPECT_EQ(words(task.execution_id),
            (Log{"created", "attempt_started", "suspended", "suspension_ended", "attempt_ended", "ended"}));
  const auto entries = told(task.execution_id);
  EXPECT_FALSE(entries[3].fields.contains("trigger")) << "nothing has resumed it";
}

TEST_P(History, OfNobodyIsRefused) {
  expect_error(ReadHistory{ExecutionId{}}, ErrorCode::execution_not_found);
}

}  // namespace
}  // namespace flowfabric
