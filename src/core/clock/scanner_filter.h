// Whether a due record is for this engine's clock: stores ask for such records only, and what they found is
// judged again under the batch's lock.
#pragma once

#include <functional>

#include "core/clock/clock_rules.h"
#include "flowfabric/scanner_filter.h"

namespace flowfabric::core {

bool is_empty(const ScannerFilter& filter);

// The execution that a record with a clock belongs to; of a join, it is the downstream.
ExecutionId execution_of(const RecordKey& due);

// `find(type, key)` gives the record that says whose it is. What cannot be found does not pass: never act on
// what may be somebody else's.
using FindOwner = std::function<const void*(const RecordType& type, const void* key)>;
bool passes(const ScannerFilter& filter, const RecordKey& due, const FindOwner& find);
bool passes(Unit& unit, const ScannerFilter& filter, const RecordKey& due);

}  // namespace flowfabric::core
