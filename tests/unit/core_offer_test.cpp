#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "core/offer.h"

namespace flowfabric::core {
namespace {

constexpr std::int64_t kNow = 1'700'000'000'000;

Execution eligible(std::int32_t priority, std::int64_t created_at) {
  Execution execution;
  execution.priority = priority;
  execution.created_at_ms = created_at;
  execution.state.lifecycle_phase = LifecyclePhase::runnable;
  execution.state.eligibility_state = EligibilityState::eligible_now;
  return execution;
}

Execution lost(std::int32_t priority, std::int64_t created_at,
               OwnershipState how = OwnershipState::lease_expired_reclaimable) {
  Execution execution;
  execution.priority = priority;
  execution.created_at_ms = created_at;
  execution.state.lifecycle_phase = LifecyclePhase::active;
  execution.state.ownership_state = how;
  return execution;
}

TEST(OfferOrder, IsPriorityThenLostLeasesLastThenAge) {
  const std::vector<Execution> in_order{eligible(9000, kNow),
                                        eligible(9000, kNow + 1),
                                        lost(9000, kNow - 5),
                                        eligible(8999, 0),
                                        eligible(5, kNow - 1000),
                                        eligible(5, kNow),
                                        eligible(5, 9'999'999'999'999),
                                        lost(5, 0),
                                        lost(5, 9'999'999'999'999),
                                        eligible(4, 0),
                                        eligible(0, 0),
                                        eligible(0, kNow),
                                        lost(0, 0),
                                        lost(0, kNow)};
  for (std::size_t i = 1; i < in_order.size(); ++i) {
    EXPECT_LT(*offer_order(in_order[i - 1]), *offer_order(in_order[i])) << i;
  }
  auto shuffled = in_order;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937(1));
  std::sort(shuffled.begin(), shuffled.end(),
            [](const auto& a, const auto& b) { return *offer_order(a) < *offer_order(b); });
  EXPECT_EQ(shuffled, in_order);
}

TEST(OfferOrder, IsNeverNegativeAndFitsIntoANumber) {
  EXPECT_GE(*offer_order(eligible(kMaxPriority, 0)), 0);
  EXPECT_GT(*offer_order(lost(kMinPriority, (std::int64_t{1} << 48) - 1)), 0);
}

TEST(OfferOrder, OnlyWhatAWorkerMayTakeHasOne) {
  auto execution = eligible(0, kNow);
  for (std::size_t i = 0; i < enum_size<EligibilityState>(); ++i) {
    execution.state.eligibility_state = static_cast<EligibilityState>(i);
    EXPECT_EQ(offer_order(execution).has_value(),
              execution.state.eligibility_state == EligibilityState::eligible_now)
        << enum_name(execution.state.eligibility_state);
  }
  for (const auto phase : {LifecyclePhase::submitted, LifecyclePhase::suspended, LifecyclePhase::terminal}) {
    execution = eligible(0, kNow);
    execution.state.lifecycle_phase = phase;
    EXPECT_EQ(offer_order(execution), std::nullopt) << enum_name(phase);
  }
  EXPECT_EQ(offer_order(lost(0, kNow, OwnershipState::leased)), std::nullopt);
}

TEST(OfferOrder, ARevokedLeaseIsOfferedLikeALostOne) {
  EXPECT_EQ(offer_order(lost(3, kNow, OwnershipState::lease_revoked)), offer_order(lost(3, kNow)));
}

TEST(OfferOrder, BeyondTheReclaimCapThereIsNoOffer) {
  auto execution = lost(0, kNow);
  execution.max_reclaim_count = 2;
  execution.lease_reclaim_count = 1;
  EXPECT_TRUE(offer_order(execution));
  execution.lease_reclaim_count = 2;
  EXPECT_FALSE(offer_order(execution));
  execution.max_reclaim_count = 0;
  execution.lease_reclaim_count = 0;
  EXPECT_FALSE(offer_order(execution));
}

TEST(Serves, NamespaceAndCapabilitiesDecide) {
  const Route plain{1, "lane", "team", ""};
  const Route gpu{2, "lane", "team", "cuda,gpu"};
  const Route unscoped{3, "lane", "", ""};
  EXPECT_TRUE(serves({std::nullopt, {}}, plain));
  EXPECT_TRUE(serves({"team", {}}, plain));
  EXPECT_FALSE(serves({"other", {}}, plain));
  EXPECT_FALSE(serves({"", {}}, plain)) << "the empty namespace is one of its own";
  EXPECT_TRUE(serves({"", {}}, unscoped));
  EXPECT_FALSE(serves({std::nullopt, {}}, gpu));
  EXPECT_FALSE(serves({std::nullopt, {"gpu"}}, gpu)) << "one of two is not enough";
  EXPECT_TRUE(serves({std::nullopt, {"cuda", "gpu", "ssd"}}, gpu));
  EXPECT_FALSE(serves({std::nullopt, {"cud", "cuda,gpu", "gp"}}, gpu)) << "whole tokens only";
}

}  // namespace
}  // namespace flowfabric::core
