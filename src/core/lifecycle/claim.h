// Claiming: workers take what is offered, under a lease.
#pragma once

#include "core/context.h"
#include "core/offer.h"
#include "core/unit.h"

namespace flowfabric::core {

// Refuses a malformed request, and says what its worker serves otherwise.
Result<WorkerScope> check_claim(const ClaimTasks& request);

// One claim path for everything: fresh work and retries, attempts that go on after a pause, and work whose
// lease was lost. An empty answer means that nothing is offered now.
Result<std::vector<ClaimedTask>> apply(Unit& unit, const ClaimTasks& request, Context& at);

// ---- the parts, for claims that choose differently (core/lifecycle/grant.h) ----

// Who takes an execution, and on which terms.
struct Taker {
  std::string worker_id;
  std::string worker_instance_id{};  // = worker_id when empty
  std::int64_t lease_ttl_ms{};
  std::optional<LeaseId> lease_id{};      // minted when absent
  std::optional<AttemptId> attempt_id{};  // of a new attempt; minted when absent
  std::string reason{};                   // of the lease event
  const char* resumed{kClaimResumed};     // its reason where the attempt goes on
};
// Gives an execution that may be taken to a worker. Absent when it turned out to be past its deadline, which
// ends it.
std::optional<ClaimedTask> take(Unit& unit, const ExecutionId& id, const Taker& taker, Context& at);

// The best execution of a lane that the worker may take; null: none. `expected` says how many the caller may
// have to look at.
const Execution* best_for(Unit& unit, const WorkerScope& scope, const std::string& lane,
                          std::uint32_t expected, const Context& at);

}  // namespace flowfabric::core
