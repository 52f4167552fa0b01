// What suspensions look like from outside. Never a token.
#pragma once

#include "core/unit.h"

namespace flowfabric::core {

WaitpointView view(const Waitpoint& waitpoint);
// Without its waitpoints and signals.
SuspensionView view(const Suspension& suspension);
SuspendedEntry entry_of(const Suspension& suspension, const Execution& execution);

}  // namespace flowfabric::core
