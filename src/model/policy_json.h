// The JSON forms of what is stored in one column: a policy (also as it travels), tags, a list of words,
// amounts.
#pragma once

#include <string>
#include <string_view>

#include "flowfabric/budgets.h"
#include "flowfabric/operations.h"
#include "flowfabric/policy.h"

namespace flowfabric {

// Keys in the specification's order; optional ones are absent when unset.
std::string to_json(const ExecutionPolicy& policy);

// Absent and null mean the default, unknown keys are ignored. Refuses with `invalid_policy_json`
// (`malformed`, `routing_requirements:not_object`) or `invalid_capabilities` (`required:…`). What comes back
// has passed `validate`.
Result<ExecutionPolicy> policy_from_json(std::string_view json);

// An object of strings; "" for no tags.
std::string to_json(const Tags& tags);
Result<Tags> tags_from_json(std::string_view json);

// An array of strings; "" for none.
std::string to_json(const std::vector<std::string>& strings);
Result<std::vector<std::string>> strings_from_json(std::string_view json);

// An object of whole numbers; "" for none.
std::string to_json(const Amounts& amounts);
Result<Amounts> amounts_from_json(std::string_view json);

}  // namespace flowfabric
