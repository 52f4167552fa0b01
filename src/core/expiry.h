// What happens because time passed. The clock finds what is due; here it is decided, under the batch's lock,
// which rule really applies. Deadline comes before attempt timeout, and that before lease expiry.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

inline constexpr const char* kAttemptTimeout = "attempt_timeout";
inline constexpr const char* kExecutionDeadline = "execution_deadline";
inline constexpr const char* kMaxReclaimsExceeded = "max_reclaims_exceeded";

// The rules by the names of the specification (08 §2 and §7).
enum class Rule {
  none,
  execution_deadline,
  attempt_timeout,
  lease_expiry,
  reclaim,
  grant_expiry,
  delayed_promoter,
  retention_trimmer,
  unblock,
  ttl_sweep,
  worker_registry_ttl_sweep,
  dead_worker,
  dependency_reconciler,
  cancel_reconciler,
  edge_cancel_dispatcher,
  // What else can become of a join whose siblings are to be cancelled.
  edge_cancel_orphaned,        // it is gone
  edge_cancel_reconciler,      // its siblings are not owed anything any more
  edge_cancel_skipped_locked,  // another server took care of it
  suspension_timeout,
  pending_wp_expiry,
  budget_reset,
  quota_reconciler,
};
BOOST_DESCRIBE_ENUM(Rule, none, execution_deadline, attempt_timeout, lease_expiry, reclaim, grant_expiry,
                    delayed_promoter, retention_trimmer, unblock, ttl_sweep, worker_registry_ttl_sweep,
                    dead_worker, dependency_reconciler, cancel_reconciler, edge_cancel_dispatcher,
                    edge_cancel_orphaned, edge_cancel_reconciler, edge_cancel_skipped_locked,
                    suspension_timeout, pending_wp_expiry, budget_reset, quota_reconciler)

// Applies at most one rule; what is due after that is found by the clock's next look.
Rule run_due(Unit& unit, const ExecutionId& id, Context& at);
Rule run_due(Unit& unit, const CreateDedupKey& key, Context& at);

// Its last reclaim is used up: the execution fails for good.
void give_up_reclaiming(Unit& unit, Execution& execution, Context& at);

// Ends the execution as expired.
void expire(Unit& unit, Execution& execution, const std::string& reason, const Context& at);

}  // namespace flowfabric::core
