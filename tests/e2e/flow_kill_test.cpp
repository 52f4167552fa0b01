// A process that is killed while a flow moves on: what it had begun is finished by the next one, once.
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "e2e/child_process.h"
#include "e2e/flow_child.h"
#include "e2e/waiting.h"
#include "flowfabric/flowfabric.h"
#include "support/test_store.h"

namespace flowfabric::e2e {
namespace {

using Counts = std::map<PublicState, std::int64_t>;

constexpr int kRounds = 6;

template <class Condition>
bool eventually(Condition is_true) {
  return wait_until(is_true, std::chrono::seconds(60));
}

// The child's lines before it was killed.
struct Said {
  std::optional<FlowId> race;
  std::optional<FlowId> wide;
  bool widened{false};
  bool won{false};

  void read(const std::string& lines) {
    std::istringstream words(lines);
    for (std::string word, id; words >> word;) {
      if (word == "race" && words >> id) race = FlowId::parse(id);
      if (word == "wide" && words >> id) wide = FlowId::parse(id);
      widened = widened || word == "widened";
      won = won || word == "won";
    }
  }
};

Counts counts_of(Engine& engine, const FlowId& flow) {
  return engine.call(DescribeFlow{flow}).value().counts;
}

class FlowKill : public testing::TestWithParam<std::string> {
 protected:
  Said kill_child(std::chrono::microseconds after) {
    Said said;
    ChildProcess child({kFlowArgument, place_.url()});
    EXPECT_TRUE(eventually([&] {
      said.read(child.take_lines());
      return said.wide.has_value();
    })) << "the child has not come to its race";
    std::this_thread::sleep_for(after);
    child.kill();
    said.read(child.take_lines());
    return said;
  }

  // Each execution has ended as often as there are events for it: at most once.
  void expect_single_ends(Engine& engine, const FlowId& flow) {
    std::map<ExecutionId, int> ends;
    for (std::int64_t after = 0;;) {
      const auto events = engine.call(ReadCompletions{.after = after, .limit = 1000}).value();
      if (events.empty()) break;
      for (const auto& event : events) {
        if (event.flow_id == flow) ++ends[event.execution_id];
      }
      after = events.back().event_id;
    }
    for (const auto& [id, count] : ends) EXPECT_EQ(count, 1) << id.to_string();
  }

  void check_race(Engine& engine, const Said& said) {
    const bool decided =
        engine.call(DescribeFlow{*said.race}).value().edge_groups[0].group_state != GroupState::pending;
    EXPECT_TRUE(decided || !said.won) << "what was acknowledged is lost";
    if (!decided) {
      EXPECT_EQ(counts_of(engine, *said.race),
                (Counts{{PublicState::active, kSiblings}, {PublicState::waiting_children, 1}}));
      return;
    }
    const Counts settled{
        {PublicState::completed, 1}, {PublicState::cancelled, kSiblings - 1}, {PublicState::waiting, 1}};
    EXPECT_TRUE(eventually([&] { return counts_of(engine, *said.race) == settled; }));
    expect_single_ends(engine, *said.race);
    const auto joined =
        engine.call(ClaimTasks{.worker_id = "joiner", .lanes = {"joined"}, .max_tasks = 2}).value();
    EXPECT_EQ(joined.size(), 1u) << "the join was let go more than once";
    for (const auto& task : joined) {
      engine.call(CompleteExecution{.execution_id = task.execution_id, .fence = task.fence}).value();
    }
    EXPECT_EQ(engine.call(DescribeFlow{*said.race}).value().state, FlowState::completed);
    interrupted_ += counts_at_start_[PublicState::active] > 0 ? 1 : 0;
  }

  void check_wide(Engine& engine, const Said& said) {
    const bool over = counts_of(engine, *said.wide)[PublicState::completed] > 0;
    EXPECT_TRUE(over || !said.widened) << "what was acknowledged is lost";
    if (!over) return;
    const Counts settled{{PublicState::completed, 1}, {PublicState::waiting, kDependents}};
    EXPECT_TRUE(eventually([&] { return counts_of(engine, *said.wide) == settled; }));
    ASSERT_TRUE(engine.call(CancelFlow{.flow_id = *said.wide, .wait = true}));
    expect_single_ends(engine, *said.wide);
  }

  tests::TestStore place_{GetParam()};
  Counts counts_at_start_;
  int interrupted_{0};
};
INSTANTIATE_TEST_SUITE_P(DurableStores, FlowKill, testing::Values("sqlite", "postgres"),
                         [](const auto& given) { return given.param; });

TEST_P(FlowKill, WhatWasBegunIsFinishedOnce) {
  std::mt19937 random(std::random_device{}());
  int decided = 0;
  for (int round = 0; round < kRounds; ++round) {
    const auto said = kill_child(std::chrono::microseconds(random() % 60'000));
    auto engine = Engine::open(place_.url(), {.clock_interval = std::chrono::milliseconds(0)});
    ASSERT_TRUE(engine) << engine.error().to_string();
    counts_at_start_ = counts_of(*engine, *said.race);
    decided += counts_at_start_[PublicState::completed] > 0 ? 1 : 0;
    while (engine->run_due().value() > 0) continue;
    check_race(*engine, said);
    check_wide(*engine, said);
    EXPECT_EQ(engine->call(CheckStore{}).value().found, 0u);
    // The rest of this round must not be in the way of the next.
    for (const auto& flow : {*said.race, *said.wide})
      ASSERT_TRUE(engine->call(CancelFlow{.flow_id = flow, .wait = true}));
  }
  std::printf("%d of %d races were decided, %d of them with siblings still running\n", decided, kRounds,
              interrupted_);
}

}  // namespace
}  // namespace flowfabric::e2e
