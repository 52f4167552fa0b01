// The consistency check: what must be true of one execution and the records around it, and how to put right
// what follows from the rest.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// An execution and what was found beside it.
struct Neighbourhood {
  const Execution* execution{};
  const ExecutionSpec* spec{};
  const Lane* lane{};
  const Route* route{};
  const Group* group{};
  const Grant* grant{};
  std::vector<std::uint32_t> attempts;  // indexes in its history
  std::vector<std::string> untagged;    // tags without their row
};
std::vector<std::string> faults(const Neighbourhood& found);

// Recomputes what is derived: public state, place in line, next clock, registrations, tag rows, a grant that
// is not there. What remains wrong then is refused by the invariants, and nothing is changed.
void repair(Unit& unit, const ExecutionId& id, Context& at);

// A flow and what was found of it.
struct FlowNeighbourhood {
  const Flow* flow{};
  const CancelBacklog* backlog{};
  std::vector<Edge> edges;
  std::vector<EdgeGroup> joins;
  std::map<ExecutionId, const Execution*> members;
  std::set<ExecutionId> going_on;  // ended members whose dependents the clock will see to
};
std::vector<std::string> faults(const FlowNeighbourhood& found);

// Counts members and joins anew, and lets upstreams that have ended count where they do not yet.
void repair(Unit& unit, const FlowKey& key, Context& at);

}  // namespace flowfabric::core
