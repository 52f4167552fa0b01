// The event logs: what each event carries, in which order, and how they are paged (02 §1.3).
#include <algorithm>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class EventLog : public EngineTest {
 protected:
  std::vector<LeaseEventView> lease_page(std::int64_t after, std::uint32_t limit) {
    return must(ReadLeaseEvents{after, limit});
  }
  std::vector<CompletionEventView> completion_page(std::int64_t after, std::uint32_t limit) {
    return must(ReadCompletions{after, limit});
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, EventLog, kStores, store_name);

TEST_P(EventLog, IsEmptyAtFirst) {
  create();

  EXPECT_TRUE(lease_page(0, 1000).empty());
  EXPECT_TRUE(completion_page(0, 1000).empty());
}

TEST_P(EventLog, ALeaseEventSaysEverything) {
  create({.namespace_ = "tenant", .tags = {{"cairn.instance_id", "i-7"}, {"a.b", "c"}}});
  tick(5);
  const auto task = claim_one({.worker_id = "pool", .worker_instance_id = "pool-7"});

  const auto events = lease_events(task.execution_id);
  ASSERT_EQ(events.size(), 1u);
  const LeaseEventView expected{.event_id = events[0].event_id,
                                .execution_id = task.execution_id,
                                .type = LeaseEventType::acquired,
                                .lease_id = *task.fence.lease_id,
                                .lease_epoch = 1,
                                .attempt_id = *task.fence.attempt_id,
                                .attempt_index = 0,
                                .worker_id = "pool",
                                .worker_instance_id = "pool-7",
                                .namespace_ = "tenant",
                                .tags = {{"cairn.instance_id", "i-7"}, {"a.b", "c"}},
                                .occurred_at = kStart + 5};
  EXPECT_EQ(events[0], expected);
}

TEST_P(EventLog, EveryLeaseEventNamesTheLeaseItIsAbout) {
  const auto task = running();
  renew(task);
  complete(task);

  const auto events = lease_events(task.execution_id);
  ASSERT_EQ(events.size(), 3u);
  for (const auto& event : events) {
    EXPECT_EQ(event.lease_id, task.fence.lease_id) << event;
    EXPECT_EQ(event.attempt_id, task.fence.attempt_id) << event;
    EXPECT_EQ(event.worker_id, kWorker) << event;
  }
}

TEST_P(EventLog, TheEventOfALostLeaseNamesItsHolder) {
  const auto task = lost();

  const auto event = lease_events(task.execution_id).back();
  EXPECT_EQ(event.type, LeaseEventType::expired);
  EXPECT_EQ(event.lease_id, task.fence.lease_id);
  EXPECT_EQ(event.worker_id, kWorker);
  EXPECT_EQ(event.occurred_at, kStart + kLeaseTtl);
}

TEST_P(EventLog, ACompletionSaysEverything) {
  const auto task = running({.namespace_ = "tenant", .tags = {{"a.b", "c"}}});
  tick(5);
  complete(task);

  const auto events = completions(task.execution_id);
  ASSERT_EQ(events.size(), 1u);
  const CompletionEventView expected{.event_id = events[0].event_id,
                                     .execution_id = task.execution_id,
                                     .outcome = TerminalOutcome::success,
                                     .namespace_ = "tenant",
                                     .tags = {{"a.b", "c"}},
                                     .occurred_at = kStart + 5};
  EXPECT_EQ(events[0], expected);
}

TEST_P(EventLog, EveryEndHasOneCompletion) {
  complete(running());
  fail(running());
  cancel(create());
  cancel(running().execution_id);
  create({.execution_deadline_at = kStart});
  run_due();
  running(attempt_timeout(10));
  advance(10);
  lost(reclaim_cap(0));

  std::vector<TerminalOutcome> seen;
  for (const auto& event : completion_page(0, 1000)) seen.push_back(event.outcome.known);
  using enum TerminalOutcome;
  EXPECT_EQ(seen, (std::vector{success, failed, cancelled, cancelled, expired, expired, failed}));
}

TEST_P(EventLog, ACancelByAFlowHasItsCompletionToo) {
  const auto id = create();
  must(CancelExecution{.execution_id = id, .source = "flow_cascade"});

  EXPECT_EQ(outcomes(id), std::vector{TerminalOutcome::cancelled});
}

TEST_P(EventLog, ARetryIsNoCompletion) {
  fail(running(retries(1)));

  EXPECT_TRUE(completion_page(0, 1000).empty());
}

TEST_P(EventLog, ARefusedCallLeavesNoEvent) {
  const auto task = running();
  const auto leases = lease_page(0, 1000);
  auto stale = completion(task);
  stale.fence.lease_epoch = 99;
  expect_error(stale, ErrorCode::stale_lease);

  EXPECT_EQ(lease_page(0, 1000), leases);
  EXPECT_TRUE(completion_page(0, 1000).empty());
}

// ---- order and paging ----

TEST_P(EventLog, IdsAscendAcrossExecutions) {
  for (int i = 0; i < 20; ++i) complete(running());

  const auto leases = lease_page(0, 1000);
  const auto ends = completion_page(0, 1000);
  ASSERT_EQ(leases.size(), 40u);
  ASSERT_EQ(ends.size(), 20u);
  EXPECT_EQ(std::ranges::adjacent_find(leases, std::ranges::greater_equal{}, &LeaseEventView::event_id),
            leases.end());
  EXPECT_EQ(std::ranges::adjacent_find(ends, std::ranges::greater_equal{}, &CompletionEventView::event_id),
            ends.end());
  EXPECT_GT(leases.front().event_id, 0);
  EXPECT_GT(ends.front().event_id, 0);
}

TEST_P(EventLog, PagesAddUpToTheWhole) {
  for (int i = 0; i < 7; ++i) complete(running());
  const auto all = lease_page(0, 1000);

  std::vector<LeaseEventView> collected;
  for (auto page = lease_page(0, 3); !page.empty(); page = lease_page(page.back().event_id, 3)) {
    EXPECT_LE(page.size(), 3u);
    collected.insert(collected.end(), page.begin(), page.end());
  }
  EXPECT_EQ(collected, all);
}

TEST_P(EventLog, PagesOfCompletionsAddUpToTheWhole) {
  for (int i = 0; i < 7; ++i) complete(running());
  const auto all = completion_page(0, 1000);

  std::vector<CompletionEventView> collected;
  for (auto page = completion_page(0, 3); !page.empty(); page = completion_page(page.back().event_id, 3)) {
    EXPECT_LE(page.size(), 3u);
    collected.insert(collected.end(), page.begin(), page.end());
  }
  EXPECT_EQ(collected, all);
  EXPECT_EQ(all.size(), 7u);
}

TEST_P(EventLog, APageStartsAfterItsPosition) {
  complete(running());
  complete(running());
  const auto all = lease_page(0, 1000);
  ASSERT_EQ(all.size(), 4u);

  EXPECT_EQ(lease_page(all[1].event_id, 1), std::vector{all[2]});
  EXPECT_TRUE(lease_page(all[3].event_id, 1000).empty());
  EXPECT_TRUE(lease_page(all[3].event_id + 1000, 1000).empty());
}

TEST_P(EventLog, ANegativePositionIsTheBeginning) {
  complete(running());

  EXPECT_EQ(lease_page(-5, 1000), lease_page(0, 1000));
  EXPECT_EQ(completion_page(-5, 1000), completion_page(0, 1000));
}

TEST_P(EventLog, BadLimitsAreRefused) {
  for (const std::uint32_t limit : {0u, 1001u, ~0u}) {
    expect_error(ReadLeaseEvents{0, limit}, ErrorCode::invalid_input);
    expect_error(ReadCompletions{0, limit}, ErrorCode::invalid_input);
  }
}

TEST_P(EventLog, TheLargestPageHoldsAThousand) {
  const auto task = running();
  for (int i = 0; i < 1001; ++i) engine().post(RenewLease{task.execution_id, task.fence, 0}, [](auto) {});
  renew(task);

  EXPECT_EQ(lease_page(0, 1000).size(), 1000u);
  EXPECT_EQ(lease_page(lease_page(0, 1000).back().event_id, 1000).size(), 3u);
}

}  // namespace
}  // namespace flowfabric
