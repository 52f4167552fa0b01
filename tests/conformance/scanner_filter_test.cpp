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
  EXPECT_EQ(engine().stats().clock_operations, 1u) << "what is for others is not even looked at";
  EXPECT_EQ(engine().stats().clock_failures, 0u);
  // Another engine comes.
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

// Records of other engines do not delay this engine's own.
TEST_P(Filtered, OthersDoNotFillThePage) {
  for (int i = 0; i < 600; ++i) delayed("other");
  const auto mine = delayed("mine");
  look_only_at({.namespace_ = "mine"});
  advance(1000);
  EXPECT_EQ(public_state(mine), PublicState::waiting);
  EXPECT_EQ(engine().stats().clock_operations, 1u);
}
TEST_P(Filtered, OthersDoNotFillThePageByTag) {
  for (int i = 0; i < 300; ++i) delayed("n", {{"app.instance", "green"}});
  const auto mine = delayed("n", {{"app.instance", "blue"}});
  look_only_at({.instance_tag = std::pair{"app.instance", "blue"}});
  advance(1000);
  EXPECT_EQ(public_state(mine), PublicState::waiting);
  EXPECT_EQ(engine().stats().clock_operations, 1u);
}

// Nor do those that have ended and are to be removed.
TEST_P(Filtered, RemovalsOfOthersDoNotFillThePage) {
  const auto ended = [&](const std::string& name_space) {
    const auto id = create({.namespace_ = name_space, .lane_id = name_space});
    cancel(id);
    return id;
  };
  for (int i = 0; i < 400; ++i) forget(ended("other"));
  const auto mine = ended("mine");
  forget(mine);
  look_only_at({.namespace_ = "mine"});
  advance(25 * kHour);
  expect_error(DescribeExecution{mine}, ErrorCode::execution_not_found);
  EXPECT_EQ(engine().stats().clock_rules.at("retention_trimmer"), 1u);
  EXPECT_EQ(engine().stats().clock_operations, 3u) << "its removal, and looks at its route and its group";
}

// The empty namespace is one, too.
TEST_P(Filtered, ByNoNamespace) {
  const auto mine = delayed("");
  const auto other = delayed("other");
  must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i", .liveness_ttl_ms = 1000});
  look_only_at({.namespace_ = ""});
  advance(2000);
  EXPECT_EQ(public_state(mine), PublicState::waiting);
  EXPECT_EQ(public_state(other), PublicState::delayed);
  EXPECT_EQ(engine().stats().clock_rules.at("worker_registry_ttl_sweep"), 1u);
}

// A tag counts for what belongs to an execution or a flow; workers and keys have none.
TEST_P(Filtered, EveryKindOfClock) {
  for (const std::string whose : {"mine", "other"}) {
    const Tags tags{{"app.instance", whose}};
    const auto task = running({.namespace_ = whose, .tags = tags});
    must(CreateWaitpoint{
        .execution_id = task.execution_id, .fence = task.fence, .waitpoint_key = "k", .expires_in_ms = 1000});
    must(RegisterWorker{
        .worker_id = "w", .worker_instance_id = "i", .namespace_ = whose, .liveness_ttl_ms = 1000});
    create({.namespace_ = whose,
            .idempotency_key = "key",
            .policy = {.dedup_window_ms = 1000},
            .delay_until = now() + kHour});
  }
  look_only_at({.namespace_ = "mine", .instance_tag = std::pair{"app.instance", "mine"}});
  advance(2000);
  EXPECT_EQ(engine().stats().clock_rules,
            (Counts{{"pending_wp_expiry", 1}, {"ttl_sweep", 1}, {"worker_registry_ttl_sweep", 1}}));
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
  look_only_at({.namespace_ = "mine", .instance_tag = std::pair{"app.instance", "blue"}});
  run_due();
  EXPECT_EQ(members(), "a:waiting b:waiting") << "the flow has no such tag";
  expect_not_offered("a b");
  look_only_at({.namespace_ = "mine"});
  run_due();
  EXPECT_EQ(members(), "a:cancelled b:cancelled");
  EXPECT_EQ(engine().stats().clock_rules.at("cancel_reconciler"), 1u);
}

// 04, case 42: the flow's own clock continues a fan-out that is too wide for one step.
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
