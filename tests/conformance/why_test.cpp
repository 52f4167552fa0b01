// Why an execution does not run.
#include "support/flow_support.h"
#include "support/limit_support.h"
#include "support/suspension_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class Why : public LimitTest {
 protected:
  std::vector<WaitingReason> why(const ExecutionId& id) { return must(ExplainWaiting{id}).reasons; }
  static void expect_one(const std::vector<WaitingReason>& reasons, WaitingFor what,
                         const std::string& subject, const std::string& detail,
                         std::optional<std::int64_t> until = std::nullopt) {
    ASSERT_EQ(reasons.size(), 1u);
    EXPECT_EQ(enum_name(reasons[0].waiting_for), enum_name(what));
    EXPECT_EQ(reasons[0].subject, subject);
    EXPECT_EQ(reasons[0].detail, detail);
    EXPECT_EQ(reasons[0].until, until);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Why, kStores, store_name);

TEST_P(Why, NothingIsInTheWay) {
  const auto id = create();
  expect_one(why(id), WaitingFor::worker, "", "any worker that serves lane default");
  const auto task = claim_one();
  EXPECT_EQ(must(ExplainWaiting{id}), (WaitingExplanation{PublicState::active, {}, {}}));
  complete(task);
  EXPECT_EQ(must(ExplainWaiting{id}), (WaitingExplanation{PublicState::completed, {}, {}}));
  expect_error(ExplainWaiting{{0, budget_id(1).uuid}}, ErrorCode::execution_not_found);
}

TEST_P(Why, ItIsDelayed) {
  const auto id = create({.delay_until = now() + kHour});
  expect_one(why(id), WaitingFor::delay, "", "delayed until 2025-06-15T16:06:40.000Z", now() + kHour);
  const auto task = running(ExecutionPolicy{.retry_policy = RetryPolicy{.backoff = FixedBackoff{60'000}}});
  fail(task);
  const auto reasons = why(task.execution_id);
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0].waiting_for, WaitingFor::retry_backoff);
  EXPECT_EQ(reasons[0].until, now() + 60'000);
}

TEST_P(Why, ItWaitsForOthers) {
  const auto flow = must(SubmitFlow{.flow_kind = "k",
                                    .nodes = {{.name = "a"}, {.name = "b"}, {.name = "c"}},
                                    .edges = {{.from = "a", .to = "c"}, {.from = "b", .to = "c"}}});
  for (const auto& [name, id] : flow.executions) remember(id);
  EXPECT_EQ(why(flow.executions.at("c")).size(), 2u);
  complete(claim_one());
  const auto left = claim_one();
  expect_one(why(flow.executions.at("c")), WaitingFor::dependency, left.execution_id.to_string(),
             "upstream is active");
}

TEST_P(Why, ItIsAtItsLimits) {
  auto request = tokens(budget_id(1), 100);
  request.reset_interval_ms = kHour;
  must(request);
  const auto policy = make_quota({.window_seconds = 10, .max_requests_per_window = 1});
  const ExecutionPolicy limited{.budget_ids = {budget_id(1)}, .quota_policy_id = policy};
  running(limited);
  spend(budget_id(1), 100);
  const auto id = create(limited);
  for (const bool claimed : {false, true}) {
    if (claimed) claim();
    const auto reasons = why(id);
    ASSERT_EQ(reasons.size(), 2u) << "both, and not only the first";
    EXPECT_EQ(reasons[0],
              (WaitingReason{WaitingFor::budget, budget_id(1).to_string(),
                             "budget ff:budget:" + budget_id(1).to_string() + ":usage: tokens 100/100",
                             now() + kHour}));
    EXPECT_EQ(reasons[1], (WaitingReason{WaitingFor::quota, policy.to_string(),
                                         "quota " + policy.to_string() + ": rate limit 1/1 per 10s window",
                                         now() + 10'000}));
  }
}

TEST_P(Why, NobodyCanDoIt) {
  const auto id = create(
      {.namespace_ = "acme",
       .policy = {.routing_requirements = RoutingRequirements{.required_capabilities = {"cuda", "gpu"}}}});
  expect_one(why(id), WaitingFor::capability, "", "no registered worker serves the lane; required: cuda,gpu");
  const auto enlist = [&](const std::string& name, std::vector<std::string> capabilities) {
    must(RegisterWorker{.worker_id = name,
                        .worker_instance_id = name,
                        .namespace_ = "acme",
                        .capabilities = std::move(capabilities)});
  };
  enlist("none", {"x"});
  enlist("half", {"gpu"});
  const auto found = must(ExplainWaiting{id});
  expect_one(found.reasons, WaitingFor::capability, "", "the nearest worker lacks: cuda");
  EXPECT_EQ(found.nearest_workers, (std::vector<NearWorker>{{"half", {"cuda"}}, {"none", {"cuda", "gpu"}}}));
  enlist("able", {"cuda", "gpu"});
  expect_one(why(id), WaitingFor::worker, "", "any worker that serves lane default");
}

TEST_P(Why, ItsLaneOrAnOperatorHoldsIt) {
  const auto id = create();
  must(SetLaneState{.lane_id = "default", .state = LaneState::paused});
  expect_one(why(id), WaitingFor::lane, "default", "the lane is paused");
  must(SetLaneState{.lane_id = "default", .state = LaneState::active});
  must(HoldExecution{.execution_id = id, .reason = "wait for me"});
  expect_one(why(id), WaitingFor::operator_, "", "wait for me");
  must(ReleaseExecution{.execution_id = id});
  must(IssueClaimGrant{.execution_id = id, .lane_id = "default", .terms = {.worker_id = kWorker}});
  EXPECT_EQ(why(id)[0].waiting_for, WaitingFor::grant);
}

TEST_P(Why, ItIsOverALimitThatWasLowered) {
  const auto budget = make_budget(200);
  spend(budget, 103);
  must(SetBudgetLimits{budget, {{"tokens", 100}}, {}});
  expect_one(why(create_with(budget)), WaitingFor::budget, budget.to_string(),
             "budget ff:budget:" + budget.to_string() + ":usage: tokens 103/100");
}

TEST_P(Why, NoSlotIsFree) {
  const auto policy = make_quota({.max_concurrent = 1});
  running(ExecutionPolicy{.quota_policy_id = policy});
  expect_one(why(create_with(policy)), WaitingFor::quota, policy.to_string(),
             "quota " + policy.to_string() + ": concurrency cap 1");
}

TEST_P(Why, TheWindowClearsWhenItClears) {  // whatever is added at random to how long it waits
  const auto policy = make_quota({.window_seconds = 10, .max_requests_per_window = 1, .jitter_ms = 5000});
  running(ExecutionPolicy{.quota_policy_id = policy});
  tick(3000);
  const auto id = create_with(policy);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(why(id)[0].until, now() + 7000);
}

TEST_P(Why, ABudgetHasPausedIt) {
  auto request = tokens(budget_id(1), 100);
  request.on_hard_limit = "suspend";
  request.reset_interval_ms = kHour;
  must(request);
  const auto task = running(ExecutionPolicy{.budget_ids = {budget_id(1)}});
  spend(budget_id(1), 60);
  ReportUsage too_much{.budget_id = budget_id(1), .dimensions = {"tokens"}, .deltas = {60}};
  too_much.execution_id = task.execution_id;
  must(too_much);
  // The budget has something left, and hands out others.
  expect_one(why(task.execution_id), WaitingFor::budget, budget_id(1).to_string(),
             "paused_by_budget " + budget_id(1).to_string() + ": tokens", now() + kHour);
}

TEST_P(Why, SomebodyHasBlockedIt) {
  const std::vector<std::pair<BlockingReason, WaitingFor>> reasons{
      {BlockingReason::waiting_for_budget, WaitingFor::budget},
      {BlockingReason::waiting_for_quota, WaitingFor::quota},
      {BlockingReason::waiting_for_capable_worker, WaitingFor::capability},
      {BlockingReason::paused_by_operator, WaitingFor::operator_}};
  for (const auto& [reason, shown] : reasons) {
    const auto id = create();
    must(BlockExecution{id, reason, "because"});
    expect_one(why(id), shown, "", "because");
  }
  const auto id = create();
  must(BlockExecution{id, BlockingReason::paused_by_policy, "because"});
  expect_one(why(id), WaitingFor::lane, "default", "because");
}

TEST_P(Why, EverythingInTheWayIsNamed) {
  const auto budget = make_budget(10);
  spend(budget, 10);
  const auto policy = make_quota({.max_concurrent = 1});
  running(ExecutionPolicy{.quota_policy_id = policy});
  ExecutionPolicy limited{.budget_ids = {budget}, .quota_policy_id = policy};
  limited.routing_requirements = RoutingRequirements{.required_capabilities = {"gpu"}};
  const auto id = create(limited);
  must(SetLaneState{.lane_id = "default", .state = LaneState::paused});
  std::vector<WaitingFor> all;
  for (const auto& reason : why(id)) all.push_back(reason.waiting_for);
  EXPECT_EQ(all,
            (std::vector{WaitingFor::lane, WaitingFor::capability, WaitingFor::budget, WaitingFor::quota}))
      << "in the order of admission";
}

// Whatever its state names is not all that is in its way.
class WhyElse : public FlowTest {
 protected:
  std::vector<WaitingFor> why(const ExecutionId& id) {
    std::vector<WaitingFor> all;
    for (const auto& reason : must(ExplainWaiting{id}).reasons) all.push_back(reason.waiting_for);
    return all;
  }
  void pause_lane(const std::string& lane = "default") {
    must(SetLaneState{.lane_id = lane, .state = LaneState::paused});
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, WhyElse, kStores, store_name);

TEST_P(WhyElse, ADelayOnAPausedLane) {
  const auto id =
      create({.policy = {.routing_requirements = RoutingRequirements{.required_capabilities = {"gpu"}}},
              .delay_until = now() + kHour});
  pause_lane();
  EXPECT_EQ(why(id), (std::vector{WaitingFor::delay, WaitingFor::lane, WaitingFor::capability}));
  must(HoldExecution{.execution_id = id, .reason = "wait for me"});
  const auto reasons = must(ExplainWaiting{id}).reasons;
  ASSERT_EQ(reasons.size(), 4u);
  EXPECT_EQ(reasons[0],
            (WaitingReason{WaitingFor::delay, "", "delayed until 2025-06-15T16:06:40.000Z", now() + kHour}));
  EXPECT_EQ(reasons[1], (WaitingReason{WaitingFor::operator_, "", "wait for me", std::nullopt}));
}

TEST_P(WhyElse, ARetryOnAPausedLane) {
  const auto task = running(ExecutionPolicy{.retry_policy = RetryPolicy{.backoff = FixedBackoff{60'000}}});
  fail(task);
  must(HoldExecution{.execution_id = task.execution_id});
  pause_lane();
  EXPECT_EQ(why(task.execution_id),
            (std::vector{WaitingFor::retry_backoff, WaitingFor::operator_, WaitingFor::lane}));
}

TEST_P(WhyElse, AMemberThatWaitsForOthersAndForATime) {
  start_flow();
  add("up");
  add("down", {.delay_until = now() + kHour});
  connect("up", "down");
  pause_lane("down");
  EXPECT_EQ(why(id("down")), (std::vector{WaitingFor::dependency, WaitingFor::delay, WaitingFor::lane}));
}

TEST_P(WhyElse, AReservationOnAPausedLane) {
  const auto id = create();
  must(IssueClaimGrant{.execution_id = id, .lane_id = "default", .terms = {.worker_id = "w"}});
  pause_lane();
  EXPECT_EQ(why(id), (std::vector{WaitingFor::grant, WaitingFor::lane}));
}

TEST_P(WhyElse, UpstreamsThatAreMany) {
  submit(graph(fan_in(25)));
  auto reasons = must(ExplainWaiting{id("d")}).reasons;
  ASSERT_EQ(reasons.size(), 21u) << "twenty, and how many there are besides";
  EXPECT_EQ(reasons.back().detail, "and 5 more upstreams");
  for (int i = 1; i <= 22; ++i) succeeds("u" + std::to_string(i));
  reasons = must(ExplainWaiting{id("d")}).reasons;
  ASSERT_EQ(reasons.size(), 3u) << "wherever they are among those that are done";
  for (const auto& reason : reasons) EXPECT_EQ(reason.detail, "upstream is waiting");
}

class WhySuspended : public SuspensionTest {};
INSTANTIATE_TEST_SUITE_P(EveryStore, WhySuspended, kStores, store_name);

TEST_P(WhySuspended, ItWaitsForASignal) {
  suspend_new(single("k", {"approved"}));
  const auto reasons = must(ExplainWaiting{id()}).reasons;
  ASSERT_EQ(reasons.size(), 1u);
  EXPECT_EQ(reasons[0].waiting_for, WaitingFor::signal);
  EXPECT_EQ(reasons[0].subject, waitpoint().waitpoint_id.to_string());
  EXPECT_EQ(reasons[0].detail, "signal approved at waitpoint 'k'");
  must(SetLaneState{.lane_id = "default", .state = LaneState::paused});
  const auto on_a_paused_lane = must(ExplainWaiting{id()}).reasons;
  ASSERT_EQ(on_a_paused_lane.size(), 2u);
  EXPECT_EQ(on_a_paused_lane[1].waiting_for, WaitingFor::lane);
}

}  // namespace
}  // namespace flowfabric
