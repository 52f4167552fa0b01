#include "core/lifecycle/block.h"

#include <algorithm>

#include "core/lifecycle/lease.h"
#include "core/lifecycle/offer.h"
#include "core/registry/registration.h"
#include "core/registry/worker.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::uint32_t kUnblockedPerStep = 100;

std::optional<EligibilityState> eligibility_for(BlockingReason reason) {
  switch (reason) {
    case BlockingReason::waiting_for_budget:
      return EligibilityState::blocked_by_budget;
    case BlockingReason::waiting_for_quota:
      return EligibilityState::blocked_by_quota;
    case BlockingReason::waiting_for_capable_worker:
      return EligibilityState::blocked_by_route;
    case BlockingReason::paused_by_operator:
      return EligibilityState::blocked_by_operator;
    case BlockingReason::paused_by_policy:
      return EligibilityState::blocked_by_lane_state;
    default:
      return std::nullopt;
  }
}

std::unexpected<Error> not_eligible(const std::string& advice) {
  return fail_with(ErrorCode::execution_not_eligible, "", advice);
}

Result<void> check_may_block(const Execution& execution, BlockingReason reason) {
  const auto& state = execution.state;
  if (state.lifecycle_phase == LifecyclePhase::terminal) return std::unexpected(not_active(execution));
  const bool runnable = state.lifecycle_phase == LifecyclePhase::runnable &&
                        state.eligibility_state != EligibilityState::blocked_by_dependencies;
  if (!runnable)
    return not_eligible("Only an execution that could be waiting for a worker can be held back.");
  const bool by_operator = reason == BlockingReason::paused_by_operator;
  if (state.blocking_reason == BlockingReason::paused_by_operator && !by_operator) {
    return not_eligible("An operator holds the execution; it stays held until it is released.");
  }
  return {};
}

// Counts as a change of the route even if it is armed already: see run_route_clock.
void arm_route(Unit& unit, std::int64_t route_id, std::int64_t due_ms) {
  unit.require<Route>({route_id});
  auto& due = unit.edit<Route>({route_id}).next_due_at_ms;
  due = std::min(due.value_or(due_ms), due_ms);
}

bool is_blocked_on_route(const Execution* execution) {
  return execution && execution->state.eligibility_state == EligibilityState::blocked_by_route &&
         execution->state.blocking_reason == BlockingReason::waiting_for_capable_worker;
}

bool is_capable(const Worker& worker, const Route& route, const Context& at) {
  return is_alive(worker, at) && std::ranges::binary_search(worker.lanes, route.lane_id) &&
         serves({worker.namespace_, split_capabilities(worker.capabilities_csv)}, route);
}

bool has_capable_worker(Unit& unit, const Route& route, const Context& at) {
  const auto& keys = unit.ask(WorkersOf{route.namespace_});
  unit.fetch<Worker>(keys);
  return std::ranges::any_of(keys, [&](const WorkerKey& key) {
    const auto* worker = unit.find<Worker>(key);
    return worker && is_capable(*worker, route, at);
  });
}

// Lets go a page of what is blocked on the route, if there is a worker: `is_there` is asked only then.
template <class IsThere>
void look_at(Unit& unit, const RouteKey& key, IsThere is_there, Context& at) {
  // What this very batch has blocked or registered is not among the answers yet: then look again at once.
  const bool changed_before = unit.is_changed<Route>(key);
  const auto again = changed_before ? at.now_ms : at.now_ms + kUnblockIntervalMs;
  // Changed before the question is asked: whoever blocks something on the route from now on comes after this.
  unit.edit<Route>(key).next_due_at_ms = again;
  const auto& blocked = unit.ask(BlockedOnRoute{key.route_id, kUnblockedPerStep});
  const bool nothing_left = blocked.empty() && !changed_before;
  if (nothing_left) unit.edit<Route>(key).next_due_at_ms.reset();
  if (blocked.empty() || !is_there()) return;
  unit.fetch<Execution>(blocked);
  for (const auto& id : blocked) {
    if (is_blocked_on_route(unit.find<Execution>(id))) back_in_line(unit, unit.edit<Execution>(id), at);
  }
  if (blocked.size() == kUnblockedPerStep) unit.edit<Route>(key).next_due_at_ms = at.now_ms;
}

}  // namespace

Result<EligibilityChange> block(Unit& unit, const BlockExecution& request, Context& at) {
  if (auto ok = check_text("detail", request.detail); !ok) return std::unexpected(ok.error());
  const auto eligibility = eligibility_for(request.reason);
  if (!eligibility) {
    return fail_with(ErrorCode::invalid_blocking_reason, std::string(enum_name(request.reason)),
                     "Give waiting_for_budget, waiting_for_quota, waiting_for_capable_worker, "
                     "paused_by_operator or paused_by_policy.");
  }
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  if (auto ok = check_may_block(*found, request.reason); !ok) return std::unexpected(ok.error());
  auto& execution = unit.edit<Execution>(request.execution_id);
  move_to(unit, execution, vectors::blocked(*eligibility, request.reason, execution.state.attempt_state),
          request.detail, at);
  if (is_blocked_on_route(&execution)) arm_route(unit, execution.route_id, at.now_ms + kUnblockIntervalMs);
  return EligibilityChange{request.execution_id, execution.state.public_state};
}

Result<EligibilityChange> unblock(Unit& unit, const UnblockExecution& request, Context& at) {
  const auto* found = unit.find<Execution>(request.execution_id);
  if (!found) return std::unexpected(not_found(request.execution_id));
  const bool blocked = found->state.lifecycle_phase == LifecyclePhase::runnable &&
                       eligibility_for(request.expected_reason) == found->state.eligibility_state &&
                       found->state.blocking_reason == request.expected_reason;
  if (!blocked) return not_eligible("The execution is not held back for this reason.");
  auto& execution = unit.edit<Execution>(request.execution_id);
  back_in_line(unit, execution, at);
  return EligibilityChange{request.execution_id, execution.state.public_state};
}

Result<EligibilityChange> hold(Unit& unit, const HoldExecution& request, Context& at) {
  return block(unit,
               {.execution_id = request.execution_id,
                .reason = BlockingReason::paused_by_operator,
                .detail = request.reason.empty() ? "held by operator" : request.reason},
               at);
}

Result<EligibilityChange> release(Unit& unit, const ReleaseExecution& request, Context& at) {
  return unblock(unit, {request.execution_id, BlockingReason::paused_by_operator}, at);
}

Rule run_route_clock(Unit& unit, const RouteKey& key, Context& at) {
  const auto* route = unit.find<Route>(key);
  if (!route) return Rule::none;
  const bool looks =
      route->next_due_at_ms && *route->next_due_at_ms <= at.now_ms && !at.off.has(Rule::unblock);
  if (!looks) return remove_if_unused(unit, key, at);
  look_at(
      unit, key, [&] { return has_capable_worker(unit, unit.require<Route>(key), at); }, at);
  return Rule::unblock;
}

void unblock_unseen(Unit& unit, const RouteKey& key, Context& at) {
  if (unit.find<Route>(key))
    look_at(
        unit, key, [] { return true; }, at);
}

void look_for_blocked(Unit& unit, const Worker& worker, const Context& at) {
  for (const auto& lane : worker.lanes) {
    for (const auto* route : unit.routes_of(lane)) {
      if (route->next_due_at_ms && is_capable(worker, *route, at))
        arm_route(unit, route->route_id, at.now_ms);
    }
  }
}

}  // namespace flowfabric::core
