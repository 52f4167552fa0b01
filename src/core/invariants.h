// The invariants I1–I10 of the specification (01 §2.3). Checked after every operation, in production too: an
// operation that would break one is refused, and nothing of it is stored.
#pragma once

#include <string>
#include <vector>

#include "core/unit.h"

namespace flowfabric::core {

// Which invariants `after` breaks; `before` is null for a new execution.
std::vector<std::string> broken_invariants(const Execution* before, const Execution& after);

// Over everything the running operation has changed.
Result<void> check_invariants(const Unit& unit);

}  // namespace flowfabric::core
