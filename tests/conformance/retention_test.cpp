// Ended executions, and events, are kept for a while and then removed (02 §11, 08).
#include <functional>
#include <future>

#include "support/bulk_fixture.h"
#include "support/reopen_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;
using std::chrono::milliseconds;

constexpr std::int64_t kDay = 24 * kHour;

ExecutionPolicy kept_for(std::int64_t ms) {
  ExecutionPolicy policy;
  policy.stream_policy = StreamPolicy{.retention_ttl_ms = static_cast<std::uint64_t>(ms)};
  return policy;
}

// On any fixture.
template <class Fixture>
class RetentionWords : public Bulk<Fixture> {
 protected:
  bool is_there(const ExecutionId& id) { return this->call(DescribeExecution{id}).has_value(); }
  void expect_kept(const ExecutionId& id) { EXPECT_TRUE(is_there(id)) << id << " at " << this->now(); }
  void expect_purged(const ExecutionId& id) {
    this->expect_error(DescribeExecution{id}, ErrorCode::execution_not_found);
    this->forget(id);
  }
  // Kept until just before, purged at the instant.
  void expect_purged_at(const ExecutionId& id, std::int64_t time) {
    this->advance(time - 1 - this->now());
    expect_kept(id);
    this->advance(1);
    expect_purged(id);
  }
  ExecutionId completed(ExecutionPolicy policy = {}, std::string result = "done") {
    const auto task = this->running(CreateExecution{.tags = {{"a.b", "c"}}, .policy = std::move(policy)});
    this->complete(task, std::move(result));
    return task.execution_id;
  }
};

// ---- every end ----

class Retention : public RetentionWords<EngineTest> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, Retention, kStores, store_name);

TEST_P(Retention, ADayIsTheDefault) {
  tick(5);
  const auto id = completed();

  expect_purged_at(id, kStart + 5 + kDay);
}

TEST_P(Retention, ThePeriodCountsFromTheEndWhateverItIs) {
  struct End {
    const char* name;
    std::function<ExecutionId()> reach;
  };
  const auto policy = kept_for(kHour);
  const std::vector<End> ends{
      {"completed", [&] { return completed(policy); }},
      {"failed",
       [&] {
         const auto task = running(policy);
         fail(task);
         return task.execution_id;
       }},
      {"cancelled while waiting",
       [&] {
         const auto id = create(policy);
         cancel(id);
         return id;
       }},
      {"cancelled while running",
       [&] {
         const auto id = running(policy).execution_id;
         cancel(id);
         return id;
       }},
      {"expired",
       [&] {
         const auto id = create({.policy = policy, .execution_deadline_at = now()});
         run_due();
         return id;
       }},
      {"reclaimed too often",
       [&] {
         auto capped = reclaim_cap(0);
         capped.stream_policy = policy.stream_policy;
         const auto id = lost(capped).execution_id;
         claim();
         return id;
       }},
  };
  for (const auto& end : ends) {
    SCOPED_TRACE(end.name);
    tick(1000);
    const auto id = end.reach();
    ASSERT_TRUE(describe(id).completed_at);
    expect_purged_at(id, *describe(id).completed_at + kHour);
  }
}

TEST_P(Retention, WhatHasNotEndedIsKept) {
  const auto waiting = create({.lane_id = "other", .policy = kept_for(1000)});
  const auto delayed = create({.policy = kept_for(1000), .delay_until = kStart + 1000 * kDay});
  const auto taken = lost(kept_for(1000)).execution_id;
  must(HoldExecution{.execution_id = waiting});
  for (int i = 0; i < 10; ++i) advance(10 * kDay);

  for (const auto& id : {waiting, delayed, taken}) expect_kept(id);
}

TEST_P(Retention, OneGoesWhileOthersStay) {
  const auto first = completed(kept_for(1000));
  const auto last = completed(kept_for(3000));
  const auto second = completed(kept_for(2000));
  const auto live = create();
  expect_purged_at(first, kStart + 1000);
  expect_purged_at(second, kStart + 2000);
  expect_kept(last);
  expect_purged_at(last, kStart + 3000);
  expect_kept(live);
}

TEST_P(Retention, ManyGoAtOnce) {
  const auto ids = create_many(2500, {.execution_kind = "test", .policy = kept_for(1000)});
  for (const auto& id : ids) {
    cancel(id);
    forget(id);
  }
  EXPECT_EQ(count(), (StateCounts{{PublicState::cancelled, 2500}}));
  advance(1000);

  EXPECT_EQ(count(), StateCounts{});
  EXPECT_EQ(matching({}), Ids{});
}

// ---- afterwards ----

TEST_P(Retention, NothingKnowsOfItAnyMore) {
  const auto task = running({.tags = {{"a.b", "c"}}, .policy = kept_for(1000)});
  const auto id = task.execution_id;
  complete(task, "result");
  EXPECT_EQ(matching({.tags = {{"a.b", "c"}}}), Ids{id});
  advance(1000);
  expect_purged(id);

  const auto gone = ErrorCode::execution_not_found;
  expect_error(ReadState{id}, gone);
  expect_error(ReadContext{id}, gone);
  expect_error(ReadTags{id}, gone);
  expect_error(ReadResult{id}, gone);
  expect_error(ListAttempts{id}, gone);
  expect_error(CancelExecution{.execution_id = id}, gone);
  expect_error(ReplayExecution{.execution_id = id}, gone);
  expect_error(SetTags{id, {{"a.b", "d"}}}, gone);
  expect_error(completion(task, "result"), gone);
  expect_error(RenewLease{id, task.fence, 0}, gone);
  for (const auto& filter : std::vector<ExecutionFilter>{{},
                                                         {.lane_id = "default"},
                                                         {.states = {PublicState::completed}},
                                                         {.namespace_ = ""},
                                                         {.execution_kind = "test"},
                                                         {.tags = {{"a.b", "c"}}}}) {
    EXPECT_EQ(matching(filter), Ids{});
  }
  EXPECT_EQ(must(ListPartition{.partition = id.partition}), PartitionPage{});
  EXPECT_EQ(count(), StateCounts{});
  const auto lanes = must(ListLanes{}).lanes;
  ASSERT_EQ(lanes.size(), 1u) << "a lane stays";
  EXPECT_EQ(lanes[0].counts, StateCounts{});
  EXPECT_EQ(lease_log(id), (Log{"1 acquired", "1 released completed"})) << "events have a time of their own";
  EXPECT_EQ(completions(id).size(), 1u);
}

TEST_P(Retention, ItsIdMayBeUsedAnew) {
  const auto first = running({.execution_id = ExecutionId{7, {}},
                              .execution_kind = "old",
                              .tags = {{"a.b", "old"}},
                              .policy = kept_for(1000)});
  complete(first, "old");
  advance(1000);
  expect_purged({7, {}});

  const auto again = must(CreateExecution{.execution_id = ExecutionId{7, {}}, .execution_kind = "new"});
  EXPECT_EQ(again, (Creation{{7, {}}, false, PublicState::waiting}));
  forget({7, {}});  // its events are those of both lives
  const auto seen = must(DescribeExecution{{7, {}}});
  EXPECT_EQ(seen.state, expected::waiting(AttemptState::pending_first_attempt));
  EXPECT_EQ(seen.execution_kind, "new");
  EXPECT_EQ(seen.total_attempt_count, 0u);
  EXPECT_EQ(seen.lease_epoch, 0);
  EXPECT_EQ(seen.tags, Tags{});
  EXPECT_EQ(result({7, {}}), std::nullopt);
  EXPECT_TRUE(attempts({7, {}}).empty());
  EXPECT_EQ(matching({.tags = {{"a.b", "old"}}}), Ids{});
}

TEST_P(Retention, ItsIdempotencyKeyHasItsOwnWindow) {
  const CreateExecution request{.execution_kind = "test", .idempotency_key = "key", .policy = kept_for(1000)};
  const auto id = must(request).execution_id;
  cancel(id);
  advance(1000);
  expect_purged(id);

  EXPECT_EQ(must(request), (Creation{id, true, std::nullopt}));
  advance(kDay);
  EXPECT_FALSE(must(request).duplicate);
}

// ---- replays ----

TEST_P(Retention, AReplayKeepsItAndTheNextEndStartsANewPeriod) {
  const auto id = completed(kept_for(1000));
  advance(999);
  must(ReplayExecution{.execution_id = id});
  advance(kDay);
  expect_kept(id);
  complete(claim_one());

  expect_purged_at(id, kStart + 999 + kDay + 1000);
}

TEST_P(Retention, AReplayInTheLastMomentIsInTime) {
  const auto id = completed(kept_for(1000));
  tick(5000);  // over, and not noticed yet
  must(ReplayExecution{.execution_id = id});
  run_due();

  expect_kept(id);
  EXPECT_EQ(state(id), expected::waiting(AttemptState::pending_replay_attempt));
  EXPECT_EQ(attempts(id).size(), 1u);
}

// ---- races ----

// Each round the id is taken again at the very moment at which its former life is removed.
TEST_P(Retention, AnIdIsTakenAgainWhileItsFormerLifeIsRemoved) {
  const CreateExecution request{.execution_id = ExecutionId{7, {}},
                                .execution_kind = "test",
                                .tags = {{"a.b", "c"}},
                                .policy = kept_for(1000)};
  ASSERT_TRUE(call(request));
  forget({7, {}});
  for (int round = 0; round < 100; ++round) {
    cancel({7, {}});
    tick(1000);
    std::vector<std::future<Result<Creation>>> creations;
    auto clock = std::async(std::launch::async, [&] { run_due(); });
    for (int i = 0; i < 5; ++i) creations.push_back(engine().submit(request));
    clock.get();
    int created = 0;
    for (auto& creation : creations) created += creation.get().value().duplicate ? 0 : 1;
    EXPECT_LE(created, 1);
    if (created == 0) {
      ASSERT_FALSE(must(request).duplicate);
    }
    EXPECT_EQ(must(ReadState{{7, {}}}), PublicState::waiting);
    EXPECT_EQ(matching({.tags = {{"a.b", "c"}}}).size(), 1u);
    forget({7, {}});
  }
  EXPECT_EQ(count(), (StateCounts{{PublicState::waiting, 1}}));
}

// ---- options ----

class RetentionOptions : public RetentionWords<ReopenTest> {};
INSTANTIATE_TEST_SUITE_P(EveryStore, RetentionOptions, kStores, store_name);

TEST_P(RetentionOptions, TheEngineSaysHowLong) {
  reopen({.retention = milliseconds(kHour)});
  expect_purged_at(completed(), now() + kHour);
  expect_purged_at(completed(kept_for(1000)), now() + 1000);
  expect_purged_at(completed(kept_for(2 * kHour)), now() + 2 * kHour);
}

TEST_P(RetentionOptions, ZeroKeepsForEver) {
  reopen({.retention = milliseconds(0)});
  const auto kept = completed();
  const auto by_policy = completed(kept_for(1000));
  expect_purged_at(by_policy, kStart + 1000);
  for (int i = 0; i < 6; ++i) advance(kDay);

  expect_kept(kept);
  EXPECT_EQ(result(kept), "done");
}

// ---- events ----

// Events are cut off behind executions that stay, so the fixture's own look at them would find too few.
class EventRetention : public RetentionWords<ReopenTest> {
 protected:
  // One lease event of each kind, one completion, one operator event, one worker event.
  void make_events() {
    const auto id = completed();
    must(ReplayExecution{.execution_id = id});
    complete(claim_one());
    must(RegisterWorker{.worker_id = "w", .worker_instance_id = "i1"});
    forget(id);
  }
  template <class Read>
  std::vector<std::int64_t> times() {
    std::vector<std::int64_t> all;
    for (const auto& event : must(Read{.limit = 1000})) all.push_back(event.occurred_at);
    return all;
  }
  using Times = std::vector<std::int64_t>;
  struct Logs {
    Times lease, completion, operator_, worker;
    bool operator==(const Logs&) const = default;
  };
  Logs logs() {
    return {times<ReadLeaseEvents>(), times<ReadCompletions>(), times<ReadOperatorEvents>(),
            times<ReadWorkerEvents>()};
  }
  void expect_none_older_than(std::int64_t ms) {
    const auto seen = logs();
    for (const auto& log : {seen.lease, seen.completion, seen.operator_, seen.worker}) {
      ASSERT_FALSE(log.empty());
      for (const auto time : log) EXPECT_GE(time, now() - ms);
    }
  }
  void live(std::int64_t days) {
    for (std::int64_t i = 0; i < days; ++i) advance(kDay);
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, EventRetention, kStores, store_name);

TEST_P(EventRetention, AWeekIsTheDefault) {
  make_events();
  live(3);
  make_events();
  live(3);
  make_events();
  const auto all = logs();
  EXPECT_EQ(all.completion.size(), 6u) << "nothing is a week old";
  live(2);

  expect_none_older_than(7 * kDay);
  EXPECT_EQ(logs().completion, Times(all.completion.begin() + 2, all.completion.end()));
}

TEST_P(EventRetention, TheNewestOfEachLogStays) {
  make_events();
  make_events();
  const auto lease = must(ReadLeaseEvents{}).back();
  const auto completion = must(ReadCompletions{}).back();
  const auto operator_event = must(ReadOperatorEvents{}).back();
  live(100);

  EXPECT_EQ(must(ReadLeaseEvents{}), std::vector{lease});
  EXPECT_EQ(must(ReadCompletions{}), std::vector{completion});
  EXPECT_EQ(must(ReadOperatorEvents{}), std::vector{operator_event});
  EXPECT_EQ(must(ReadWorkerEvents{}).size(), 1u);
  make_events();
  EXPECT_GT(must(ReadCompletions{}).back().event_id, completion.event_id) << "the numbering goes on";
  EXPECT_EQ(must(ReadCompletions{.after = completion.event_id}).size(), 2u);
}

TEST_P(EventRetention, TheEngineSaysHowLong) {
  reopen({.event_retention = milliseconds(2 * kDay)});
  make_events();
  live(1);
  make_events();
  EXPECT_EQ(logs().completion.size(), 4u);
  live(2);
  make_events();
  live(1);

  expect_none_older_than(2 * kDay);
}

TEST_P(EventRetention, ZeroKeepsForEver) {
  reopen({.event_retention = milliseconds(0)});
  make_events();
  const auto all = logs();
  live(30);

  EXPECT_EQ(logs().lease, all.lease);
  EXPECT_EQ(logs().completion, all.completion);
  EXPECT_EQ(logs().operator_, all.operator_);
}

// ---- restarts ----

class RetentionRestart : public RetentionWords<ReopenTest> {};
INSTANTIATE_TEST_SUITE_P(DurableStores, RetentionRestart, kDurableStores, store_name);

TEST_P(RetentionRestart, ThePeriodGoesOn) {
  const auto id = completed(kept_for(1000));
  const auto overdue = completed(kept_for(10));
  tick(500);
  reopen();
  run_due();
  expect_purged(overdue);

  expect_purged_at(id, kStart + 1000);
  reopen();
  expect_error(DescribeExecution{id}, ErrorCode::execution_not_found);
  EXPECT_EQ(count(), StateCounts{});
}

}  // namespace
}  // namespace flowfabric
