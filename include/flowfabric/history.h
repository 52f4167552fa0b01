// The history of one execution, in order, for people who ask how it reached its state.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "flowfabric/error.h"
#include "flowfabric/ids.h"

namespace flowfabric {

struct HistoryEntry {
  std::int64_t at{};
  // created, delayed, attempt_started, waiting_for_children, paused_by_budget, suspended, signal, resumed,
  // suspension_ended (with the execution), attempt_resumed (by a worker), lease_lost, attempt_ended,
  // retry_scheduled, an operator's event (priority_changed, replayed, …), ended
  std::string what;
  std::map<std::string, std::string> fields;
  bool operator==(const HistoryEntry&) const = default;
};
// Oldest first; of signals, suspensions and other pauses the latest 1 000 each. Pauses from before the
// retention of events are limited to suspensions, the last resumption of each attempt, and a pause that still
// lasts.
struct ReadHistory {
  using Answer = std::vector<HistoryEntry>;
  ExecutionId execution_id;
};

}  // namespace flowfabric
