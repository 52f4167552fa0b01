// Quota policies: windows and slots (05 §7; the numbers are those of §14).
#include <set>

#include "support/limit_support.h"

namespace flowfabric {
namespace {

using namespace tests;

class Quotas : public LimitTest {
 protected:
  static ExecutionId execution(int number) { return {0, budget_id(number).uuid}; }
  AdmissionOutcome ask(const QuotaPolicyId& id, int number) {
    return must(CheckAdmission{id, execution(number)}).outcome;
  }
};
INSTANTIATE_TEST_SUITE_P(EveryStore, Quotas, kStores, store_name);

TEST_P(Quotas, AreCreatedOnce) {
  const auto id = make_quota({.window_seconds = 10, .max_requests_per_window = 2, .max_concurrent = 3});
  EXPECT_FALSE(must(CreateQuotaPolicy{.quota_policy_id = id, .max_concurrent = 9}).created);
  EXPECT_EQ(quota(id), (QuotaStatus{.quota_policy_id = id,
                                    .window_seconds = 10,
                                    .max_requests_per_window = 2,
                                    .max_concurrent = 3,
                                    .created_at = now()}));
  expect_error(ReadQuotaPolicy{quota_id(99)}, ErrorCode::quota_policy_not_found);
  expect_error(CheckAdmission{quota_id(99), execution(1)}, ErrorCode::quota_policy_not_found);
  expect_error(ReleaseAdmission{quota_id(99), execution(1)}, ErrorCode::quota_policy_not_found);
  expect_error(CreateQuotaPolicy{.quota_policy_id = quota_id(99), .max_concurrent = std::uint64_t{1} << 63},
               ErrorCode::invalid_quota_spec);
}

TEST_P(Quotas, WithoutLimitsRecordNothing) {  // 36
  const auto id = make_quota({});
  EXPECT_EQ(ask(id, 1), AdmissionOutcome::admitted);
  EXPECT_EQ(quota(id).admitted_in_window + quota(id).active, 0u);
}

TEST_P(Quotas, LetThroughAsManyAsTheirWindowHolds) {  // 37, 38
  const auto id = make_quota({.window_seconds = 1, .max_requests_per_window = 2});
  EXPECT_EQ(ask(id, 1), AdmissionOutcome::admitted);
  tick(300);
  EXPECT_EQ(ask(id, 2), AdmissionOutcome::admitted);
  EXPECT_EQ(must(CheckAdmission{id, execution(3)}), (Admission{AdmissionOutcome::rate_exceeded, 700}));
  EXPECT_EQ(ask(id, 1), AdmissionOutcome::already_admitted);
  EXPECT_EQ(quota(id).admitted_in_window, 2u);
  tick(699);
  EXPECT_EQ(ask(id, 3), AdmissionOutcome::rate_exceeded);
  tick(1);
  EXPECT_EQ(ask(id, 3), AdmissionOutcome::admitted) << "an entry leaves when it is as old as the window";
  EXPECT_EQ(quota(id).admitted_in_window, 2u);
  EXPECT_EQ(ask(id, 1), AdmissionOutcome::rate_exceeded);
}

TEST_P(Quotas, CountARepeatedAdmissionOnce) {  // difference 7
  const auto id = make_quota({.window_seconds = 1, .max_requests_per_window = 2});
  ask(id, 1);
  tick(1000);
  EXPECT_EQ(ask(id, 1), AdmissionOutcome::admitted);
  EXPECT_EQ(quota(id).admitted_in_window, 1u);
  EXPECT_EQ(ask(id, 2), AdmissionOutcome::admitted);
  EXPECT_EQ(ask(id, 3), AdmissionOutcome::rate_exceeded);
}

TEST_P(Quotas, TreatNoWindowAsAMinute) {
  const auto id = make_quota({.window_seconds = 0, .max_requests_per_window = 1});
  ask(id, 1);
  EXPECT_EQ(must(CheckAdmission{id, execution(2)}), (Admission{AdmissionOutcome::rate_exceeded, 60'000}));
}

TEST_P(Quotas, HaveSoManySlots) {  // 39, 43
  const auto id = make_quota({.max_concurrent = 2});
  EXPECT_EQ(ask(id, 1), AdmissionOutcome::admitted);
  EXPECT_EQ(ask(id, 2), AdmissionOutcome::admitted);
  EXPECT_EQ(ask(id, 3), AdmissionOutcome::concurrency_exceeded);
  EXPECT_EQ(quota(id).active, 2u);
  must(ReleaseAdmission{id, execution(1)});
  must(ReleaseAdmission{id, execution(1)});
  must(ReleaseAdmission{id, execution(9)});
  EXPECT_EQ(quota(id).active, 1u);
  EXPECT_EQ(ask(id, 3), AdmissionOutcome::admitted);
  EXPECT_EQ(ask(id, 4), AdmissionOutcome::concurrency_exceeded);
}

TEST_P(Quotas, LookAtTheRateFirst) {  // 40
  const auto id = make_quota({.max_requests_per_window = 1, .max_concurrent = 1});
  ask(id, 1);
  EXPECT_EQ(ask(id, 2), AdmissionOutcome::rate_exceeded);
}

TEST_P(Quotas, ForgetTheRateOfWhatWasWithdrawn) {
  const auto id = make_quota({.max_requests_per_window = 1, .max_concurrent = 1});
  ask(id, 1);
  must(ReleaseAdmission{id, execution(1)});
  EXPECT_EQ(quota(id).admitted_in_window + quota(id).active, 0u);
  EXPECT_EQ(ask(id, 2), AdmissionOutcome::admitted);
}

TEST_P(Quotas, SpreadThoseWhoComeBack) {  // 41
  const auto id = make_quota({.window_seconds = 1, .max_requests_per_window = 1, .jitter_ms = 500});
  ask(id, 1);
  std::set<std::uint64_t> waits;
  for (int i = 0; i < 50; ++i) {
    const auto wait = must(CheckAdmission{id, execution(2)}).retry_after_ms;
    EXPECT_GE(wait, 1000u);
    EXPECT_LE(wait, 1500u);
    waits.insert(wait);
  }
  EXPECT_GT(waits.size(), 10u);
}

TEST_P(Quotas, GetBackTheSlotsThatNobodyClaimsFor) {  // §10.3
  const auto id = make_quota({.max_concurrent = 3});
  const auto leased = create_with(id);
  EXPECT_EQ(claim_one({.lease_ttl_ms = kHour}).execution_id, leased);
  const auto granted = create_with(id);
  tick(10'000);
  must(IssueClaimGrant{.execution_id = granted, .terms = {.worker_id = kWorker, .grant_ttl_ms = 60'000}});
  EXPECT_EQ(ask(id, 1), AdmissionOutcome::admitted);
  const auto waiting = create_with(id);
  EXPECT_TRUE(claim().empty());
  advance(20'000);
  EXPECT_EQ(quota(id).active, 3u) << "whoever asked 20 seconds ago may still claim";
  advance(30'000);
  EXPECT_EQ(quota(id).active, 2u) << "the lease and the grant keep theirs";
  EXPECT_EQ(claim_one().execution_id, waiting);
  EXPECT_EQ(must(CheckStore{}).found, 0u);
}

TEST_P(Quotas, LeaveASlotToWhoClaimsForIt) {
  const auto id = make_quota({.window_seconds = 600, .max_requests_per_window = 10, .max_concurrent = 1});
  const auto execution = create_with(id);
  EXPECT_EQ(must(CheckAdmission{id, execution}).outcome, AdmissionOutcome::admitted);
  EXPECT_EQ(claim_one({.lease_ttl_ms = kHour}).execution_id, execution);
  for (int i = 0; i < 4; ++i) advance(30'000);
  EXPECT_EQ(quota(id).active, 1u);
  EXPECT_EQ(quota(id).admitted_in_window, 1u);
}

TEST_P(Quotas, GetBackManySlotsAtOnce) {
  const auto id = make_quota({.max_concurrent = 1000});
  for (int i = 0; i < 300; ++i) ask(id, i);
  advance(30'000);
  advance(30'000);
  advance(1);
  EXPECT_EQ(quota(id).active, 0u);
  EXPECT_EQ(must(CheckStore{}).found, 0u);
}

TEST_P(Quotas, AreTrimmedByTheClock) {
  const auto id = make_quota({.window_seconds = 1, .max_requests_per_window = 1000});
  for (int i = 0; i < 300; ++i) ask(id, i);
  advance(31'000);
  advance(1);
  EXPECT_EQ(quota(id).admitted_in_window, 0u);
  EXPECT_EQ(must(CheckStore{}).found, 0u);
}

TEST_P(Quotas, RefuseDefinitionsThatMakeNoSense) {
  const auto id = quota_id(50);
  const auto most = std::uint64_t{1} << 63;
  for (const auto& bad : {CreateQuotaPolicy{.quota_policy_id = id, .window_seconds = most / 1000 + 1},
                          CreateQuotaPolicy{.quota_policy_id = id, .max_requests_per_window = most},
                          CreateQuotaPolicy{.quota_policy_id = id, .max_concurrent = most},
                          CreateQuotaPolicy{.quota_policy_id = id, .jitter_ms = most}}) {
    expect_error(bad, ErrorCode::invalid_quota_spec);
  }
  expect_error(ReadQuotaPolicy{id}, ErrorCode::quota_policy_not_found);
}

}  // namespace
}  // namespace flowfabric
