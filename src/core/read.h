// What readers are shown of the stored records.
#pragma once

#include <vector>

#include "core/unit.h"

namespace flowfabric::core {

ExecutionSnapshot snapshot(const Execution& execution, const ExecutionSpec& spec);

// `ended` oldest first; the attempt in progress, if any, comes last.
std::vector<AttemptSnapshot> attempts(const Execution& execution, const std::vector<Attempt>& ended);

// The attempt that holds the result of the latest completion; absent while there is none.
std::optional<AttemptKey> result_attempt(const Execution& execution);

LeaseEventView view(const LeaseEvent& event);
CompletionEventView view(const CompletionEvent& event);

}  // namespace flowfabric::core
