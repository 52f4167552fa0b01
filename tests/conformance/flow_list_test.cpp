// Listings of flows: by partition (04 §4.8), and by what they are (09 §3).
#include <algorithm>

#include "support/flow_support.h"
#include "support/paging.h"

namespace flowfabric {
namespace {

using namespace tests;
using Flows = std::vector<FlowId>;

class FlowListing : public FlowTest {
 protected:
  // One after the other, in time.
  FlowId make_flow(CreateFlow request) {
    tick(1);
    return start_flow(std::move(request));
  }
  FlowId submit_flow(const std::string& drawing) {
    tick(1);
    return submit(graph(drawing)).flow_id;
  }
  template <class Request>
  Flows ids(Request request) {
    const auto limit = request.limit;
    const auto pages = pages_of(std::move(request), [&](const Request& next) { return must(next); });
    Flows found;
    for (const auto& page : pages) {
      EXPECT_LE(page.flows.size(), limit);
      for (const auto& flow : page.flows) found.push_back(flow.flow_id);
    }
    return found;
  }
  Flows matching(FlowFilter filter) { return ids(ListFlows{.filter = std::move(filter)}); }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowListing, kStores, store_name);

// ---- by what they are ----

TEST_P(FlowListing, OfAnEmptyStoreIsEmpty) {
  EXPECT_EQ(must(ListFlows{}), FlowPage{});
  EXPECT_EQ(must(ListFlowPartition{.partition = 7}), FlowPage{});
}

TEST_P(FlowListing, AnEntryIsASummary) {
  tick(5);
  auto request = graph("a>b c");
  request.flow_kind = "dag";
  request.namespace_ = "acme";
  request.tags = {{"a.b", "c"}};
  submit(request);
  take("a");
  const FlowSummary expected{flow_id(), "dag", "acme", FlowState::running, now(), 3, {{"a.b", "c"}}};

  EXPECT_EQ(must(ListFlows{}).flows, std::vector{expected});
  const auto partition = id("a").partition;
  EXPECT_EQ(must(ListFlowPartition{.partition = partition}).flows, std::vector{expected});
}

TEST_P(FlowListing, EverythingThatIsGivenMustMatch) {
  const auto first = make_flow({.flow_kind = "dag", .namespace_ = "n", .tags = {{"a.b", "c"}}});
  const auto second = make_flow({.flow_kind = "dag", .namespace_ = "m"});
  const auto third =
      make_flow({.flow_kind = "chain", .namespace_ = "n", .tags = {{"a.b", "c"}, {"d.e", "f"}}});

  EXPECT_EQ(matching({}), (Flows{third, second, first}));
  EXPECT_EQ(matching({.namespace_ = "n"}), (Flows{third, first}));
  EXPECT_EQ(matching({.namespace_ = ""}), Flows{});
  EXPECT_EQ(matching({.flow_kind = "dag"}), (Flows{second, first}));
  EXPECT_EQ(matching({.namespace_ = "n", .flow_kind = "dag"}), Flows{first});
  EXPECT_EQ(matching({.tags = {{"a.b", "c"}}}), (Flows{third, first}));
  EXPECT_EQ(matching({.tags = {{"a.b", "c"}, {"d.e", "f"}}}), Flows{third});
  EXPECT_EQ(matching({.tags = {{"a.b", "other"}}}), Flows{});
  EXPECT_EQ(matching({.created_after = kStart + 1}), (Flows{third, second}));
  EXPECT_EQ(matching({.created_before = kStart + 3}), (Flows{second, first}));
  EXPECT_EQ(matching({.created_after = kStart + 1, .created_before = kStart + 3}), Flows{second});
}

TEST_P(FlowListing, TheStateIsTheDerivedOne) {
  const auto open = submit_flow("a");
  const auto completed = submit_flow("b");
  succeeds("b");
  const auto failed = submit_flow("c");
  fails("c");
  const auto running = submit_flow("d");
  take("d");
  const auto cancelled = submit_flow("e");
  cancel_flow();
  run_due();

  EXPECT_EQ(matching({.states = {FlowState::open}}), Flows{open});
  EXPECT_EQ(matching({.states = {FlowState::completed}}), Flows{completed});
  EXPECT_EQ(matching({.states = {FlowState::failed}}), Flows{failed});
  EXPECT_EQ(matching({.states = {FlowState::running}}), Flows{running});
  EXPECT_EQ(matching({.states = {FlowState::cancelled}}), Flows{cancelled});
  EXPECT_EQ(matching({.states = {FlowState::blocked}}), Flows{});
  EXPECT_EQ(matching({.states = {FlowState::running, FlowState::failed}}), (Flows{running, failed}));
}

TEST_P(FlowListing, TagsAreThoseOfTheMoment) {
  const auto flow_id = make_flow({.tags = {{"a.b", "old"}}});
  must(SetFlowTags{flow_id, {{"a.b", "new"}}});

  EXPECT_EQ(matching({.tags = {{"a.b", "old"}}}), Flows{});
  EXPECT_EQ(matching({.tags = {{"a.b", "new"}}}), Flows{flow_id});
}

TEST_P(FlowListing, PagesGoByTheTimeOfCreation) {
  Flows created;
  for (int i = 0; i < 5; ++i) created.push_back(make_flow({}));
  const Flows newest(created.rbegin(), created.rend());
  for (const std::uint32_t limit : {1u, 2u, 5u, 1000u}) {
    EXPECT_EQ(ids(ListFlows{.order = ListOrder::oldest, .limit = limit}), created);
    EXPECT_EQ(ids(ListFlows{.order = ListOrder::newest, .limit = limit}), newest);
  }
  const auto page = must(ListFlows{.limit = 2});
  EXPECT_EQ(page.flows.size(), 2u);
  EXPECT_TRUE(page.next_cursor);
}

TEST_P(FlowListing, ThoseOfOneInstantAreEachListedOnce) {
  Flows created;
  for (int i = 0; i < 20; ++i) created.push_back(start_flow());
  std::ranges::sort(created);
  for (const auto order : {ListOrder::newest, ListOrder::oldest}) {
    auto seen = ids(ListFlows{.order = order, .limit = 3});
    std::ranges::sort(seen);
    EXPECT_EQ(seen, created);
  }
}

TEST_P(FlowListing, BadInputIsRefused) {
  for (int i = 0; i < 3; ++i) make_flow({});
  expect_error(ListFlows{.limit = 0}, ErrorCode::invalid_input);
  expect_error(ListFlows{.limit = 1001}, ErrorCode::invalid_input);
  const auto cursor = must(ListFlows{.limit = 1}).next_cursor.value();
  for (const auto& bad : {std::string("nonsense"), cursor + "x", cursor.substr(0, cursor.size() / 2)}) {
    expect_error(ListFlows{.cursor = bad}, ErrorCode::invalid_input);
  }
  expect_error(ListFlows{.order = ListOrder::oldest, .cursor = cursor}, ErrorCode::invalid_input);
}

// ---- by partition ----

class FlowPartitionListing : public FlowListing {
 protected:
  // Flows of one partition, by id, and one that lives elsewhere.
  Flows make_neighbours(std::size_t count) {
    Flows flows{flow_of(7)};
    while (flows.size() < count) flows.push_back(neighbour(flows.back()));
    for (auto it = flows.rbegin(); it != flows.rend(); ++it) start_flow({.flow_id = *it});
    std::ranges::sort(flows);
    auto elsewhere = flow_of(8);
    while (execution_id_for(elsewhere, {}).partition == partition()) ++elsewhere.uuid.bytes[0];
    start_flow({.flow_id = elsewhere});
    return flows;
  }
  static std::uint16_t partition() { return execution_id_for(flow_of(7), {}).partition; }
  static ListFlowPartition listing(std::uint32_t limit, const std::string& cursor = "") {
    return {.partition = partition(), .limit = limit, .cursor = cursor};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, FlowPartitionListing, kStores, store_name);

TEST_P(FlowPartitionListing, GoesByTheIdsInPages) {
  const auto flows = make_neighbours(5);
  const auto pages = pages_of(listing(2), [&](const ListFlowPartition& next) { return must(next); });

  EXPECT_EQ(page_sizes(pages, &FlowPage::flows), (std::vector<std::size_t>{2, 2, 1}));
  EXPECT_EQ(pages[0].next_cursor, flows[1].to_string());
  for (const std::uint32_t limit : {1u, 2u, 5u, 1000u}) EXPECT_EQ(ids(listing(limit)), flows);
}

TEST_P(FlowPartitionListing, TheCursorIsExclusiveAndNeedNotExist) {
  const auto flows = make_neighbours(3);
  EXPECT_EQ(ids(listing(50, flows[0].to_string())), (Flows{flows[1], flows[2]}));
  EXPECT_EQ(ids(listing(50, FlowId{}.to_string())), flows);
  EXPECT_EQ(ids(listing(50, flows[2].to_string())), Flows{});
}

TEST_P(FlowPartitionListing, HasThemInEveryState) {
  const auto flows = make_neighbours(2);
  must(CancelFlow{.flow_id = flows[0]});

  EXPECT_EQ(ids(listing(50)), flows);
}

TEST_P(FlowPartitionListing, LimitsAndCursorsAreChecked) {
  make_neighbours(1);
  EXPECT_EQ(must(listing(0)), FlowPage{});
  expect_error(listing(1001), ErrorCode::invalid_input);
  expect_error(listing(1, "nonsense"), ErrorCode::invalid_input);
  expect_error(ListFlowPartition{.partition = 256}, ErrorCode::invalid_input);
}

// ---- restarts ----

class FlowListingRestart : public FlowListing {};
INSTANTIATE_TEST_SUITE_P(DurableStores, FlowListingRestart, kDurableStores, store_name);

TEST_P(FlowListingRestart, FlowsAreAsTheyWere) {
  make_flow({.flow_kind = "dag", .namespace_ = "n", .tags = {{"a.b", "c"}}});
  add_all({"a", "b", "c"});
  set_join("c", quorum(1, OnSatisfied::let_run));
  connect("a", "c", "result");
  stage("b", "c");
  succeeds("a", "x");
  const auto before = flow_story();
  const auto listed = must(ListFlows{});
  reopen();

  EXPECT_EQ(flow_story(), before);
  EXPECT_EQ(must(ListFlows{}), listed);
  EXPECT_EQ(take("c").input, "x");
}

}  // namespace
}  // namespace flowfabric
