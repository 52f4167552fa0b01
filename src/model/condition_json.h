// The JSON form of a resume condition, as it travels and as it is stored.
#pragma once

#include <string>
#include <string_view>

#include "flowfabric/error.h"
#include "flowfabric/resume_condition.h"

namespace flowfabric {

// {"Single":{"waitpoint_key":"a","matcher":{"ByName":"x"}}}, "OperatorOnly", {"Composite":{"kind":"AllOf",…}}
std::string to_json(const ResumeCondition& condition);

// Words may also be in snake_case, unknown keys are ignored. Refuses with `invalid_input`; what comes back is
// well-formed, not yet checked for sense.
Result<ResumeCondition> condition_from_json(std::string_view json);

}  // namespace flowfabric
