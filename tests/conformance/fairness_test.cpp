// Lanes that share fairly between keys, and limits for each key.
#include <algorithm>
#include <map>
#include <set>

#include "support/limit_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class Fairness : public LimitTest {
 protected:
  void share_by(const std::string& fair_by, std::uint64_t per_key = 0) {
    must(SetLaneFairness{.lane_id = "default", .fair_by = fair_by, .max_concurrent_per_key = per_key});
  }
  void create_many(const std::string& tenant, int count) {
    while (count > 0) {
      CreateExecutions batch;
      for (; count > 0 && batch.executions.size() < 1000; --count) {
        batch.executions.push_back({.namespace_ = tenant});
      }
      for (const auto& created : must(batch)) {
        ASSERT_TRUE(created) << created.error().to_string();
        if (looks_in_the_end_) remember(created->execution_id);
      }
    }
  }
  bool looks_in_the_end_{true};

  // The namespaces of the next tasks, in the order in which they are taken.
  std::string next(std::uint32_t count) {
    std::string taken;
    for (const auto& task : claim({.max_tasks = count})) taken += task.namespace_;
    return taken;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Fairness, kStores, store_name);

TEST_P(Fairness, KeysTakeTurns) {
  share_by("namespace");
  create_many("a", 6);
  create_many("b", 3);
  create_many("c", 1);
  const auto sorted = [&](std::uint32_t tasks) {
    auto taken = next(tasks);
    std::ranges::sort(taken);
    return taken;
  };
  EXPECT_EQ(sorted(3), "abc");
  EXPECT_EQ(sorted(2), "ab");
  EXPECT_EQ(sorted(2), "ab");
  EXPECT_EQ(sorted(100), "aaa");
}

TEST_P(Fairness, ALongBacklogDoesNotStarveANewcomer) {
  share_by("namespace");
  create_many("a", 1000);
  next(100);
  create_many("b", 10);
  const auto taken = next(30);
  EXPECT_EQ(std::ranges::count(taken, 'b'), 10) << taken;
}

TEST_P(Fairness, AnIdleKeySavesNothingUp) {
  share_by("namespace");
  create_many("b", 1);
  next(1);
  create_many("a", 200);
  next(100);
  create_many("b", 50);
  const auto taken = next(40);
  EXPECT_NEAR(static_cast<double>(std::ranges::count(taken, 'b')), 20.0, 1.0) << taken;
}

TEST_P(Fairness, PriorityComesFirst) {
  share_by("namespace");
  create_many("a", 3);
  create({.namespace_ = "b", .priority = 5});
  EXPECT_EQ(next(2), "ba");
}

TEST_P(Fairness, WhatWaitedBeforeKeepsItsPlace) {
  create_many("a", 3);
  tick(10);
  share_by("namespace");
  create_many("b", 3);
  EXPECT_EQ(next(6), "aaabbb");
}

TEST_P(Fairness, IsByATagIfSo) {
  share_by("tag:customer");
  for (const auto* customer : {"x", "x", "x", "y"}) {
    create({.namespace_ = customer, .tags = {{"customer", customer}}});
  }
  create({.namespace_ = "-"});
  const auto first = next(3);
  EXPECT_EQ(std::set<char>(first.begin(), first.end()).size(), 3u) << first;
}

TEST_P(Fairness, ARetryIsNewDemand) {
  share_by("namespace");
  const ExecutionPolicy retried{.retry_policy = RetryPolicy{.backoff = FixedBackoff{0}}};
  create({.namespace_ = "a", .policy = retried});
  create_many("a", 20);
  const auto task = claim_one();
  next(10);
  fail(task);
  run_due();
  create_many("b", 1);
  EXPECT_EQ(next(1), "b");
}

TEST_P(Fairness, AKeyHasItsLimit) {
  share_by("namespace", 2);
  create_many("a", 4);
  create_many("b", 3);
  const auto tasks = claim({.max_tasks = 100});
  ASSERT_EQ(tasks.size(), 4u);
  EXPECT_EQ(count()[PublicState::rate_limited], 3);
  const auto first = *std::ranges::find(tasks, "a", &ClaimedTask::namespace_);
  complete(first);
  run_due();
  const auto more = claim({.max_tasks = 100});
  ASSERT_EQ(more.size(), 1u);
  EXPECT_EQ(more.front().namespace_, "a");
}

TEST_P(Fairness, ARaisedLimitIsNoticedAtOnce) {
  share_by("namespace", 1);
  create_many("a", 5);
  create_many("b", 5);
  EXPECT_EQ(next(100).size(), 2u);
  share_by("namespace", 3);
  run_due();
  EXPECT_EQ(next(100).size(), 4u);
  share_by("namespace", 2);
  run_due();
  EXPECT_EQ(next(100).size(), 0u);
  share_by("namespace");
  run_due();
  EXPECT_EQ(next(100).size(), 4u) << "there is none any more";
}

TEST_P(Fairness, SaysWhoIsAtTheLimit) {
  share_by("namespace", 1);
  create({.namespace_ = "acme"});
  const auto id = create({.namespace_ = "acme"});
  claim({.max_tasks = 2});
  expect_blocked_by_quota(id, "lane default, key 'acme': concurrency cap 1");
}

TEST_P(Fairness, RefusesWhatMakesNoSense) {
  expect_error(SetLaneFairness{.lane_id = "default", .fair_by = "colour"}, ErrorCode::invalid_input);
  expect_error(SetLaneFairness{.lane_id = "default", .fair_by = "tag:"}, ErrorCode::invalid_input);
  expect_error(SetLaneFairness{.lane_id = "default", .max_concurrent_per_key = 1}, ErrorCode::invalid_input);
  expect_error(SetLaneFairness{.lane_id = "", .fair_by = "namespace"}, ErrorCode::invalid_input);
  EXPECT_EQ(must(SetLaneFairness{.lane_id = "l", .fair_by = "tag:a", .max_concurrent_per_key = 7}),
            (LaneFairness{"l", "tag:a", 7}));
  EXPECT_EQ(must(SetLaneFairness{.lane_id = "l"}), (LaneFairness{"l", "", 0}));
}

TEST_P(Fairness, ForgetsKeysThatAreIdle) {
  share_by("namespace", 5);
  create_many("a", 1);
  complete(claim_one());
  create_many("b", 2);
  for (const auto& task : claim({.max_tasks = 2})) complete(task);
  advance(30'000);
  const auto before = must(CheckStore{}).records;
  create_many("c", 1);
  complete(claim_one());
  EXPECT_GT(must(CheckStore{}).records, before);
}

// A long line of one tenant, and a short one of another.
class LargeBacklog : public Fairness {};
INSTANTIATE_TEST_SUITE_P(EveryStore, LargeBacklog, kStores, store_name);

TEST_P(LargeBacklog, TenOfOneTenantFinishAmongTheFirstHundredClaims) {
  looks_in_the_end_ = false;
  share_by("namespace");
  create_many("a", 100'000);
  create_many("b", 10);
  std::map<std::string, int> finished;
  for (int i = 0; i < 100; ++i) {
    const auto task = claim_one();
    complete(task);
    ++finished[task.namespace_];
  }
  EXPECT_EQ(finished, (std::map<std::string, int>{{"a", 90}, {"b", 10}}));
}

}  // namespace
}  // namespace flowfabric
