// When a stream takes frames no more, and what it says of its end (06 §4; the numbers are those of §16).
#include "support/stream_support.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::chrono_literals;

class StreamEnds : public StreamWords<SuspensionTest> {
 protected:
  // A frame of an operator, without a lease.
  static AppendFrame note(const ClaimedTask& task) {
    auto request = frame(task, "looking into it");
    request.fence = {};
    request.source = "operator";
    return request;
  }
  ClaimedTask suspended_until(std::int64_t timeout, TimeoutBehavior behavior) {
    const auto task = running();
    auto request = suspension(task);
    request.timeout_at = now() + timeout;
    request.timeout_behavior = behavior;
    suspend(request);
    return task;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, StreamEnds, kStores, store_name);

TEST_P(StreamEnds, ASuspendedAttemptGoesOnWithItsStream) {  // 4
  const auto task = running();
  append(task, "before");
  suspend(suspension(task));
  expect_error(frame(task, "meanwhile"), ErrorCode::stream_closed);
  EXPECT_EQ(closed_reason(task.execution_id), "open");
  must(note(task));
  deliver(signal(waitpoint()));
  const auto again = claim_one();
  EXPECT_EQ(again.attempt_index, task.attempt_index);
  append(again, "after");
  EXPECT_EQ(payloads(task), (Log{"before", "looking into it", "after"}));
  expect_error(frame(task, "with the old lease"), ErrorCode::stale_owner_cannot_append);
}

TEST_P(StreamEnds, ATimeoutOfASuspensionEndsIt) {
  using enum TimeoutBehavior;
  for (const auto behavior : {fail, cancel, expire}) {
    const auto task = suspended_until(1000, behavior);
    advance(999);
    EXPECT_EQ(closed_reason(task.execution_id), "open");
    advance(1);
    EXPECT_EQ(closed_reason(task.execution_id), "suspension_timeout") << enum_name(behavior);
    EXPECT_EQ(read(task).closed_at, now());
    expect_error(note(task), ErrorCode::stream_closed);
  }
  const auto resumed = suspended_until(1000, TimeoutBehavior::auto_resume_with_timeout_signal);
  advance(1000);
  EXPECT_EQ(closed_reason(resumed.execution_id), "open") << "the attempt goes on";
}

// Frames of a worker or an operator do not pass for the engine's.
TEST_P(StreamEnds, WordsOfOthersAreNotMistaken) {
  const auto failed = running();
  must(failure(failed, "suspension_timeout:fail"));
  EXPECT_EQ(closed_reason(failed.execution_id), "attempt_failure");
  const auto also = running();
  must(failure(also, "attempt_timeout"));
  EXPECT_EQ(closed_reason(also.execution_id), "attempt_failure");
}

TEST_P(StreamEnds, ACancelEndsIt) {
  const auto suspended_one = suspended_until(1000, TimeoutBehavior::fail);
  cancel(suspended_one.execution_id);
  EXPECT_EQ(closed_reason(suspended_one.execution_id), "attempt_cancelled");
  const auto paused = running();
  delay(paused, now() + 1000);
  cancel(paused.execution_id);
  EXPECT_EQ(closed_reason(paused.execution_id), "attempt_cancelled");
  const auto never_ran = create();
  EXPECT_EQ(closed_reason(never_ran), "open");
  cancel(never_ran);
  EXPECT_EQ(closed_reason(never_ran), "attempt_cancelled");
}

TEST_P(StreamEnds, ADeadlineEndsIt) {
  const auto active = running(CreateExecution{.execution_deadline_at = now() + 100});
  append(active, "x");
  advance(100);
  EXPECT_EQ(closed_reason(active.execution_id), "expired");
  const auto waiting = running(CreateExecution{.execution_deadline_at = now() + 100});
  suspend(suspension(waiting));
  advance(100);
  EXPECT_EQ(closed_reason(waiting.execution_id), "expired");
  const auto never_ran = create({.execution_deadline_at = now() + 100});
  advance(100);
  EXPECT_EQ(closed_reason(never_ran), "expired");
}

TEST_P(StreamEnds, AnImpossibleDependencyEndsIt) {
  SubmitFlow flow{.flow_kind = "pair"};
  flow.nodes = {{.name = "a"}, {.name = "b"}};
  flow.edges = {{.from = "a", .to = "b"}};
  const auto members = must(flow).executions;
  for (const auto& [name, id] : members) remember(id);
  EXPECT_EQ(closed_reason(members.at("b")), "open");
  fail(claim_one(), "boom", "permanent");
  EXPECT_EQ(closed_reason(members.at("a")), "attempt_failure");
  EXPECT_EQ(closed_reason(members.at("b")), "dependency_impossible");
}

TEST_P(StreamEnds, ALostLeaseEndsItForEverybody) {  // 23
  const auto task = running();
  append(task, "last words");
  tick(kLeaseTtl);
  EXPECT_EQ(closed_reason(task.execution_id), "open") << "nobody has noticed";
  run_due();
  const auto lost_at = now();
  EXPECT_EQ(closed_reason(task.execution_id), "lease_expired");
  expect_error(note(task), ErrorCode::stream_closed);
  EXPECT_EQ(payloads(task), Log{"last words"}) << "no frame comes after the end";
  tick(500);
  EXPECT_EQ(read(task).closed_at, lost_at);
  const auto again = claim_one();
  EXPECT_EQ(closed_reason(task.execution_id), "reclaimed");
  EXPECT_EQ(read(task).closed_at, now());
  must(note(again));
  // To take a lease away is not yet an end.
  must(RevokeLease{.execution_id = again.execution_id});
  EXPECT_EQ(closed_reason(again.execution_id, again.attempt_index), "open");
}

TEST_P(StreamEnds, WakesThoseWhoWait) {
  const auto wait_for = [&](const ClaimedTask& task) {
    return engine().submit(
        TailStream{.execution_id = task.execution_id, .after = "0-0", .block_ms = 20'000, .count = 50});
  };
  const auto told = [](std::future<Result<StreamPage>>& tail) {
    if (tail.wait_for(10s) != std::future_status::ready) return std::string("nobody has woken it");
    return tail.get().value().closed_reason.value_or("open");
  };
  const auto lost_one = running();
  auto of_lost = wait_for(lost_one);
  advance(kLeaseTtl);
  EXPECT_EQ(told(of_lost), "lease_expired");
  const auto timed = suspended_until(1000, TimeoutBehavior::fail);
  auto of_timed = wait_for(timed);
  advance(1000);
  EXPECT_EQ(told(of_timed), "suspension_timeout");
  const auto never_ran = create({.lane_id = "empty"});
  ClaimedTask nobody;
  nobody.execution_id = never_ran;
  auto of_nobody = wait_for(nobody);
  cancel(never_ran);
  EXPECT_EQ(told(of_nobody), "attempt_cancelled");
}

}  // namespace
}  // namespace flowfabric
