// Changing the priority of what waits for a worker (02 §9.4).
#include <limits>

#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;

class Priority : public SituationTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Priority, kStores, store_name);

TEST_P(Priority, TheNewOneCountsAtOnce) {
  const auto first = create({.priority = 5});
  const auto second = create();
  EXPECT_EQ(must(ChangePriority{second, 6}), PriorityChanged{second});

  EXPECT_EQ(describe(second).priority, 6);
  const auto task = claim_one();
  EXPECT_EQ(task.execution_id, second);
  EXPECT_EQ(task.priority, 6);
  EXPECT_EQ(claim_one().execution_id, first);
}

TEST_P(Priority, WithinThePriorityTheAgeStillCounts) {
  const auto old = create();
  tick(10);
  const auto young = create({.priority = 3});
  tick(10);
  must(ChangePriority{old, 3});

  EXPECT_EQ(claim_all(), (std::vector{old, young}));
}

TEST_P(Priority, ItIsClampedToItsRange) {
  const auto id = create({.priority = 7});
  for (const auto& [asked, given] :
       {std::pair{-1, 0}, std::pair{9001, 9000}, std::pair{std::numeric_limits<std::int32_t>::min(), 0},
        std::pair{std::numeric_limits<std::int32_t>::max(), 9000}, std::pair{4, 4}}) {
    must(ChangePriority{id, asked});
    EXPECT_EQ(describe(id).priority, given);
  }
}

TEST_P(Priority, TheOperatorEventTellsBoth) {
  const auto id = create({.namespace_ = "acme", .priority = 7, .tags = {{"a.b", "c"}}});
  tick(5);
  must(ChangePriority{id, 10'000});

  const auto events = operator_events(id);
  ASSERT_EQ(events.size(), 1u);
  EXPECT_EQ(events[0].type, OperatorEventType::priority_changed);
  EXPECT_EQ(events[0].details, (Tags{{"old_priority", "7"}, {"new_priority", "9000"}}));
  EXPECT_EQ(events[0].namespace_, "acme");
  EXPECT_EQ(events[0].tags, (Tags{{"a.b", "c"}}));
  EXPECT_EQ(events[0].occurred_at, now());
}

TEST_P(Priority, OnlyThePriorityChanges) {
  in_each(kEligible, [&](const Placed& placed) {
    auto before = story(placed.id);
    tick(5);
    must(ChangePriority{placed.id, 42});
    before.execution.priority = 42;
    before.execution.last_mutation_at = now();
    EXPECT_EQ(story(placed.id), before);
    EXPECT_EQ(take_next(placed.lane).priority, 42);
  });
}

TEST_P(Priority, ItStaysForLaterAttempts) {
  const auto id = create(retries(1, FixedBackoff{0}));
  must(ChangePriority{id, 8});
  fail(claim_one());
  run_due();
  const auto other = create({.priority = 7});

  EXPECT_EQ(claim_all(), (std::vector{id, other}));
}

TEST_P(Priority, WhatDoesNotWaitForAWorkerIsRefused) {
  in_all_but(kEligible, [&](const Placed& placed) {
    expect_refused(ChangePriority{placed.id, 5}, ErrorCode::execution_not_eligible);
    for (const auto& event : operator_events(placed.id)) {
      EXPECT_NE(event.type, OperatorEventType::priority_changed);
    }
  });
}

TEST_P(Priority, TheUnknownIsNotFound) {
  expect_error(ChangePriority{{1, {}}, 5}, ErrorCode::execution_not_found);
}

}  // namespace
}  // namespace flowfabric
