// The rules of the clock: for each record whose time can come, what is done then.
#pragma once

#include <optional>
#include <span>

#include "core/context.h"
#include "core/rule.h"
#include "core/unit.h"

namespace flowfabric::core {

// Says whose a record with a clock is.
enum class Belonging {
  to_execution,  // which it is, or is kept under
  to_flow,
  to_namespace,  // tags do not matter
  to_nobody,     // it is for everybody's clock
};

struct ClockRule {
  const RecordType* type{};
  // The rules that its clock can mean. (That an ended execution, a route or a group is removed is told by
  // another column.)
  RuleSet rules{};
  Belonging belonging{};
  // Applies the rule whose time has come, if there is one.
  Rule (*run)(Unit& unit, const void* key, Context& at){};
  // When the record is due next, by rules that are not off; null: nobody can tell.
  std::optional<std::int64_t> (*next)(const void* record, const RuleSet& off){};
};

// In the order of `Records`.
std::span<const ClockRule> clock_rules();
// Of a record that comes due.
const ClockRule& clock_rule(const RecordType& type);

inline Rule run_clock(Unit& unit, const RecordKey& due, Context& at) {
  return clock_rule(*due.type).run(unit, due.key.get(), at);
}

}  // namespace flowfabric::core
