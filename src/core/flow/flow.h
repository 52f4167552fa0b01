// Building a flow step by step: the flow, its members, its edges, the policies of its joins.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Error no_such_flow(const FlowId& flow_id);
// Refused: the flow is over.
Result<void> check_open(const Flow& flow);
Result<void> check_flow(const std::string& flow_kind, const std::string& namespace_, const Tags& tags);

Result<FlowCreation> apply(Unit& unit, const CreateFlow& request, Context& at);
Result<MemberAdded> apply(Unit& unit, const AddFlowMember& request, Context& at);
Result<JoinPolicySet> apply(Unit& unit, const SetJoinPolicy& request, Context& at);
Result<EdgeStaged> apply(Unit& unit, const StageEdge& request, Context& at);
Result<TagsSet> apply(Unit& unit, const SetFlowTags& request, Context& at);

}  // namespace flowfabric::core
