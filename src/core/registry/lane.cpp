#include "core/registry/lane.h"

#include "core/operation.h"
#include "model/text.h"

namespace flowfabric::core {

bool hands_out(LaneState state) {
  return state == LaneState::active || state == LaneState::draining;
}

bool takes_in(LaneState state) {
  return state == LaneState::active || state == LaneState::paused;
}

bool hands_out(Unit& unit, const std::string& lane_id) {
  const auto* lane = unit.find<Lane>({lane_id});
  return !lane || hands_out(lane->state);
}

const Lane& ensure_lane(Unit& unit, const std::string& lane_id, const std::string& registered_by,
                        const Context& at) {
  if (const auto* lane = unit.find<Lane>({lane_id})) return *lane;
  return unit.insert(Lane{.lane_id = lane_id, .registered_at_ms = at.now_ms, .registered_by = registered_by});
}

std::optional<std::string> fair_key(const Lane& lane, const Execution& execution) {
  if (lane.fair_by.empty()) return std::nullopt;
  if (!lane.fair_by.starts_with(kFairByTag)) return execution.namespace_;
  const auto tag = execution.tags.find(lane.fair_by.substr(kFairByTag.size()));
  return tag == execution.tags.end() ? "" : tag->second;
}

Result<LaneStatus> apply(Unit& unit, const RegisterLane& request, Context& at) {
  if (auto ok = check_lane(request.lane_id); !ok) return std::unexpected(ok.error());
  if (auto ok = check_text("registered_by", request.registered_by); !ok) return std::unexpected(ok.error());
  return LaneStatus{request.lane_id, ensure_lane(unit, request.lane_id, request.registered_by, at).state};
}

Result<LaneStatus> apply(Unit& unit, const SetLaneState& request, Context& at) {
  if (auto ok = check_lane(request.lane_id); !ok) return std::unexpected(ok.error());
  const auto before = ensure_lane(unit, request.lane_id, "operator", at).state;
  if (before == request.state) return LaneStatus{request.lane_id, before};
  unit.edit<Lane>({request.lane_id}).state = request.state;
  if (hands_out(request.state) && !hands_out(before)) {
    for (const auto* route : unit.routes_of(request.lane_id)) unit.offer_again(route->route_id);
  }
  return LaneStatus{request.lane_id, request.state};
}

FLOWFABRIC_OPERATION(RegisterLane)
FLOWFABRIC_OPERATION(SetLaneState)

}  // namespace flowfabric::core
