#include "core/check.h"

#include <algorithm>

#include "core/invariants.h"
#include "core/lane.h"
#include "core/offer.h"
#include "core/tags.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

// Every attempt but the one in progress has a history row.
std::vector<std::uint32_t> expected_attempts(const Execution& execution) {
  std::vector<std::uint32_t> expected;
  for (std::uint32_t index = 0; index < execution.total_attempt_count; ++index) {
    const bool in_progress = has_live_attempt(execution) && index == execution.attempt.attempt_index;
    if (!in_progress) expected.push_back(index);
  }
  return expected;
}

std::vector<std::string> required_by(const ExecutionSpec& spec) {
  const auto& routing = spec.policy.routing_requirements;
  return routing ? *normalize_capabilities("required", routing->required_capabilities)
                 : std::vector<std::string>();
}

bool is_route_of(const Route& route, const Execution& execution, const ExecutionSpec* spec) {
  return route.lane_id == execution.lane_id && route.namespace_ == execution.namespace_ &&
         (!spec || route.required_capabilities == join_capabilities(required_by(*spec)));
}

bool is_group_of(const Group& group, const Execution& execution, const ExecutionSpec* spec) {
  return group.lane_id == execution.lane_id && group.namespace_ == execution.namespace_ &&
         (!spec || group.execution_kind == spec->execution_kind);
}

}  // namespace

std::vector<std::string> faults(const Neighbourhood& found) {
  const auto& execution = *found.execution;
  auto wrong = broken_invariants(nullptr, execution);
  const auto require = [&](bool holds, const std::string& what) {
    if (!holds) wrong.push_back(what);
  };
  const bool terminal = execution.state.lifecycle_phase == LifecyclePhase::terminal;
  require(terminal == execution.terminal_at_ms.has_value(), "an end time iff terminal");
  require(found.spec, "what was submitted is missing");
  require(found.lane, "its lane is not registered");
  require(found.route && is_route_of(*found.route, execution, found.spec), "its route is not the right one");
  require(found.group && is_group_of(*found.group, execution, found.spec), "its group is not the right one");
  const bool waits_for_capable = execution.state.eligibility_state == EligibilityState::blocked_by_route;
  require(!waits_for_capable || (found.route && found.route->next_due_at_ms),
          "somebody looks for a capable worker");
  require(execution.grant_expires_at_ms.has_value() == (found.grant != nullptr),
          "granted iff there is a grant");
  require(found.attempts == expected_attempts(execution), "one history row per ended attempt");
  for (const auto& tag : found.untagged) require(false, "tag " + tag + " has no row");
  return wrong;
}

void repair(Unit& unit, const ExecutionId& id, Context& at) {
  const auto& spec = unit.require<ExecutionSpec>(id);
  auto& execution = unit.edit<Execution>(id);
  ensure_lane(unit, execution.lane_id, "doctor", at);
  execution.route_id = ensure_route(unit, execution.lane_id, execution.namespace_, required_by(spec));
  execution.group_id = ensure_group(unit, execution.lane_id, execution.namespace_, spec.execution_kind);
  execution.state.public_state = derive_public_state(execution.state);
  if (execution.grant_expires_at_ms && !unit.find<Grant>(id)) execution.grant_expires_at_ms.reset();
  renew_offer(execution, at);
  if (execution.state.eligibility_state == EligibilityState::blocked_by_route) {
    unit.edit<Route>({execution.route_id}).next_due_at_ms = at.now_ms;
  }
  if (execution.terminal_at_ms && execution.retention_ms) {
    execution.purge_at_ms =
        saturating_add(*execution.terminal_at_ms, static_cast<std::uint64_t>(*execution.retention_ms));
  }
  for (const auto& row : tag_rows(execution)) {
    if (!unit.find<ExecutionTag>(row)) unit.insert(ExecutionTag{row});
  }
}

}  // namespace flowfabric::core
