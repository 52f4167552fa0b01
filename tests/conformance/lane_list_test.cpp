// Listing lanes (02 §4.2): order, pages, and the view of each.
#include "support/engine_fixture.h"
#include "support/operator_printing.h"
#include "support/paging.h"

namespace flowfabric {
namespace {

using namespace tests;
using Names = std::vector<std::string>;

class LaneList : public EngineTest {
 protected:
  std::vector<LanePage> pages(std::uint32_t limit, const std::string& cursor = "") {
    return pages_of(ListLanes{.cursor = cursor, .limit = limit},
                    [&](const ListLanes& request) { return must(request); });
  }
  static Names names_of(const std::vector<LaneView>& lanes) {
    Names names;
    for (const auto& lane : lanes) names.push_back(lane.lane_id);
    return names;
  }
  Names names(std::uint32_t limit = 100, const std::string& cursor = "") {
    return names_of(entries_of(pages(limit, cursor), &LanePage::lanes));
  }
  void register_all(const Names& lanes) {
    for (const auto& lane : lanes) must(RegisterLane{.lane_id = lane});
  }
  LaneView only() {
    const auto page = must(ListLanes{});
    if (page.lanes.size() != 1) throw std::runtime_error("not one lane");
    return page.lanes.front();
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, LaneList, kStores, store_name);

TEST_P(LaneList, OfAnEmptyStoreIsEmpty) {
  EXPECT_EQ(must(ListLanes{}), LanePage{});
}

TEST_P(LaneList, IsInTheOrderOfBytes) {
  register_all({"b", "a", "B", "a b", "a-b", "~", " ", "aa", "a0", "Z"});

  EXPECT_EQ(names(), (Names{" ", "B", "Z", "a", "a b", "a-b", "a0", "aa", "b", "~"}));
}

TEST_P(LaneList, AnyPageSizeGivesEveryLaneOnce) {
  const Names all{"a", "b", "c", "d", "e", "f"};
  register_all(all);
  for (std::uint32_t limit = 1; limit <= 7; ++limit) {
    EXPECT_EQ(names(limit), all) << "limit " << limit;
    for (const auto& page : pages(limit)) {
      EXPECT_LE(page.lanes.size(), limit);
      if (page.next_cursor) {
        EXPECT_EQ(*page.next_cursor, page.lanes.back().lane_id);
      }
    }
  }
}

TEST_P(LaneList, TheCursorIsExclusiveAndNeedNotExist) {
  register_all({"a", "c", "e"});

  EXPECT_EQ(names(100, "a"), (Names{"c", "e"}));
  EXPECT_EQ(names(100, "b"), (Names{"c", "e"}));
  EXPECT_EQ(names(100, "e"), Names{});
  EXPECT_EQ(names(100, "zzz"), Names{});
}

TEST_P(LaneList, AFullLastPageHasNoCursor) {
  register_all({"a", "b"});

  EXPECT_EQ(must(ListLanes{.limit = 2}).next_cursor, std::nullopt);
  EXPECT_EQ(must(ListLanes{.limit = 1}).next_cursor, "a");
}

TEST_P(LaneList, ALimitOfZeroIsAnEmptyPage) {
  register_all({"a", "b"});

  EXPECT_EQ(must(ListLanes{.limit = 0}), LanePage{});
  EXPECT_EQ(must(ListLanes{.cursor = "a", .limit = 0}), LanePage{});
}

TEST_P(LaneList, APageHasAtMostAThousand) {
  Names all;
  std::vector<std::future<Result<LaneStatus>>> answers;
  for (int i = 0; i < 1001; ++i) {
    all.push_back("lane-" + std::to_string(10'000 + i));
    answers.push_back(engine().submit(RegisterLane{.lane_id = all.back()}));
  }
  for (auto& answer : answers) ASSERT_TRUE(answer.get());

  expect_error(ListLanes{.limit = 1001}, ErrorCode::invalid_input);
  const auto page = must(ListLanes{.limit = 1000});
  EXPECT_EQ(page.lanes.size(), 1000u);
  EXPECT_EQ(page.next_cursor, all[999]);
  EXPECT_EQ(names(1000), all);
}

TEST_P(LaneList, LanesThatComeLaterShowUpBehindTheCursor) {
  register_all({"b", "d"});
  const auto first = must(ListLanes{.limit = 1});
  ASSERT_EQ(first.next_cursor, "b");
  register_all({"a", "c"});

  EXPECT_EQ(names(1, *first.next_cursor), (Names{"c", "d"}));
}

TEST_P(LaneList, ALaneIsRegisteredByItsFirstExecution) {
  tick(7);
  create();
  tick(7);
  create();
  expect_error(CreateExecution{.lane_id = "a", .execution_kind = "test", .delay_until = -1},
               ErrorCode::invalid_input);

  EXPECT_EQ(only(), (LaneView{.lane_id = "default",
                              .state = LaneState::active,
                              .counts = {{PublicState::waiting, 2}},
                              .oldest_waiting_at = kStart + 7,
                              .registered_at = kStart + 7,
                              .registered_by = "create_execution"}));
}

TEST_P(LaneList, CountsAreThoseOfTheLane) {
  create({.lane_id = "a"});
  create({.lane_id = "a", .delay_until = kStart + kHour});
  create({.lane_id = "b"});
  claim_one({.lanes = {"b"}});
  cancel(create({.lane_id = "c"}));
  must(RegisterLane{.lane_id = "d"});

  const auto lanes = must(ListLanes{}).lanes;
  ASSERT_EQ(names_of(lanes), (Names{"a", "b", "c", "d"}));
  EXPECT_EQ(lanes[0].counts, (StateCounts{{PublicState::waiting, 1}, {PublicState::delayed, 1}}));
  EXPECT_EQ(lanes[1].counts, (StateCounts{{PublicState::active, 1}}));
  EXPECT_EQ(lanes[2].counts, (StateCounts{{PublicState::cancelled, 1}}));
  EXPECT_EQ(lanes[3].counts, StateCounts{});
  for (const auto& lane : lanes) EXPECT_EQ(lane.counts, count(lane.lane_id));
}

TEST_P(LaneList, TheOldestWaitingIsToldByItsTimeOfCreation) {
  const auto oldest = [&] { return only().oldest_waiting_at; };
  create({.delay_until = kStart + 50});
  EXPECT_EQ(oldest(), std::nullopt) << "a delayed one does not wait for a worker";
  tick(10);
  const auto first = create();
  tick(10);
  const auto second = create({.priority = 9});
  EXPECT_EQ(oldest(), kStart + 10) << "whatever its priority";
  const auto urgent = claim_one();
  ASSERT_EQ(urgent.execution_id, second);
  EXPECT_EQ(oldest(), kStart + 10);
  must(HoldExecution{.execution_id = first});
  EXPECT_EQ(oldest(), kStart + 10) << "held, and still waiting";
  advance(30);
  EXPECT_EQ(oldest(), kStart) << "the delay is over";
  cancel(first);
  complete(claim_one());
  complete(urgent);
  EXPECT_EQ(oldest(), std::nullopt);
  tick(10);
  must(ReplayExecution{.execution_id = second});
  EXPECT_EQ(oldest(), kStart + 20) << "a replay is as old as its execution";
}

}  // namespace
}  // namespace flowfabric
