// The order in which workers get offered executions (02 §1.2, README "Order of re-offered work").
#include <algorithm>
#include <set>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using Ids = std::vector<ExecutionId>;

class ClaimOrder : public EngineTest {
 protected:
  // A moment later each, so that age decides.
  ExecutionId create_later(CreateExecution request = {}) {
    tick(1);
    return create(std::move(request));
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ClaimOrder, kStores, store_name);

TEST_P(ClaimOrder, NothingOfferedIsAnEmptyAnswer) {
  EXPECT_TRUE(claim().empty());
}

TEST_P(ClaimOrder, HighestPriorityFirst) {
  const auto low = create_later({.priority = 1});
  const auto high = create_later({.priority = 9000});
  const auto middle = create_later({.priority = 100});

  EXPECT_EQ(claim_all(), (Ids{high, middle, low}));
}

TEST_P(ClaimOrder, OldestFirstWithinAPriority) {
  Ids created;
  for (int i = 0; i < 20; ++i) created.push_back(create_later({.priority = 5}));

  EXPECT_EQ(claim_all(), created);
}

TEST_P(ClaimOrder, TheIdDecidesBetweenEquallyOld) {
  Ids ids;
  for (const char* text :
       {"{fp:7}:00000000-0000-4000-8000-000000000002", "{fp:3}:ffffffff-0000-4000-8000-000000000000",
        "{fp:7}:00000000-0000-4000-8000-000000000001"}) {
    ids.push_back(create({.execution_id = ExecutionId::parse(text)}));
  }

  std::ranges::sort(ids);
  EXPECT_EQ(claim_all(), ids);
}

TEST_P(ClaimOrder, OneClaimOfManyKeepsTheOrder) {
  const auto second = create_later({.priority = 1});
  const auto third = create_later({.priority = 1});
  const auto first = create_later({.priority = 2});

  Ids taken;
  for (const auto& task : claim({.max_tasks = 10})) taken.push_back(task.execution_id);
  EXPECT_EQ(taken, (Ids{first, second, third}));
}

TEST_P(ClaimOrder, TheOrderHoldsAcrossNamespacesAndCapabilities) {
  const auto third = create_later({.namespace_ = "a"});
  const auto first = create_later({.namespace_ = "b", .priority = 2});
  const auto second = create_later({.namespace_ = "a", .priority = 1, .policy = needs({"gpu"})});
  const auto fourth = create_later({.policy = needs({"gpu", "x"})});

  EXPECT_EQ(claim_all({.capabilities = {"gpu", "x"}}), (Ids{first, second, third, fourth}));
}

TEST_P(ClaimOrder, TheOrderHoldsAcrossManyRoutes) {
  Ids created;
  for (int i = 0; i < 40; ++i)
    created.push_back(create_later({.namespace_ = "tenant-" + std::to_string(i % 4)}));

  EXPECT_EQ(claim_all({.max_tasks = 7}), created);
}

TEST_P(ClaimOrder, ATaskIsGivenOnlyOnce) {
  create();
  EXPECT_EQ(claim({.max_tasks = 10}).size(), 1u);

  EXPECT_TRUE(claim({.max_tasks = 10}).empty());
}

TEST_P(ClaimOrder, GivesAtMostAsManyAsAsked) {
  for (int i = 0; i < 5; ++i) create();

  EXPECT_EQ(claim({.max_tasks = 3}).size(), 3u);
  EXPECT_EQ(count(), (StateCounts{{PublicState::active, 3}, {PublicState::waiting, 2}}));
}

TEST_P(ClaimOrder, Gives256AtOnce) {
  for (int i = 0; i < 260; ++i) create();

  EXPECT_EQ(claim({.max_tasks = 256}).size(), 256u);
  EXPECT_EQ(claim({.max_tasks = 256}).size(), 4u);
}

TEST_P(ClaimOrder, WorkThatWasDelayedKeepsItsAge) {
  const auto oldest = create_later({.delay_until = kStart + 100});
  const auto newer = create_later();
  advance(200);

  EXPECT_EQ(claim_all(), (Ids{oldest, newer}));
}

TEST_P(ClaimOrder, ARetryKeepsItsAge) {
  const auto oldest = create_later({.policy = retries(1)});
  fail(claim_one());
  const auto newer = create_later();
  advance(1000);

  EXPECT_EQ(claim_all(), (Ids{oldest, newer}));
}

// ---- lost work ----

TEST_P(ClaimOrder, LostWorkComesAfterItsPriorityAndBeforeLowerOnes) {
  const auto lost_one = lost({.priority = 5}).execution_id;
  const auto lower = create_later({.priority = 4});
  const auto same = create_later({.priority = 5});
  const auto higher = create_later({.priority = 6});

  EXPECT_EQ(claim_all(), (Ids{higher, same, lost_one, lower}));
}

TEST_P(ClaimOrder, LostWorkIsTakenOldestFirst) {
  const auto first = create_later();
  const auto second = create_later();
  const auto third = create_later();
  EXPECT_EQ(claim({.max_tasks = 3}).size(), 3u);
  advance(kLeaseTtl);

  EXPECT_EQ(claim_all(), (Ids{first, second, third}));
}

// ---- lanes ----

TEST_P(ClaimOrder, LanesAreServedInTurn) {
  for (int i = 0; i < 6; ++i) create_later({.lane_id = "a", .priority = 9});
  for (int i = 0; i < 6; ++i) create_later({.lane_id = "b"});

  std::map<std::string, int> taken;
  for (const auto& task : claim({.lanes = {"a", "b"}, .max_tasks = 6})) ++taken[task.lane_id];
  EXPECT_EQ(taken, (std::map<std::string, int>{{"a", 3}, {"b", 3}}));
}

TEST_P(ClaimOrder, AnEmptyLaneLeavesItsTurnToTheOthers) {
  for (int i = 0; i < 3; ++i) create({.lane_id = "b"});
  create({.lane_id = "a"});

  EXPECT_EQ(claim({.lanes = {"a", "b", "empty"}, .max_tasks = 10}).size(), 4u);
}

TEST_P(ClaimOrder, NoLaneIsAlwaysFirst) {
  for (int i = 0; i < 40; ++i) {
    create({.lane_id = "a"});
    create({.lane_id = "b"});
  }

  std::set<std::string> first;
  for (int i = 0; i < 40; ++i) first.insert(claim_one({.lanes = {"a", "b"}}).lane_id);
  EXPECT_EQ(first, (std::set<std::string>{"a", "b"}));
}

TEST_P(ClaimOrder, ALaneNamedTwiceGivesEachTaskOnce) {
  create();
  create();

  EXPECT_EQ(claim({.lanes = {"default", "default"}, .max_tasks = 10}).size(), 2u);
}

TEST_P(ClaimOrder, OtherLanesAreLeftAlone) {
  create({.lane_id = "a"});

  EXPECT_TRUE(claim({.lanes = {"b"}}).empty());
  EXPECT_EQ(count("a"), (StateCounts{{PublicState::waiting, 1}}));
}

}  // namespace
}  // namespace flowfabric
