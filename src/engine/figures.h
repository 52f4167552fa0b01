// What a store holds, in figures.
#pragma once

#include "engine/readers.h"
#include "flowfabric/stats.h"

namespace flowfabric::engine {

Result<StoreFigures> answer(Readers& readers, const ReadFigures& request);

}  // namespace flowfabric::engine
