// What holds a token is printed without it.
#include <ostream>

#include "flowfabric/suspension.h"
#include "model/waitpoint_token.h"

namespace flowfabric {

std::ostream& operator<<(std::ostream& out, const TokenedWaitpoint& waitpoint) {
  return out << "waitpoint " << waitpoint.waitpoint_id.to_string() << " '" << waitpoint.waitpoint_key << "' "
             << redacted_token(waitpoint.waitpoint_token);
}

std::ostream& operator<<(std::ostream& out, const Suspended& suspended) {
  out << "suspension " << suspended.suspension_id.to_string()
      << (suspended.already_satisfied ? " already satisfied" : "");
  for (const auto& waitpoint : suspended.waitpoints) out << ", " << waitpoint;
  return out;
}

std::ostream& operator<<(std::ostream& out, const DeliverSignal& signal) {
  out << "signal '" << signal.signal_name << "' for " << signal.execution_id.to_string() << " waitpoint "
      << signal.waitpoint_id.to_string() << ' ' << redacted_token(signal.waitpoint_token);
  if (signal.payload) out << ", payload of " << signal.payload->size() << " bytes";
  return out;
}

}  // namespace flowfabric
