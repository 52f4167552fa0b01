// What a flow looks like from outside.
#pragma once

#include "core/unit.h"

namespace flowfabric::core {

EdgeSnapshot view(const Edge& edge);
JoinSnapshot view(const EdgeGroup& group);
// Without its members' part: counts, joins and derived state.
FlowSnapshot view(const Flow& flow);

// Members that were cancelled for one of these reasons do not make a flow fail: their join was decided
// without them.
const std::vector<std::string>& harmless_reasons();
// Follows from the stored state and the members', `without_harm` of which were cancelled for such a reason.
FlowState derived_state(FlowState stored, const std::map<PublicState, std::int64_t>& counts,
                        std::int64_t without_harm);

bool matches(const FlowFilter& filter, const Flow& flow);
Result<void> check_filter(const FlowFilter& filter);

// By its state and its join, without changing anything. `group` is null if it has none.
FlowEligibility eligibility(const Execution& execution, const EdgeGroup* group);

}  // namespace flowfabric::core
