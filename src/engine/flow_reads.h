// Which read answers which request about flows.
#pragma once

#include "engine/readers.h"
#include "flowfabric/flows.h"

namespace flowfabric::engine {

Result<FlowSnapshot> answer(Readers& readers, const DescribeFlow& request);
Result<std::optional<EdgeSnapshot>> answer(Readers& readers, const DescribeEdge& request);
Result<std::vector<EdgeSnapshot>> answer(Readers& readers, const ListEdges& request);
Result<FlowGraph> answer(Readers& readers, const ReadFlowGraph& request);
Result<FlowEligibility> answer(Readers& readers, const EvaluateFlowEligibility& request);
Result<FlowPage> answer(Readers& readers, const ListFlowPartition& request);
Result<FlowPage> answer(Readers& readers, const ListFlows& request);

}  // namespace flowfabric::engine
