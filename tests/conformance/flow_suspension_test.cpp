// Members of a flow that are suspended: their joins, their siblings and the end of their flow reach them, too
// (04 §4.4, §6.3, §8, §9.1).
#include "support/flow_support.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

// Takes the member and suspends it.
template <class Fixture>
class Suspending : public Fixture {
 protected:
  Suspended suspend(const std::string& name) {
    const auto task = this->take(name);
    SuspendExecution request{.execution_id = task.execution_id, .fence = task.fence};
    request.resume_condition = single("k");
    const auto suspended = this->must(request);
    EXPECT_EQ(this->state_of(name), expected::suspended());
    return suspended;
  }
  void signal(const std::string& name, const Suspended& suspended) {
    const auto& waitpoint = suspended.waitpoints.at(0);
    this->must(DeliverSignal{.execution_id = this->id(name),
                             .waitpoint_id = waitpoint.waitpoint_id,
                             .waitpoint_token = waitpoint.waitpoint_token,
                             .signal_name = "go"});
  }
};

class SuspendedMember : public Suspending<FlowTest> {
 protected:
  void expect_closed(const std::string& name) {
    EXPECT_EQ(must(DescribeSuspension{id(name)}).closed_at, now()) << name;
    EXPECT_TRUE(must(ListPendingWaitpoints{id(name)}).waitpoints.empty()) << name;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, SuspendedMember, kStores, store_name);

TEST_P(SuspendedMember, WaitsForAnEdgeThatCameMeanwhile) {
  start_flow();
  add_all({"a", "b"});
  const auto suspended = suspend("b");
  connect("a", "b");
  EXPECT_EQ(state_of("b"), expected::suspended());
  signal("b", suspended);
  EXPECT_EQ(state_of("b"), expected::waiting_children(AttemptState::attempt_interrupted));
  expect_not_offered("b");
  succeeds("a");

  EXPECT_EQ(take("b").claim, ClaimKind::resumed);
}

TEST_P(SuspendedMember, DoesNotNoticeThatItsJoinIsSatisfied) {
  start_flow();
  add_all({"a", "b"});
  const auto suspended = suspend("b");
  connect("a", "b");
  succeeds("a");
  EXPECT_EQ(state_of("b"), expected::suspended());
  signal("b", suspended);

  EXPECT_EQ(take("b").claim, ClaimKind::resumed);
}

TEST_P(SuspendedMember, IsSkipped) {
  start_flow();
  add_all({"a", "b"});
  suspend("b");
  connect("a", "b");
  tick(5);
  fails("a");

  EXPECT_EQ(state_of("b"), expected::skipped(AttemptState::attempt_terminal));
  EXPECT_EQ(attempt_log(id("b")), Log{"0 initial ended_cancelled dependency_impossible"});
  expect_closed("b");
}

TEST_P(SuspendedMember, LosesAsASibling) {
  submit(graph("u1>d u2>d", {{"d", any_of()}}));
  suspend("u2");
  succeeds("u1");
  run_due();

  EXPECT_EQ(members(), "d:waiting u1:completed u2:cancelled");
  EXPECT_EQ(member("u2").cancellation_reason, kSiblingQuorumSatisfied);
  expect_closed("u2");
}

// ---- a cancel of the flow ----

struct Case {
  std::string name;
  CancellationPolicy policy;
  bool goes;
};
void PrintTo(const Case& given, std::ostream* out) {
  *out << given.name;
}
const std::vector<Case> kCases{{"CancelAll", CancellationPolicy::cancel_all, true},
                               {"CancelPending", CancellationPolicy::cancel_pending, false},
                               {"CancelUnscheduledOnly", CancellationPolicy::cancel_unscheduled_only, true},
                               {"FlowOnly", CancellationPolicy::flow_only, false},
                               {"LetActiveFinish", CancellationPolicy::let_active_finish, false}};

class SuspendedAndCancelled : public Suspending<FlowCaseTest<Case>> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, SuspendedAndCancelled, on_every_store(kCases), case_name<Case>);

TEST_P(SuspendedAndCancelled, AsThePolicySays) {
  submit(graph("a b"));
  const auto suspended = suspend("a");
  cancel_flow(given().policy);
  run_due();
  EXPECT_EQ(state_of("a").public_state, given().goes ? PublicState::cancelled : PublicState::suspended);
  if (given().goes) return;
  signal("a", suspended);
  succeeds("a");
}

TEST_P(SuspendedAndCancelled, WhoGoesIsNotClaimedIfItResumesFirst) {
  submit(graph("a b"));
  const auto suspended = suspend("a");
  cancel_flow(given().policy);
  signal("a", suspended);
  if (given().goes)
    expect_not_offered("a");
  else
    succeeds("a");
}

}  // namespace
}  // namespace flowfabric
