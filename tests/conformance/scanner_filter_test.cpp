// Whose time-driven work an engine sees to (08 §3.5), and what it counts of it.
#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class Filtered : public FlowTest {
 protected:
  // The next engine on the store.
  void look_only_at(ScannerFilter filter) { reopen({.scanner_filter = std::move(filter)}); }
  ExecutionId delayed(const std::string& name_space, Tags tags = {}) {
    return create({.namespace_ = name_space, .tags = std::move(tags), .delay_until = now() + 1000});
  }
  PublicState public_state(const ExecutionId& id) { return state(id).public_state; }
};
INSTANTIATE_TEST_SUITE_P(DurableStores, Filtered, kDurableStores, store_name);

TEST_P(Filtered, EverythingPassesAnEmptyOne) {
  const auto mine = delayed("mine");
  const auto other = delayed("other");
  advance(1000);
  EXPECT_EQ(public_state(mine), PublicState::waiting);
  EXPECT_EQ(public_state(other), PublicState::waiting);
  EXPECT_EQ(engine().stats().clock_rules, (std::map<std::string, std::uint64_t>{{"delayed_promoter", 2}}));
  EXPECT_EQ(engine().stats().clock_filtered, 0u);
}

TEST_P(Filtered, ByNamespace) {
  const auto mine = delayed("mine");
  const auto other = delayed("other");
  look_only_at({.namespace_ = "mine"});
  advance(1000);
  EXPECT_EQ(public_state(mine), PublicState::waiting);
  EXPECT_EQ(public_state(other), PublicState::delayed);
  EXPECT_EQ(engine().stats().clock_filtered, 1u);
  EXPECT_EQ(engine().stats().clock_failures, 0u);
  // Somebody else comes.
  look_only_at({.namespace_ = "other"});
  run_due();
  EXPECT_EQ(public_state(other), PublicState::waiting);
}

// The key counts as well as the value.
TEST_P(Filtered, ByTag) {
  const auto mine = delayed("n", {{"app.instance", "blue"}});
  const auto no_tag = delayed("n");
  const auto other_value = delayed("n", {{"app.instance", "green"}});
  const auto other_key = delayed("n", {{"app.colour", "blue"}});
  const auto other_namespace = delayed("m", {{"app.instance", "blue"}});
  look_only_at({.namespace_ = "n", .instance_tag = std::pair{"app.instance", "blue"}});
  advance(1000);
  EXPECT_EQ(public_state(mine), PublicState::waiting);
  for (const auto& id : {no_tag, other_value, other_key, other_namespace}) {
    EXPECT_EQ(public_state(id), PublicState::delayed);
  }
}

// What is left to others does not stand in the way of what is not.
TEST_P(Filtered, OthersDoNotFillThePage) {
  for (int i = 0; i < 600; ++i) delayed("other");
  const auto mine = delayed("mine");
  look_only_at({.namespace_ = "mine"});
  advance(1000);
  EXPECT_EQ(public_state(mine), PublicState::waiting);
  EXPECT_EQ(engine().stats().clock_filtered, 600u);
}

// 04 §8: the join's member tells whose it is.
TEST_P(Filtered, SiblingsAreCancelledByTheirOwn) {
  auto request = graph("u1>d u2>d", {{"d", any_of()}});
  request.namespace_ = "mine";
  submit(request);
  look_only_at({.namespace_ = "other"});
  succeeds("u1");
  run_due();
  EXPECT_EQ(members(), "d:waiting u1:completed u2:waiting");
  look_only_at({.namespace_ = "mine"});
  run_due();
  EXPECT_EQ(members(), "d:waiting u1:completed u2:cancelled");
  EXPECT_EQ(engine().stats().clock_rules.at("edge_cancel_dispatcher"), 1u);
}

TEST_P(Filtered, FlowsAreCancelledByTheirOwn) {
  auto request = graph("a b");
  request.namespace_ = "mine";
  submit(request);
  look_only_at({.namespace_ = "other"});
  cancel_flow();
  run_due();
  EXPECT_EQ(members(), "a:waiting b:waiting");
  expect_not_offered("a b");
  look_only_at({.namespace_ = "mine"});
  run_due();
  EXPECT_EQ(members(), "a:cancelled b:cancelled");
  EXPECT_EQ(engine().stats().clock_rules.at("cancel_reconciler"), 1u);
}

// 04, case 42: a fan-out too wide for one step goes on by the clock of its own.
TEST_P(Filtered, DependentsAreLetGoByTheirOwn) {
  auto request = fan_out(600);
  request.namespace_ = "mine";
  submit_many(request);
  look_only_at({.namespace_ = "other"});
  const auto waiting = [&] { return flow().counts[PublicState::waiting]; };
  complete(claim_one({.lanes = {"many"}}));
  run_due();
  EXPECT_EQ(waiting(), 256);
  look_only_at({.namespace_ = "mine"});
  run_due();
  EXPECT_EQ(waiting(), 600);
  EXPECT_EQ(engine().stats().clock_rules.at("dependency_reconciler"), 2u);
}

}  // namespace
}  // namespace flowfabric
