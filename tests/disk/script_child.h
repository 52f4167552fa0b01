// A process that does to files what a script says: what the recorder and the states are tested with.
#pragma once

#include <string>

namespace flowfabric::disk {

inline constexpr const char* kScriptArgument = "--script-of-disk-tests";

// One call per line, on files in `folder`:
//   write NAME OFFSET COUNT LETTER | truncate NAME SIZE | sync NAME | sync_folder [NAME] | unlink NAME
//   rename NAME NAME | mkdir NAME | mark TEXT
// Each call that fails is marked "failed LINE".
int run_script(const std::string& folder, const std::string& script);

}  // namespace flowfabric::disk
