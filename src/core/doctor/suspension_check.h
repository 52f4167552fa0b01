// The consistency check of what belongs to suspensions; see core/doctor/check.h for the rest.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

// An execution and what was found of its suspensions.
struct SuspensionNeighbourhood {
  const Execution* execution{};
  const Suspension* latest{};
  std::vector<const PastSuspension*> past;
  std::vector<const Waitpoint*> waitpoints;
  std::vector<std::uint32_t> signals;             // their numbers
  std::map<std::string, const HmacKey*> secrets;  // by kid
};
std::vector<std::string> faults(const SuspensionNeighbourhood& found);

// Closes what nothing is suspended on, sets clocks anew, and goes on counting after the last signal. An
// execution that is suspended on nothing is left to an operator.
void repair_suspension(Unit& unit, const ExecutionId& id, Context& at);

struct KeystoreNeighbourhood {
  const Keystore* keystore{};
  std::vector<const HmacKey*> keys;
};
std::vector<std::string> faults(const KeystoreNeighbourhood& found);

// Marks the kid in force, and no other.
void repair_keystore(Unit& unit, const std::vector<HmacKeyKey>& kids);

}  // namespace flowfabric::core
