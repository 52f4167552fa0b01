// What a flow looks like from outside.
#pragma once

#include "core/unit.h"

namespace flowfabric::core {

EdgeSnapshot view(const Edge& edge);
JoinSnapshot view(const EdgeGroup& group);
// Without its members' part: counts, joins and derived state.
FlowSnapshot view(const Flow& flow);

// Follows from the stored state and the members'. `siblings_cancelled` of the cancelled ones do not count as
// a failure: their join was decided without them.
FlowState derived_state(FlowState stored, const std::map<PublicState, std::int64_t>& counts,
                        std::int64_t siblings_cancelled);

bool matches(const FlowFilter& filter, const Flow& flow);
Result<void> check_filter(const FlowFilter& filter);

// By its state and its join, without changing anything. `group` is null if it has none.
FlowEligibility eligibility(const Execution& execution, const EdgeGroup* group);

}  // namespace flowfabric::core
