#include "core/registry/unblock.h"

#include <algorithm>

#include "core/offer.h"
#include "core/registry/registration.h"
#include "core/registry/worker.h"
#include "core/transition.h"

namespace flowfabric::core {

namespace {

constexpr std::uint32_t kUnblockedPerStep = 100;

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
    const auto* execution = unit.find<Execution>(id);
    if (execution && is_blocked_on_route(*execution)) back_in_line(unit, unit.edit<Execution>(id), at);
  }
  if (blocked.size() == kUnblockedPerStep) unit.edit<Route>(key).next_due_at_ms = at.now_ms;
}

}  // namespace

void arm_route(Unit& unit, std::int64_t route_id, std::int64_t due_ms) {
  unit.require<Route>({route_id});
  auto& due = unit.edit<Route>({route_id}).next_due_at_ms;
  due = std::min(due.value_or(due_ms), due_ms);
}

bool is_blocked_on_route(const Execution& execution) {
  return execution.state.eligibility_state == EligibilityState::blocked_by_route &&
         execution.state.blocking_reason == BlockingReason::waiting_for_capable_worker;
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
