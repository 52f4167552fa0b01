// Printers of flows for failed expectations.
#pragma once

#include "flowfabric/flows.h"
#include "support/printing.h"

namespace flowfabric {

std::ostream& operator<<(std::ostream& out, const JoinPolicy& policy);
std::ostream& operator<<(std::ostream& out, const FlowCreation& creation);
std::ostream& operator<<(std::ostream& out, const MemberAdded& added);
std::ostream& operator<<(std::ostream& out, const EdgeApplied& applied);
std::ostream& operator<<(std::ostream& out, const FlowSubmission& submission);
std::ostream& operator<<(std::ostream& out, const FlowCancellation& cancellation);
std::ostream& operator<<(std::ostream& out, const JoinSnapshot& join);
std::ostream& operator<<(std::ostream& out, const EdgeSnapshot& edge);
std::ostream& operator<<(std::ostream& out, const FlowSnapshot& flow);
std::ostream& operator<<(std::ostream& out, const FlowSummary& flow);
std::ostream& operator<<(std::ostream& out, const FlowGraph::Node& node);
std::ostream& operator<<(std::ostream& out, const FlowGraph& graph);

}  // namespace flowfabric
