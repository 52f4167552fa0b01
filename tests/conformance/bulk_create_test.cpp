// Many creates in one call: each with its own answer, as if it had come alone.
#include <future>
#include <set>

#include "support/bulk_fixture.h"
#include "support/parked.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

class BulkCreate : public Bulk<EngineTest> {
 protected:
  std::vector<Result<Creation>> create_these(std::vector<CreateExecution> requests) {
    auto answers = must(CreateExecutions{std::move(requests)});
    for (const auto& answer : answers) {
      if (answer && !answer->duplicate) remember(answer->execution_id);
    }
    return answers;
  }
  static CreateExecution named(std::uint8_t number) {
    ExecutionId id{7, {}};
    id.uuid.bytes[15] = number;
    return {.execution_id = id, .execution_kind = "test"};
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, BulkCreate, kStores, store_name);

TEST_P(BulkCreate, AnswersInTheSameOrder) {
  const auto answers = create_these({named(3), named(1), named(2)});
  ASSERT_EQ(answers.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto id = *named(std::array<std::uint8_t, 3>{3, 1, 2}[i]).execution_id;
    EXPECT_EQ(answers[i], (Creation{id, false, PublicState::waiting}));
  }
}

TEST_P(BulkCreate, EachIsCreatedAsIfAlone) {
  const CreateExecution full{.execution_id = ExecutionId{9, {}},
                             .namespace_ = "acme",
                             .lane_id = "slow",
                             .execution_kind = "resize",
                             .input = "in\0put"s,
                             .payload_encoding = "raw",
                             .priority = 7,
                             .creator_identity = "me",
                             .idempotency_key = "key",
                             .tags = {{"a.b", "c"}},
                             .policy = needs({"gpu"}),
                             .delay_until = kStart + 10,
                             .execution_deadline_at = kStart + kHour};
  const auto answers = create_these({full, named(1)});
  EXPECT_EQ(answers.at(0), (Creation{{9, {}}, false, PublicState::delayed}));
  const auto seen = describe({9, {}});
  EXPECT_EQ(seen.namespace_, "acme");
  EXPECT_EQ(seen.lane_id, "slow");
  EXPECT_EQ(seen.priority, 7);
  EXPECT_EQ(seen.tags, (Tags{{"a.b", "c"}}));
  EXPECT_EQ(seen.deadline_at, kStart + kHour);
  EXPECT_EQ(seen.delay_until, kStart + 10);
  EXPECT_EQ(must(ReadContext{{9, {}}}), (ExecutionContext{"resize", "in\0put"s, "raw", {{"a.b", "c"}}}));
  advance(10);
  EXPECT_TRUE(claim({.lanes = {"slow"}}).empty());
  EXPECT_EQ(claim({.lanes = {"slow"}, .capabilities = {"gpu"}}).size(), 1u);
  EXPECT_EQ(must(ListLanes{}).lanes.size(), 2u);
}

TEST_P(BulkCreate, OneThatIsRefusedLeavesTheOthersAlone) {
  must(SetLaneState{"closed", LaneState::draining});
  auto bad_lane = named(2);
  bad_lane.lane_id = "";
  auto bad_policy = named(3);
  bad_policy.policy = needs({"a,b"});
  auto closed = named(4);
  closed.lane_id = "closed";
  const ExecutionId out_of_range{256, {}};
  const auto answers = create_these({named(1),
                                     bad_lane,
                                     bad_policy,
                                     closed,
                                     {.execution_id = out_of_range, .execution_kind = "test"},
                                     named(5)});
  ASSERT_EQ(answers.size(), 6u);
  EXPECT_TRUE(answers[0]);
  EXPECT_EQ(answers[1].error().code, ErrorCode::invalid_input);
  EXPECT_EQ(answers[2].error().code, ErrorCode::invalid_capabilities);
  EXPECT_EQ(answers[3].error().code, ErrorCode::lane_not_accepting);
  EXPECT_EQ(answers[4].error().code, ErrorCode::invalid_input);
  EXPECT_TRUE(answers[5]);
  for (const auto number : std::initializer_list<std::uint8_t>{2, 3, 4}) {
    expect_error(DescribeExecution{*named(number).execution_id}, ErrorCode::execution_not_found);
  }
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 2}}));
  EXPECT_EQ(count("closed"), StateCounts{});
}

TEST_P(BulkCreate, DuplicatesAreToldApart) {
  const auto before = create({.execution_id = named(1).execution_id, .idempotency_key = "old"});
  const CreateExecution by_old_key{.execution_kind = "test", .idempotency_key = "old"};
  const CreateExecution by_new_key{.execution_kind = "test", .idempotency_key = "new"};
  const auto answers =
      create_these({named(1), by_old_key, named(2), named(2), by_new_key, by_new_key, named(3)});
  ASSERT_EQ(answers.size(), 7u);
  EXPECT_EQ(answers[0], (Creation{before, true, PublicState::waiting}));
  EXPECT_EQ(answers[1], (Creation{before, true, PublicState::waiting}));
  EXPECT_FALSE(answers[2].value().duplicate);
  EXPECT_EQ(answers[3], (Creation{*named(2).execution_id, true, PublicState::waiting})) << "of the same call";
  EXPECT_FALSE(answers[4].value().duplicate);
  EXPECT_EQ(answers[5], (Creation{answers[4]->execution_id, true, PublicState::waiting}));
  EXPECT_FALSE(answers[6].value().duplicate);
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 4}}));
}

TEST_P(BulkCreate, RepeatedAfterALostAnswerItMakesNothingNew) {
  std::vector<CreateExecution> requests{named(1), named(2), named(3)};
  create_these(requests);
  const auto before = story(*named(2).execution_id);
  tick(5);
  for (const auto& answer : create_these(requests)) EXPECT_TRUE(answer.value().duplicate);

  EXPECT_EQ(story(*named(2).execution_id), before);
}

TEST_P(BulkCreate, TakesOneToAThousand) {
  expect_error(CreateExecutions{}, ErrorCode::invalid_input);
  expect_error(CreateExecutions{std::vector<CreateExecution>(1001, {.execution_kind = "test"})},
               ErrorCode::invalid_input);
  EXPECT_EQ(count(), StateCounts{});
  EXPECT_TRUE(must(ListLanes{}).lanes.empty());

  EXPECT_EQ(create_many(1).size(), 1u);
  const auto ids = create_many(1000);
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 1000u) << "each has an id of its own";
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 1001}}));
}

TEST_P(BulkCreate, AreClaimedLikeOthers) {
  auto urgent = named(2);
  urgent.priority = 5;
  create_these({named(3), urgent, named(1)});

  EXPECT_EQ(claim_all(), (Ids{*urgent.execution_id, *named(1).execution_id, *named(3).execution_id}));
}

TEST_P(BulkCreate, WakesThoseWhoWait) {
  constexpr std::int64_t wait_ms = 8000;
  std::vector<std::future<Result<std::vector<ClaimedTask>>>> waiting;
  for (const auto* worker : {"w1", "w2", "w3"}) {
    waiting.push_back(engine().submit(ClaimTasks{.worker_id = worker, .wait_ms = wait_ms}));
  }
  await_parked(engine(), 3);
  create_these({named(1), named(2), named(3)});

  std::set<ExecutionId> given;
  for (auto& answer : waiting) {
    ASSERT_EQ(answer.wait_for(std::chrono::milliseconds(wait_ms / 2)), std::future_status::ready);
    const auto tasks = answer.get().value();
    ASSERT_EQ(tasks.size(), 1u);
    given.insert(tasks[0].execution_id);
  }
  EXPECT_EQ(given.size(), 3u);
}

}  // namespace
}  // namespace flowfabric
