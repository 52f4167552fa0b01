// What happened to one execution, in order: for people who ask how it got where it is.
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
  // created, attempt_started, attempt_resumed, suspended, signal, resumed, suspension_ended (with the
  // execution), lease_lost, attempt_ended, an operator's event (priority_changed, replayed, …), ended
  std::string what;
  std::map<std::string, std::string> fields;
  bool operator==(const HistoryEntry&) const = default;
};
// Oldest first; of signals the latest 1 000.
struct ReadHistory {
  using Answer = std::vector<HistoryEntry>;
  ExecutionId execution_id;
};

}  // namespace flowfabric
