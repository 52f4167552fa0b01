// What readers are shown of the stored records.
#pragma once

#include <vector>

#include "core/unit.h"

namespace flowfabric::core {

// What waits on a lane that hands out nothing is shown as held back by it.
ExecutionSnapshot snapshot(const Execution& execution, const ExecutionSpec& spec, LaneState lane_state);
// A member of a flow that lets only finish what runs is shown as held back by that, wherever the clock is.
void show_if_parked(Unit& unit, const Execution& execution, ExecutionSnapshot& seen);
WorkerView view(const Worker& worker);

// `ended` oldest first; the attempt in progress, if any, comes last.
std::vector<AttemptSnapshot> attempts(const Execution& execution, const std::vector<Attempt>& ended);

// The attempt that holds the result of the latest completion; absent while there is none.
std::optional<AttemptKey> result_attempt(const Execution& execution);

LeaseEventView view(const LeaseEvent& event);
CompletionEventView view(const CompletionEvent& event);
OperatorEventView view(const OperatorEvent& event);
WorkerEventView view(const WorkerEvent& event);
SignalEventView view(const SignalEvent& event);

}  // namespace flowfabric::core
