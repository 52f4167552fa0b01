#include "core/lifecycle/grant.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/index_rules.h"
#include "core/lifecycle/claim.h"
#include "core/lifecycle/expiry.h"
#include "core/limits/admission.h"
#include "core/operation.h"
#include "core/registry/lane.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kMaxSnapshotBytes = 64u << 10;
constexpr std::int64_t kMaxGrantTtlMs = 60'000;
constexpr std::uint32_t kMaxRefusals = 100;  // candidates that one call may hold back

std::string grant_key(const Grant& grant) {
  return "grant:" + std::string(enum_name(grant.kind)) + ":" + grant.grant_id.to_string();
}

ClaimGrant view(const Grant& grant) {
  return {.execution_id = grant.key(),
          .kind = grant.kind,
          .partition_key = "{fp:" + std::to_string(grant.partition_key) + "}",
          .grant_key = grant_key(grant),
          .lane_id = grant.lane_id,
          .expires_at = grant.expires_at_ms};
}

Result<void> check_worker(const std::string& worker_id, const std::string& instance_id) {
  if (auto ok = check_worker_name("worker_id", worker_id); !ok) return ok;
  if (instance_id.empty()) return {};
  return check_worker_name("worker_instance_id", instance_id);
}

Result<void> check_terms(const GrantTerms& terms) {
  if (auto ok = check_worker(terms.worker_id, terms.worker_instance_id); !ok) return ok;
  if (terms.grant_ttl_ms < 1 || terms.grant_ttl_ms > kMaxGrantTtlMs) {
    return fail_with(ErrorCode::invalid_input, "grant_ttl_ms: out of range",
                     "Give a grant between 1 and 60000 ms to be used.");
  }
  if (auto ok = check_text("capability_hash", terms.capability_hash); !ok) return ok;
  if (auto ok = check_text("route_snapshot_json", terms.route_snapshot_json, kMaxSnapshotBytes); !ok)
    return ok;
  return check_text("admission_summary", terms.admission_summary);
}

Result<void> check_use(const GrantUse& use) {
  if (auto ok = check_worker(use.worker_id, use.worker_instance_id); !ok) return ok;
  if (auto ok = check_text("grant_key", use.grant_key); !ok) return ok;
  return check_lease_ttl(use.lease_ttl_ms);
}

bool has_live_grant(const Execution& execution, const Context& at) {
  return execution.grant_expires_at_ms && *execution.grant_expires_at_ms >= at.now_ms;
}

std::unexpected<Error> already_granted() {
  return fail_with(ErrorCode::grant_already_exists, "",
                   "The execution is reserved for a worker; wait until the grant is used or runs out.");
}

std::unexpected<Error> not_eligible(const std::string& why) {
  return fail_with(ErrorCode::execution_not_eligible, why, "The execution is not waiting for a worker.");
}

std::unexpected<Error> other_lane(const Execution& execution) {
  return fail_with(ErrorCode::execution_not_in_eligible_set, "",
                   "The execution waits on lane '" + execution.lane_id + "'.");
}

bool waits_for_worker(const Execution& execution) {
  return execution.state.lifecycle_phase == LifecyclePhase::runnable &&
         execution.state.eligibility_state == EligibilityState::eligible_now;
}

bool is_past_deadline(const Execution& execution, const Context& at) {
  return execution.deadline_at_ms && *execution.deadline_at_ms <= at.now_ms;
}

GrantKind kind_for(const Execution& execution) {
  if (execution.state.lifecycle_phase == LifecyclePhase::active) return GrantKind::reclaim;
  const bool paused = execution.state.attempt_state == AttemptState::attempt_interrupted;
  return paused ? GrantKind::resume : GrantKind::claim;
}

// What the execution requires and the worker lacks, comma-joined. Noted on the execution, whatever becomes of
// the call.
std::string missing_capabilities(Unit& unit, const Execution& execution,
                                 const std::vector<std::string>& offered, const Context& at) {
  const auto required = split_capabilities(unit.require<Route>({execution.route_id}).required_capabilities);
  std::vector<std::string> missing;
  std::ranges::set_difference(required, offered, std::back_inserter(missing));
  if (missing.empty()) return "";
  unit.edit<Execution>(execution.key()).last_capability_mismatch_at_ms = at.now_ms;
  return join_capabilities(missing);
}

ClaimGrant reserve(Unit& unit, const ExecutionId& id, const GrantTerms& terms,
                   const std::vector<std::string>& capabilities, Context& at) {
  auto& execution = unit.edit<Execution>(id);
  drop_grant(unit, execution);
  Grant grant{
      .partition_key = id.partition,
      .execution_id = id.uuid,
      .grant_id = mint_uuid(at.now_ms, at.random),
      .kind = kind_for(execution),
      .worker_id = terms.worker_id,
      .worker_instance_id = terms.worker_instance_id.empty() ? terms.worker_id : terms.worker_instance_id,
      .lane_id = execution.lane_id,
      .worker_capabilities = join_capabilities(capabilities),
      .capability_hash = terms.capability_hash,
      .route_snapshot_json = terms.route_snapshot_json,
      .admission_summary = terms.admission_summary,
      .issued_at_ms = at.now_ms,
      .expires_at_ms = at.now_ms + terms.grant_ttl_ms};
  const auto answer = view(grant);
  execution.grant_expires_at_ms = grant.expires_at_ms;
  renew_offer(execution, at);
  unit.insert(std::move(grant));
  return answer;
}

std::unexpected<Error> bad_grant(const std::string& advice) {
  return fail_with(ErrorCode::invalid_claim_grant, "", advice);
}

// The grant that this use presents.
Result<const Grant*> check_grant(Unit& unit, const Execution& execution, const GrantUse& use,
                                 const Context& at) {
  const auto* grant = execution.grant_expires_at_ms ? unit.find<Grant>(execution.key()) : nullptr;
  if (!grant) return bad_grant("Nobody reserved this execution, or the grant was used: ask for a new one.");
  if (grant->worker_id != use.worker_id) return bad_grant("The grant was issued to another worker.");
  if (!use.grant_key.empty() && use.grant_key != grant_key(*grant)) {
    return bad_grant("The execution was reserved again since this grant was issued.");
  }
  if (grant->expires_at_ms < at.now_ms) {
    return fail_with(ErrorCode::claim_grant_expired, "", "The grant ran out unused: ask for a new one.");
  }
  return grant;
}

Taker taker_for(const GrantUse& use) {
  return {.worker_id = use.worker_id,
          .worker_instance_id = use.worker_instance_id,
          .lease_ttl_ms = use.lease_ttl_ms,
          .lease_id = use.lease_id,
          .attempt_id = use.attempt_id};
}

std::unexpected<Error> not_leaseable(const std::string& advice) {
  return fail_with(ErrorCode::execution_not_leaseable, "", advice);
}

Result<ClaimedTask> take_or_refuse(Unit& unit, const ExecutionId& id, const Taker& taker, Context& at) {
  auto task = take(unit, id, taker, at);
  if (task) return *std::move(task);
  unit.keep_despite_refusal();  // it was found past its deadline, and has ended
  return not_leaseable("The execution is past its deadline.");
}

// What fresh and resumed claims have in common; the order is that of the specification.
Result<const Execution*> check_leaseable(Unit& unit, const ExecutionId& id) {
  const auto* execution = unit.find<Execution>(id);
  if (!execution) return std::unexpected(not_found(id));
  if (!waits_for_worker(*execution)) return not_leaseable("The execution is not waiting for a worker.");
  if (!hands_out(unit, execution->lane_id)) return not_leaseable("Its lane hands out no work.");
  return execution;
}

// ---- reclaim ----

ReclaimAnswer not_reclaimable(std::string detail) {
  return {.status = ReclaimStatus::not_reclaimable, .detail = std::move(detail)};
}

// Null: its lease is not lost.
const Execution* find_lost(Unit& unit, const Execution& found, const Context& at) {
  if (is_held(found) && has_lapsed(found, at)) {
    mark_lease_expired(unit, unit.edit<Execution>(found.key()), at);
    return unit.find<Execution>(found.key());
  }
  return is_lost(found) ? &found : nullptr;
}

std::uint32_t reclaim_cap(Unit& unit, const Execution& execution,
                          const std::optional<std::uint32_t>& asked_for) {
  // A policy that was submitted has a cap, if only the default one, and it wins.
  const bool has_policy = unit.require<ExecutionSpec>(execution.key()).policy != ExecutionPolicy{};
  return has_policy ? execution.max_reclaim_count : asked_for.value_or(execution.max_reclaim_count);
}

// The gate of both reclaim calls: an answer that ends the call, or nothing.
std::optional<ReclaimAnswer> check_reclaim(Unit& unit, const Execution& execution,
                                           const std::optional<std::uint32_t>& asked_for, Context& at) {
  if (!find_lost(unit, execution, at)) return not_reclaimable("execution_not_reclaimable");
  if (!hands_out(unit, execution.lane_id)) return not_reclaimable("lane_hands_out_no_work");
  const auto cap = reclaim_cap(unit, execution, asked_for);
  if (unit.find<Execution>(execution.key())->lease_reclaim_count < cap) return std::nullopt;
  give_up_reclaiming(unit, unit.edit<Execution>(execution.key()), at);
  return ReclaimAnswer{.status = ReclaimStatus::reclaim_cap_exceeded, .reclaim_count = cap};
}

}  // namespace

Result<ClaimGrant> apply(Unit& unit, const IssueClaimGrant& request, Context& at) {
  if (auto ok = check_terms(request.terms); !ok) return std::unexpected(ok.error());
  if (auto ok = check_lane(request.lane_id); !ok) return std::unexpected(ok.error());
  const auto* execution = unit.find<Execution>(request.execution_id);
  if (!execution) return std::unexpected(not_found(request.execution_id));
  if (!waits_for_worker(*execution) || is_past_deadline(*execution, at)) return not_eligible("");
  if (!hands_out(unit, execution->lane_id)) return not_eligible("lane hands out no work");
  if (has_live_grant(*execution, at)) return already_granted();
  if (execution->lane_id != request.lane_id) return other_lane(*execution);
  const auto capabilities = normalize_capabilities("worker", request.terms.capabilities);
  if (!capabilities) return std::unexpected(capabilities.error());
  if (auto missing = missing_capabilities(unit, *execution, *capabilities, at); !missing.empty()) {
    unit.keep_despite_refusal();  // the time of the mismatch stays
    return fail_with(ErrorCode::capability_mismatch, std::move(missing),
                     "The worker lacks these capabilities; block the execution until one that has them is "
                     "there, or grant it to another.");
  }
  if (const auto refusal = admit(unit, request.execution_id, at)) {
    hold_back(unit, request.execution_id, *refusal, at);
    unit.keep_despite_refusal();  // it waits for the limit now
    return std::unexpected(to_error(*refusal));
  }
  return reserve(unit, request.execution_id, request.terms, *capabilities, at);
}

Result<std::optional<ClaimGrant>> apply(Unit& unit, const ClaimForWorker& request, Context& at) {
  if (auto ok = check_terms(request.terms); !ok) return std::unexpected(ok.error());
  if (auto ok = check_lane(request.lane_id); !ok) return std::unexpected(ok.error());
  if (request.namespace_) {
    if (auto ok = check_namespace(*request.namespace_); !ok) return std::unexpected(ok.error());
  }
  auto capabilities = normalize_capabilities("worker", request.terms.capabilities);
  if (!capabilities) return std::unexpected(capabilities.error());
  const WorkerScope scope{request.namespace_, *capabilities};
  for (std::uint32_t refusals = 0; refusals < kMaxRefusals; ++refusals) {
    const auto* best = best_for(unit, scope, request.lane_id, 1 + refusals, at);
    if (!best) break;
    if (is_past_deadline(*best, at)) {
      expire(unit, unit.edit<Execution>(best->key()), kExecutionDeadline, at);
      continue;
    }
    const auto id = best->key();
    const auto refusal = admit(unit, id, at);
    if (!refusal) return reserve(unit, id, request.terms, *capabilities, at);
    hold_back(unit, id, *refusal, at);
  }
  return std::nullopt;
}

Result<ClaimedTask> apply(Unit& unit, const ClaimExecution& request, Context& at) {
  if (auto ok = check_use(request.use); !ok) return std::unexpected(ok.error());
  const auto leaseable = check_leaseable(unit, request.execution_id);
  if (!leaseable) return std::unexpected(leaseable.error());
  const auto& execution = **leaseable;
  if (execution.state.attempt_state == AttemptState::attempt_interrupted) {
    return fail_with(ErrorCode::use_claim_resumed_execution, "",
                     "The attempt was interrupted and goes on: claim it as resumed, with the same grant.");
  }
  if (auto grant = check_grant(unit, execution, request.use, at); !grant) {
    return std::unexpected(grant.error());
  }
  if (request.expected_attempt_index && *request.expected_attempt_index != execution.total_attempt_count) {
    return not_leaseable("The next attempt has index " + std::to_string(execution.total_attempt_count) + ".");
  }
  return take_or_refuse(unit, request.execution_id, taker_for(request.use), at);
}

Result<ClaimedTask> apply(Unit& unit, const ClaimResumedExecution& request, Context& at) {
  if (auto ok = check_use(request.use); !ok) return std::unexpected(ok.error());
  const auto leaseable = check_leaseable(unit, request.execution_id);
  if (!leaseable) return std::unexpected(leaseable.error());
  if ((*leaseable)->state.attempt_state != AttemptState::attempt_interrupted) {
    return fail_with(ErrorCode::not_a_resumed_execution, "",
                     "No attempt of the execution was interrupted: claim it as fresh work.");
  }
  if (auto grant = check_grant(unit, **leaseable, request.use, at); !grant) {
    return std::unexpected(grant.error());
  }
  return take_or_refuse(unit, request.execution_id, taker_for(request.use), at);
}

Result<ClaimedTask> apply(Unit& unit, const ClaimGranted& request, Context& at) {
  const auto* execution = unit.find<Execution>(request.execution_id);
  if (!execution) return std::unexpected(not_found(request.execution_id));
  if (execution->state.lifecycle_phase != LifecyclePhase::active) {
    const bool paused = execution->state.attempt_state == AttemptState::attempt_interrupted;
    return paused ? apply(unit, ClaimResumedExecution{request.execution_id, request.use}, at)
                  : apply(unit, ClaimExecution{request.execution_id, request.use}, at);
  }
  if (auto ok = check_use(request.use); !ok) return std::unexpected(ok.error());
  if (!hands_out(unit, execution->lane_id)) return not_leaseable("Its lane hands out no work.");
  if (const auto refused = check_reclaim(unit, *execution, std::nullopt, at)) {
    if (refused->status != ReclaimStatus::reclaim_cap_exceeded) {
      return fail_with(ErrorCode::execution_not_reclaimable, "", "Its lease is held by a worker.");
    }
    unit.keep_despite_refusal();  // its last reclaim is used up, and it has failed for good
    return fail_with(ErrorCode::max_reclaims_exceeded, std::to_string(refused->reclaim_count),
                     "The execution lost its lease too often and has failed.");
  }
  if (auto grant = check_grant(unit, unit.require<Execution>(request.execution_id), request.use, at);
      !grant) {
    return std::unexpected(grant.error());
  }
  return take_or_refuse(unit, request.execution_id, taker_for(request.use), at);
}

Result<ClaimedTask> apply(Unit& unit, const IssueGrantAndClaim& request, Context& at) {
  if (auto ok = check_lane(request.lane_id); !ok) return std::unexpected(ok.error());
  if (auto ok = check_lease_ttl(request.lease_duration_ms); !ok) return std::unexpected(ok.error());
  const auto* execution = unit.find<Execution>(request.execution_id);
  if (!execution) return std::unexpected(not_found(request.execution_id));
  if (!waits_for_worker(*execution)) return not_eligible("");
  if (has_live_grant(*execution, at)) return already_granted();
  if (execution->lane_id != request.lane_id) return other_lane(*execution);
  return take_or_refuse(unit, request.execution_id,
                        {.worker_id = "operator",
                         .lease_ttl_ms = request.lease_duration_ms,
                         .reason = "issue_grant_and_claim",
                         .resumed = kGrantAndClaimResumed},
                        at);
}

Result<ReclaimAnswer> apply(Unit& unit, const IssueReclaimGrant& request, Context& at) {
  if (auto ok = check_terms(request.terms); !ok) return std::unexpected(ok.error());
  const auto capabilities = normalize_capabilities("worker", request.terms.capabilities);
  if (!capabilities) return std::unexpected(capabilities.error());
  const auto* execution = unit.find<Execution>(request.execution_id);
  if (!execution) return std::unexpected(not_found(request.execution_id));
  if (auto answer = check_reclaim(unit, *execution, std::nullopt, at)) return *std::move(answer);
  execution = unit.find<Execution>(request.execution_id);
  if (has_live_grant(*execution, at)) return already_granted();
  if (const auto missing = missing_capabilities(unit, *execution, *capabilities, at); !missing.empty()) {
    return not_reclaimable("capability_mismatch: " + missing);
  }
  if (const auto refusal = admit(unit, request.execution_id, at)) {
    hold_back(unit, request.execution_id, *refusal, at);
    return not_reclaimable(refusal->detail);
  }
  return ReclaimAnswer{.status = ReclaimStatus::granted,
                       .grant = reserve(unit, request.execution_id, request.terms, *capabilities, at)};
}

Result<ReclaimAnswer> apply(Unit& unit, const ReclaimExecution& request, Context& at) {
  if (auto ok = check_use(request.use); !ok) return std::unexpected(ok.error());
  const auto* execution = unit.find<Execution>(request.execution_id);
  if (!execution) return std::unexpected(not_found(request.execution_id));
  if (auto answer = check_reclaim(unit, *execution, request.max_reclaim_count, at)) return *std::move(answer);
  execution = unit.find<Execution>(request.execution_id);
  if (!has_live_grant(*execution, at)) return ReclaimAnswer{.status = ReclaimStatus::grant_not_found};
  if (auto grant = check_grant(unit, *execution, request.use, at); !grant) {
    return std::unexpected(grant.error());
  }
  auto task = take(unit, request.execution_id, taker_for(request.use), at);
  if (!task) return not_reclaimable("execution_deadline");
  return ReclaimAnswer{.status = ReclaimStatus::claimed, .task = *std::move(task)};
}

namespace {

void want(Unit& unit, const ClaimForWorker& request, const PartitionCounts&) {
  unit.want<Lane>({request.lane_id});
  unit.want_routes(request.lane_id);
}

}  // namespace

FLOWFABRIC_OPERATION(IssueClaimGrant)
FLOWFABRIC_OPERATION(ClaimForWorker, .want = want)
FLOWFABRIC_OPERATION(ClaimExecution)
FLOWFABRIC_OPERATION(ClaimResumedExecution)
FLOWFABRIC_OPERATION(ClaimGranted)
FLOWFABRIC_OPERATION(IssueGrantAndClaim)
FLOWFABRIC_OPERATION(IssueReclaimGrant)
FLOWFABRIC_OPERATION(ReclaimExecution)

}  // namespace flowfabric::core
