// The secret that an engine brings along when it opens a store.
#pragma once

#include "engine/committers.h"

namespace flowfabric::engine {

// Installs the one that the options give, or a new one, if the store has none: nobody can be suspended
// without it. Trouble with the store shows when somebody is suspended; what else is to be known goes to
// `notice`.
void install_first_secret(Committers& committers, const EngineOptions& options);

}  // namespace flowfabric::engine
