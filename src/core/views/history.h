// The story of an execution, told from its records, which hold most of it, and from the few events that are
// found by their execution: what operators did, and how its attempts paused and went on.
#pragma once

#include <vector>

#include "flowfabric/history.h"
#include "model/records.h"

namespace flowfabric::core {

struct Life {
  const Execution& execution;
  const ExecutionSpec& spec;
  std::vector<Attempt> ended;
  std::vector<const SuspensionDetails*> suspensions;
  std::vector<const Signal*> signals;
  std::vector<OperatorEvent> operator_events;
  std::vector<LeaseEvent> pauses;
};
std::vector<HistoryEntry> history(const Life& life);

}  // namespace flowfabric::core
