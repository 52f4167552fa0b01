// The consistency check: looks at every record of a store and says what does not fit together.
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
// Repairs what follows from the rest of the record: the derived state, the place in line, the next clock,
// lane counts, registrations, index rows. What is left is reported, never guessed.
struct CheckStore {
  using Answer = StoreReport;
  bool repair{false};
};

}  // namespace flowfabric
