// What a worker reports at the end of its lease: done, failed, or not now.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<Completed> apply(Unit& unit, const CompleteExecution& request, Context& at);
Result<Failed> apply(Unit& unit, const FailExecution& request, Context& at);
Result<WaitingForChildren> apply(Unit& unit, const WaitForChildren& request, Context& at);
Result<Delayed> apply(Unit& unit, const DelayExecution& request, Context& at);

// Ends the attempt as failed and plans the next one, if the retry rule allows it. Absent: no retry, and
// nothing was changed. `end` is kept as the answer to a repeated call, with the times filled in.
struct AttemptFailure {
  std::string reason;
  std::string category;
  LeaseEnd ended_by{};
  std::string release_reason;
};
std::optional<Failed> schedule_retry(Unit& unit, Execution& execution, const AttemptFailure& failure,
                                     Context& at);
// The same, or the end of the execution.
Failed fail_attempt(Unit& unit, Execution& execution, const AttemptFailure& failure,
                    const std::string& release_reason_if_last, Context& at);

}  // namespace flowfabric::core
