// What is offered to workers, and in which order they take it.
//
// An execution is offered on a route: its lane, its namespace and the capabilities it requires. A claim works
// out which routes its worker serves and takes the best offers among them, so that a lane full of GPU work
// costs a CPU worker nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// Absent while no worker may take it. Smaller goes first: priority, then lost leases after the rest, then
// age, or the rank in a lane that shares fairly.
std::optional<std::int64_t> offer_order(const Execution& execution);

std::vector<std::string> split_capabilities(const std::string& joined);

// What a worker serves. Capabilities sorted.
struct WorkerScope {
  std::optional<std::string> name_space;
  std::vector<std::string> capabilities;
};
bool serves(const WorkerScope& worker, const Route& route);

// Names the records that taking an offer will need: what was submitted, its flow and its limits.
void want_for_taking(Unit& unit, const Execution& execution, const PartitionCounts& partitions);

}  // namespace flowfabric::core
