// Holding an execution back, and letting it go (02 §5.6).
#include <algorithm>

#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

struct Mapping {
  BlockingReason reason;
  EligibilityState eligibility;
  PublicState shown;
};
const std::vector<Mapping> kMappings = {
    {BlockingReason::waiting_for_budget, EligibilityState::blocked_by_budget, PublicState::rate_limited},
    {BlockingReason::waiting_for_quota, EligibilityState::blocked_by_quota, PublicState::rate_limited},
    {BlockingReason::waiting_for_capable_worker, EligibilityState::blocked_by_route, PublicState::waiting},
    {BlockingReason::paused_by_operator, EligibilityState::blocked_by_operator, PublicState::waiting},
    {BlockingReason::paused_by_policy, EligibilityState::blocked_by_lane_state, PublicState::waiting},
};

class Block : public SituationTest {
 protected:
  static Situations open() {
    Situations all = kEligible;
    all.insert(kDelayed.begin(), kDelayed.end());
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Block, kStores, store_name);

// ---- blocking ----

TEST_P(Block, EveryReasonHasItsState) {
  for (const auto& mapping : kMappings) {
    SCOPED_TRACE(enum_name(mapping.reason));
    const auto placed = place(Situation::waiting);
    tick(5);
    EXPECT_EQ(must(BlockExecution{placed.id, mapping.reason, "budget x: 103/100\n"}),
              (EligibilityChange{placed.id, mapping.shown}));
    const auto seen = describe(placed.id);
    EXPECT_EQ(seen.state, expected::blocked(mapping.eligibility, mapping.reason, mapping.shown));
    EXPECT_EQ(seen.blocking_detail, "budget x: 103/100\n");
    EXPECT_EQ(seen.last_transition_at, now());
    EXPECT_FALSE(is_offered(placed.lane));
    EXPECT_EQ(must(ClaimForWorker{.lane_id = placed.lane, .terms = terms()}), std::nullopt);
  }
}

TEST_P(Block, NoOtherReasonIsOne) {
  const auto id = create();
  for (std::size_t i = 0; i < enum_size<BlockingReason>(); ++i) {
    const auto reason = static_cast<BlockingReason>(i);
    SCOPED_TRACE(enum_name(reason));
    if (std::ranges::find(kMappings, reason, &Mapping::reason) != kMappings.end()) continue;
    expect_refused(BlockExecution{id, reason, ""}, ErrorCode::invalid_blocking_reason);
  }
}

TEST_P(Block, TheAttemptIsKept) {
  in_each(open(), [&](const Placed& placed) {
    const auto attempt = state(placed.id).attempt_state;
    hold(placed.id);
    EXPECT_EQ(state(placed.id), expected::held(attempt));
  });
}

TEST_P(Block, WhatRunsOrIsOverCannotBeHeldBack) {
  Situations active = kLeaseless;
  active.insert(Situation::running);
  in_each(active, [&](const Placed& placed) {
    expect_refused(BlockExecution{placed.id, BlockingReason::waiting_for_quota, ""},
                   ErrorCode::execution_not_eligible);
    expect_refused(HoldExecution{placed.id}, ErrorCode::execution_not_eligible);
  });
  in_each(kTerminal, [&](const Placed& placed) {
    expect_refused(BlockExecution{placed.id, BlockingReason::waiting_for_quota, ""},
                   ErrorCode::execution_not_active);
    expect_refused(HoldExecution{placed.id}, ErrorCode::execution_not_active);
  });
}

TEST_P(Block, TheUnknownIsNotFound) {
  const ExecutionId unknown{1, {}};
  expect_error(BlockExecution{unknown, BlockingReason::paused_by_policy, ""}, ErrorCode::execution_not_found);
  expect_error(UnblockExecution{unknown, BlockingReason::paused_by_policy}, ErrorCode::execution_not_found);
  expect_error(HoldExecution{unknown}, ErrorCode::execution_not_found);
  expect_error(ReleaseExecution{unknown}, ErrorCode::execution_not_found);
}

TEST_P(Block, NulBytesAreRefused) {
  const auto id = create();
  expect_refused(BlockExecution{id, BlockingReason::paused_by_policy, "a\0b"s}, ErrorCode::invalid_input);
  expect_refused(HoldExecution{id, "a\0b"s}, ErrorCode::invalid_input);
}

TEST_P(Block, AHoldSaysWhy) {
  const auto id = create();
  EXPECT_EQ(must(HoldExecution{id, "not on a Friday"}), (EligibilityChange{id, PublicState::waiting}));
  EXPECT_EQ(state(id), expected::held());
  EXPECT_EQ(describe(id).blocking_detail, "not on a Friday");
  must(HoldExecution{id});

  EXPECT_EQ(describe(id).blocking_detail, "held by operator");
}

TEST_P(Block, ANewReasonReplacesTheOld) {
  const auto id = create();
  must(BlockExecution{id, BlockingReason::waiting_for_budget, "empty"});
  hold(id);
  expect_refused(UnblockExecution{id, BlockingReason::waiting_for_budget}, ErrorCode::execution_not_eligible);
  must(ReleaseExecution{id});

  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(Block, NoOtherReasonReplacesAHold) {
  const auto id = place(Situation::held).id;
  for (const auto& mapping : kMappings) {
    if (mapping.reason == BlockingReason::paused_by_operator) continue;
    SCOPED_TRACE(enum_name(mapping.reason));
    expect_refused(BlockExecution{id, mapping.reason, ""}, ErrorCode::execution_not_eligible);
    expect_refused(UnblockExecution{id, mapping.reason}, ErrorCode::execution_not_eligible);
  }
  advance(kHour);

  EXPECT_EQ(state(id), expected::held());
}

// ---- unblocking ----

TEST_P(Block, UnblockingPutsItBack) {
  for (const auto& mapping : kMappings) {
    SCOPED_TRACE(enum_name(mapping.reason));
    const auto placed = place(Situation::waiting);
    must(BlockExecution{placed.id, mapping.reason, "why"});
    EXPECT_EQ(must(UnblockExecution{placed.id, mapping.reason}),
              (EligibilityChange{placed.id, PublicState::waiting}));
    EXPECT_EQ(state(placed.id), expected::waiting(AttemptState::pending_first_attempt));
    EXPECT_EQ(describe(placed.id).blocking_detail, "");
    EXPECT_EQ(take_next(placed.lane).execution_id, placed.id);
  }
}

TEST_P(Block, TheNextClaimIsWhatItWouldHaveBeen) {
  for (const auto& [situation, kind, type] :
       {std::tuple{Situation::retry_due, ClaimKind::fresh, AttemptType::retry},
        std::tuple{Situation::replayed, ClaimKind::fresh, AttemptType::replay},
        std::tuple{Situation::resumable, ClaimKind::resumed, AttemptType::initial}}) {
    SCOPED_TRACE(enum_name(situation));
    const auto placed = place(situation);
    hold(placed.id);
    must(ReleaseExecution{placed.id});
    const auto task = take_next(placed.lane);
    EXPECT_EQ(task.claim, kind);
    EXPECT_EQ(task.attempt_type, type);
  }
}

TEST_P(Block, ItsPlaceInLineIsTheOldOne) {
  const auto old = create();
  tick(10);
  const auto young = create();
  hold(old);
  tick(10);
  must(ReleaseExecution{old});

  EXPECT_EQ(claim_all(), (std::vector{old, young}));
}

TEST_P(Block, OnlyForTheExpectedReason) {
  for (const auto& blocked : kMappings) {
    const auto placed = place(Situation::waiting);
    must(BlockExecution{placed.id, blocked.reason, ""});
    for (const auto& expected_mapping : kMappings) {
      if (expected_mapping.reason == blocked.reason) continue;
      expect_refused(UnblockExecution{placed.id, expected_mapping.reason}, ErrorCode::execution_not_eligible);
    }
    expect_refused(UnblockExecution{placed.id, BlockingReason::waiting_for_worker},
                   ErrorCode::execution_not_eligible);
    if (blocked.reason != BlockingReason::paused_by_operator) {
      expect_refused(ReleaseExecution{placed.id}, ErrorCode::execution_not_eligible);
    }
  }
}

TEST_P(Block, WhatIsNotHeldBackCannotBeLetGo) {
  in_all_but(kBlocked, [&](const Placed& placed) {
    expect_refused(UnblockExecution{placed.id, state(placed.id).blocking_reason},
                   ErrorCode::execution_not_eligible);
    expect_refused(UnblockExecution{placed.id, BlockingReason::waiting_for_quota},
                   ErrorCode::execution_not_eligible);
    expect_refused(ReleaseExecution{placed.id}, ErrorCode::execution_not_eligible);
  });
}

// ---- time goes on ----

TEST_P(Block, ADelayThatHasNotEndedGoesOn) {
  in_each(kDelayed, [&](const Placed& placed) {
    const auto before = describe(placed.id);
    hold(placed.id);
    advance(kHour);
    EXPECT_EQ(must(ReleaseExecution{placed.id}), (EligibilityChange{placed.id, PublicState::delayed}));
    const auto after = describe(placed.id);
    EXPECT_EQ(after.state, before.state);
    EXPECT_EQ(after.delay_until, before.delay_until);
    EXPECT_FALSE(is_offered(placed.lane));
  });
  advance(100 * kHour);

  EXPECT_EQ(must(ListLanes{}).lanes.size(), kDelayed.size());
  for (const auto& lane : must(ListLanes{}).lanes) EXPECT_TRUE(is_offered(lane.lane_id)) << lane.lane_id;
}

TEST_P(Block, ADelayThatEndsMeanwhileDoesNotLetItGo) {
  const auto id = create({.delay_until = kStart + 1000});
  hold(id);
  advance(1000);
  EXPECT_EQ(state(id), expected::held());
  must(ReleaseExecution{id});

  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(Block, TheDeadlineStillEndsIt) {
  const auto id = create({.execution_deadline_at = kStart + 1000});
  hold(id);
  advance(1000);

  EXPECT_EQ(state(id), expected::expired(AttemptState::pending_first_attempt));
}

TEST_P(Block, ItCanBeCancelled) {
  in_each(kBlocked, [&](const Placed& placed) {
    cancel(placed.id);
    EXPECT_EQ(state(placed.id), expected::cancelled(AttemptState::pending_first_attempt));
  });
}

}  // namespace
}  // namespace flowfabric
