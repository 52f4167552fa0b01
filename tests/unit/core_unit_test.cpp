// The unit of work: operations see each other, leave no trace when undone, and take offers in exact order.
#include <gtest/gtest.h>

#include <algorithm>

#include "core/unit.h"
#include "model/random.h"
#include "store/store.h"

namespace flowfabric::core {
namespace {

constexpr std::int64_t kRoute = 7;

ExecutionId id_of(int number) {
  ExecutionId id{.partition = 1, .uuid = {}};
  id.uuid.bytes[0] = static_cast<std::uint8_t>(number >> 8);
  id.uuid.bytes[1] = static_cast<std::uint8_t>(number);
  return id;
}

Execution offered(int number, std::optional<std::int64_t> order, std::int64_t route = kRoute) {
  return {.partition_key = 1,
          .execution_id = id_of(number).uuid,
          .lane_id = "lane",
          .route_id = route,
          .offer_order = order};
}

// A session of the memory store, as a real batch has it.
class UnitTest : public testing::Test {
 protected:
  void open(const std::string& url = "memory:") {
    store_ = *store::open_store(url, {});
    session_ = store_->open_writer();
  }
  // The stored records before the batch.
  void store_executions(const std::vector<Execution>& executions) {
    Unit unit(*session_);
    session_->begin(unit);
    unit.begin_operation();
    for (const auto& execution : executions) unit.insert(execution);
    unit.keep();
    session_->commit(unit);
  }
  Unit& begin() {
    unit_ = std::make_unique<Unit>(*session_);
    session_->begin(*unit_);
    return *unit_;
  }
  void commit() {
    session_->commit(*unit_);
    unit_.reset();
  }
  std::optional<Execution> stored(int number) {
    Unit unit(*session_);
    unit.want<Execution>(id_of(number));
    session_->begin(unit);
    const auto* found = unit.find<Execution>(id_of(number));
    const auto copy = found ? std::optional(*found) : std::nullopt;
    session_->rollback();
    return copy;
  }

  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Session> session_;
  std::unique_ptr<Unit> unit_;
};

TEST_F(UnitTest, OperationsSeeEachOtherAndTheRecordIsWrittenOnce) {
  open();
  store_executions({offered(1, 10)});
  auto& unit = begin();
  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).priority = 5;
  unit.keep();
  unit.begin_operation();
  EXPECT_EQ(unit.find<Execution>(id_of(1))->priority, 5);
  unit.edit<Execution>(id_of(1)).blocking_detail = "second";
  unit.keep();
  int written = 0;
  unit.for_each_dirty<Execution>([&](const auto&) { ++written; });
  EXPECT_EQ(written, 1);
  commit();
  EXPECT_EQ(stored(1)->priority, 5);
  EXPECT_EQ(stored(1)->blocking_detail, "second");
}

TEST_F(UnitTest, UndoLeavesNoTrace) {
  open();
  store_executions({offered(1, 10), offered(2, 20)});
  auto& unit = begin();
  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).priority = 5;
  unit.edit<Execution>(id_of(1)).priority = 6;
  unit.find<Execution>(id_of(2));
  unit.erase<Execution>(id_of(2));
  unit.insert(offered(3, 30));
  unit.insert(Lane{"lane", 1, "test"});
  unit.append(LeaseEvent{});
  unit.append(CompletionEvent{});
  unit.count("lane", PublicState::waiting, +1);
  unit.undo();
  EXPECT_FALSE(unit.has_changes());
  EXPECT_TRUE(unit.appended<LeaseEvent>().empty());
  EXPECT_TRUE(unit.appended<CompletionEvent>().empty());
  EXPECT_TRUE(unit.count_deltas().empty());
  EXPECT_TRUE(unit.new_offers().empty());
  EXPECT_EQ(unit.find<Execution>(id_of(1))->priority, 0);
  EXPECT_NE(unit.find<Execution>(id_of(2)), nullptr);
  EXPECT_EQ(unit.find<Execution>(id_of(3)), nullptr);
  EXPECT_EQ(unit.find<Lane>({"lane"}), nullptr);
}

TEST_F(UnitTest, UndoReturnsToTheOperationBeforeNotToTheStore) {
  open();
  store_executions({offered(1, 10), offered(2, 20)});
  auto& unit = begin();
  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).priority = 5;
  unit.insert(offered(3, 30)).priority = 3;
  unit.find<Execution>(id_of(2));
  unit.erase<Execution>(id_of(2));
  unit.append(LeaseEvent{.lease_epoch = 1});
  unit.count("lane", PublicState::waiting, +1);
  unit.keep();

  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).priority = 6;
  unit.erase<Execution>(id_of(3));
  unit.insert(offered(2, 21));
  unit.append(LeaseEvent{.lease_epoch = 2});
  unit.count("lane", PublicState::waiting, +10);
  unit.undo();

  EXPECT_EQ(unit.find<Execution>(id_of(1))->priority, 5);
  ASSERT_NE(unit.find<Execution>(id_of(3)), nullptr);
  EXPECT_EQ(unit.find<Execution>(id_of(3))->priority, 3);
  EXPECT_EQ(unit.find<Execution>(id_of(2)), nullptr);
  ASSERT_EQ(unit.appended<LeaseEvent>().size(), 1u);
  EXPECT_EQ(unit.appended<LeaseEvent>()[0].lease_epoch, 1);
  EXPECT_EQ(unit.count_deltas(), (std::map<LaneCountKey, std::int64_t>{{{"lane", PublicState::waiting}, 1}}));
  commit();
  EXPECT_EQ(stored(1)->priority, 5);
  EXPECT_EQ(stored(2), std::nullopt);
  EXPECT_EQ(stored(3)->priority, 3);
}

TEST_F(UnitTest, WhatWasUndoneMayBeDoneAgain) {
  open();
  auto& unit = begin();
  for (int i = 0; i < 3; ++i) {
    unit.begin_operation();
    unit.insert(offered(1, 10)).priority = i;
    unit.undo();
  }
  unit.begin_operation();
  unit.insert(offered(1, 10)).priority = 9;
  unit.keep();
  commit();
  EXPECT_EQ(stored(1)->priority, 9);
}

TEST_F(UnitTest, WhatIsKeptDespiteARefusalStaysAndTheRestGoes) {
  open();
  store_executions({offered(1, 10)});
  auto& unit = begin();
  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).priority = 5;
  unit.append(LeaseEvent{.lease_epoch = 1});
  unit.count("lane", PublicState::active, +1);
  unit.keep_despite_refusal();
  unit.edit<Execution>(id_of(1)).priority = 6;
  unit.append(LeaseEvent{.lease_epoch = 2});
  unit.count("lane", PublicState::active, +1);
  unit.undo();
  EXPECT_TRUE(unit.has_changes());
  EXPECT_EQ(unit.find<Execution>(id_of(1))->priority, 5);
  EXPECT_EQ(unit.appended<LeaseEvent>().size(), 1u);
  EXPECT_EQ(unit.count_deltas().begin()->second, 1);
}

TEST_F(UnitTest, TouchedRecordsAreComparedWithTheOperationBefore) {
  open();
  store_executions({offered(1, 10)});
  auto& unit = begin();
  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).priority = 5;
  unit.keep();
  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).priority = 6;
  unit.insert(offered(2, 20));
  std::vector<std::pair<int, int>> seen;
  unit.for_each_touched<Execution>([&](const Execution* before, const Execution* after) {
    seen.emplace_back(before ? before->priority : -1, after ? after->priority : -1);
  });
  EXPECT_EQ(seen, (std::vector<std::pair<int, int>>{{5, 6}, {-1, 0}}));
}

TEST_F(UnitTest, NewOffersAreThoseThatTheStoreDidNotHave) {
  open();
  store_executions({offered(1, 10), offered(2, std::nullopt), offered(3, 30)});
  auto& unit = begin();
  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).offer_order = 11;     // offered before
  unit.edit<Execution>(id_of(2)).offer_order = 20;     // new
  unit.edit<Execution>(id_of(3)).offer_order.reset();  // gone
  unit.insert(offered(4, 40));                         // new
  unit.insert(offered(5, 50, 8));                      // new, on another route
  unit.keep();
  EXPECT_EQ(unit.new_offers(), (std::map<std::int64_t, std::uint32_t>{{kRoute, 2}, {8, 1}}));
}

// Of the store's routes, only those that offer something.
TEST_F(UnitTest, RoutesOfALaneIncludeTheBatchsOwn) {
  open();
  {
    auto& unit = begin();
    unit.begin_operation();
    unit.insert(Route{1, "lane", "", ""});
    unit.insert(Route{2, "other", "", ""});
    unit.insert(Route{4, "lane", "idle", ""});
    unit.insert(offered(1, 10, 1));
    unit.keep();
    commit();
  }
  auto& unit = begin();
  const auto ids = [&] {
    std::vector<std::int64_t> found;
    for (const auto* route : unit.routes_of("lane")) found.push_back(route->route_id);
    std::sort(found.begin(), found.end());
    return found;
  };
  EXPECT_EQ(ids(), (std::vector<std::int64_t>{1}));
  unit.begin_operation();
  unit.insert(Route{3, "lane", "team", ""});
  EXPECT_EQ(ids(), (std::vector<std::int64_t>{1, 3}));
  unit.undo();
  EXPECT_EQ(ids(), (std::vector<std::int64_t>{1}));
}

// ---- a store that loads later ----

TEST_F(UnitTest, WhatIsNotLoadedAbandonsTheOperation) {
  open("memory:?load=deferred");
  store_executions({offered(1, 10)});
  auto& unit = begin();
  EXPECT_THROW(unit.find<Execution>(id_of(1)), NotLoaded);
  EXPECT_THROW(unit.find<Execution>(id_of(2)), NotLoaded);
  EXPECT_THROW(unit.routes_of("lane"), NotLoaded);
  EXPECT_THROW(unit.best_offer(kRoute, 4), NotLoaded);
  session_->load(unit);
  EXPECT_NE(unit.find<Execution>(id_of(1)), nullptr);
  EXPECT_EQ(unit.find<Execution>(id_of(2)), nullptr);
  EXPECT_TRUE(unit.routes_of("lane").empty());
  EXPECT_EQ(unit.best_offer(kRoute, 4)->key(), id_of(1));
}

TEST_F(UnitTest, WhatIsWantedIsThereFromTheBeginning) {
  open("memory:?load=deferred");
  store_executions({offered(1, 10)});
  Unit unit(*session_);
  unit.want<Execution>(id_of(1));
  unit.want<Execution>(id_of(2));
  session_->begin(unit);
  EXPECT_NE(unit.find<Execution>(id_of(1)), nullptr);
  EXPECT_EQ(unit.find<Execution>(id_of(2)), nullptr);
  session_->rollback();
}

TEST_F(UnitTest, LoadingAgainDoesNotOverwriteWhatTheBatchChanged) {
  open("memory:?load=deferred");
  store_executions({offered(1, 10)});
  Unit unit(*session_);
  unit.want<Execution>(id_of(1));
  session_->begin(unit);
  unit.begin_operation();
  unit.edit<Execution>(id_of(1)).priority = 5;
  unit.keep();
  EXPECT_THROW(unit.best_offer(kRoute, 4), NotLoaded);  // the scan brings the stored row along
  session_->load(unit);
  EXPECT_EQ(unit.best_offer(kRoute, 4)->priority, 5);
  session_->rollback();
}

// ---- removed executions ----

// Their id may be used again in the same batch, by somebody who must not find what the last one left.
TEST_F(UnitTest, NothingIsLeftOfWhatWasRemovedInTheSameBatch) {
  open();
  const auto id = id_of(1);
  const auto attempt = [&](std::uint32_t index) {
    return Attempt{.partition_key = 1, .execution_id = id.uuid, .attempt_index = index};
  };
  store_executions({offered(1, std::nullopt)});
  {
    auto& unit = begin();
    unit.begin_operation();
    unit.insert(attempt(0));
    unit.insert(attempt(1));
    unit.keep();
    commit();
  }
  auto& unit = begin();
  unit.begin_operation();
  ASSERT_TRUE(unit.find<Attempt>(attempt(0).key()));
  ASSERT_TRUE(unit.find<Execution>(id));
  unit.purge(id);
  unit.keep();
  EXPECT_FALSE(unit.find<Attempt>(attempt(0).key())) << "it was read before";
  EXPECT_FALSE(unit.find<Attempt>(attempt(1).key())) << "the store still has it";
  unit.insert(offered(1, std::nullopt));
  unit.insert(attempt(1));
  unit.keep();
  commit();
  auto& next = begin();
  EXPECT_FALSE(next.find<Attempt>(attempt(0).key()));
  EXPECT_TRUE(next.find<Attempt>(attempt(1).key()));
  EXPECT_TRUE(next.find<Execution>(id));
  session_->rollback();
}

}  // namespace
}  // namespace flowfabric::core
