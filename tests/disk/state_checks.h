// Checks of a store that is opened on a state of the disk.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "disk/witness.h"

namespace flowfabric::disk {

// full: every answered operation is there. normal: all operations up to some point are there, and none after
// it.
enum class Promise { full, normal };

std::string url_of(const std::string& folder, Promise promise);

// The executions of a store, if it can be opened. Opens it, and so changes it.
std::set<std::string> executions_in(const std::string& folder, Promise promise);

// Returns the problems in words. `witness` stands at the cut. Opens the store in the folder, and so changes
// it.
std::vector<std::string> check_state(const std::string& folder, Promise promise, const Witness& witness);

}  // namespace flowfabric::disk
