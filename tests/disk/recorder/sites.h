// Where in the program a sync is asked for: the calls that lead to it, which are the same in every process
// that runs the same program.
#pragma once

#include <cstdint>
#include <string>

namespace flowfabric::disk {

struct Site {
  std::uint64_t number;
  std::string text;  // "KIND sqlite+1a2b exe+3c4d …", innermost first
};

// Loads what it needs, which must not happen within a call of somebody who holds a lock.
void prepare_sites();
Site site_of_caller(const char* kind_of_file);

}  // namespace flowfabric::disk
