// Listing executions (09 §2): every filter, both orders, any page size, compared with a plain search.
#include <algorithm>
#include <functional>

#include "support/bulk_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using Summaries = std::vector<ExecutionSummary>;

bool matches(const ExecutionFilter& filter, const ExecutionSummary& seen) {
  const auto same = [](const auto& wanted, const auto& value) { return !wanted || *wanted == value; };
  const bool has_tags = std::all_of(filter.tags.begin(), filter.tags.end(), [&](const auto& tag) {
    const auto found = seen.tags.find(tag.first);
    return found != seen.tags.end() && found->second == tag.second;
  });
  const bool in_state = filter.states.empty() || std::find(filter.states.begin(), filter.states.end(),
                                                           seen.public_state) != filter.states.end();
  return has_tags && in_state && same(filter.lane_id, seen.lane_id) &&
         same(filter.namespace_, seen.namespace_) && same(filter.execution_kind, seen.execution_kind) &&
         (!filter.flow_id || filter.flow_id == seen.flow_id) &&
         (!filter.created_after || seen.created_at > *filter.created_after) &&
         (!filter.created_before || seen.created_at < *filter.created_before);
}

struct Filtered {
  std::string name;
  ExecutionFilter filter;
  std::size_t at_least{1};  // so that a case cannot become empty unnoticed
};
void PrintTo(const Filtered& filtered, std::ostream* out) {
  *out << filtered.name;
}

class Listing : public Bulk<EngineCaseTest<Filtered>> {
 protected:
  static constexpr int kCount = 60;
  static constexpr std::int64_t kStep = 10;  // three of them share each time

  // Executions of every lane, namespace, kind, tag and state, in many combinations.
  void SetUp() override {
    for (int i = 0; i < kCount; ++i) {
      if (i > 0 && i % 3 == 0) tick(kStep);
      const auto id = make(i);
      const auto seen = describe(id);
      population_.push_back({.execution_id = id,
                             .execution_kind = kind_of(i),
                             .namespace_ = seen.namespace_,
                             .lane_id = seen.lane_id,
                             .public_state = seen.state.public_state,
                             .priority = seen.priority,
                             .flow_id = std::nullopt,
                             .created_at = seen.created_at,
                             .started_at = seen.started_at,
                             .completed_at = seen.completed_at,
                             .attempts = seen.total_attempt_count,
                             .tags = seen.tags});
    }
  }

  Summaries expected_for(const ExecutionFilter& filter, ListOrder order) const {
    Summaries found;
    for (const auto& seen : population_) {
      if (matches(filter, seen)) found.push_back(seen);
    }
    std::sort(found.begin(), found.end(), [&](const auto& a, const auto& b) {
      const auto before = std::pair(a.created_at, a.execution_id) < std::pair(b.created_at, b.execution_id);
      return order == ListOrder::oldest ? before : !before && a.execution_id != b.execution_id;
    });
    return found;
  }

 private:
  static std::string kind_of(int i) { return i / 2 % 2 == 0 ? "resize" : "send"; }

  ExecutionId make(int i) {
    CreateExecution request{.lane_id = i % 2 == 0 ? "default" : "slow", .execution_kind = kind_of(i)};
    if (i % 3 != 0) request.namespace_ = i % 3 == 1 ? "acme" : "zeta";
    if (i % 5 != 0) request.tags["team.name"] = i % 4 == 0 ? "red" : "blue";
    if (i % 7 == 0) request.tags["app.version"] = "1";
    if (i % 11 == 0) request.tags["app.note"] = "";
    const int state = i % 6;
    if (state == 1) request.delay_until = now() + kHour;
    if (state >= 2) request.priority = 9;  // taken before those that stay
    const ClaimTasks from_lane{.lanes = {request.lane_id}};
    const auto id = create(request);
    if (state == 5) cancel(id);
    if (state < 2 || state == 5) return id;
    const auto task = claim_one(from_lane);
    if (state == 3) complete(task);
    if (state == 4) fail(task);
    return id;
  }

  Summaries population_;
};

std::vector<Filtered> filters() {
  using S = PublicState;
  const auto time = [](int i) { return kStart + i * 10; };
  return {
      {"Everything", {}, 60},
      {"Lane", {.lane_id = "slow"}, 30},
      {"LaneUnknown", {.lane_id = "nowhere"}, 0},
      {"Waiting", {.states = {S::waiting}}, 10},
      {"Delayed", {.states = {S::delayed}}, 10},
      {"Active", {.states = {S::active}}, 10},
      {"Completed", {.states = {S::completed}}, 10},
      {"Failed", {.states = {S::failed}}, 10},
      {"Cancelled", {.states = {S::cancelled}}, 10},
      {"Ended", {.states = {S::completed, S::failed, S::cancelled, S::expired, S::skipped}}, 30},
      {"StateTwice", {.states = {S::failed, S::failed}}, 10},
      {"StateNeverProduced", {.states = {S::resumable}}, 0},
      {"Namespace", {.namespace_ = "acme"}, 20},
      {"NamespaceEmpty", {.namespace_ = ""}, 20},
      {"NamespaceUnknown", {.namespace_ = "acm"}, 0},
      {"Kind", {.execution_kind = "send"}, 30},
      {"KindUnknown", {.execution_kind = "SEND"}, 0},
      {"Flow", {.flow_id = FlowId{}}, 0},
      {"Tag", {.tags = {{"team.name", "red"}}}, 5},
      {"TagOfOtherValue", {.tags = {{"team.name", "re"}}}, 0},
      {"TagEmpty", {.tags = {{"app.note", ""}}}, 5},
      {"TagUnknown", {.tags = {{"team", "red"}}}, 0},
      {"Tags", {.tags = {{"team.name", "blue"}, {"app.version", "1"}}}, 3},
      {"After", {.created_after = time(5)}, 42},
      {"Before", {.created_before = time(5)}, 15},
      {"Between", {.created_after = time(5), .created_before = time(7)}, 3},
      {"BetweenNeighbours", {.created_after = time(5), .created_before = time(6)}, 0},
      {"AfterTheLast", {.created_after = time(19)}, 0},
      {"BeforeTheFirst", {.created_before = time(0)}, 0},
      {"Never", {.created_after = time(9), .created_before = time(3)}, 0},
      {"TimesAtTheirEnds", {.created_after = INT64_MIN, .created_before = INT64_MAX}, 60},
      {"LaneAndState", {.lane_id = "slow", .states = {S::failed, S::delayed}}, 1},
      {"LaneAndNamespace", {.lane_id = "default", .namespace_ = "zeta"}, 5},
      {"LaneStateNamespace", {.lane_id = "default", .states = {S::waiting}, .namespace_ = ""}, 1},
      {"NamespaceAndKind", {.namespace_ = "zeta", .execution_kind = "resize"}, 5},
      {"TagAndState", {.states = {S::completed}, .tags = {{"team.name", "blue"}}}, 1},
      {"TagAndTime", {.tags = {{"team.name", "blue"}}, .created_after = time(10)}, 5},
      {"StateAndTime", {.states = {S::cancelled}, .created_before = time(10)}, 3},
      {"KindAndTag", {.execution_kind = "resize", .tags = {{"app.version", "1"}}}, 1},
      {"AllAtOnce",
       {.lane_id = "default",
        .states = {S::waiting, S::active, S::failed},
        .namespace_ = "zeta",
        .execution_kind = "send",
        .tags = {{"team.name", "blue"}},
        .created_after = time(0),
        .created_before = time(19)},
       1},
  };
}
INSTANTIATE_TEST_SUITE_P(EveryStore, Listing, on_every_store(filters()), case_name<Filtered>);

TEST_P(Listing, GivesWhatMatchesInOrderAndOnce) {
  for (const auto order : {ListOrder::newest, ListOrder::oldest}) {
    const auto wanted = expected_for(given().filter, order);
    EXPECT_GE(wanted.size(), given().at_least);
    for (const std::uint32_t limit : {1u, 7u, 50u, 1000u}) {
      const ListExecutions request{.filter = given().filter, .order = order, .limit = limit};
      EXPECT_EQ(list(request), wanted) << order << ", limit " << limit;
    }
  }
}

TEST_P(Listing, NoPageIsLongerThanItsLimit) {
  const auto pages = pages_of(ListExecutions{.filter = given().filter, .limit = 4},
                              [&](const ListExecutions& request) { return must(request); });
  for (const auto size : page_sizes(pages, &ExecutionPage::executions)) EXPECT_LE(size, 4u);
}

}  // namespace
}  // namespace flowfabric
