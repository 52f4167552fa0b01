// The history of one execution, in order (06 §12).
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
  EXPECT_EQ(words(id), (Log{"created", "attempt_started", "attempt_ended", "retry_scheduled",
                            "attempt_started", "lease_lost"}));
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

TEST_P(History, TellsEveryDelayOfAWorker) {
  const auto task = running();
  const auto& id = task.execution_id;
  delay(task, now() + 100);
  EXPECT_EQ(told(id).back().what, "delayed");
  EXPECT_EQ(told(id).back().fields.at("until"), std::to_string(now() + 100));
  advance(100);
  const auto second = claim_one({.worker_id = "other"});
  tick(1);
  delay(second, now() + 50);
  const auto last_until = now() + 50;
  advance(50);
  const auto third = claim_one();
  tick(1);
  complete(third);
  EXPECT_EQ(words(id), (Log{"created", "attempt_started", "delayed", "attempt_resumed", "delayed",
                            "attempt_resumed", "attempt_ended", "ended"}));
  const auto entries = told(id);
  EXPECT_EQ(entries[2].at, kStart);
  EXPECT_EQ(entries[2].fields.at("reason"), "waiting_for_delay");
  EXPECT_EQ(entries[2].fields.at("worker_instance_id"), kWorker);
  EXPECT_EQ(entries[3].at, kStart + 100);
  EXPECT_EQ(entries[3].fields.at("worker_instance_id"), "other");
  EXPECT_EQ(entries[3].fields.at("attempt_index"), "0");
  EXPECT_EQ(entries[4].at, kStart + 101);
  EXPECT_EQ(entries[5].at, last_until);
  EXPECT_EQ(entries[5].fields.at("worker_instance_id"), kWorker);
}

TEST_P(History, TellsOfWaitingForChildren) {
  const auto task = running();
  tick(1);
  must(WaitForChildren{.execution_id = task.execution_id, .fence = task.fence});
  tick(1);
  const auto again = claim_one();
  EXPECT_EQ(words(task.execution_id),
            (Log{"created", "attempt_started", "waiting_for_children", "attempt_resumed"}));
  complete(again);
}

// However short they are.
TEST_P(History, KeepsTheOrderOfDelaysOfOneMoment) {
  const auto id = create();
  for (int i = 0; i < 3; ++i) {
    delay(claim_one(), now());
    run_due();
  }
  EXPECT_EQ(words(id), (Log{"created", "attempt_started", "delayed", "attempt_resumed", "delayed",
                            "attempt_resumed", "delayed"}));
}

TEST_P(History, TellsEveryResumptionOfEveryAttempt) {
  const auto task = running(ExecutionPolicy{.retry_policy = RetryPolicy{.max_retries = 1}});
  const auto& id = task.execution_id;
  auto held = task;
  for (int i = 0; i < 2; ++i) {
    tick(1);
    suspend(suspension(held));
    tick(1);
    deliver(signal(waitpoint()));
    tick(1);
    held = claim_one();
  }
  tick(1);
  fail(held, "boom");
  const auto until = must(DescribeExecution{id}).delay_until;
  EXPECT_EQ(told(id).back().what, "retry_scheduled");
  EXPECT_EQ(told(id).back().fields.at("until"), std::to_string(until.value()));
  advance(kHour);
  suspend(suspension(claim_one()));
  EXPECT_EQ(words(id), (Log{"created", "attempt_started", "suspended", "signal", "resumed", "attempt_resumed",
                            "suspended", "signal", "resumed", "attempt_resumed", "attempt_ended",
                            "retry_scheduled", "attempt_started", "suspended"}));
  cancel(id, "enough");
}

TEST_P(History, TellsOfARetryThatNeverCame) {
  const auto task = running(ExecutionPolicy{.retry_policy = RetryPolicy{.max_retries = 1}});
  fail(task, "boom");
  tick(1);
  cancel(task.execution_id, "enough");
  EXPECT_EQ(words(task.execution_id),
            (Log{"created", "attempt_started", "attempt_ended", "retry_scheduled", "ended"}));
}

TEST_P(History, TellsOfDelaysBeforeTheStartAndAfterASuspension) {
  const auto id = create({.delay_until = kStart + 10});
  EXPECT_EQ(words(id), (Log{"created", "delayed"}));
  advance(10);
  suspend(suspension(claim_one()));
  tick(1);
  must(ResumeExecution{.execution_id = id, .resume_delay_ms = 20});
  const auto resumed_at = now();
  EXPECT_EQ(told(id).back().what, "delayed");
  advance(20);
  const auto again = claim_one();
  tick(1);
  suspend(suspension(again));
  tick(1);
  auto delayed = signal(waitpoint());
  delayed.resume_delay_ms = 30;
  deliver(delayed);
  advance(30);
  complete(claim_one());
  EXPECT_EQ(words(id), (Log{"created", "delayed", "attempt_started", "suspended", "resumed", "delayed",
                            "attempt_resumed", "suspended", "signal", "resumed", "delayed", "attempt_resumed",
                            "attempt_ended", "ended"}));
  const auto entries = told(id);
  EXPECT_EQ(entries[1].at, kStart);
  EXPECT_EQ(entries[1].fields.at("until"), std::to_string(kStart + 10));
  EXPECT_EQ(entries[5].fields.at("until"), std::to_string(resumed_at + 20));
  EXPECT_EQ(entries[5].fields.at("reason"), "waiting_for_resume_delay");
}

TEST_P(History, TellsOfASuspensionThatWasMetBefore) {
  const auto task = running();
  const auto early = make_waitpoint(task);
  tick(1);
  deliver(signal(early));
  tick(1);
  auto request = suspension(task);
  request.waitpoints = {{.waitpoint_id = early.waitpoint_id, .use_pending = true}};
  request.resume_policy.resume_delay_ms = 50;
  suspend(request);
  EXPECT_EQ(words(task.execution_id), (Log{"created", "attempt_started", "signal", "suspended", "resumed"}))
      << "its lease has simply gone on";
}

// The log of leases is trimmed; a pause that still lasts is known from the execution's own record.
TEST_P(History, TellsOfAPauseThatIsOlderThanTheLog) {
  const auto task = running();
  const auto& id = task.execution_id;
  const auto until = now() + 30 * 24 * kHour;
  tick(1);
  delay(task, until);
  advance(10 * 24 * kHour);
  const auto other = running();  // the newest event of a log stays
  advance(1);
  EXPECT_EQ(words(id), (Log{"created", "attempt_started", "delayed"}));
  EXPECT_EQ(told(id).back().fields.at("until"), std::to_string(until));
  EXPECT_EQ(told(id).back().at, kStart + 1);
  cancel(id, "enough");
  cancel(other.execution_id, "enough");
}

TEST_P(History, OfNobodyIsRefused) {
  expect_error(ReadHistory{ExecutionId{}}, ErrorCode::execution_not_found);
}

}  // namespace
}  // namespace flowfabric
