// Building a flow step by step: the flow, its members, its edges, the policies of its joins.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

FlowKey key_of(const FlowId& flow_id, const Context& at);
Error no_such_flow(const FlowId& flow_id);
// Refused: the flow is over.
Result<void> check_open(const Flow& flow);
Result<void> check_flow(const std::string& flow_kind, const std::string& namespace_, const Tags& tags);

Result<FlowCreation> create_flow(Unit& unit, const CreateFlow& request, Context& at);
Result<MemberAdded> add_member(Unit& unit, const AddFlowMember& request, Context& at);
Result<JoinPolicySet> set_join_policy(Unit& unit, const SetJoinPolicy& request, Context& at);
Result<EdgeStaged> stage_edge(Unit& unit, const StageEdge& request, Context& at);
Result<TagsSet> set_flow_tags(Unit& unit, const SetFlowTags& request, Context& at);

}  // namespace flowfabric::core
