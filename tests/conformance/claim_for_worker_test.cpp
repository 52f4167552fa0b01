// A scheduler asks for the best execution of a lane on behalf of a worker (02 §5.4, §16.1).
#include "support/situations.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class ClaimForAWorker : public SituationTest {
 protected:
  std::optional<ClaimGrant> ask(ClaimForWorker request = {}) {
    if (request.terms.worker_id.empty()) request.terms.worker_id = kWorker;
    return must(std::move(request));
  }
  std::vector<ExecutionId> ask_until_empty(const ClaimForWorker& request = {}) {
    std::vector<ExecutionId> granted;
    while (const auto given = ask(request)) granted.push_back(given->execution_id);
    return granted;
  }
  ClaimedTask use(const ClaimGrant& given, std::string worker = kWorker) {
    return must(ClaimGranted{given.execution_id, use_by(std::move(worker), given.grant_key)});
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ClaimForAWorker, kStores, store_name);

TEST_P(ClaimForAWorker, TheBestIsReserved) {
  create({.priority = 1});
  const auto best = create({.priority = 5});
  const auto before = story(best);
  const auto given = ask();
  ASSERT_TRUE(given);

  EXPECT_EQ(given->execution_id, best);
  EXPECT_EQ(given->kind, GrantKind::claim);
  EXPECT_EQ(given->partition_key, "{fp:" + std::to_string(best.partition) + "}");
  EXPECT_EQ(given->lane_id, "default");
  EXPECT_EQ(given->expires_at, kStart + kGrantTtl);
  expect_as_before(before);
  EXPECT_EQ(use(*given).execution_id, best);
}

TEST_P(ClaimForAWorker, PriorityComesFirstThenAge) {
  const auto old = create();
  tick(1);
  const auto young = create();
  tick(1);
  const auto urgent = create({.priority = 9});

  EXPECT_EQ(ask_until_empty(), (std::vector{urgent, old, young}));
}

TEST_P(ClaimForAWorker, ManyReservedOnesDoNotStandInTheWay) {
  std::vector<ExecutionId> all;
  for (int i = 0; i < 60; ++i) {
    all.push_back(create());
    tick(1);
  }

  EXPECT_EQ(ask_until_empty(), all);
  EXPECT_TRUE(claim().empty());
}

TEST_P(ClaimForAWorker, EveryKindIsOfferedAndTaken) {
  const std::vector<std::tuple<Situation, GrantKind, ClaimKind>> cases = {
      {Situation::waiting, GrantKind::claim, ClaimKind::fresh},
      {Situation::retry_due, GrantKind::claim, ClaimKind::fresh},
      {Situation::replayed, GrantKind::claim, ClaimKind::fresh},
      {Situation::resumable, GrantKind::resume, ClaimKind::resumed},
      {Situation::lost, GrantKind::reclaim, ClaimKind::reclaimed},
      {Situation::revoked, GrantKind::reclaim, ClaimKind::reclaimed},
  };
  for (const auto& [situation, kind, claim_kind] : cases) {
    SCOPED_TRACE(enum_name(situation));
    const auto placed = place(situation);
    const auto before = story(placed.id);
    const auto given = ask({.lane_id = placed.lane});
    ASSERT_TRUE(given);
    EXPECT_EQ(given->execution_id, placed.id);
    EXPECT_EQ(given->kind, kind);
    expect_as_before(before);
    EXPECT_EQ(use(*given).claim, claim_kind);
    EXPECT_EQ(state(placed.id), expected::running());
  }
}

TEST_P(ClaimForAWorker, LostWorkComesAfterTheRestOfItsPriority) {
  const auto lost_one = lost().execution_id;
  tick(1);
  const auto younger = create();
  const auto urgent = create({.priority = 1});

  EXPECT_EQ(ask_until_empty(), (std::vector{urgent, younger, lost_one}));
}

TEST_P(ClaimForAWorker, WhatIsNotOfferedIsNotFound) {
  Situations offered = kEligible;
  offered.insert({Situation::lapsed, Situation::lost, Situation::revoked});
  in_all_but(offered, [&](const Placed& placed) {
    const auto before = story(placed.id);
    EXPECT_EQ(ask({.lane_id = placed.lane}), std::nullopt);
    EXPECT_EQ(story(placed.id), before);
  });
}

TEST_P(ClaimForAWorker, AnEmptyOrUnknownLaneHasNoWork) {
  complete(running());

  EXPECT_EQ(ask(), std::nullopt);
  EXPECT_EQ(ask({.lane_id = "nobody knows it"}), std::nullopt);
}

TEST_P(ClaimForAWorker, OnlyTheLaneItselfIsSearched) {
  create({.lane_id = "elsewhere"});

  EXPECT_EQ(ask(), std::nullopt);
}

TEST_P(ClaimForAWorker, TheNamespaceRestricts) {
  create({.namespace_ = "a", .priority = 9});
  const auto ours = create({.namespace_ = "b"});

  EXPECT_EQ(ask_until_empty({.namespace_ = "b"}), std::vector{ours});
}

TEST_P(ClaimForAWorker, AWorkerThatCannotDoItChangesNothing) {
  const auto hard = create({.priority = 9, .policy = needs({"gpu", "cuda"})});
  const auto plain = create();
  const auto before = story(hard);

  EXPECT_EQ(ask_until_empty({.terms = terms(kWorker, {"gpu"})}), std::vector{plain});
  EXPECT_EQ(story(hard), before);
  EXPECT_EQ(ask_until_empty({.terms = terms(kWorker, {"cuda", "gpu"})}), std::vector{hard});
}

TEST_P(ClaimForAWorker, OnlyALaneThatHandsOutWorkIsSearched) {
  const auto waiting = create();
  for (const auto closed : {LaneState::paused, LaneState::disabled}) {
    set_lane("default", closed);
    EXPECT_EQ(ask(), std::nullopt);
  }
  set_lane("default", LaneState::draining);

  EXPECT_EQ(ask_until_empty(), std::vector{waiting});
}

TEST_P(ClaimForAWorker, AnUnusedGrantRunsOut) {
  const auto id = create();
  ASSERT_TRUE(ask());
  advance(kGrantTtl);
  EXPECT_EQ(ask(), std::nullopt);
  advance(1);

  EXPECT_EQ(ask_until_empty(), std::vector{id});
}

TEST_P(ClaimForAWorker, LostWorkComesBackWhenItsGrantRunsOut) {
  const auto id = lost().execution_id;
  ASSERT_TRUE(ask());
  EXPECT_TRUE(claim().empty());
  advance(kGrantTtl + 1);

  EXPECT_EQ(claim_one().execution_id, id);
}

TEST_P(ClaimForAWorker, TheGrantIsForThisWorkerOnly) {
  const auto id = create();
  const auto given = ask({.terms = terms("mine")});
  ASSERT_TRUE(given);
  expect_refused(ClaimGranted{id, use_by("yours", given->grant_key)}, ErrorCode::invalid_claim_grant);

  EXPECT_EQ(use(*given, "mine").execution_id, id);
}

TEST_P(ClaimForAWorker, BadInputIsRefused) {
  const auto id = create();
  const auto before = story(id);
  const auto with_ttl = [](std::int64_t ms) {
    auto by = terms();
    by.grant_ttl_ms = ms;
    return by;
  };
  const std::vector<std::pair<ClaimForWorker, ErrorCode>> cases = {
      {{.terms = terms("")}, ErrorCode::invalid_input},
      {{.terms = terms("a b")}, ErrorCode::invalid_input},
      {{.terms = {.worker_id = kWorker, .worker_instance_id = "\t"}}, ErrorCode::invalid_input},
      {{.terms = with_ttl(0)}, ErrorCode::invalid_input},
      {{.terms = with_ttl(60'001)}, ErrorCode::invalid_input},
      {{.lane_id = "", .terms = terms()}, ErrorCode::invalid_input},
      {{.lane_id = std::string(65, 'l'), .terms = terms()}, ErrorCode::invalid_input},
      {{.namespace_ = "a\nb", .terms = terms()}, ErrorCode::invalid_input},
      {{.namespace_ = std::string(257, 'n'), .terms = terms()}, ErrorCode::invalid_input},
      {{.terms = terms(kWorker, {"a,b"})}, ErrorCode::invalid_capabilities},
      {{.terms = terms(kWorker, {""})}, ErrorCode::invalid_capabilities},
  };
  for (std::size_t i = 0; i < cases.size(); ++i) {
    SCOPED_TRACE(i);
    expect_error(cases[i].first, cases[i].second);
  }
  EXPECT_EQ(story(id), before);
  EXPECT_EQ(ask_until_empty(), std::vector{id});
}

}  // namespace
}  // namespace flowfabric
