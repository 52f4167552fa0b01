// Reads what an execution has been through.
#pragma once

#include "engine/readers.h"
#include "flowfabric/history.h"

namespace flowfabric::engine {

Result<std::vector<HistoryEntry>> answer(Readers& readers, const ReadHistory& request);

}  // namespace flowfabric::engine
