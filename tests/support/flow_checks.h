// Conditions that every flow must meet, judged from outside through the public API.
#pragma once

#include <vector>

#include "flowfabric/flows.h"

namespace flowfabric::tests {

// The counts are those of the nodes, the joins agree with the edges, the derived state with the members, and
// nobody is offered whose join is undecided. `members` may be left out: then less is checked.
void check_flow(const FlowSnapshot& flow, const FlowGraph& graph,
                const std::vector<ExecutionSnapshot>& members);

}  // namespace flowfabric::tests
