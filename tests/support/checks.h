// Conditions that every execution must meet, judged from outside through the public API.
#pragma once

#include <vector>

#include "flowfabric/operations.h"

namespace flowfabric::tests {

// The invariants of the specification (01 §2.3), and what follows from them for the shown fields.
void check_snapshot(const ExecutionSnapshot& seen);

// The history has every attempt that was ever made, and only the last may be unfinished (I8).
void check_attempts(const ExecutionSnapshot& seen, const std::vector<AttemptSnapshot>& attempts);

// Events carry what their reader filters by, in the order in which things happened.
void check_events(const ExecutionSnapshot& seen, const std::vector<LeaseEventView>& events);
void check_events(const ExecutionSnapshot& seen, const std::vector<CompletionEventView>& events);

}  // namespace flowfabric::tests
