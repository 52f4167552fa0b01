// Kills a process under load, again and again on the same database, and looks for everything that it had
// acknowledged.
#pragma once

#include "e2e/kill_checks.h"

namespace flowfabric::e2e {

// The database under test.
struct KilledOn {
  std::string url;
  Number number;
  // Returns when nothing of the killed process is under way any more.
  std::function<void()> settle{[] {}};
};

// Brings everything to its end in the last round.
void kill_again_and_again(const KilledOn& database, int rounds);

}  // namespace flowfabric::e2e
