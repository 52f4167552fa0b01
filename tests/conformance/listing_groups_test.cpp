// Listings of a store with more groups (lane, namespace, kind) than can be walked one by one.
#include <set>

#include "support/engine_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

// A page looks at no more than 2000 candidates where it has to check them.
constexpr int kOthers = 2100;

class ManyGroups : public EngineTest {
 protected:
  void SetUp() override {
    cancelled_ = create({.namespace_ = "rare", .lane_id = "many", .execution_kind = "first"});
    cancel(cancelled_);
    forget(cancelled_);
    for (int chunk = 0; chunk < 3; ++chunk) {
      tick(1000);
      CreateExecutions request;
      for (int i = chunk * kOthers / 3; i < (chunk + 1) * kOthers / 3; ++i) {
        request.executions.push_back({.namespace_ = "n" + std::to_string(i % 3),
                                      .lane_id = "many",
                                      .execution_kind = "kind-" + std::to_string(i)});
      }
      for (const auto& made : must(std::move(request))) {
        ASSERT_TRUE(made);
        ids_.insert(made->execution_id);
      }
    }
  }
  std::vector<ExecutionId> all(ExecutionFilter filter, ListOrder order, std::uint32_t limit) {
    std::vector<ExecutionId> found;
    std::int64_t last = 0;
    std::optional<std::string> cursor;
    do {
      const auto page = must(
          ListExecutions{.filter = filter, .order = order, .limit = limit, .cursor = cursor.value_or("")});
      EXPECT_TRUE(!page.executions.empty() || !page.next_cursor) << "an empty page with a cursor";
      for (const auto& each : page.executions) {
        const bool in_order = order == ListOrder::oldest ? each.created_at >= last : each.created_at <= last;
        EXPECT_TRUE(found.empty() || in_order);
        last = each.created_at;
        found.push_back(each.execution_id);
      }
      cursor = page.next_cursor;
    } while (cursor);
    return found;
  }

  ExecutionId cancelled_;
  std::set<ExecutionId> ids_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ManyGroups, kStores, store_name);

TEST_P(ManyGroups, AreListedByState) {
  const std::vector<ExecutionId> only{cancelled_};
  for (const auto order : {ListOrder::newest, ListOrder::oldest}) {
    EXPECT_EQ(all({.states = {PublicState::cancelled}}, order, 50), only);
    EXPECT_EQ(all({.lane_id = "many", .states = {PublicState::cancelled}}, order, 50), only);
  }
  const auto waiting = all({.states = {PublicState::waiting}}, ListOrder::oldest, 1000);
  EXPECT_EQ(waiting.size(), ids_.size()) << "none twice";
  EXPECT_EQ(std::set(waiting.begin(), waiting.end()), ids_);
  EXPECT_TRUE(all({.states = {PublicState::failed}}, ListOrder::newest, 50).empty());
}

TEST_P(ManyGroups, AreListedByLaneAndTime) {
  EXPECT_EQ(all({.lane_id = "many"}, ListOrder::oldest, 999).size(), kOthers + 1u);
  EXPECT_EQ(all({.lane_id = "many", .namespace_ = "rare"}, ListOrder::newest, 50).size(), 1u);
  EXPECT_EQ(all({.namespace_ = "n1"}, ListOrder::newest, 300).size(), kOthers / 3u);
  const ExecutionFilter late{.states = {PublicState::waiting}, .created_after = kStart + 1000};
  EXPECT_EQ(all(late, ListOrder::newest, 500).size(), 2 * kOthers / 3u);
  const ExecutionFilter early{.states = {PublicState::waiting}, .created_before = kStart + 1001};
  EXPECT_EQ(all(early, ListOrder::newest, 500).size(), kOthers / 3u);
}

TEST_P(ManyGroups, LanesKnowWhatHasWaitedLongest) {
  const auto lanes = must(ListLanes{}).lanes;
  ASSERT_EQ(lanes.size(), 1u);
  EXPECT_EQ(lanes[0].oldest_waiting_at, kStart + 1000);
}

}  // namespace
}  // namespace flowfabric
