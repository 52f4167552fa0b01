#include "core/lifecycle/claim.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/flow/cancel_flow.h"
#include "core/flow/dependency.h"
#include "core/lifecycle/expiry.h"
#include "core/limits/admission.h"
#include "core/limits/fairness.h"
#include "core/operation.h"
#include "core/registry/lane.h"
#include "core/suspension/suspension.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kMaxLanes = 64;
constexpr std::uint32_t kMaxTasks = 256;
constexpr std::int64_t kMaxWaitMs = 30'000;
// With several routes to merge, most of what is read ahead on each would be for nothing.
constexpr std::uint32_t kReadAhead = 8;
constexpr std::uint32_t kLookedAhead = 64;
// Candidates that may be held back by one call, so that it does not walk through all that wait for a limit.
constexpr std::uint32_t kMaxRefusals = 100;

AttemptType type_of_next_attempt(const Execution& execution) {
  switch (execution.state.attempt_state) {
    case AttemptState::pending_retry_attempt:
      return execution.attempt.fallback_tier ? AttemptType::fallback : AttemptType::retry;
    case AttemptState::pending_replay_attempt:
      return AttemptType::replay;
    default:
      return AttemptType::initial;
  }
}

// Null: the work as submitted.
const FallbackTier* tier_of(const ExecutionPolicy& policy, const std::optional<std::uint32_t>& tier) {
  const bool known = tier && policy.fallback_policy && *tier < policy.fallback_policy->tiers.size();
  return known ? &policy.fallback_policy->tiers[*tier] : nullptr;
}

std::optional<std::uint64_t> attempt_timeout(const ExecutionPolicy& policy,
                                             const std::optional<std::uint32_t>& tier) {
  const auto* chosen = tier_of(policy, tier);
  if (chosen && chosen->timeout_ms) return chosen->timeout_ms;
  return policy.timeout_policy ? policy.timeout_policy->attempt_timeout_ms : std::nullopt;
}

void grant_lease(Execution& execution, const Taker& taker, Context& at) {
  ++execution.lease_epoch;
  execution.lease = Lease{
      .lease_id = taker.lease_id ? *taker.lease_id : at.mint<LeaseId>(),
      .worker_id = taker.worker_id,
      .worker_instance_id = taker.worker_instance_id.empty() ? taker.worker_id : taker.worker_instance_id,
      .lease_acquired_at_ms = at.now_ms,
      .lease_expires_at_ms = at.now_ms + taker.lease_ttl_ms,
      .lease_renewal_deadline_ms = renewal_deadline(at.now_ms, taker.lease_ttl_ms)};
}

void start_attempt(Execution& execution, const ExecutionPolicy& policy, AttemptType type, Lineage lineage,
                   const Taker& taker, Context& at) {
  const auto tier = execution.attempt.fallback_tier;
  execution.attempt =
      CurrentAttempt{.attempt_index = execution.total_attempt_count,
                     .attempt_id = taker.attempt_id ? *taker.attempt_id : at.mint<AttemptId>(),
                     .attempt_type = type,
                     .attempt_started_at_ms = at.now_ms,
                     .fallback_tier = tier,
                     .lineage = std::move(lineage)};
  if (const auto timeout = attempt_timeout(policy, tier)) {
    execution.attempt.attempt_timeout_at_ms = saturating_add(at.now_ms, *timeout);
  }
  ++execution.total_attempt_count;
  if (!execution.started_at_ms) execution.started_at_ms = at.now_ms;
}

ClaimKind take_fresh(Unit& unit, Execution& execution, const ExecutionPolicy& policy, const Taker& taker,
                     Context& at) {
  start_attempt(execution, policy, type_of_next_attempt(execution), std::move(execution.attempt.lineage),
                taker, at);
  grant_lease(execution, taker, at);
  append_lease_event(unit, execution, LeaseEventType::acquired, taker.reason, at);
  return ClaimKind::fresh;
}

// The same attempt goes on, with what was left of its time.
ClaimKind take_resumed(Unit& unit, Execution& execution, const Taker& taker, Context& at) {
  auto& attempt = execution.attempt;
  attempt.attempt_resumed_at_ms = at.now_ms;
  attempt.attempt_suspended_at_ms.reset();
  attempt.attempt_suspension.clear();
  if (attempt.attempt_timeout_left_ms) {
    attempt.attempt_timeout_at_ms =
        saturating_add(at.now_ms, static_cast<std::uint64_t>(*attempt.attempt_timeout_left_ms));
    attempt.attempt_timeout_left_ms.reset();
  }
  grant_lease(execution, taker, at);
  append_lease_event(unit, execution, LeaseEventType::acquired, taker.resumed, at);
  return ClaimKind::resumed;
}

// The old attempt ends as interrupted, a new one starts from zero.
ClaimKind take_reclaimed(Unit& unit, Execution& execution, const ExecutionPolicy& policy, const Taker& taker,
                         Context& at) {
  const std::string reason =
      execution.state.ownership_state == OwnershipState::lease_revoked ? "lease_revoked" : "lease_expired";
  const auto previous_index = execution.attempt.attempt_index;
  end_attempt(unit, execution, {.how = AttemptLifecycle::interrupted_reclaimed, .failure_reason = reason},
              at);
  release_lease(unit, execution, lease_end(execution, LeaseEnd::other), "", at);
  ++execution.lease_reclaim_count;
  start_attempt(execution, policy, AttemptType::reclaim,
                Lineage{.previous_attempt_index = previous_index, .lineage_reason = reason}, taker, at);
  grant_lease(execution, taker, at);
  append_lease_event(unit, execution, LeaseEventType::reclaimed, reason, at);
  return ClaimKind::reclaimed;
}

std::optional<Fallback> fallback_of(const Execution& execution, const ExecutionPolicy& policy) {
  const auto* chosen = tier_of(policy, execution.attempt.fallback_tier);
  if (!chosen) return std::nullopt;
  return Fallback{*execution.attempt.fallback_tier, chosen->provider, chosen->model};
}

ClaimedTask describe_task(const Execution& execution, const ExecutionSpec& spec, ClaimKind kind) {
  return {.execution_id = execution.key(),
          .claim = kind,
          .fence = {execution.lease.lease_id, execution.lease_epoch, execution.attempt.attempt_id},
          .lease_expires_at = *execution.lease.lease_expires_at_ms,
          .attempt_index = execution.attempt.attempt_index,
          .attempt_type = execution.attempt.attempt_type,
          .namespace_ = execution.namespace_,
          .lane_id = execution.lane_id,
          .flow_id = execution.flow_id,
          .execution_kind = spec.execution_kind,
          .input = spec.payload.data,
          .payload_encoding = spec.payload_encoding,
          .tags = execution.tags,
          .priority = execution.priority,
          .deadline_at = execution.deadline_at_ms,
          .attempt_timeout_at = execution.attempt.attempt_timeout_at_ms,
          .resume_signals = {},
          .fallback = fallback_of(execution, spec.policy),
          .trace_context = spec.trace_context};
}

struct Taken {
  ClaimedTask task;
  bool was_suspended{false};
};

std::optional<Taken> take_without_signals(Unit& unit, const ExecutionId& id, const Taker& taker,
                                          Context& at) {
  const auto& spec = unit.require<ExecutionSpec>(id);
  auto& execution = unit.edit<Execution>(id);
  if (execution.deadline_at_ms && *execution.deadline_at_ms <= at.now_ms) {
    expire(unit, execution, kExecutionDeadline, at);
    return std::nullopt;
  }
  if (const auto owed = cancel_if_owed(unit, execution, at); owed != OwedCancel::none) {
    if (owed == OwedCancel::cancelled) resolve_dependents(unit, id, at);
    return std::nullopt;
  }
  ClaimKind kind{};
  // It may as well have been delayed, or have waited for children.
  const bool was_suspended = SuspensionId::parse(execution.attempt.attempt_suspension).has_value();
  if (execution.state.lifecycle_phase == LifecyclePhase::active) {
    kind = take_reclaimed(unit, execution, spec.policy, taker, at);
  } else if (execution.state.attempt_state == AttemptState::attempt_interrupted) {
    kind = take_resumed(unit, execution, taker, at);
  } else {
    kind = take_fresh(unit, execution, spec.policy, taker, at);
  }
  pass_rank(unit, execution, at);
  move_to(unit, execution, vectors::running(), "", at);
  return Taken{describe_task(execution, spec, kind), was_suspended && kind == ClaimKind::resumed};
}

// What has resumed them, for all at once.
void give_signals(Unit& unit, std::vector<Taken>& all) {
  std::vector<ExecutionId> suspended;
  for (const auto& [task, was_suspended] : all) {
    if (was_suspended) suspended.push_back(task.execution_id);
  }
  if (suspended.empty()) return;
  fetch_resume_signals(unit, suspended);
  for (auto& [task, was_suspended] : all) {
    if (was_suspended) task.resume_signals = resume_signals(unit, task.execution_id, task.attempt_index);
  }
}

std::uint32_t read_ahead(std::size_t routes, std::uint32_t expected) {
  return routes == 1 ? expected : std::min(expected, kReadAhead);
}

// The best offer among several routes.
const Execution* best_of(Unit& unit, const std::vector<std::int64_t>& routes, std::uint32_t expected) {
  const Execution* best = nullptr;
  for (const auto route : routes) {
    const auto* offer = unit.best_offer(route, read_ahead(routes.size(), expected));
    if (!offer) continue;
    const bool better =
        !best || Offer{*offer->offer_order, offer->key()} < Offer{*best->offer_order, best->key()};
    if (better) best = offer;
  }
  return best;
}

// Fetches what the next candidates need for many at once: the claims of a batch all want the best one first,
// and would go on to the next one by one.
void look_ahead(Unit& unit, const std::vector<std::int64_t>& routes, const Context& at) {
  std::vector<ExecutionId> candidates;
  for (const auto route : routes) {
    std::ranges::copy(unit.known_offers(route, kLookedAhead), std::back_inserter(candidates));
  }
  if (candidates.empty()) return;
  fetch_limits(unit, candidates, at);
  std::vector<ExecutionId> suspended;
  for (const auto& id : candidates) {
    const auto* execution = unit.find<Execution>(id);
    if (execution && SuspensionId::parse(execution->attempt.attempt_suspension)) suspended.push_back(id);
  }
  if (!suspended.empty()) fetch_resume_signals(unit, suspended);
}

// The routes of a lane that the worker serves; none while the lane hands out nothing.
std::vector<std::int64_t> routes_for(Unit& unit, const WorkerScope& scope, const std::string& lane) {
  if (!hands_out(unit, lane)) return {};
  std::vector<std::int64_t> routes;
  for (const auto* route : unit.routes_of(lane)) {
    if (serves(scope, *route)) routes.push_back(route->route_id);
  }
  return routes;
}

}  // namespace

std::optional<ClaimedTask> take(Unit& unit, const ExecutionId& id, const Taker& taker, Context& at) {
  auto taken = take_without_signals(unit, id, taker, at);
  if (!taken) return std::nullopt;
  std::vector<Taken> all{*std::move(taken)};
  give_signals(unit, all);
  return std::move(all.front().task);
}

const Execution* best_for(Unit& unit, const WorkerScope& scope, const std::string& lane,
                          std::uint32_t expected, const Context& at) {
  const auto routes = routes_for(unit, scope, lane);
  unit.expect_offers(routes, expected);
  const auto* best = best_of(unit, routes, expected);
  if (best) look_ahead(unit, routes, at);
  return best;
}

Result<WorkerScope> check_claim(const ClaimTasks& request) {
  const auto out_of_range = [](const char* what, const char* advice) {
    return fail_with(ErrorCode::invalid_input, std::string(what) + ": out of range", advice);
  };
  if (auto ok = check_worker_name("worker_id", request.worker_id); !ok) return std::unexpected(ok.error());
  if (!request.worker_instance_id.empty()) {
    if (auto ok = check_worker_name("worker_instance_id", request.worker_instance_id); !ok) {
      return std::unexpected(ok.error());
    }
  }
  if (request.namespace_) {
    if (auto ok = check_namespace(*request.namespace_); !ok) return std::unexpected(ok.error());
  }
  if (request.lanes.empty() || request.lanes.size() > kMaxLanes) {
    return out_of_range("lanes", "Name 1 to 64 lanes to claim from.");
  }
  for (const auto& lane : request.lanes) {
    if (auto ok = check_lane(lane); !ok) return std::unexpected(ok.error());
  }
  if (request.max_tasks < 1 || request.max_tasks > kMaxTasks) {
    return out_of_range("max_tasks", "Ask for 1 to 256 tasks.");
  }
  if (auto ok = check_lease_ttl(request.lease_ttl_ms); !ok) return std::unexpected(ok.error());
  if (request.wait_ms < 0 || request.wait_ms > kMaxWaitMs) {
    return out_of_range("wait_ms", "Wait between 0 and 30000 ms.");
  }
  auto capabilities = normalize_capabilities("worker", request.capabilities);
  if (!capabilities) return std::unexpected(capabilities.error());
  return WorkerScope{request.namespace_, *std::move(capabilities)};
}

Result<std::vector<ClaimedTask>> apply(Unit& unit, const ClaimTasks& request, Context& at) {
  const auto scope = check_claim(request);
  if (!scope) return std::unexpected(scope.error());
  std::vector<std::vector<std::int64_t>> lanes;
  std::vector<std::int64_t> all_routes;
  for (const auto& lane : request.lanes) {
    auto routes = routes_for(unit, *scope, lane);
    all_routes.insert(all_routes.end(), routes.begin(), routes.end());
    if (!routes.empty()) lanes.push_back(std::move(routes));
  }
  unit.expect_offers(all_routes, read_ahead(all_routes.size(), request.max_tasks));
  look_ahead(unit, all_routes, at);
  // Which routes are known depends on the batch; what is offered on them does not.
  std::erase_if(lanes, [&](const auto& routes) { return !best_of(unit, routes, request.max_tasks); });
  const Taker taker{.worker_id = request.worker_id,
                    .worker_instance_id = request.worker_instance_id,
                    .lease_ttl_ms = request.lease_ttl_ms};
  // Lanes take turns, and none of them is always first.
  std::vector<Taken> taken;
  std::uint32_t refusals = 0;
  std::size_t turn = lanes.size() > 1 ? at.random.between(0, lanes.size() - 1) : 0;
  while (!lanes.empty() && taken.size() < request.max_tasks) {
    turn %= lanes.size();
    const auto missing = request.max_tasks - static_cast<std::uint32_t>(taken.size());
    // The more are refused, the more are looked at next time.
    const auto* offer = best_of(unit, lanes[turn], missing + refusals);
    if (!offer) {
      lanes.erase(lanes.begin() + static_cast<std::ptrdiff_t>(turn));
      continue;
    }
    ++turn;
    const auto id = offer->key();
    if (refusals > 0) look_ahead(unit, all_routes, at);
    if (const auto refusal = admit(unit, id, at)) {
      hold_back(unit, id, *refusal, at);
      if (++refusals < kMaxRefusals) continue;
      // What it has not looked at may be somebody's: the next claim goes on.
      for (const auto route : all_routes) unit.offer_again(route);
      break;
    }
    if (auto next = take_without_signals(unit, id, taker, at))
      taken.push_back(*std::move(next));
    else
      withdraw(unit, id, at);
  }
  give_signals(unit, taken);
  std::vector<ClaimedTask> tasks;
  for (auto& each : taken) tasks.push_back(std::move(each.task));
  return tasks;
}

namespace {

void want(Unit& unit, const ClaimTasks& request, const PartitionCounts&) {
  const auto scope = check_claim(request);
  if (!scope) return;
  std::vector<std::int64_t> served;
  for (const auto& lane : request.lanes) {
    unit.want<Lane>({lane});
    unit.want<ScopeLimits>({LimitScope::lane, lane});
    unit.want_routes(lane);
    const auto* remembered = unit.remembered_routes(lane);
    if (!remembered) continue;
    for (const auto& route : *remembered) {
      if (!serves(*scope, route)) continue;
      served.push_back(route.route_id);
      unit.want<ScopeLimits>({LimitScope::tenant, route.namespace_});
    }
  }
  for (const auto route : served) unit.want_offers(route, read_ahead(served.size(), request.max_tasks));
}

// The claims of different workers are spread.
std::size_t affinity(const ClaimTasks& request) {
  return std::hash<std::string>{}(request.worker_id);
}

}  // namespace

FLOWFABRIC_OPERATION(ClaimTasks, .want = want, .affinity = affinity)

}  // namespace flowfabric::core
