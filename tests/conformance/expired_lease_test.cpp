// Listing leases that ran out and were not taken over yet (02 §12).
#include <algorithm>

#include "support/bulk_fixture.h"

namespace flowfabric {
namespace {

using namespace tests;

class ExpiredLeases : public Bulk<EngineTest> {
 protected:
  std::vector<ExpiredLease> expired(ListExpiredLeases request = {}) {
    const auto limit = request.limit;
    const auto pages =
        pages_of(std::move(request), [&](const ListExpiredLeases& next) { return must(next); });
    for (const auto size : page_sizes(pages, &ExpiredLeasePage::leases)) EXPECT_LE(size, limit);
    return entries_of(pages, &ExpiredLeasePage::leases);
  }
  ClaimedTask running_for(std::int64_t ttl_ms, CreateExecution request = {}) {
    create(std::move(request));
    return claim_one({.lease_ttl_ms = ttl_ms});
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, ExpiredLeases, kStores, store_name);

TEST_P(ExpiredLeases, ALeaseIsListedFromItsEndOn) {
  create();
  const auto task = claim_one({.worker_id = "w", .worker_instance_id = "w-7"});
  tick(kLeaseTtl - 1);
  EXPECT_TRUE(expired().empty());
  tick(1);
  const ExpiredLease seen{.execution_id = task.execution_id,
                          .lease_id = *task.fence.lease_id,
                          .lease_epoch = 1,
                          .worker_instance_id = "w-7",
                          .expires_at = kStart + kLeaseTtl,
                          .attempt_index = 0};
  EXPECT_EQ(expired(), std::vector{seen}) << "before any clock noticed";
  run_due();
  EXPECT_EQ(state(task.execution_id), expected::lost());
  EXPECT_EQ(expired(), std::vector{seen});
  advance(kHour);
  EXPECT_EQ(expired(), std::vector{seen}) << "as long as nobody takes it over";
}

TEST_P(ExpiredLeases, TheLaterAttemptIsTheOneListed) {
  lost();
  const auto task = claim_one();
  EXPECT_TRUE(expired().empty());
  tick(kLeaseTtl);

  const auto seen = expired();
  ASSERT_EQ(seen.size(), 1u);
  EXPECT_EQ(seen[0].lease_id, task.fence.lease_id);
  EXPECT_EQ(seen[0].lease_epoch, 2);
  EXPECT_EQ(seen[0].attempt_index, 1u);
}

TEST_P(ExpiredLeases, WhatHasNoLapsedLeaseIsNotListed) {
  create({.lane_id = "other"});
  create({.delay_until = kStart + 20 * kHour});
  complete(running());
  fail(running());
  delay(running(), kStart + 20 * kHour);
  fail(running(retries(1, FixedBackoff{20 * kHour})));
  cancel(running().execution_id);
  const auto revoked = running();
  must(RevokeLease{.execution_id = revoked.execution_id});
  const auto renewed = claim_one();
  tick(1000);
  renew(renewed);
  advance(kLeaseTtl - 1000);
  EXPECT_TRUE(expired().empty());
}

TEST_P(ExpiredLeases, TheRevokedAreNotListed) {
  const auto task = running();
  must(RevokeLease{.execution_id = task.execution_id});
  advance(kLeaseTtl);

  EXPECT_TRUE(expired().empty());
}

TEST_P(ExpiredLeases, TakingOverOrEndingTakesItOffTheList) {
  const auto reclaimed = lost().execution_id;
  claim_one({.lease_ttl_ms = 3'600'000});
  EXPECT_TRUE(expired().empty());
  const auto cancelled = running().execution_id;
  const auto deadline = running({.execution_deadline_at = now() + 2 * kLeaseTtl}).execution_id;
  advance(kLeaseTtl);
  EXPECT_EQ(expired().size(), 2u);
  cancel(cancelled);
  EXPECT_EQ(ids_of(expired()), Ids{deadline});
  advance(kLeaseTtl);
  EXPECT_TRUE(expired().empty());
  EXPECT_EQ(state(reclaimed), expected::running());
}

TEST_P(ExpiredLeases, ThePastMayBeAskedForTheFutureNot) {
  const auto first = running_for(1000).execution_id;
  const auto second = running_for(2000).execution_id;
  const auto third = running_for(3000).execution_id;
  tick(2500);
  const auto as_of = [&](std::int64_t time) { return ids_of(expired({.as_of = time})); };

  EXPECT_EQ(as_of(kStart + 999), Ids{});
  EXPECT_EQ(as_of(kStart + 1000), Ids{first}) << "inclusive";
  EXPECT_EQ(as_of(kStart + 2499), (Ids{first, second}));
  EXPECT_EQ(as_of(kStart + 3000), (Ids{first, second})) << "later than now is now";
  EXPECT_EQ(as_of(INT64_MAX), (Ids{first, second}));
  EXPECT_EQ(as_of(-1), Ids{});
  advance(500);
  EXPECT_EQ(ids_of(expired()), (Ids{first, second, third}));
  EXPECT_EQ(as_of(kStart + 2000), (Ids{first, second})) << "noticed by the clock or not";
}

TEST_P(ExpiredLeases, AreByExpiryAndId) {
  std::vector<std::pair<std::int64_t, ExecutionId>> order;
  for (int i = 0; i < 12; ++i) {
    const std::int64_t ttl = 1000 * (1 + (i * 5) % 4);
    const ExecutionId id{static_cast<std::uint16_t>(200 - i), {}};
    order.emplace_back(ttl, running_for(ttl, {.execution_id = id}).execution_id);
  }
  std::sort(order.begin(), order.end());
  Ids all;
  for (const auto& [ttl, id] : order) all.push_back(id);
  tick(2000);
  run_due();  // half of them are marked, half of them are not
  tick(2000);

  for (const std::uint32_t limit : {1u, 2u, 5u, 12u, 13u, 10'000u}) {
    EXPECT_EQ(ids_of(expired({.limit = limit})), all) << "limit " << limit;
  }
}

TEST_P(ExpiredLeases, OneNamespaceMayBeAskedFor) {
  const auto of_a = running({.namespace_ = "a"}).execution_id;
  const auto of_b = running({.namespace_ = "b"}).execution_id;
  const auto of_none = running().execution_id;
  tick(kLeaseTtl);

  EXPECT_EQ(ids_of(expired({.namespace_ = "a", .limit = 1})), Ids{of_a});
  EXPECT_EQ(ids_of(expired({.namespace_ = "b", .limit = 1})), Ids{of_b});
  EXPECT_EQ(ids_of(expired({.namespace_ = "", .limit = 1})), Ids{of_none});
  EXPECT_EQ(ids_of(expired({.namespace_ = "c"})), Ids{});
  EXPECT_EQ(expired().size(), 3u);
}

TEST_P(ExpiredLeases, APausedLaneHidesNothing) {
  const auto id = running().execution_id;
  must(SetLaneState{"default", LaneState::disabled});
  tick(kLeaseTtl);

  EXPECT_EQ(ids_of(expired()), Ids{id});
}

TEST_P(ExpiredLeases, TheCursorSurvivesTheTakeOverOfItsEntry) {
  const auto first = running_for(1000).execution_id;
  tick(1);
  const auto second = running_for(2000).execution_id;
  advance(2000);
  const auto page = must(ListExpiredLeases{.limit = 1});
  ASSERT_EQ(ids_of(page.leases), Ids{first});
  ASSERT_EQ(claim_one().execution_id, first);

  EXPECT_EQ(ids_of(must(ListExpiredLeases{.cursor = page.next_cursor.value()}).leases), Ids{second});
}

TEST_P(ExpiredLeases, ABadCursorOrLimitIsRefused) {
  const auto id = lost().execution_id;
  for (const auto& cursor : {std::string("nonsense"), id.to_string(), std::string("17"), std::string("!")}) {
    expect_error(ListExpiredLeases{.cursor = cursor}, ErrorCode::invalid_input);
  }
  expect_error(ListExpiredLeases{.limit = 0}, ErrorCode::invalid_input);
  expect_error(ListExpiredLeases{.limit = 10'001}, ErrorCode::invalid_input);
}

}  // namespace
}  // namespace flowfabric
