// Printers of operators' values for failed expectations.
#pragma once

#include "flowfabric/check.h"
#include "flowfabric/operators.h"
#include "flowfabric/registry.h"
#include "support/printing.h"

namespace flowfabric {

std::ostream& operator<<(std::ostream& out, const LaneStatus& lane);
std::ostream& operator<<(std::ostream& out, const LaneView& lane);
std::ostream& operator<<(std::ostream& out, const WorkerRegistration& registration);
std::ostream& operator<<(std::ostream& out, const WorkerView& worker);
std::ostream& operator<<(std::ostream& out, const ExecutionSummary& seen);
std::ostream& operator<<(std::ostream& out, const ExpiredLease& lease);
std::ostream& operator<<(std::ostream& out, const BulkOperation& operation);
std::ostream& operator<<(std::ostream& out, const Violation& violation);
std::ostream& operator<<(std::ostream& out, const StoreReport& report);

}  // namespace flowfabric
