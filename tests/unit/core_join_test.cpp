#include <gtest/gtest.h>

#include "core/flow/join.h"

namespace flowfabric::core {
namespace {

// The expected decision, found in another way: by trying every way the upstreams that still run could end.
GroupState expected(const JoinPolicy& policy, const JoinCounts& counts) {
  const auto running = counts.edges - counts.succeeded - counts.failed - counts.skipped;
  const auto needed = policy.kind == JoinKind::all_of   ? counts.edges
                      : policy.kind == JoinKind::any_of ? 1
                                                        : policy.k;
  if (counts.edges == 0) return GroupState::pending;
  // More edges may come: then it is neither one thing nor the other.
  if (needed > counts.edges) return GroupState::pending;
  if (counts.succeeded >= needed) return GroupState::satisfied;
  for (std::uint32_t more = 0; more <= running; ++more) {
    if (counts.succeeded + more >= needed) return GroupState::pending;
  }
  return GroupState::impossible;
}

template <class F>
void for_all_counts(std::uint32_t most, F&& f) {
  for (std::uint32_t n = 0; n <= most; ++n) {
    for (std::uint32_t s = 0; s <= n; ++s) {
      for (std::uint32_t failed = 0; s + failed <= n; ++failed) {
        for (std::uint32_t skipped = 0; s + failed + skipped <= n; ++skipped)
          f(JoinCounts{n, s, failed, skipped});
      }
    }
  }
}

std::string text(const JoinCounts& counts) {
  return "n=" + std::to_string(counts.edges) + " s=" + std::to_string(counts.succeeded) +
         " f=" + std::to_string(counts.failed) + " sk=" + std::to_string(counts.skipped);
}

TEST(Join, IsDecidedAsSoonAsItIsCertainAndNotBefore) {
  int looked_at = 0;
  for_all_counts(6, [&](const JoinCounts& counts) {
    for (const auto then : {OnSatisfied::cancel_remaining, OnSatisfied::let_run}) {
      std::vector<JoinPolicy> policies{{JoinKind::all_of}, {JoinKind::any_of, 0, then}};
      for (std::uint32_t k = 1; k <= 7; ++k) policies.push_back({JoinKind::quorum, k, then});
      for (const auto& policy : policies) {
        EXPECT_EQ(decide(policy, counts), expected(policy, counts)) << to_json(policy) << " " << text(counts);
        ++looked_at;
      }
    }
  });
  EXPECT_EQ(looked_at, 210 * 2 * 9);
}

TEST(Join, AnyOfIsAQuorumOfOne) {
  for_all_counts(6, [](const JoinCounts& counts) {
    EXPECT_EQ(decide({JoinKind::any_of, 0, OnSatisfied::let_run}, counts),
              decide({JoinKind::quorum, 1, OnSatisfied::let_run}, counts))
        << text(counts);
  });
}

// Q1: ends that come later cannot change a decision.
TEST(Join, StaysDecidedWhateverEndsLater) {
  for_all_counts(5, [](const JoinCounts& counts) {
    for (std::uint32_t k = 1; k <= 5; ++k) {
      const JoinPolicy policy{JoinKind::quorum, k, OnSatisfied::let_run};
      const auto before = decide(policy, counts);
      if (before == GroupState::pending || counts.succeeded + counts.failed + counts.skipped == counts.edges)
        continue;
      for (const auto field : {&JoinCounts::succeeded, &JoinCounts::failed, &JoinCounts::skipped}) {
        auto later = counts;
        ++(later.*field);
        EXPECT_EQ(decide(policy, later), before) << k << " of " << text(counts);
      }
    }
  });
}

TEST(Join, PoliciesThatMakeNoSenseAreRefused) {
  EXPECT_TRUE(validate(JoinPolicy{}));
  EXPECT_EQ(validate(JoinPolicy{JoinKind::quorum, 0, OnSatisfied::let_run}).error().detail,
            "quorum k must be >= 1");
  EXPECT_EQ(validate(JoinPolicy{JoinKind::quorum, 2'147'483'648U, OnSatisfied::let_run}).error().detail,
            "quorum k exceeds supported maximum");
  EXPECT_TRUE(validate(JoinPolicy{JoinKind::quorum, 2'147'483'647U, OnSatisfied::let_run}));
  EXPECT_EQ(validate(JoinPolicy{JoinKind::any_of}).error().detail, "on_satisfied: missing");
}

}  // namespace
}  // namespace flowfabric::core
