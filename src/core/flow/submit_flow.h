// A whole flow in one operation: all of it is there, or nothing.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// The request must carry a flow id; the engine mints one for callers that give none.
Result<FlowSubmission> submit_flow(Unit& unit, const SubmitFlow& request, Context& at);

// Puts down that the flow and its members are not there: its id was minted for it.
void expect_new(Unit& unit, const SubmitFlow& request, std::uint16_t flow_partitions);

// Whether an execution's id was made from its flow's; and what all ids made from one flow's have in common,
// with it and with each other.
bool is_named_by_flow(const Uuid& execution);
std::size_t family_of_flow(Uuid flow_or_member);

// Names the records that it will look for.
void want_for(Unit& unit, const SubmitFlow& request, std::uint16_t flow_partitions);

}  // namespace flowfabric::core
