// Which routes a claim looks at: those that offer something, whatever else was ever registered.
#include <gtest/gtest.h>

#include <thread>

#include "core/execution/cancel.h"
#include "core/execution/create.h"
#include "core/lifecycle/claim.h"
#include "engine/batch.h"
#include "store/store.h"
#include "support/test_store.h"

namespace flowfabric {
namespace {

constexpr std::uint16_t kDead = 200;

class OfferingRoutes : public ::testing::TestWithParam<const char*> {
 protected:
  OfferingRoutes() : store_(*store::open_store(where_.url(), {})) {
    writer_ = store_->open_writer();
    reader_ = store_->open_reader();
  }

  using Work = std::function<void(core::Unit&, core::Context&)>;
  // All in one batch, the claims last.
  void run(const std::vector<Work>& works, const std::vector<Work>& claims = {}) {
    std::vector<engine::Operation> operations;
    const auto add = [&](const Work& work) -> engine::Operation& {
      auto& operation = operations.emplace_back();
      operation.run = [work](core::Unit& unit, core::Context& at) {
        work(unit, at);
        return engine::Outcome::keep;
      };
      return operation;
    };
    for (const auto& work : works) add(work);
    for (const auto& work : claims) add(work).claim = std::make_shared<const ClaimTasks>();
    const auto worked = engine::work_out(*writer_, operations, {});
    ASSERT_TRUE(worked.unit) << worked.result.failure->to_string();
    for (const auto* refusal : worked.result.refusals) ASSERT_FALSE(refusal) << refusal->to_string();
    writer_->commit(*worked.unit);
  }
  static ExecutionId id_of(std::uint16_t number) {
    ExecutionId id{1, {}};
    id.uuid.bytes[0] = static_cast<std::uint8_t>(number >> 8);
    id.uuid.bytes[1] = static_cast<std::uint8_t>(number);
    return id;
  }
  // Each on a route of its own.
  static Work creation(std::uint16_t number, const std::string& lane = "default") {
    return [=](core::Unit& unit, core::Context& at) {
      CreateExecution request{.execution_id = id_of(number), .lane_id = lane, .execution_kind = "k"};
      request.policy.routing_requirements =
          RoutingRequirements{.required_capabilities = {"c" + std::to_string(number)}};
      ASSERT_TRUE(core::apply(unit, request, at));
    };
  }
  static Work cancellation(std::uint16_t number) {
    return [=](core::Unit& unit, core::Context& at) {
      ASSERT_TRUE(core::apply(unit, CancelExecution{.execution_id = id_of(number)}, at));
    };
  }
  static Work claim(std::uint16_t number, std::size_t& found) {
    return [=, &found](core::Unit& unit, core::Context& at) {
      const auto tasks =
          core::apply(unit, ClaimTasks{.worker_id = "w", .capabilities = {"c" + std::to_string(number)}}, at);
      ASSERT_TRUE(tasks);
      found = tasks->size();
    };
  }
  std::size_t looked_at(const std::string& lane = "default") {
    core::Unit unit(*reader_);
    unit.want_routes(lane);
    reader_->begin(unit);
    const auto count = unit.routes_of(lane).size();
    reader_->rollback();
    return count;
  }

  // An answer that took long may be believed for a moment.
  void expect_looked_at(std::size_t count, const std::string& lane = "default") {
    for (int i = 0; i < 500 && looked_at(lane) != count; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    EXPECT_EQ(looked_at(lane), count);
  }

  tests::TestStore where_{GetParam()};
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Session> writer_;
  std::unique_ptr<store::Session> reader_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, OfferingRoutes,
                         ::testing::Values("memory", "memory_deferred", "sqlite", "postgres"),
                         [](const auto& store) { return std::string(store.param); });

TEST_P(OfferingRoutes, AreAllThatAClaimLooksAt) {
  for (std::uint16_t i = 0; i < kDead; ++i) run({creation(i)});
  expect_looked_at(kDead);
  for (std::uint16_t i = 0; i < kDead; ++i) run({cancellation(i)});
  expect_looked_at(0);
  run({creation(kDead), creation(kDead + 1, "elsewhere")});
  expect_looked_at(1);
  expect_looked_at(1, "elsewhere");
}

// A route that nothing was offered on is seen by a claim of the batch that offers something.
TEST_P(OfferingRoutes, AreSeenInTheSameBatch) {
  run({creation(1)});
  std::size_t found = 0;
  run({}, {claim(1, found)});
  EXPECT_EQ(std::exchange(found, 0), 1u);
  expect_looked_at(0);
  run({cancellation(1)});
  const auto again = [](core::Unit& unit, core::Context& at) {
    CreateExecution request{.execution_id = id_of(2), .execution_kind = "k"};
    request.policy.routing_requirements = RoutingRequirements{.required_capabilities = {"c1"}};
    ASSERT_TRUE(core::apply(unit, request, at));
  };
  run({again}, {claim(1, found)});
  EXPECT_EQ(found, 1u);
}

}  // namespace
}  // namespace flowfabric
