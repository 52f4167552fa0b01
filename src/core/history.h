// The story of an execution, told from its records: they hold all of it but renewals, so no log is searched.
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
};
std::vector<HistoryEntry> history(const Life& life);

}  // namespace flowfabric::core
