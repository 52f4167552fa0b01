// The consistency check: what must be true of one execution and the records around it, and how to put right
// what follows from the rest.
#pragma once

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

}  // namespace flowfabric::core
