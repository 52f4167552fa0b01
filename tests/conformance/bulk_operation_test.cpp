// Bulk operations on every execution that a filter matches (09 §2): in the background, at a rate, to the end.
#include <algorithm>
#include <set>

#include "support/bulk_fixture.h"
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using namespace std::string_literals;

// On any fixture.
template <class Fixture>
class BulkWords : public Bulk<Fixture> {
 protected:
  BulkOperation start(StartBulkOperation request) { return this->must(std::move(request)); }
  BulkOperation read(const BulkOperation& operation) {
    return this->must(ReadBulkOperation{operation.operation_id});
  }
  // Lets it run for up to so long.
  BulkOperation finish(const BulkOperation& operation, std::int64_t ms = 20'000) {
    constexpr std::int64_t step = 10;
    auto seen = read(operation);
    for (std::int64_t t = 0; t < ms && seen.state == BulkState::running; t += step) {
      this->advance(step);
      seen = read(operation);
    }
    EXPECT_EQ(seen.state, BulkState::finished) << seen;
    EXPECT_LE(seen.ended_at.value_or(INT64_MAX), this->now());
    EXPECT_EQ(seen.matched, seen.done + seen.failed);
    return seen;
  }
  BulkOperation run(StartBulkOperation request) { return finish(start(std::move(request))); }

  static constexpr ExecutionFilter on_lane(const std::string& lane) { return {.lane_id = lane}; }
};

class BulkOperations : public BulkWords<EngineTest> {
 protected:
  // {done, failed}
  using Outcome = std::pair<std::uint64_t, std::uint64_t>;
  static Outcome outcome(const BulkOperation& seen) { return {seen.done, seen.failed}; }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, BulkOperations, kStores, store_name);

// ---- what it does ----

TEST_P(BulkOperations, StartsAsItWasAsked) {
  const OperationId id{*Uuid::parse("01890000-0000-7000-8000-000000000001")};
  const ExecutionFilter filter{.lane_id = "a",
                               .states = {PublicState::waiting, PublicState::delayed},
                               .namespace_ = "n",
                               .execution_kind = "k",
                               .tags = {{"a.b", "c"}},
                               .created_after = 1,
                               .created_before = kStart + 1};
  const auto operation =
      start({.operation_id = id, .action = BulkAction::cancel, .filter = filter, .reason = "spring"});
  EXPECT_EQ(operation, (BulkOperation{.operation_id = id,
                                      .action = BulkAction::cancel,
                                      .state = BulkState::running,
                                      .filter = filter,
                                      .matched = 0,
                                      .done = 0,
                                      .failed = 0,
                                      .last_error = "",
                                      .created_at = kStart,
                                      .ended_at = std::nullopt}));
  EXPECT_EQ(read(operation), operation);
  EXPECT_EQ(outcome(finish(operation)), Outcome(0, 0)) << "nothing matches, and it ends";
  EXPECT_EQ(read(operation).filter, filter);
}

TEST_P(BulkOperations, CancelsWhatMatchesInWhateverState) {
  const auto waiting = create();
  const auto delayed = create({.delay_until = kStart + kHour});
  const auto active = running({.priority = 9}).execution_id;
  const auto other = create({.lane_id = "other"});
  const auto untouched = story(other);

  EXPECT_EQ(outcome(run({.action = BulkAction::cancel, .filter = on_lane("default"), .reason = "spring"})),
            Outcome(3, 0));
  for (const auto& id : {waiting, delayed, active}) {
    EXPECT_EQ(state(id).public_state, PublicState::cancelled);
    EXPECT_EQ(describe(id).cancellation_reason, "spring");
    EXPECT_EQ(describe(id).cancelled_by, "operator_override");
  }
  EXPECT_EQ(story(other), untouched);
}

TEST_P(BulkOperations, CancelsNothingThatHasEnded) {
  const auto done = running();
  complete(done);
  const auto cancelled = create();
  cancel(cancelled, "before");
  const auto waiting = create();
  const std::vector untouched{describe(done.execution_id), describe(cancelled)};

  EXPECT_EQ(outcome(run({.action = BulkAction::cancel, .filter = on_lane("default")})), Outcome(1, 0));
  EXPECT_EQ(state(waiting).public_state, PublicState::cancelled);
  EXPECT_EQ((std::vector{describe(done.execution_id), describe(cancelled)}), untouched);
}

TEST_P(BulkOperations, ReplaysWhatHasEnded) {
  const auto failed = running();
  fail(failed);
  const auto cancelled = create();
  cancel(cancelled);
  const auto twice = running([] {
    ExecutionPolicy policy;
    policy.max_replay_count = 0;
    return policy;
  }());
  complete(twice);
  const auto waiting = create({.delay_until = kStart + kHour});
  const auto untouched = describe(waiting);

  const auto seen = run({.action = BulkAction::replay, .filter = on_lane("default"), .reason = "fixed"});
  EXPECT_EQ(outcome(seen), Outcome(2, 1)) << "what has not ended does not count";
  EXPECT_NE(seen.last_error.find("max_replays_exhausted"), std::string::npos) << seen.last_error;
  EXPECT_EQ(state(failed.execution_id), expected::waiting(AttemptState::pending_replay_attempt));
  EXPECT_EQ(state(cancelled), expected::waiting(AttemptState::pending_replay_attempt));
  EXPECT_EQ(state(twice.execution_id), expected::completed());
  EXPECT_EQ(describe(waiting), untouched);
  ASSERT_EQ(claim({.max_tasks = 10}).size(), 2u);
  EXPECT_EQ(attempts(failed.execution_id).at(1).reason, "fixed");
}

TEST_P(BulkOperations, ReplaysNothingThatEndedSince) {
  const auto ids = create_many(4);
  for (const auto& id : ids) cancel(id);
  tick(5);
  const auto operation =
      start({.action = BulkAction::replay, .filter = on_lane("default"), .rate_per_second = 1});
  for (int i = 0; i < 20; ++i) {
    advance(500);
    for (const auto& task : claim({.max_tasks = 10})) complete(task);  // ended again, and after the start
  }

  EXPECT_EQ(outcome(finish(operation)), Outcome(4, 0));
  for (const auto& id : ids) EXPECT_EQ(describe(id).replay_count, 1u);
}

TEST_P(BulkOperations, ChangesThePriorityOfWhatWaits) {
  const auto first = create();
  const auto second = create({.priority = 3});
  const auto delayed = create({.delay_until = kStart + kHour});
  const auto other = create({.lane_id = "other"});

  const auto seen =
      run({.action = BulkAction::change_priority, .filter = on_lane("default"), .new_priority = 99'999});
  EXPECT_EQ(outcome(seen), Outcome(2, 1));
  EXPECT_NE(seen.last_error.find("execution_not_eligible"), std::string::npos) << seen.last_error;
  EXPECT_EQ(describe(first).priority, 9000);
  EXPECT_EQ(describe(second).priority, 9000);
  EXPECT_EQ(describe(delayed).priority, 0);
  EXPECT_EQ(describe(other).priority, 0);
  EXPECT_EQ(must(ReadOperatorEvents{}).size(), 2u);
}

TEST_P(BulkOperations, FiltersLikeAListing) {
  std::vector<CreateExecution> requests;
  for (int i = 0; i < 36; ++i) {
    CreateExecution request{.lane_id = i % 2 == 0 ? "a" : "b", .execution_kind = i % 3 == 0 ? "x" : "y"};
    request.namespace_ = i % 4 == 0 ? "n" : "m";
    if (i % 5 == 0) request.tags = {{"a.b", "c"}};
    if (i % 6 == 0) request.delay_until = kStart + 20 * kHour;
    requests.push_back(request);
  }
  create_all(requests);
  tick(10);
  const std::vector<ExecutionFilter> filters{{.tags = {{"a.b", "c"}}},
                                             {.states = {PublicState::delayed}, .namespace_ = "n"},
                                             {.lane_id = "a", .execution_kind = "x"},
                                             {.created_after = kStart - 1, .created_before = kStart + 1}};
  for (auto filter : filters) {
    // Executions that an earlier round cancelled no longer count.
    if (filter.states.empty()) filter.states = {PublicState::waiting, PublicState::delayed};
    const auto wanted = matching(filter);
    ASSERT_FALSE(wanted.empty());
    const auto before = count("a")[PublicState::cancelled] + count("b")[PublicState::cancelled];
    EXPECT_EQ(outcome(run({.action = BulkAction::cancel, .filter = filter})), Outcome(wanted.size(), 0));
    for (const auto& id : wanted) EXPECT_EQ(state(id).public_state, PublicState::cancelled);
    EXPECT_EQ(count("a")[PublicState::cancelled] + count("b")[PublicState::cancelled],
              before + static_cast<std::int64_t>(wanted.size()));
  }
}

// ---- when it does it ----

TEST_P(BulkOperations, LeavesAloneWhatCameLater) {
  create_many(3);
  tick(1);
  const auto operation =
      start({.action = BulkAction::cancel, .filter = on_lane("default"), .rate_per_second = 1});
  tick(1);
  const auto later = create();

  EXPECT_EQ(outcome(finish(operation)), Outcome(3, 0));
  EXPECT_EQ(state(later), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(BulkOperations, LeavesAloneWhatMatchesNoLonger) {
  create_many(3);
  tick(1);
  const auto operation = start(
      {.action = BulkAction::cancel, .filter = {.states = {PublicState::waiting}}, .rate_per_second = 1});
  const auto taken = claim({.max_tasks = 3});
  ASSERT_EQ(taken.size(), 3u);

  EXPECT_EQ(outcome(finish(operation)), Outcome(0, 0));
  for (const auto& task : taken) EXPECT_EQ(state(task.execution_id), expected::running());
}

TEST_P(BulkOperations, KeepsToItsRate) {
  constexpr std::int64_t step = 50;
  constexpr std::size_t second = 1000 / step;
  for (const std::uint32_t rate : {2u, 10u, 300u}) {
    const auto total = rate * 4 + 1;
    const auto ids = create_many(total);
    const auto operation =
        start({.action = BulkAction::cancel, .filter = on_lane("default"), .rate_per_second = rate});
    run_due();
    std::vector<std::uint64_t> done{0};
    for (std::size_t i = 0; i < 6 * second; ++i) {
      done.push_back(read(operation).done);
      advance(step);
    }
    for (std::size_t i = second; i < done.size(); ++i) {
      EXPECT_LE(done[i] - done[i - second], rate) << rate << " per second, in the second before " << i * step;
    }
    EXPECT_EQ(done.back(), total) << "and is not much slower";
    finish(operation);
    for (const auto& id : ids) forget(id);
  }
}

TEST_P(BulkOperations, DoesThousandsWhileOtherWorkGoesOn) {
  const auto ids = create_many(3000, {.lane_id = "many", .execution_kind = "test"});
  tick(1);
  const auto operation = start({.action = BulkAction::cancel, .filter = on_lane("many")});
  complete(running());
  const auto seen = finish(operation);

  EXPECT_EQ(outcome(seen), Outcome(3000, 0));
  EXPECT_EQ(count("many"), (StateCounts{{PublicState::cancelled, 3000}}));
  for (const auto& id : ids) forget(id);  // one look at the whole store is enough
}

TEST_P(BulkOperations, SeveralRunAtOnce) {
  create_many(20, {.lane_id = "a", .execution_kind = "test"});
  create_many(20, {.lane_id = "b", .execution_kind = "test"});
  tick(1);
  const auto one = start({.action = BulkAction::cancel, .filter = on_lane("a"), .rate_per_second = 20});
  const auto other =
      start({.action = BulkAction::change_priority, .filter = on_lane("b"), .new_priority = 7});
  EXPECT_NE(one.operation_id, other.operation_id);

  EXPECT_EQ(outcome(finish(other)), Outcome(20, 0));
  EXPECT_EQ(outcome(finish(one)), Outcome(20, 0));
}

// ---- asking again ----

TEST_P(BulkOperations, TheSameIdIsTheSameOperation) {
  create_many(3);
  tick(1);
  const OperationId id{*Uuid::parse("01890000-0000-7000-8000-000000000002")};
  const StartBulkOperation request{
      .operation_id = id, .action = BulkAction::cancel, .filter = on_lane("default")};
  const auto first = start(request);
  tick(5);
  EXPECT_EQ(start(request), first);
  const auto ended = finish(first);
  const auto later = create();
  tick(5);

  EXPECT_EQ(start(request), ended) << "not started again";
  auto other = request;
  other.action = BulkAction::change_priority;
  EXPECT_EQ(start(other), ended);
  advance(kHour);
  EXPECT_EQ(state(later), expected::waiting(AttemptState::pending_first_attempt));
}

TEST_P(BulkOperations, AnUnknownOneIsNotFound) {
  expect_error(ReadBulkOperation{}, ErrorCode::operation_not_found);
  expect_error(CancelBulkOperation{}, ErrorCode::operation_not_found);
}

// ---- stopping ----

TEST_P(BulkOperations, CancelledItStopsAndWhatWasDoneStays) {
  create_many(30);
  tick(1);
  const auto operation =
      start({.action = BulkAction::cancel, .filter = on_lane("default"), .rate_per_second = 10});
  advance(1);
  advance(1000);
  const auto before = read(operation);
  ASSERT_GT(before.done, 0u);
  ASSERT_LT(before.done, 30u);
  auto stopped = must(CancelBulkOperation{operation.operation_id});

  EXPECT_EQ(stopped.state, BulkState::cancelled);
  EXPECT_EQ(stopped.ended_at, now());
  EXPECT_EQ(outcome(stopped), outcome(before));
  for (int i = 0; i < 10; ++i) advance(1000);
  EXPECT_EQ(read(operation), stopped);
  EXPECT_EQ(must(CancelBulkOperation{operation.operation_id}), stopped);
  EXPECT_EQ(count()[PublicState::cancelled], static_cast<std::int64_t>(before.done));
}

TEST_P(BulkOperations, FinishedItStaysFinished) {
  create();
  tick(1);
  const auto ended = run({.action = BulkAction::cancel, .filter = on_lane("default")});
  tick(5);

  EXPECT_EQ(must(CancelBulkOperation{ended.operation_id}), ended);
  EXPECT_EQ(read(ended), ended);
}

TEST_P(BulkOperations, EndedItIsForgottenAfterTheRetention) {
  const auto ended = run({.action = BulkAction::cancel, .filter = on_lane("default")});
  advance(24 * kHour - 1);
  EXPECT_EQ(read(ended), ended);
  advance(1);

  expect_error(ReadBulkOperation{ended.operation_id}, ErrorCode::operation_not_found);
}

// ---- bad input ----

TEST_P(BulkOperations, BadInputIsRefusedWithoutATrace) {
  const auto id = create();
  const auto before = story(id);
  const OperationId operation{*Uuid::parse("01890000-0000-7000-8000-000000000003")};
  const StartBulkOperation good{
      .operation_id = operation, .action = BulkAction::cancel, .filter = on_lane("default")};
  const auto refuse = [&](auto spoil, const std::string& word) {
    auto bad = good;
    spoil(bad);
    const auto error = expect_error(bad, ErrorCode::invalid_input);
    EXPECT_TRUE(error.detail.starts_with(word)) << error.detail;
    expect_error(ReadBulkOperation{operation}, ErrorCode::operation_not_found);
  };
  refuse([](auto& r) { r.filter = {}; }, "filter");
  refuse([](auto& r) { r.rate_per_second = 0; }, "rate_per_second");
  refuse([](auto& r) { r.rate_per_second = 100'001; }, "rate_per_second");
  refuse([](auto& r) { r.reason = "a\0b"s; }, "reason");
  advance(kHour);

  EXPECT_EQ(story(id), before);
  auto fastest = good;
  fastest.rate_per_second = 100'000;
  EXPECT_EQ(outcome(run(fastest)), Outcome(1, 0));
}

// ---- restarts ----

class BulkRestart : public BulkWords<ReopenTest> {};
INSTANTIATE_TEST_SUITE_P(DurableStores, BulkRestart, kDurableStores, store_name);

TEST_P(BulkRestart, ItGoesOnWhereItWas) {
  const auto ids = create_many(30);
  tick(1);
  const auto operation = start({.action = BulkAction::change_priority,
                                .filter = {.lane_id = "default"},
                                .new_priority = 5,
                                .rate_per_second = 10});
  advance(1);
  advance(1000);
  const auto before = read(operation);
  ASSERT_GT(before.done, 0u);
  ASSERT_LT(before.done, 30u);
  reopen();
  EXPECT_EQ(read(operation), before);

  const auto ended = finish(operation);
  EXPECT_EQ(ended.done, 30u);
  EXPECT_EQ(must(ReadOperatorEvents{}).size(), 30u) << "each once";
  for (const auto& id : ids) EXPECT_EQ(describe(id).priority, 5);
}

}  // namespace
}  // namespace flowfabric
