// The states of a lane: what it accepts, what it hands out, and how its executions are shown meanwhile.
#include <chrono>
#include <future>

#include "support/operator_printing.h"
#include "support/parked.h"
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

StateVector held_by_lane(AttemptState attempt) {
  auto state = expected::waiting(attempt);
  state.eligibility_state = EligibilityState::blocked_by_lane_state;
  state.blocking_reason = BlockingReason::paused_by_policy;
  return state;
}

// ---- what each state allows ----

struct Behaviour {
  std::string name;
  LaneState state;
  bool accepts;
  bool hands_out;
};
const std::vector<Behaviour> kBehaviours{{"Active", LaneState::active, true, true},
                                         {"Paused", LaneState::paused, true, false},
                                         {"Draining", LaneState::draining, false, true},
                                         {"Disabled", LaneState::disabled, false, false}};
void PrintTo(const Behaviour& behaviour, std::ostream* out) {
  *out << behaviour.name;
}

class LaneBehaviour : public EngineCaseTest<Behaviour> {
 protected:
  void set(LaneState state) { must(SetLaneState{"default", state}); }
  void apply() { set(given().state); }
  // The tasks that a worker gets: all of them, or none.
  void expect_claims(const std::vector<ExecutionId>& offered) {
    EXPECT_EQ(claim_all(), given().hands_out ? offered : std::vector<ExecutionId>{});
  }
  StateVector shown_waiting(AttemptState attempt = AttemptState::pending_first_attempt) const {
    return given().hands_out ? expected::waiting(attempt) : held_by_lane(attempt);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, LaneBehaviour, on_every_store(kBehaviours), case_name<Behaviour>);

TEST_P(LaneBehaviour, NewWorkIsAcceptedOrRefused) {
  const auto before = create();
  apply();
  tick(1);
  const CreateExecution request{.execution_id = ExecutionId{7, {}}, .execution_kind = "test"};
  if (given().accepts) {
    EXPECT_EQ(must(request).public_state, PublicState::waiting);
    EXPECT_EQ(state({7, {}}), shown_waiting());
    expect_claims({before, {7, {}}});
    return;
  }
  expect_error(request, ErrorCode::lane_not_accepting);
  EXPECT_EQ(error_info(ErrorCode::lane_not_accepting).http_status, 409);
  expect_error(DescribeExecution{{7, {}}}, ErrorCode::execution_not_found);
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 1}}));
}

TEST_P(LaneBehaviour, AfterARefusalTheSameRequestIsNew) {
  apply();
  const CreateExecution request{.execution_kind = "test", .idempotency_key = "key"};
  const bool accepted = call(request).has_value();
  EXPECT_EQ(accepted, given().accepts);
  set(LaneState::active);

  EXPECT_EQ(must(request).duplicate, accepted);
}

TEST_P(LaneBehaviour, ARepeatedCreateIsAlwaysAnswered) {
  const auto first = create({.execution_id = ExecutionId{7, {}}, .idempotency_key = "key"});
  apply();

  const auto by_id = must(CreateExecution{.execution_id = first, .execution_kind = "test"});
  const auto by_key = must(CreateExecution{.execution_kind = "test", .idempotency_key = "key"});
  EXPECT_EQ(by_id, (Creation{first, true, PublicState::waiting}));
  EXPECT_EQ(by_key, (Creation{first, true, PublicState::waiting}));
}

TEST_P(LaneBehaviour, WaitingWorkIsHandedOutOrNot) {
  const auto first = create();
  const auto urgent = create({.priority = 5});
  apply();

  for (const auto& id : {first, urgent}) EXPECT_EQ(state(id), shown_waiting());
  const auto shown = describe(first).blocking_detail;
  if (given().state == LaneState::paused) {
    EXPECT_EQ(shown, "lane default is paused");
  }
  if (given().state == LaneState::disabled) {
    EXPECT_EQ(shown, "lane default is disabled");
  }
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 2}}));
  expect_claims({urgent, first});
}

TEST_P(LaneBehaviour, ADelayThatEndsIsHandedOutOrNot) {
  const auto id = create({.delay_until = kStart + 10});
  apply();
  EXPECT_EQ(state(id),
            expected::delayed(BlockingReason::waiting_for_delay, AttemptState::pending_first_attempt));
  advance(10);

  EXPECT_EQ(state(id), shown_waiting());
  expect_claims({id});
}

TEST_P(LaneBehaviour, ARetryIsHandedOutOrNot) {
  const auto task = running(retries(1));
  apply();
  EXPECT_TRUE(fail(task).retry_scheduled);
  EXPECT_EQ(state(task.execution_id), expected::retrying());
  advance(1000);

  EXPECT_EQ(state(task.execution_id), shown_waiting(AttemptState::pending_retry_attempt));
  expect_claims({task.execution_id});
}

TEST_P(LaneBehaviour, WorkThatGoesOnAfterADelayIsHandedOutOrNot) {
  const auto task = running();
  apply();
  delay(task, kStart + 10);
  advance(10);

  EXPECT_EQ(state(task.execution_id), shown_waiting(AttemptState::attempt_interrupted));
  expect_claims({task.execution_id});
}

TEST_P(LaneBehaviour, LostWorkIsHandedOutOrNot) {
  const auto task = lost();
  apply();

  EXPECT_EQ(state(task.execution_id), expected::lost()) << "only what waits is shown as blocked";
  expect_claims({task.execution_id});
}

TEST_P(LaneBehaviour, AReplayIsHandedOutOrNot) {
  const auto task = running();
  complete(task);
  apply();
  EXPECT_EQ(must(ReplayExecution{.execution_id = task.execution_id}).public_state, PublicState::waiting);

  EXPECT_EQ(state(task.execution_id), shown_waiting(AttemptState::pending_replay_attempt));
  expect_claims({task.execution_id});
}

TEST_P(LaneBehaviour, RunningWorkGoesOn) {
  const auto one = running();
  const auto two = running();
  const auto three = running();
  apply();
  tick(1000);
  EXPECT_EQ(renew(one).expires_at, now() + kLeaseTtl);
  progress(one, 50);
  complete(one, "result");
  fail(two);
  cancel(three.execution_id);

  EXPECT_EQ(state(one.execution_id), expected::completed());
  EXPECT_EQ(result(one.execution_id), "result");
  EXPECT_EQ(state(two.execution_id), expected::failed());
  EXPECT_EQ(state(three.execution_id), expected::cancelled());
}

TEST_P(LaneBehaviour, ALeaseIsLostInAnyState) {
  const auto task = running();
  apply();
  advance(kLeaseTtl);

  EXPECT_EQ(state(task.execution_id), expected::lost());
  expect_claims({task.execution_id});
}

TEST_P(LaneBehaviour, OperatorsWorkOnWhatWaits) {
  const auto first = create();
  const auto second = create();
  const auto doomed = create({.execution_deadline_at = kStart + 10});
  const auto held = create();
  apply();
  must(ChangePriority{second, 5});
  must(HoldExecution{.execution_id = held, .reason = "mine"});
  advance(10);

  EXPECT_EQ(state(doomed), expected::expired(AttemptState::pending_first_attempt));
  EXPECT_EQ(state(held).eligibility_state, EligibilityState::blocked_by_operator);
  EXPECT_EQ(describe(held).blocking_detail, "mine") << "its own reason is shown, not the lane's";
  cancel(held);
  expect_claims({second, first});
}

TEST_P(LaneBehaviour, ActivatedAgainEverythingIsAsBefore) {
  const auto id = create();
  const auto before = story(id);
  apply();
  set(LaneState::active);

  EXPECT_EQ(story(id), before);
  EXPECT_EQ(claim_one().execution_id, id);
}

// ---- changing it ----

class LaneStates : public EngineTest {
 protected:
  LaneStatus set(const std::string& lane, LaneState state) { return must(SetLaneState{lane, state}); }
  std::vector<LaneView> lanes() { return must(ListLanes{}).lanes; }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, LaneStates, kStores, store_name);

constexpr LaneState kAllStates[]{LaneState::active, LaneState::paused, LaneState::draining,
                                 LaneState::disabled};

TEST_P(LaneStates, EveryStateMayFollowEveryOther) {
  create();
  for (const auto from : kAllStates) {
    for (const auto to : kAllStates) {
      set("default", from);
      EXPECT_EQ(set("default", to), (LaneStatus{"default", to}));
      EXPECT_EQ(lanes().at(0).state, to);
    }
  }
  set("default", LaneState::active);
  EXPECT_EQ(claim().size(), 1u);
}

TEST_P(LaneStates, OfAnUnknownLaneRegistersIt) {
  EXPECT_EQ(set("new", LaneState::paused), (LaneStatus{"new", LaneState::paused}));
  const LaneView seen{.lane_id = "new",
                      .state = LaneState::paused,
                      .counts = {},
                      .oldest_waiting_at = std::nullopt,
                      .registered_at = kStart,
                      .registered_by = "operator"};
  EXPECT_EQ(lanes(), std::vector{seen});

  const auto id = create({.lane_id = "new"});
  EXPECT_EQ(describe(id).blocking_detail, "lane new is paused");
  EXPECT_TRUE(claim({.lanes = {"new"}}).empty());
  EXPECT_EQ(lanes().at(0).registered_by, "operator") << "the first to name it";
}

TEST_P(LaneStates, RegisteringTellsTheState) {
  EXPECT_EQ(must(RegisterLane{"a", "boot"}), (LaneStatus{"a", LaneState::active}));
  set("a", LaneState::draining);
  tick(5);
  EXPECT_EQ(must(RegisterLane{"a", "again"}), (LaneStatus{"a", LaneState::draining}));

  const auto seen = lanes().at(0);
  EXPECT_EQ(seen.registered_at, kStart);
  EXPECT_EQ(seen.registered_by, "boot");
}

TEST_P(LaneStates, ABadLaneIsRefusedWithoutATrace) {
  for (const auto& lane : {""s, std::string(65, 'x'), "a\nb"s, "a\x7f"s,
                           "gr\xc3\xb6\xc3\x9f"
                           "e"s,
                           "a\0b"s}) {
    expect_error(SetLaneState{lane, LaneState::paused}, ErrorCode::invalid_input);
    expect_error(RegisterLane{.lane_id = lane}, ErrorCode::invalid_input);
  }
  expect_error(RegisterLane{"a", "by\0me"s}, ErrorCode::invalid_input);

  EXPECT_TRUE(lanes().empty());
  EXPECT_EQ(set(std::string(64, 'x'), LaneState::paused).lane_id, std::string(64, 'x'));
}

TEST_P(LaneStates, OtherLanesAreNotTouched) {
  const auto held = create({.lane_id = "a"});
  const auto free = create({.lane_id = "b"});
  set("a", LaneState::paused);

  EXPECT_EQ(state(free), expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(claim_all({.lanes = {"a", "b"}, .max_tasks = 10}), std::vector{free});
  EXPECT_EQ(state(held), held_by_lane(AttemptState::pending_first_attempt));
}

TEST_P(LaneStates, CountsAreUntouched) {
  create();
  create({.delay_until = kStart + kHour});
  running({.priority = 9});
  const auto before = count();
  for (const auto state : kAllStates) {
    set("default", state);
    EXPECT_EQ(count(), before);
    EXPECT_EQ(lanes().at(0).counts, before);
    EXPECT_EQ(lanes().at(0).oldest_waiting_at, kStart);
  }
}

TEST_P(LaneStates, SchedulersAreGivenNothingOfAPausedLane) {
  const auto id = create();
  set("default", LaneState::paused);
  const ClaimForWorker request{.terms = {.worker_id = kWorker}};
  EXPECT_EQ(must(request), std::nullopt);
  set("default", LaneState::active);

  const auto grant = must(request);
  ASSERT_TRUE(grant);
  EXPECT_EQ(grant->execution_id, id);
}

// ---- waking ----

class LaneWaking : public EngineTest {
 protected:
  static constexpr std::int64_t kLong = 8'000;

  std::future<Result<std::vector<ClaimedTask>>> start_waiting() {
    auto answer = engine().submit(ClaimTasks{.worker_id = kWorker, .max_tasks = 5, .wait_ms = kLong});
    await_parked(engine(), 1);
    return answer;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, LaneWaking, kStores, store_name);

TEST_P(LaneWaking, AClaimThatWaitsIsWokenWhenTheLaneHandsOutAgain) {
  for (const auto held : {LaneState::paused, LaneState::disabled}) {
    for (const auto handing_out : {LaneState::active, LaneState::draining}) {
      must(SetLaneState{"default", LaneState::active});
      const auto id = create();
      must(SetLaneState{"default", held});
      auto answer = start_waiting();
      must(SetLaneState{"default", held == LaneState::paused ? LaneState::disabled : LaneState::paused});
      EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
      must(SetLaneState{"default", handing_out});

      ASSERT_EQ(answer.wait_for(std::chrono::milliseconds(kLong / 2)), std::future_status::ready);
      const auto tasks = answer.get();
      ASSERT_TRUE(tasks) << tasks.error().to_string();
      ASSERT_EQ(tasks->size(), 1u);
      EXPECT_EQ(tasks->front().execution_id, id);
    }
  }
}

TEST_P(LaneWaking, LostWorkWakesItToo) {
  const auto task = lost();
  must(SetLaneState{"default", LaneState::paused});
  auto answer = start_waiting();
  must(SetLaneState{"default", LaneState::active});

  ASSERT_EQ(answer.wait_for(std::chrono::milliseconds(kLong / 2)), std::future_status::ready);
  const auto tasks = answer.get().value();
  ASSERT_EQ(tasks.size(), 1u);
  EXPECT_EQ(tasks[0].execution_id, task.execution_id);
  EXPECT_EQ(tasks[0].claim, ClaimKind::reclaimed);
}

TEST_P(LaneWaking, WorkForAPausedLaneWakesNobody) {
  must(SetLaneState{"default", LaneState::paused});
  auto answer = start_waiting();
  create();
  create({.delay_until = kStart + 10});
  advance(10);
  EXPECT_EQ(answer.wait_for(std::chrono::milliseconds(0)), std::future_status::timeout);
  must(SetLaneState{"default", LaneState::active});

  ASSERT_EQ(answer.wait_for(std::chrono::milliseconds(kLong / 2)), std::future_status::ready);
  EXPECT_GE(answer.get().value().size(), 1u);
}

// ---- restarts ----

class LaneRestart : public ReopenTest {};
INSTANTIATE_TEST_SUITE_P(DurableStores, LaneRestart, kDurableStores, store_name);

TEST_P(LaneRestart, TheStateIsKept) {
  const auto id = create();
  must(SetLaneState{"default", LaneState::disabled});
  reopen();

  EXPECT_EQ(state(id), held_by_lane(AttemptState::pending_first_attempt));
  EXPECT_TRUE(claim().empty());
  expect_error(CreateExecution{.execution_kind = "test"}, ErrorCode::lane_not_accepting);
  must(SetLaneState{"default", LaneState::active});
  EXPECT_EQ(claim_one().execution_id, id);
}

}  // namespace
}  // namespace flowfabric
