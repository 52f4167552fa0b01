// Operations that meet many records that are not loaded yet, as they do on a store across a network: they
// must be answered like those on a store that loads on the spot.
#include <gtest/gtest.h>

#include "simulation/replica.h"
#include "support/test_store.h"

namespace flowfabric::simulation {
namespace {

class Deferred : public testing::TestWithParam<const char*> {
 protected:
  static std::int64_t now() { return 1'700'000'000'000; }

  void create(std::uint32_t count, const std::function<void(CreateExecution&, std::uint32_t)>& shape = {}) {
    std::vector<Step> steps;
    for (std::uint32_t i = 0; i < count; ++i) {
      Random random(i);
      CreateExecution request{.execution_id = ExecutionId{1, mint_uuid(now(), random)},
                              .execution_kind = "kind"};
      if (shape) shape(request, i);
      steps.push_back({std::move(request), i});
    }
    expect_same(steps);
  }

  void expect_same(const std::vector<Step>& steps) {
    const auto actual = deferred_.run(steps);
    std::vector<Step> sorted;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      ASSERT_TRUE(actual.answers[i]) << "step " << i << ", a " << name_of(steps[i].request)
                                     << ", was put off too often and refused";
      sorted.push_back(steps[actual.order[i]]);
    }
    const auto expected = memory_.run(sorted);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto& answer = *actual.answers[actual.order[i]];
      EXPECT_TRUE(*expected.answers[i] == answer)
          << "step " << i << "\n  expected " << to_text(*expected.answers[i]) << "\n  answered "
          << to_text(answer);
    }
  }

  static Step claim(std::uint32_t max_tasks, std::vector<std::string> lanes = {"default"}) {
    return {ClaimTasks{.worker_id = "w",
                       .lanes = std::move(lanes),
                       .capabilities = {},
                       .max_tasks = max_tasks,
                       .lease_ttl_ms = 30'000},
            7};
  }

  tests::TestStore place_{GetParam()};
  Replica memory_{"memory", "memory:", now};
  Replica deferred_{GetParam(), place_.url(), now};
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Deferred, testing::Values("memory_deferred", "postgres"),
                         [](const auto& each) { return each.param; });

TEST_P(Deferred, AClaimOfTheMostTasksAllowedIsServed) {
  create(300);
  expect_same({claim(256)});
}

TEST_P(Deferred, ManyClaimsShareABatch) {
  create(300);
  expect_same(std::vector<Step>(30, claim(8)));
}

TEST_P(Deferred, AClaimOverManyRoutesIsServed) {
  create(100, [](CreateExecution& request, std::uint32_t i) { request.namespace_ = std::to_string(i); });
  expect_same({claim(4)});
}

TEST_P(Deferred, AClaimOverTheMostLanesAllowedIsServed) {
  std::vector<std::string> lanes;
  for (int i = 0; i < 64; ++i) lanes.push_back("lane-" + std::to_string(i));
  create(64, [&](CreateExecution& request, std::uint32_t i) { request.lane_id = lanes[i]; });
  expect_same({claim(64, lanes)});
}

}  // namespace
}  // namespace flowfabric::simulation
