// Which rows the partial indexes of the stores hold. Each rule is decided here: a store that holds records
// asks these functions, one that speaks SQL puts the words into its conditions. An index that was made before
// cannot ask; a test compares its words with these.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

#include "model/records.h"

namespace flowfabric::core {

// Somebody works on it: its lease is found by its worker.
inline constexpr OwnershipState kHeld = OwnershipState::leased;
inline bool is_held(const Execution& execution) {
  return execution.state.ownership_state == kHeld;
}

// It may hold a slot of a quota policy. A slot whose execution may not, or is not there, is a stray.
inline bool may_hold_slot(const Execution& execution) {
  return is_held(execution) || execution.grant_expires_at_ms;
}

// Why a lease has ended for a while, other than by a suspension, which has records of its own; and how a
// lease of an attempt began that goes on. By these events an execution's history is told, and they are few:
// only they are found by their execution (`ff_lease_event_pauses`), so a new reason needs a new index.
inline constexpr std::array<std::string_view, 5> kPauseReasons = {
    kWorkerDelay, kWaitingChildren, kPausedByBudget, kClaimResumed, kGrantAndClaimResumed};
inline bool is_pause_reason(std::string_view reason) {
  return std::ranges::find(kPauseReasons, reason) != kPauseReasons.end();
}

}  // namespace flowfabric::core
