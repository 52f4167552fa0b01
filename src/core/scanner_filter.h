// Whether a due record is for this engine's clock.
#pragma once

#include "core/unit.h"
#include "flowfabric/scanner_filter.h"

namespace flowfabric::core {

// What cannot be found is not: never act on what may be somebody else's.
bool passes(Unit& unit, const ScannerFilter& filter, const ExecutionId& id);
bool passes(Unit& unit, const ScannerFilter& filter, const DependencyDispatchKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const EdgeGroupKey& key);  // by its downstream
bool passes(Unit& unit, const ScannerFilter& filter, const SuspensionKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const StreamKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const WaitpointRecordKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const FlowKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const RouteKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const WorkerKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const DeadWorkerKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const CreateDedupKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const BulkJobKey& key);  // nobody's: always
bool passes(Unit& unit, const ScannerFilter& filter, const BudgetKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const UsageDedupKey& key);
bool passes(Unit& unit, const ScannerFilter& filter, const QuotaPolicyKey& key);

}  // namespace flowfabric::core
