#include "core/execution/lease.h"

#include "core/operation.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

bool matches(const LeaseFence& fence, const std::optional<LeaseId>& lease, std::int64_t epoch,
             const std::optional<AttemptId>& attempt) {
  return fence.lease_id == lease && fence.lease_epoch == epoch && fence.attempt_id == attempt;
}

bool is_whole(const LeaseFence& fence) {
  return fence.lease_id && fence.lease_epoch && fence.attempt_id;
}

void lose_lease(Unit& unit, Execution& execution, const std::string& reason, const std::string& detail,
                const Context& at) {
  execution.lease.lease_expired_at_ms = at.now_ms;
  append_lease_event(unit, execution, LeaseEventType::expired, reason, at);
  move_to(unit, execution, vectors::lost(OwnershipState::lease_expired_reclaimable), detail, at);
}

}  // namespace

Result<void> check_lease_ttl(std::int64_t ttl_ms) {
  if (ttl_ms >= kMinLeaseTtlMs && ttl_ms <= kMaxLeaseTtlMs) return {};
  return fail_with(ErrorCode::invalid_input, "lease_ttl_ms: out of range",
                   "Give a lease time to live between 1000 and 3600000 ms.");
}

std::int64_t renewal_deadline(std::int64_t now_ms, std::int64_t ttl_ms) {
  return now_ms + ttl_ms * 2 / 3;
}

Result<void> check_fence_shape(const LeaseFence& fence, Unfenced allowed, const std::string& source) {
  if (is_whole(fence)) return {};
  if (fence.lease_id || fence.lease_epoch || fence.attempt_id) {
    return fail_with(ErrorCode::partial_fence_triple, "",
                     "Send lease_id, lease_epoch and attempt_id together, as the claim returned them.");
  }
  if (allowed == Unfenced::by_operator && source == kOperatorOverride) return {};
  return fail_with(ErrorCode::fence_required, "",
                   "Send the lease_id, lease_epoch and attempt_id that the claim returned.");
}

Error not_found(const ExecutionId& id) {
  return {ErrorCode::execution_not_found, id.to_string(),
          "No such execution: check the id; it may have been removed after its retention."};
}

Error not_active(const Execution& execution) {
  return {ErrorCode::execution_not_active, "", "The execution is not running, so nobody holds its lease.",
          NotActiveDetails{
              .lifecycle_phase = execution.state.lifecycle_phase,
              .terminal_outcome = execution.state.terminal_outcome,
              .lease_epoch = execution.lease_epoch,
              .attempt_id = execution.attempt.attempt_id ? execution.attempt.attempt_id->to_string() : "",
          }};
}

bool was_last(const Execution& execution, const LeaseFence& fence) {
  const auto& end = execution.last_end;
  return is_whole(fence) && matches(fence, end.ended_lease_id, end.ended_lease_epoch, end.ended_attempt_id);
}

bool repeats(const Execution& execution, const LeaseFence& fence, LeaseEnd operation) {
  return execution.last_end.ended_by == operation && was_last(execution, fence);
}

bool is_outlived(const Execution& execution, const LeaseFence& fence) {
  return fence.lease_epoch && *fence.lease_epoch < execution.last_end.ended_lease_epoch;
}

bool has_lapsed(const Execution& execution, const Context& at) {
  return !execution.lease.lease_expires_at_ms || *execution.lease.lease_expires_at_ms <= at.now_ms;
}

void mark_lease_expired(Unit& unit, Execution& execution, const Context& at) {
  lose_lease(unit, execution, "", "lease expired, awaiting reclaim", at);
}

void end_lease_of_dead(Unit& unit, Execution& execution, const Context& at) {
  if (has_lapsed(execution, at)) return mark_lease_expired(unit, execution, at);
  execution.lease.lease_expires_at_ms = at.now_ms;
  lose_lease(unit, execution, kWorkerDead, "worker is dead, awaiting reclaim", at);
}

Result<const Execution*> check_lease(Unit& unit, const ExecutionId& id, const LeaseFence& fence,
                                     OnExpiry on_expiry, Context& at) {
  const Execution* execution = unit.find<Execution>(id);
  if (!execution) return std::unexpected(not_found(id));
  if (execution->state.lifecycle_phase != LifecyclePhase::active) {
    return std::unexpected(not_active(*execution));
  }
  if (execution->state.ownership_state == OwnershipState::lease_revoked) {
    return fail_with(ErrorCode::lease_revoked, "", "The lease was taken away: stop working on this task.");
  }
  if (has_lapsed(*execution, at)) {
    const bool unmarked = execution->state.ownership_state == OwnershipState::leased;
    if (unmarked && on_expiry == OnExpiry::mark) {
      mark_lease_expired(unit, unit.edit<Execution>(id), at);
      unit.keep_despite_refusal();  // a lease found expired is marked, and the call is still refused
    }
    return fail_with(ErrorCode::lease_expired, "",
                     "The lease ran out: stop working on this task, and renew earlier next time.");
  }
  const bool fenced = is_whole(fence);
  if (fenced &&
      !matches(fence, execution->lease.lease_id, execution->lease_epoch, execution->attempt.attempt_id)) {
    return fail_with(ErrorCode::stale_lease, "", "Another lease is in force: stop working on this task.");
  }
  return execution;
}

namespace {

// How long it was given for, the last time.
std::int64_t ttl_of(const Lease& lease) {
  const auto given_at = lease.lease_last_renewed_at_ms ? *lease.lease_last_renewed_at_ms
                                                       : lease.lease_acquired_at_ms.value_or(0);
  return lease.lease_expires_at_ms.value_or(given_at) - given_at;
}

}  // namespace

Result<Renewal> apply(Unit& unit, const RenewLease& request, Context& at) {
  if (auto ok = check_fence_shape(request.fence, Unfenced::never, ""); !ok) {
    return std::unexpected(ok.error());
  }
  if (request.lease_ttl_ms) {
    if (auto ok = check_lease_ttl(*request.lease_ttl_ms); !ok) return std::unexpected(ok.error());
  }
  auto held = check_lease(unit, request.execution_id, request.fence, OnExpiry::mark, at);
  if (!held) return std::unexpected(held.error());
  if (request.attempt_index && (*held)->attempt.attempt_index != *request.attempt_index) {
    return fail_with(ErrorCode::stale_lease, "", "The attempt index is not that of the running attempt.");
  }
  auto& execution = unit.edit<Execution>(request.execution_id);
  const auto ttl_ms = request.lease_ttl_ms.value_or(ttl_of(execution.lease));
  execution.lease.lease_expires_at_ms = at.now_ms + ttl_ms;
  execution.lease.lease_last_renewed_at_ms = at.now_ms;
  execution.lease.lease_renewal_deadline_ms = renewal_deadline(at.now_ms, ttl_ms);
  note_mutation(execution, at);
  append_lease_event(unit, execution, LeaseEventType::renewed, "", at);
  return Renewal{*execution.lease.lease_expires_at_ms, execution.lease_epoch};
}

Result<ProgressUpdated> apply(Unit& unit, const UpdateProgress& request, Context& at) {
  if (auto ok = check_fence_shape(request.fence, Unfenced::never, ""); !ok) {
    return std::unexpected(ok.error());
  }
  if (request.percent && (*request.percent < 0 || *request.percent > 100)) {
    return fail_with(ErrorCode::invalid_input, "percent: out of range",
                     "Give the progress as a whole number from 0 to 100.");
  }
  if (auto ok = check_text("message", request.message.value_or("")); !ok) return std::unexpected(ok.error());
  auto held = check_lease(unit, request.execution_id, request.fence, OnExpiry::only_refuse, at);
  if (!held) return std::unexpected(held.error());
  auto& execution = unit.edit<Execution>(request.execution_id);
  if (request.percent) execution.progress_pct = *request.percent;
  if (request.message) execution.progress_message = *request.message;
  execution.progress_updated_at_ms = at.now_ms;
  note_mutation(execution, at);
  return ProgressUpdated{};
}

Result<Revocation> apply(Unit& unit, const RevokeLease& request, Context& at) {
  if (auto ok = check_text("reason", request.reason); !ok) return std::unexpected(ok.error());
  if (!request.worker_instance_id.empty()) {
    if (auto ok = check_worker_name("worker_instance_id", request.worker_instance_id); !ok) {
      return std::unexpected(ok.error());
    }
  }
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  const auto satisfied = [](NotRevoked why) { return Revocation{.already_satisfied = why}; };
  const auto owner = found->state.ownership_state;
  if (owner == OwnershipState::unowned) return satisfied(NotRevoked::no_active_lease);
  if (owner == OwnershipState::lease_revoked) return satisfied(NotRevoked::already_revoked);
  if (owner == OwnershipState::lease_expired_reclaimable) return satisfied(NotRevoked::already_expired);
  if (has_lapsed(*found, at)) {
    mark_lease_expired(unit, unit.edit<Execution>(request.execution_id), at);
    return satisfied(NotRevoked::already_expired);
  }
  if (request.expected_lease_id && request.expected_lease_id != found->lease.lease_id) {
    return fail_with(ErrorCode::stale_lease, "", "Another lease is in force than the one to be revoked.");
  }
  if (!request.worker_instance_id.empty() && request.worker_instance_id != found->lease.worker_instance_id) {
    return satisfied(NotRevoked::different_worker_instance_id);
  }
  auto& execution = unit.edit<Execution>(request.execution_id);
  execution.lease.lease_revoked_at_ms = at.now_ms;
  execution.lease.lease_revoke_reason = request.reason;
  execution.lease.lease_expires_at_ms.reset();
  append_lease_event(unit, execution, LeaseEventType::revoked, request.reason, at);
  move_to(unit, execution, vectors::lost(OwnershipState::lease_revoked), "lease revoked: " + request.reason,
          at);
  return Revocation{.already_satisfied = std::nullopt,
                    .lease_id = *execution.lease.lease_id,
                    .lease_epoch = execution.lease_epoch};
}

FLOWFABRIC_OPERATION(RenewLease)
FLOWFABRIC_OPERATION(UpdateProgress)
FLOWFABRIC_OPERATION(RevokeLease)

}  // namespace flowfabric::core
