// The consistency check: reads every record of a store and reports contradictions.
#pragma once

#include "flowfabric/operations.h"

namespace flowfabric {

struct Violation {
  std::string where;  // an execution id, or a table and its key
  std::string what;
  bool repaired{false};
  bool operator==(const Violation&) const = default;
};
struct StoreReport {
  std::uint64_t executions{};
  std::uint64_t records{};  // of all kinds
  std::uint64_t found{};    // violations, also those not listed
  std::uint64_t repaired{};
  std::vector<Violation> violations;  // the first 1 000
  bool operator==(const StoreReport&) const = default;
};
// Repairs data that follows from other data: the derived state, the place in the queue, the next deadline,
// lane counts, registrations, index rows. Everything else is reported, never guessed.
struct CheckStore {
  using Answer = StoreReport;
  bool repair{false};
};

}  // namespace flowfabric
