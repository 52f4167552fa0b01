#include "flowfabric/state.h"

#include <gtest/gtest.h>

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "model/describe.h"

namespace flowfabric {
namespace {

template <class Enum>
auto all_values() {
  std::array<Enum, enum_size<Enum>()> values{};
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<Enum>(i);
  return values;
}

// The specification's rules as text: by phase, and where the phase does not settle it, by the dimension that
// does.
using Words = std::map<std::string_view, std::string_view>;
const Words kByPhase = {{"submitted", "waiting"}, {"active", "active"}, {"suspended", "suspended"}};
const Words kByOutcome = {{"none", "failed"},         {"success", "completed"}, {"failed", "failed"},
                          {"cancelled", "cancelled"}, {"expired", "expired"},   {"skipped", "skipped"}};
const Words kByEligibility = {{"eligible_now", "waiting"},
                              {"not_eligible_until_time", "delayed"},
                              {"blocked_by_dependencies", "waiting_children"},
                              {"blocked_by_budget", "rate_limited"},
                              {"blocked_by_quota", "rate_limited"},
                              {"blocked_by_route", "waiting"},
                              {"blocked_by_lane_state", "waiting"},
                              {"blocked_by_operator", "waiting"},
                              {"not_applicable", "waiting"}};

std::string_view expected_public_state(const StateVector& state) {
  const std::string_view phase = enum_name(state.lifecycle_phase);
  if (phase == "terminal") return kByOutcome.at(enum_name(state.terminal_outcome));
  if (phase == "runnable") return kByEligibility.at(enum_name(state.eligibility_state));
  return kByPhase.at(phase);
}

std::string describe(const StateVector& state) {
  std::string text;
  for_each_field(state, [&](std::string_view, auto value) { text += std::string(enum_name(value)) + " "; });
  return text;
}

template <class F>
void for_each_stored_combination(F f) {
  for (const auto phase : all_values<LifecyclePhase>())
    for (const auto ownership : all_values<OwnershipState>())
      for (const auto eligibility : all_values<EligibilityState>())
        for (const auto blocking : all_values<BlockingReason>())
          for (const auto outcome : all_values<TerminalOutcome>())
            for (const auto attempt : all_values<AttemptState>())
              f(StateVector{phase, ownership, eligibility, blocking, outcome, attempt, {}});
}

TEST(DerivePublicState, FollowsTheRulesForEveryCombination) {
  std::size_t combinations = 0;
  for_each_stored_combination([&](const StateVector& state) {
    ++combinations;
    ASSERT_EQ(enum_name(derive_public_state(state)), expected_public_state(state)) << describe(state);
  });
  EXPECT_EQ(combinations, 5U * 4 * 9 * 17 * 6 * 7);
}

TEST(DerivePublicState, IgnoresWhatIsStoredAndNeverGivesResumable) {
  for (const auto stored : all_values<PublicState>()) {
    for (const auto phase : all_values<LifecyclePhase>()) {
      StateVector state;
      state.lifecycle_phase = phase;
      const PublicState derived = derive_public_state(state);
      state.public_state = stored;
      EXPECT_EQ(derive_public_state(state), derived);
      EXPECT_NE(derived, PublicState::resumable);
    }
  }
}

TEST(DerivePublicState, NamedVectors) {
  const StateVector lost{LifecyclePhase::active,
                         OwnershipState::lease_expired_reclaimable,
                         EligibilityState::not_applicable,
                         BlockingReason::waiting_for_worker,
                         TerminalOutcome::none,
                         AttemptState::attempt_interrupted,
                         PublicState::active};
  EXPECT_EQ(derive_public_state(lost), PublicState::active);

  const StateVector skipped{
      LifecyclePhase::terminal, OwnershipState::unowned,  EligibilityState::not_applicable,
      BlockingReason::none,     TerminalOutcome::skipped, AttemptState::none,
      PublicState::skipped};
  EXPECT_EQ(derive_public_state(skipped), PublicState::skipped);
}

}  // namespace
}  // namespace flowfabric
