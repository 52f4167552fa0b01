// What the end of an execution means for those that wait for it.
//
// An execution that ends resolves its outgoing edges in the same transaction. Each edge counts once in the
// join of its downstream; the join that is decided lets its downstream go, or skips it, which resolves the
// edges of that one in turn. Beyond a bound, what is left is written down (ff_dependency_dispatch) and goes
// on by the clock.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// Why an execution was skipped.
inline constexpr const char* kDependencyImpossible = "dependency_impossible";

// All edges out of, or into, an execution, those of this batch included.
std::vector<EdgeKey> edges_from(Unit& unit, const ExecutionId& upstream);
std::vector<EdgeKey> edges_into(Unit& unit, const ExecutionId& downstream);

// The execution has just ended.
void resolve_dependents(Unit& unit, const ExecutionId& ended, const Context& at);
// Fetches what that will need.
void fetch_dependents(Unit& unit, const std::vector<ExecutionId>& ending);
// A member has ended: a flow may fail with it, and its dependents are resolved.
void follow_end_of_member(Unit& unit, const Execution& ended, const Context& at);
// Names what a request about an edge will need.
void want_edge(Unit& unit, const EdgeKey& edge, const ExecutionId& upstream, const ExecutionId& downstream);
Rule run_dependency_clock(Unit& unit, const DependencyDispatchKey& key, Context& at);

// Refused: the join takes no more edges.
Result<void> check_open(const EdgeGroup& group, const Execution& downstream);
// The edge is in force from now on; an upstream that has ended counts at once.
Result<EdgeApplied> apply(Unit& unit, const ApplyEdge& request, Context& at);
// The downstream of a new edge waits from now on, unless it runs: then when it comes back.
void block_on_dependencies(Unit& unit, Execution& execution, const EdgeGroup& group, const EdgeId& latest,
                           const Context& at);

// A skipped member is on its way back: first what made its join impossible is forgotten; then, when it is
// blocked by dependencies again, upstreams that are still over are counted anew.
void reopen_join(Unit& unit, Execution& execution);
void resolve_again(Unit& unit, const ExecutionId& id, const Context& at);

// Counts a member's join anew, as far as its edges still tell, and decides it if it can be decided.
void repair_join(Unit& unit, const FlowKey& flow, const ExecutionId& member, const Context& at);

Result<EligibilityChange> apply(Unit& unit, const PromoteBlocked& request, Context& at);

}  // namespace flowfabric::core
