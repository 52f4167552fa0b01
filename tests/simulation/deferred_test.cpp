// Operations that meet many records that are not loaded yet, as they do on a store across a network: they
// must be answered like those on a store that loads on the spot.
#include <gtest/gtest.h>

#include "simulation/replica.h"
#include "support/test_store.h"

namespace flowfabric::simulation {
namespace {

class Deferred : public testing::TestWithParam<const char*> {
 protected:
  static std::int64_t now() { return 1'700'000'000'000; }

  void create(std::uint32_t count, const std::function<void(CreateExecution&, std::uint32_t)>& shape = {}) {
    std::vector<Step> steps;
    for (std::uint32_t i = 0; i < count; ++i) {
      Random random(i);
      CreateExecution request{.execution_id = ExecutionId{1, mint_uuid(now(), random)},
                              .execution_kind = "kind"};
      if (shape) shape(request, i);
      steps.push_back({std::move(request), i});
    }
    expect_same(steps);
  }

  // The answers, by step.
  std::vector<Answer> expect_same(const std::vector<Step>& steps) {
    const auto actual = deferred_.run(steps);
    std::vector<Step> sorted;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (!actual.answers[i]) throw std::runtime_error(refused(steps, i));
      sorted.push_back(steps[actual.order[i]]);
    }
    const auto expected = memory_.run(sorted);
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto& answer = *actual.answers[actual.order[i]];
      EXPECT_TRUE(*expected.answers[i] == answer)
          << "step " << i << "\n  expected " << to_text(*expected.answers[i]) << "\n  answered "
          << to_text(answer);
    }
    std::vector<Answer> answers;
    for (const auto& answer : actual.answers) answers.push_back(*answer);
    return answers;
  }
  static std::string refused(const std::vector<Step>& steps, std::size_t index) {
    return "step " + std::to_string(index) + ", a " + name_of(steps[index].request) +
           ", was put off too often and refused";
  }
  template <class Asked>
  static const typename Asked::Answer& value_of(const Answer& answer) {
    return std::get<AnswerTo<Asked>>(answer).value();
  }
  void seed_secret() { expect_same({{SeedWaitpointSecret{.secret_hex = std::string(64, 'a')}, 1}}); }
  // Claims this many executions, and suspends each on a key of its own.
  std::vector<Suspended> suspend(std::uint32_t count, const ResumeCondition& condition) {
    const auto claimed = expect_same({claim(count)});
    std::vector<Step> steps;
    for (const auto& task : value_of<ClaimTasks>(claimed[0])) {
      SuspendExecution request{.execution_id = task.execution_id, .fence = task.fence};
      request.resume_condition = condition;
      steps.push_back({std::move(request), steps.size()});
    }
    std::vector<Suspended> suspended;
    for (const auto& answer : expect_same(steps)) suspended.push_back(value_of<SuspendExecution>(answer));
    EXPECT_EQ(suspended.size(), count);
    for (std::size_t i = 0; i < suspended.size(); ++i) {
      suspended_.push_back(std::get<SuspendExecution>(steps[i].request).execution_id);
    }
    return suspended;
  }
  static Step signal(const ExecutionId& id, const TokenedWaitpoint& waitpoint) {
    return {DeliverSignal{.execution_id = id,
                          .waitpoint_id = waitpoint.waitpoint_id,
                          .waitpoint_token = waitpoint.waitpoint_token,
                          .signal_name = "go"},
            std::hash<std::string>{}(waitpoint.waitpoint_token)};
  }

  static Step claim(std::uint32_t max_tasks, std::vector<std::string> lanes = {"default"}) {
    return {ClaimTasks{.worker_id = "w",
                       .lanes = std::move(lanes),
                       .capabilities = {},
                       .max_tasks = max_tasks,
                       .lease_ttl_ms = 30'000},
            7};
  }

  tests::TestStore place_{GetParam()};
  Replica memory_{"memory", "memory:", now};
  Replica deferred_{GetParam(), place_.url(), now};
  std::vector<ExecutionId> suspended_;
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Deferred, testing::Values("memory_deferred", "postgres"),
                         [](const auto& each) { return each.param; });

TEST_P(Deferred, AClaimOfTheMostTasksAllowedIsServed) {
  create(300);
  expect_same({claim(256)});
}

TEST_P(Deferred, ManyClaimsShareABatch) {
  create(300);
  expect_same(std::vector<Step>(30, claim(8)));
}

TEST_P(Deferred, AClaimOverManyRoutesIsServed) {
  create(100, [](CreateExecution& request, std::uint32_t i) { request.namespace_ = std::to_string(i); });
  expect_same({claim(4)});
}

TEST_P(Deferred, AClaimOverTheMostLanesAllowedIsServed) {
  std::vector<std::string> lanes;
  for (int i = 0; i < 64; ++i) lanes.push_back("lane-" + std::to_string(i));
  create(64, [&](CreateExecution& request, std::uint32_t i) { request.lane_id = lanes[i]; });
  expect_same({claim(64, lanes)});
}

TEST_P(Deferred, AClaimOfManyResumedTasksIsServedWithTheirSignals) {
  seed_secret();
  create(100);
  const auto suspended = suspend(100, {SingleSignal{"k", {}}});
  std::vector<Step> signals;
  for (std::size_t i = 0; i < 100; ++i) signals.push_back(signal(suspended_[i], suspended[i].waitpoints[0]));
  expect_same(signals);
  const auto claimed = expect_same({claim(100)});
  const auto& tasks = value_of<ClaimTasks>(claimed[0]);
  EXPECT_EQ(tasks.size(), 100u);
  for (const auto& task : tasks) EXPECT_EQ(task.resume_signals.size(), 1u);
}

TEST_P(Deferred, TheMostWaitpointsAllowedAreMadeSignalledAndClosed) {
  seed_secret();
  create(1);
  AllOf all;
  for (int i = 0; i < 64; ++i) all.members.push_back({SingleSignal{"k" + std::to_string(i), {}}});
  const auto suspended = suspend(1, {all});
  std::vector<Step> signals;
  for (const auto& waitpoint : suspended[0].waitpoints) signals.push_back(signal(suspended_[0], waitpoint));
  const auto last = signals.back();
  signals.pop_back();
  expect_same(signals);
  expect_same({last});
  const auto claimed = expect_same({claim(1)});
  EXPECT_EQ(value_of<ClaimTasks>(claimed[0]).at(0).resume_signals.size(), 64u);
}

TEST_P(Deferred, ACancelOfManySuspendedMembersIsServed) {
  seed_secret();
  Random random(3);
  SubmitFlow flow{.flow_id = FlowId{mint_uuid(now(), random)}, .flow_kind = "wide", .nodes = {}, .edges = {}};
  for (int i = 0; i < 200; ++i)
    flow.nodes.push_back({.name = std::to_string(i), .execution = {}, .join = {}});
  expect_same({{flow, 4}});
  suspend(200, {SingleSignal{"k", {}}});
  expect_same({{CancelFlow{.flow_id = *flow.flow_id}, 5}});
  const FlowKey key{partition_of(flow.flow_id->uuid, 256), *flow.flow_id};
  expect_same({{RunDue{record_key<CancelBacklog>(key)}, 6}});
  for (const auto& id : suspended_) {
    EXPECT_EQ(deferred_.read(DescribeExecution{id}).value().state.public_state, PublicState::cancelled);
    EXPECT_TRUE(deferred_.read(ListPendingWaitpoints{id}).value().waitpoints.empty());
  }
}

// An index knows nothing of what its own batch has made.
TEST(SameBatch, ClosesTheWaitpointsThatItHasMade) {
  std::int64_t now_ms = 1'700'000'000'000;
  Replica memory("memory", "memory:", [&] { return now_ms; });
  Random random(1);
  const ExecutionId id{1, mint_uuid(now_ms, random)};
  const auto begun = memory.run({{SeedWaitpointSecret{.secret_hex = std::string(64, 'a')}, 1},
                                 {CreateExecution{.execution_id = id}, 2},
                                 {ClaimTasks{.worker_id = "w"}, 3}});
  const auto task = std::get<AnswerTo<ClaimTasks>>(*begun.answers[2]).value().at(0);
  SuspendExecution suspend{.execution_id = id, .fence = task.fence};
  suspend.resume_condition = {SingleSignal{"k", {}}};
  memory.run({{CreateWaitpoint{.execution_id = id, .fence = task.fence}, 4},
              {suspend, 5},
              {CancelExecution{.execution_id = id}, 6}});
  EXPECT_EQ(memory.read(DescribeSuspension{id}).value().close_reason, "cancelled");
  EXPECT_TRUE(memory.read(ListPendingWaitpoints{id}).value().waitpoints.empty());
}

}  // namespace
}  // namespace flowfabric::simulation
