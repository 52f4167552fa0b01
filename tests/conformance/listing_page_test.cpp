// Pages of a listing: cursors, limits, and a store that changes between two pages.
#include <map>
#include <random>
#include <set>

#include "support/bulk_fixture.h"
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class ListingPages : public Bulk<EngineTest> {
 protected:
  ExecutionPage page(ListExecutions request) { return must(std::move(request)); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ListingPages, kStores, store_name);

// ---- by default ----

TEST_P(ListingPages, OfAnEmptyStoreIsEmpty) {
  EXPECT_EQ(page({}), ExecutionPage{});
  EXPECT_EQ(page({.order = ListOrder::oldest}), ExecutionPage{});
}

TEST_P(ListingPages, TheNewestFiftyComeFirst) {
  Ids created;
  for (int i = 0; i < 51; ++i) {
    created.push_back(create());
    tick(1);
  }
  const auto first = page({});
  EXPECT_EQ(ids_of(first.executions), Ids(created.rbegin(), created.rbegin() + 50));
  ASSERT_TRUE(first.next_cursor);
  const auto last = page({.cursor = *first.next_cursor});
  EXPECT_EQ(ids_of(last.executions), Ids{created.front()});
  EXPECT_EQ(last.next_cursor, std::nullopt);
}

TEST_P(ListingPages, ThoseOfOneInstantAreInTheOrderOfTheirIds) {
  const auto ones = *Uuid::parse(std::string(32, '1'));
  const auto third = create({.execution_id = ExecutionId{10, {}}});
  const auto second = create({.execution_id = ExecutionId{9, ones}});
  const auto first = create({.execution_id = ExecutionId{9, {}}});

  EXPECT_EQ(ids_of(list({.order = ListOrder::oldest, .limit = 1})), (Ids{first, second, third}));
  EXPECT_EQ(ids_of(list({.order = ListOrder::newest, .limit = 1})), (Ids{third, second, first}));
}

// ---- bad input ----

TEST_P(ListingPages, ALimitIsBetween1And1000) {
  create_many(1001);
  for (const std::uint32_t limit : {0u, 1001u, 1'000'000u}) {
    const auto error = expect_error(ListExecutions{.limit = limit}, ErrorCode::invalid_input);
    EXPECT_TRUE(error.detail.starts_with("limit")) << error.detail;
  }
  EXPECT_EQ(page({.limit = 1}).executions.size(), 1u);
  EXPECT_EQ(page({.limit = 1000}).executions.size(), 1000u);
}

TEST_P(ListingPages, ABadCursorIsRefused) {
  create_many(3);
  const auto cursor = page({.limit = 1}).next_cursor.value();
  const auto first_id = list({}).front().execution_id.to_string();
  for (const auto& bad : {std::string("nonsense"), std::string("1"), cursor + "x",
                          cursor.substr(0, cursor.size() / 2), first_id, std::string("\0", 1)}) {
    const auto error = expect_error(ListExecutions{.cursor = bad}, ErrorCode::invalid_input);
    EXPECT_TRUE(error.detail.starts_with("cursor")) << bad << ": " << error.detail;
  }
}

TEST_P(ListingPages, ACursorBelongsToItsOrder) {
  create_many(3);
  for (const auto order : {ListOrder::newest, ListOrder::oldest}) {
    const auto other = order == ListOrder::newest ? ListOrder::oldest : ListOrder::newest;
    const auto cursor = page({.order = order, .limit = 1}).next_cursor.value();
    const auto error =
        expect_error(ListExecutions{.order = other, .cursor = cursor}, ErrorCode::invalid_input);
    EXPECT_TRUE(error.detail.starts_with("cursor")) << error.detail;
  }
}

TEST_P(ListingPages, AFilterThatNothingCouldMatchIsRefused) {
  create();
  for (const auto& [filter, code] : std::vector<std::pair<ExecutionFilter, ErrorCode>>{
           {{.lane_id = ""}, ErrorCode::invalid_input},
           {{.lane_id = std::string(65, 'x')}, ErrorCode::invalid_input},
           {{.namespace_ = std::string("\0", 1)}, ErrorCode::invalid_input},
           {{.execution_kind = "\xff"}, ErrorCode::invalid_input},
           {{.tags = {{"", "x"}}}, ErrorCode::invalid_tag_key},
           {{.tags = {{"a.b", std::string("\0", 1)}}}, ErrorCode::invalid_input}}) {
    expect_error(ListExecutions{.filter = filter}, code);
  }
}

TEST_P(ListingPages, ListingChangesNothing) {
  const auto id = create({.tags = {{"a.b", "c"}}});
  const auto before = story(id);
  matching({.tags = {{"a.b", "c"}}});
  expect_error(ListExecutions{.limit = 0}, ErrorCode::invalid_input);

  EXPECT_EQ(story(id), before);
}

// ---- few among many ----

TEST_P(ListingPages, TheRareAreAllFoundWhereverTheyAre) {
  constexpr std::size_t count = 5000;
  std::vector<CreateExecution> requests(count, CreateExecution{.namespace_ = "n", .execution_kind = "often"});
  const std::set<std::size_t> rare{0, 1, 2500, 4998, 4999};
  for (const auto i : rare) {
    requests[i].execution_kind = "rare";
    requests[i].tags = {{"a.rare", "yes"}};
    requests[i].delay_until = kStart + kHour;
  }
  for (std::size_t i = 0; i < count; i += 2) requests[i].tags["a.even"] = "yes";
  const auto ids = create_all(requests);
  std::set<ExecutionId> wanted;
  for (const auto i : rare) wanted.insert(ids[i]);

  const std::vector<ExecutionFilter> filters{
      {.execution_kind = "rare"},
      {.tags = {{"a.rare", "yes"}}},
      {.states = {PublicState::delayed}},
      {.lane_id = "default", .namespace_ = "n", .execution_kind = "rare"},
      {.states = {PublicState::waiting, PublicState::delayed}, .execution_kind = "rare"},
      {.namespace_ = "n", .tags = {{"a.rare", "yes"}}, .created_after = kStart - 1}};
  for (const auto& filter : filters) {
    for (const auto order : {ListOrder::newest, ListOrder::oldest}) {
      for (const std::uint32_t limit : {1u, 3u, 1000u}) {
        const auto found = ids_of(list({.filter = filter, .order = order, .limit = limit}));
        EXPECT_EQ(std::set(found.begin(), found.end()), wanted) << limit;
        EXPECT_EQ(found.size(), wanted.size()) << "each once";
      }
    }
  }
  EXPECT_EQ(matching({.execution_kind = "rare", .tags = {{"a.even", "yes"}}}).size(), 3u);
}

TEST_P(ListingPages, ManyKindsAreListedLikeFew) {
  constexpr std::size_t count = 1300;
  std::vector<CreateExecution> requests;
  for (std::size_t i = 0; i < count; ++i) {
    requests.push_back(
        {.lane_id = i % 13 == 0 ? "rare" : "default", .execution_kind = "k" + std::to_string(i)});
  }
  const auto ids = create_all(requests);
  for (const auto order : {ListOrder::newest, ListOrder::oldest}) {
    const auto of_lane = ids_of(list({.filter = {.lane_id = "rare"}, .order = order, .limit = 7}));
    EXPECT_EQ(of_lane.size(), 100u);
    EXPECT_EQ(std::set(of_lane.begin(), of_lane.end()).size(), 100u);
    const auto all =
        ids_of(list({.filter = {.states = {PublicState::waiting}}, .order = order, .limit = 99}));
    EXPECT_EQ(std::set(all.begin(), all.end()), std::set(ids.begin(), ids.end()));
    EXPECT_EQ(all.size(), count);
  }
  EXPECT_EQ(matching({.execution_kind = "k700"}), Ids{ids[700]});
}

// ---- a store that changes ----

TEST_P(ListingPages, NewOnesComeBeforeTheCursorOfTheNewest) {
  const auto old = create_many(4);
  tick(1);
  auto request = ListExecutions{.limit = 2};
  const auto first = page(request);
  const auto added = create();
  request.cursor = first.next_cursor.value();
  auto seen = ids_of(first.executions);
  for (const auto& id : ids_of(list(request))) seen.push_back(id);

  EXPECT_EQ(std::set(seen.begin(), seen.end()), std::set(old.begin(), old.end()));
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(page({}).executions.front().execution_id, added);
}

TEST_P(ListingPages, NewOnesComeAtTheEndOfTheOldest) {
  create_many(4);
  tick(1);
  auto request = ListExecutions{.order = ListOrder::oldest, .limit = 2};
  request.cursor = page(request).next_cursor.value();
  const auto added = create();

  EXPECT_EQ(ids_of(list(request)).back(), added);
}

TEST_P(ListingPages, TheOneUnderTheCursorMayGo) {
  const auto ids = create_many(4);
  const ExecutionFilter waiting{.states = {PublicState::waiting}};
  auto request = ListExecutions{.filter = waiting, .limit = 2};
  const auto first = page(request);
  for (const auto& seen : first.executions) cancel(seen.execution_id);
  request.cursor = first.next_cursor.value();

  const auto rest = ids_of(list(request));
  EXPECT_EQ(rest.size(), 2u);
  auto all = ids_of(first.executions);
  all.insert(all.end(), rest.begin(), rest.end());
  EXPECT_EQ(std::set(all.begin(), all.end()), std::set(ids.begin(), ids.end()));
}

TEST_P(ListingPages, ItShowsTheStateOfTheMoment) {
  const auto id = create({.tags = {{"a.b", "old"}}});
  must(SetTags{id, {{"a.b", "new"}, {"c.d", "x"}}});
  EXPECT_EQ(matching({.tags = {{"a.b", "old"}}}), Ids{});
  EXPECT_EQ(matching({.tags = {{"a.b", "new"}}}), Ids{id});
  must(SetTags{id, {{"a.b", std::nullopt}}});
  EXPECT_EQ(matching({.tags = {{"a.b", "new"}}}), Ids{});
  EXPECT_EQ(matching({.tags = {{"c.d", "x"}}}), Ids{id});
  const auto task = claim_one();
  EXPECT_EQ(matching({.states = {PublicState::active}}), Ids{id});
  complete(task);
  EXPECT_EQ(matching({.states = {PublicState::active}}), Ids{});
  EXPECT_EQ(matching({.states = {PublicState::completed}}), Ids{id});
  must(ReplayExecution{.execution_id = id});
  EXPECT_EQ(matching({.states = {PublicState::waiting}}), Ids{id});
  const auto seen = list({}).at(0);
  EXPECT_EQ(seen.completed_at, std::nullopt);
  EXPECT_EQ(seen.attempts, 1u);
  EXPECT_EQ(seen.tags, (Tags{{"c.d", "x"}}));
}

TEST_P(ListingPages, APausedLaneShowsItsWorkAsWaiting) {
  const auto id = create();
  must(SetLaneState{"default", LaneState::paused});

  EXPECT_EQ(matching({.states = {PublicState::waiting}}), Ids{id});
}

// Whatever happens between pages: an execution that matches all the time is listed exactly once, and none is
// listed twice.
TEST_P(ListingPages, EverybodyIsShownOnceWhileOthersComeAndGo) {
  std::mt19937 random(20'251'115);
  const auto chance = [&](unsigned one_in) { return random() % one_in == 0; };
  for (std::uint32_t round = 1; round <= 8; ++round) {
    Ids ids;
    for (int i = 0; i < 40; ++i) {
      ids.push_back(create());
      tick(chance(2) ? 1 : 0);
    }
    std::set<ExecutionId> steady(ids.begin(), ids.end());
    std::map<ExecutionId, int> shown;
    int changes = 30;  // new ones must not keep the listing of the oldest going for ever
    const auto disturb = [&] {
      for (int i = 0; i < 3 && changes > 0; ++i, --changes) {
        const auto& id = ids[random() % ids.size()];
        if (steady.erase(id) == 1) cancel(id);
        create();
        tick(chance(3) ? 1 : 0);
      }
    };
    const ListExecutions waiting{.filter = {.states = {PublicState::waiting}},
                                 .order = chance(2) ? ListOrder::newest : ListOrder::oldest,
                                 .limit = round};
    pages_of(waiting, [&](const ListExecutions& request) {
      auto answer = must(request);
      for (const auto& seen : answer.executions) ++shown[seen.execution_id];
      disturb();
      return answer;
    });
    for (const auto& [id, times] : shown) EXPECT_EQ(times, 1) << id;
    for (const auto& id : steady) EXPECT_EQ(shown[id], 1) << id;
    for (const auto& id : matching(waiting.filter)) cancel(id);
  }
}

// ---- restarts ----

class ListingRestart : public Bulk<ReopenTest> {};
INSTANTIATE_TEST_SUITE_P(DurableStores, ListingRestart, kDurableStores, store_name);

TEST_P(ListingRestart, ACursorIsGoodAfterARestart) {
  const auto ids = create_many(10, {.execution_kind = "test", .tags = {{"a.b", "c"}}});
  auto request = ListExecutions{.filter = {.tags = {{"a.b", "c"}}}, .order = ListOrder::oldest, .limit = 4};
  auto seen = ids_of(must(request).executions);
  request.cursor = must(request).next_cursor.value();
  reopen();
  for (const auto& id : ids_of(list(request))) seen.push_back(id);

  EXPECT_EQ(std::set(seen.begin(), seen.end()), std::set(ids.begin(), ids.end()));
  EXPECT_EQ(seen.size(), 10u);
}

}  // namespace
}  // namespace flowfabric
