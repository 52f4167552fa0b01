// The rules that follow the moves of an execution.
#include "core/flow/dependency.h"
#include "core/limits/admission.h"
#include "core/limits/fairness.h"
#include "core/suspension/suspension.h"
#include "core/transition.h"

namespace flowfabric::core {

constinit const Followers kFollowers{.comes_in_line = give_rank,
                                     .leaves_worker = give_back,
                                     .ends_suspended = close_with_execution,
                                     .member_ended = follow_end_of_member};

}  // namespace flowfabric::core
