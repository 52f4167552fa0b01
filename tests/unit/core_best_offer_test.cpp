// The best offer of a route, as an operation sees it: what the store has, merged with what the batch has
// changed so far, in exact order.
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
int number_of(const Execution& execution) {
  return execution.execution_id.bytes[0] << 8 | execution.execution_id.bytes[1];
}
Execution offered(int number, std::optional<std::int64_t> order, std::int64_t route = kRoute) {
  return {.partition_key = 1,
          .execution_id = id_of(number).uuid,
          .lane_id = "lane",
          .route_id = route,
          .offer_order = order};
}

class Offers {
 public:
  explicit Offers(const std::vector<Execution>& stored)
      : store_(*store::open_store("memory:", {})), session_(store_->open_writer()), unit_(*session_) {
    Unit unit(*session_);
    session_->begin(unit);
    unit.begin_operation();
    for (const auto& execution : stored) unit.insert(execution);
    unit.keep();
    session_->commit(unit);
    session_->begin(unit_);
  }

  Unit& unit() { return unit_; }

  // Takes the best offer and says which one it was; 0: there is none.
  int take(std::uint32_t expected, std::int64_t route = kRoute) {
    const auto* best = unit_.best_offer(route, expected);
    if (!best) return 0;
    const auto number = number_of(*best);
    unit_.edit<Execution>(id_of(number)).offer_order.reset();
    return number;
  }
  std::vector<int> take_all(std::uint32_t expected, std::int64_t route = kRoute) {
    std::vector<int> taken;
    for (int number = 0; (number = take(expected, route)) != 0;) taken.push_back(number);
    return taken;
  }

 private:
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Session> session_;
  Unit unit_;
};

using Numbers = std::vector<int>;

class BestOffer : public testing::TestWithParam<std::uint32_t> {};  // how many are read ahead

TEST_P(BestOffer, ComesInTheOrderOfTheStore) {
  Offers offers({offered(1, 40), offered(2, 10), offered(3, 30), offered(4, 20), offered(5, std::nullopt),
                 offered(6, 5, 8)});
  offers.unit().begin_operation();
  EXPECT_EQ(offers.take_all(GetParam()), (Numbers{2, 4, 3, 1}));
  EXPECT_EQ(offers.take_all(GetParam(), 8), Numbers{6});
  EXPECT_EQ(offers.take_all(GetParam(), 9), Numbers{});
}

TEST_P(BestOffer, EqualOrdersAreTakenById) {
  Offers offers({offered(3, 10), offered(1, 10), offered(2, 10)});
  offers.unit().begin_operation();
  offers.unit().insert(offered(4, 10));
  offers.unit().insert(offered(0x100, 10));
  offers.unit().keep();
  offers.unit().begin_operation();
  EXPECT_EQ(offers.take_all(GetParam()), (Numbers{1, 2, 3, 4, 0x100}));
}

TEST_P(BestOffer, MergesWhatTheBatchHasChanged) {
  Offers offers({offered(1, 10), offered(2, 20), offered(3, 30), offered(4, 40), offered(5, std::nullopt)});
  auto& unit = offers.unit();
  unit.begin_operation();
  unit.insert(offered(11, 15));
  unit.insert(offered(12, 35));
  unit.insert(offered(13, 5));
  unit.insert(offered(14, 99));
  unit.edit<Execution>(id_of(2)).offer_order.reset();  // taken away
  unit.edit<Execution>(id_of(4)).offer_order = 1;      // moved to the front
  unit.edit<Execution>(id_of(1)).offer_order = 33;     // moved back
  unit.edit<Execution>(id_of(5)).offer_order = 31;     // offered now
  unit.keep();
  unit.begin_operation();
  EXPECT_EQ(offers.take_all(GetParam()), (Numbers{4, 13, 11, 3, 5, 1, 12, 14}));
}

TEST_P(BestOffer, SeesWhatCameAfterTheRouteWasExhausted) {
  Offers offers({offered(1, 10)});
  auto& unit = offers.unit();
  unit.begin_operation();
  EXPECT_EQ(offers.take_all(GetParam()), Numbers{1});
  unit.keep();
  unit.begin_operation();
  unit.insert(offered(2, 5));
  unit.edit<Execution>(id_of(1)).offer_order = 10;  // given back
  unit.keep();
  unit.begin_operation();
  EXPECT_EQ(offers.take_all(GetParam()), (Numbers{2, 1}));
}

TEST_P(BestOffer, UndoneClaimsGiveBackWhatTheyTook) {
  Offers offers({offered(1, 10), offered(2, 20), offered(3, 30), offered(4, 40)});
  auto& unit = offers.unit();
  for (int i = 0; i < 3; ++i) {
    unit.begin_operation();
    EXPECT_EQ(offers.take(GetParam()), 1);
    EXPECT_EQ(offers.take(GetParam()), 2);
    EXPECT_EQ(offers.take(GetParam()), 3);
    unit.undo();
  }
  unit.begin_operation();
  EXPECT_EQ(offers.take(GetParam()), 1);
  unit.keep();
  unit.begin_operation();
  EXPECT_EQ(offers.take_all(GetParam()), (Numbers{2, 3, 4}));
  unit.undo();
  unit.begin_operation();
  EXPECT_EQ(offers.take_all(GetParam()), (Numbers{2, 3, 4}));
}

TEST_P(BestOffer, UndoneOffersAreGone) {
  Offers offers({offered(1, 10)});
  auto& unit = offers.unit();
  unit.begin_operation();
  unit.insert(offered(2, 5));
  unit.undo();
  unit.begin_operation();
  EXPECT_EQ(offers.take_all(GetParam()), Numbers{1});
}

// Random batches against a sorted list.
TEST_P(BestOffer, AgreesWithASortedList) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    Random random(seed);
    const auto roll = [&](std::uint64_t bound) { return static_cast<int>(random.between(0, bound - 1)); };
    std::map<int, std::optional<std::int64_t>> model;
    std::vector<Execution> stored;
    int next = 1;
    for (int count = roll(12); count > 0; --count, ++next) {
      model[next] = roll(4) == 0 ? std::nullopt : std::optional<std::int64_t>(roll(20));
      stored.push_back(offered(next, model[next]));
    }
    Offers offers(stored);
    for (int operation = 0; operation < 30; ++operation) {
      const auto before = model;
      offers.unit().begin_operation();
      // Claims only take, others only change: as in the engine.
      if (roll(2) == 0) {
        for (int times = 1 + roll(5); times > 0; --times) {
          int best = 0;
          for (const auto& [number, order] : model) {
            if (order && (best == 0 || *order < *model[best])) best = number;
          }
          ASSERT_EQ(offers.take(GetParam()), best) << "seed " << seed << ", operation " << operation;
          if (best != 0) model[best].reset();
        }
      } else {
        for (int times = 1 + roll(3); times > 0; --times) {
          const auto order = roll(3) == 0 ? std::nullopt : std::optional<std::int64_t>(roll(20));
          if (roll(2) == 0 || model.empty()) {
            model[next] = order;
            offers.unit().insert(offered(next++, order));
          } else {
            const auto number = std::next(model.begin(), roll(model.size()))->first;
            model[number] = order;
            offers.unit().edit<Execution>(id_of(number)).offer_order = order;
          }
        }
      }
      if (roll(3) == 0) {
        offers.unit().undo();
        model = before;
      } else {
        offers.unit().keep();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(ReadAhead, BestOffer, testing::Values(1, 2, 3, 100));

}  // namespace
}  // namespace flowfabric::core
