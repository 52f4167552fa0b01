// Retention: what has ended is kept for a while and then removed, with everything that belongs to it.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

void purge(Unit& unit, const Execution& execution);

}  // namespace flowfabric::core
