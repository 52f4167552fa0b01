// Flows in a damaged store: the findings and repairs of the consistency check, and the answers about a member
// that cannot be read any more.
#include <algorithm>

#include "support/damage.h"
#include "support/flow_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class DamagedFlow : public FlowFixture {
 protected:
  DamagedFlow() : FlowFixture("sqlite") {}

  void damage(const std::string& sql) {
    close();
    damage_file(store().file(), sql);
    reopen();
  }
  std::string blob(const std::string& name) const {
    auto digits = id(name).uuid.to_string();
    std::erase(digits, '-');
    return "x'" + digits + "'";
  }
  StoreReport check(bool repair) { return must(CheckStore{.repair = repair}); }

  // The check names the flow, changes nothing until it is asked to repair, and then leaves no damage.
  void expect_repaired(const std::string& what) {
    const auto found = check(false);
    ASSERT_EQ(found.violations.size(), 1u);
    EXPECT_EQ(found.violations[0].where, "flow " + flow_id().to_string());
    EXPECT_NE(found.violations[0].what.find(what), std::string::npos) << found.violations[0].what;
    EXPECT_EQ(check(false).found, 1u);
    const auto repaired = check(true);
    EXPECT_EQ(repaired.found, 1u);
    EXPECT_EQ(repaired.repaired, 1u);
    EXPECT_EQ(check(false).found, 0u);
  }
};

TEST_F(DamagedFlow, CountsItsMembersAnew) {
  submit(graph("a>b c"));
  damage("update ff_flow_core set node_count=7");
  expect_repaired("it counts 7 members and has 3");
}

// The record of an older version, which kept such flows for ever.
TEST_F(DamagedFlow, IsRemovedInTheEndWithoutAMember) {
  start_flow();
  cancel_flow();
  damage("delete from ff_cancel_backlog");
  expect_repaired("nothing removes it");
  advance(24 * kHour);
  expect_error(DescribeFlow{flow_id()}, ErrorCode::flow_not_found);
  forget_flow(flow_id());
}

TEST_F(DamagedFlow, CountsItsJoinsAnew) {
  submit(graph("a>c b>c"));
  succeeds("a");
  damage("update ff_edge_group set success_count=0");
  expect_repaired("counts too few of its edges");
  EXPECT_EQ(tally("c"), "1,0,0,1 pending");
  succeeds("b");
  succeeds("c");
}

TEST_F(DamagedFlow, CountsFailuresAnew) {
  submit(graph("a>c b>c", {{"c", any_of()}}));
  fails("a");
  damage("update ff_edge_group set fail_count=0");
  expect_repaired("counts too few of its edges");
  EXPECT_EQ(tally("c"), "0,1,0,1 pending");
  fails("b");
  EXPECT_EQ(members(), "a:failed b:failed c:skipped");
}

TEST_F(DamagedFlow, LetsAnUpstreamCountThatHasEnded) {
  submit(graph("a>c b>c"));
  succeeds("a");
  damage(
      "update ff_edge set dependency_state='unsatisfied',resolved_at_ms=null;"
      "update ff_edge_group set success_count=0");
  expect_repaired("waits for an upstream that has ended");
  EXPECT_EQ(tally("c"), "1,0,0,1 pending");
  succeeds("b");
  succeeds("c");
}

// All that it waits for is over: nothing else would ever let it go.
TEST_F(DamagedFlow, LetsAMemberGoThatWaitsForNothing) {
  submit(graph("a>c b>c"));
  succeeds("a");
  damage(
      "update ff_edge set dependency_state='satisfied',resolved_at_ms=1;"
      "update ff_edge_group set success_count=2");
  expect_repaired("is decided and does not know it");
  EXPECT_EQ(tally("c"), "2,0,0,0 satisfied");
  succeeds("c");
}

TEST_F(DamagedFlow, CannotBringAMemberBack) {
  submit(graph("a>b"));
  damage("delete from ff_exec_core where execution_id=" + blob("b"));
  const auto report = check(true);
  EXPECT_TRUE(std::ranges::any_of(report.violations, [](const Violation& each) {
    return each.what.find("belongs to no members") != std::string::npos && !each.repaired;
  }));
  forget(id("a"));
  forget(id("b"));
  forget_flow(flow_id());
  close();
}

// 04, case 58.
TEST_F(DamagedFlow, IsCancelledButForTheMemberThatCannotBe) {
  submit(graph("a b c"));
  damage("update ff_exec_core set terminal_outcome='nonsense' where execution_id=" + blob("b"));
  const auto answer = cancel_flow({.wait = true});
  EXPECT_EQ(answer.outcome, CancelOutcome::partially_cancelled);
  EXPECT_EQ(answer.failed_member_execution_ids, std::vector{id("b")});
  for (const auto* name : {"a", "c"}) {
    EXPECT_EQ(state_of(name).public_state, PublicState::cancelled) << name;
    forget(id(name));
  }
  forget(id("b"));
  forget_flow(flow_id());
  close();
}

// Without a waiting caller, the clock does the same.
TEST_F(DamagedFlow, IsCancelledByTheClockToo) {
  submit(graph("a b c"));
  damage("update ff_exec_core set terminal_outcome='nonsense' where execution_id=" + blob("b"));
  cancel_flow();
  run_due();
  for (const auto* name : {"a", "c"}) {
    EXPECT_EQ(state_of(name).public_state, PublicState::cancelled) << name;
    forget(id(name));
  }
  const auto looks = engine().stats().clock_operations;
  advance(kHour);
  EXPECT_EQ(engine().stats().clock_operations, looks) << "it is tried again and again";
  forget(id("b"));
  forget_flow(flow_id());
  close();
}

// A sound member beside one that cannot be read is still owed its cancel: nobody may claim it.
TEST_F(DamagedFlow, KeepsWhatItCannotCancelFromBeingClaimed) {
  submit(graph("a>b c"));
  damage("update ff_exec_core set terminal_outcome='nonsense' where execution_id=" + blob("b"));
  cancel_flow();
  run_due();
  EXPECT_EQ(state_of("c").public_state, PublicState::cancelled);
  EXPECT_EQ(state_of("a").public_state, PublicState::waiting);
  EXPECT_FALSE(
      call(ClaimTasks{.worker_id = kWorker, .lanes = {"a"}}).value_or(std::vector<ClaimedTask>{}).size());
  for (const auto* name : {"a", "b", "c"}) forget(id(name));
  forget_flow(flow_id());
  close();
}

// 04 §4.6: never taken for a policy that is known.
TEST_F(DamagedFlow, WithAnUnknownPolicyIsNotResolved) {
  submit(graph("a>b"));
  const auto task = take("a");
  damage("update ff_edge_group set policy_kind='majority'");
  expect_error(completion(task), ErrorCode::corruption);
  EXPECT_EQ(state_of("a"), expected::running());
  damage("update ff_edge_group set policy_kind='all_of'");
  complete(task);
  EXPECT_EQ(members(), "a:completed b:waiting");
}

}  // namespace
}  // namespace flowfabric
