// Lanes: a lane's state says whether it takes in work and whether it hands work out.
//
// The state is kept on the lane alone. Pausing a lane with a million waiting executions changes one record;
// whoever looks at one of them is shown that its lane holds it back (core/views/read.h).
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<LaneStatus> apply(Unit& unit, const RegisterLane& request, Context& at);
Result<LaneStatus> apply(Unit& unit, const SetLaneState& request, Context& at);

// Registers the lane if it is new.
const Lane& ensure_lane(Unit& unit, const std::string& lane_id, const std::string& registered_by,
                        const Context& at);
bool hands_out(LaneState state);
bool hands_out(Unit& unit, const std::string& lane_id);
bool takes_in(LaneState state);

// How `fair_by` of a lane names a tag.
inline constexpr std::string_view kFairByTag = "tag:";
// The key of an execution in a lane that shares fairly (core/limits/fairness.h).
std::optional<std::string> fair_key(const Lane& lane, const Execution& execution);

}  // namespace flowfabric::core
