// Creating the same thing twice: by id, and by idempotency key within its window (02 §3, README).
#include <limits>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class CreateDuplicate : public EngineTest {
 protected:
  static constexpr std::int64_t kDay = 24 * kHour;

  static CreateExecution keyed(const std::string& key, ExecutionPolicy policy = {}) {
    return {.execution_kind = "test", .idempotency_key = key, .policy = std::move(policy)};
  }
  static Creation duplicate_of(const ExecutionId& id, PublicState state = PublicState::waiting) {
    return {id, true, state};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, CreateDuplicate, kStores, store_name);

// ---- by id ----

TEST_P(CreateDuplicate, ByIdAnswersThatIdAndWritesNothing) {
  const auto id = create({.input = "first"});
  tick(5);
  const auto before = story(id);

  EXPECT_EQ(
      must(CreateExecution{.execution_id = id, .execution_kind = "other", .input = "second", .priority = 9}),
      duplicate_of(id));
  EXPECT_EQ(story(id), before);
  EXPECT_EQ(claim_one().input, "first");
}

TEST_P(CreateDuplicate, ByIdTellsTheStateReachedMeanwhile) {
  const auto task = running();
  EXPECT_EQ(must(CreateExecution{.execution_id = task.execution_id, .execution_kind = "test"}),
            duplicate_of(task.execution_id, PublicState::active));

  complete(task);
  EXPECT_EQ(must(CreateExecution{.execution_id = task.execution_id, .execution_kind = "test"}),
            duplicate_of(task.execution_id, PublicState::completed));
}

TEST_P(CreateDuplicate, ByIdStaysOneForever) {
  const auto id = create();
  advance(400 * kDay);

  EXPECT_EQ(must(CreateExecution{.execution_id = id, .execution_kind = "test"}), duplicate_of(id));
}

TEST_P(CreateDuplicate, ByIdDoesNotRememberItsKey) {
  const auto id = create();
  auto again = keyed("key");
  again.execution_id = id;
  EXPECT_EQ(must(again), duplicate_of(id));

  EXPECT_FALSE(must(keyed("key")).duplicate);
}

// The table of 02 §3 looks for a duplicate (2, 3) before it judges the policy (4).
TEST_P(CreateDuplicate, IsFoundBeforeThePolicyIsJudged) {
  const auto id = create();

  EXPECT_EQ(must(CreateExecution{.execution_id = id, .execution_kind = "test", .policy = needs({"a,b"})}),
            duplicate_of(id));
}

// ---- by key ----

TEST_P(CreateDuplicate, ByKeyWithinItsWindowReturnsTheFirstId) {
  const auto first = must(keyed("order-17")).execution_id;
  tick(kDay - 1);

  const auto again = keyed("order-17");
  EXPECT_EQ(must(again), duplicate_of(first));
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 1}}));
}

TEST_P(CreateDuplicate, ByKeyIgnoresTheIdItWasGiven) {
  const auto first = must(keyed("order-17")).execution_id;
  auto other = keyed("order-17");
  other.execution_id = ExecutionId{3, first.uuid};

  EXPECT_EQ(must(other), duplicate_of(first));
  expect_error(DescribeExecution{*other.execution_id}, ErrorCode::execution_not_found);
}

TEST_P(CreateDuplicate, ByKeyWithTheSameIdReturnsIt) {
  auto request = keyed("order-17");
  request.execution_id = must(request).execution_id;

  EXPECT_EQ(must(request), duplicate_of(*request.execution_id));
}

TEST_P(CreateDuplicate, ByKeyWinsOverAnotherExistingId) {
  const auto first = must(keyed("order-17")).execution_id;
  auto request = keyed("order-17");
  request.execution_id = create();

  EXPECT_EQ(must(request), duplicate_of(first));
}

TEST_P(CreateDuplicate, ByKeyTellsTheStateReachedMeanwhile) {
  const auto first = must(keyed("order-17")).execution_id;
  complete(claim_one());

  EXPECT_EQ(must(keyed("order-17")), duplicate_of(first, PublicState::completed));
}

TEST_P(CreateDuplicate, ByKeyCrossesLanesAndPartitions) {
  auto here = keyed("order-17");
  here.lane_id = "default";
  auto there = keyed("order-17");
  there.lane_id = "lane-1";
  const auto first = must(here).execution_id;

  EXPECT_EQ(must(there), duplicate_of(first));
  EXPECT_EQ(count("lane-1"), StateCounts{});
}

TEST_P(CreateDuplicate, ByKeyNeedsTheSameNamespace) {
  auto ours = keyed("order-17");
  ours.namespace_ = "ours";
  auto theirs = keyed("order-17");
  theirs.namespace_ = "theirs";
  const auto first = must(ours).execution_id;

  const auto second = must(theirs);
  EXPECT_FALSE(second.duplicate);
  EXPECT_NE(second.execution_id, first);
  EXPECT_EQ(must(ours), duplicate_of(first));
}

TEST_P(CreateDuplicate, ADifferentKeyIsNone) {
  must(keyed("order-17"));

  EXPECT_FALSE(must(keyed("order-18")).duplicate);
}

TEST_P(CreateDuplicate, AnEmptyKeyIsNone) {
  must(keyed(""));

  EXPECT_FALSE(must(keyed("")).duplicate);
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 2}}));
}

// ---- the window ----

TEST_P(CreateDuplicate, AfterItsWindowTheKeyMakesANewOne) {
  const auto first = must(keyed("order-17")).execution_id;
  tick(kDay);  // the key has not been swept away yet

  const auto second = must(keyed("order-17"));
  EXPECT_FALSE(second.duplicate);
  EXPECT_NE(second.execution_id, first);
  EXPECT_EQ(must(keyed("order-17")), duplicate_of(second.execution_id));
}

TEST_P(CreateDuplicate, AfterItsKeyWasSweptTheKeyMakesANewOne) {
  const auto first = must(keyed("order-17")).execution_id;
  advance(kDay);

  const auto second = must(keyed("order-17"));
  EXPECT_FALSE(second.duplicate);
  EXPECT_NE(second.execution_id, first);
}

TEST_P(CreateDuplicate, TheSweepLeavesLiveKeysAlone) {
  const auto first = must(keyed("order-17")).execution_id;
  advance(kDay - 1);

  EXPECT_EQ(must(keyed("order-17")), duplicate_of(first));
}

TEST_P(CreateDuplicate, ADuplicateDoesNotProlongTheWindow) {
  must(keyed("order-17"));
  tick(kDay - 1);
  EXPECT_TRUE(must(keyed("order-17")).duplicate);
  tick(1);

  EXPECT_FALSE(must(keyed("order-17")).duplicate);
}

TEST_P(CreateDuplicate, TheWindowComesFromThePolicy) {
  const auto first = must(keyed("order-17", dedup_window(1000))).execution_id;
  tick(999);
  EXPECT_EQ(must(keyed("order-17", dedup_window(1000))), duplicate_of(first));
  tick(1);

  EXPECT_FALSE(must(keyed("order-17", dedup_window(1000))).duplicate);
}

TEST_P(CreateDuplicate, AWindowOfZeroRemembersNothing) {
  must(keyed("order-17", dedup_window(0)));

  EXPECT_FALSE(must(keyed("order-17", dedup_window(0))).duplicate);
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 2}}));
}

TEST_P(CreateDuplicate, AWindowBeyondAllTimeRemembersForever) {
  const auto policy = dedup_window(std::numeric_limits<std::uint64_t>::max());
  const auto first = must(keyed("order-17", policy)).execution_id;
  advance(1000 * kDay);

  EXPECT_EQ(must(keyed("order-17")), duplicate_of(first));
}

}  // namespace
}  // namespace flowfabric
