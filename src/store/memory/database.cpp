#include "store/memory/database.h"

namespace flowfabric::store {

namespace {

template <class Set, class Entry>
void update(Set& set, const Entry& entry, bool comes) {
  if (comes)
    set.insert(entry);
  else
    set.erase(entry);
}

}  // namespace

void Database::index(const RecordType& type, const AnyKey& key, const void* record, bool comes) {
  if (!record) return;
  if (const auto at = time_in(type.clock, record)) update(due, std::pair(*at, RecordKey{&type, key}), comes);
  if (const auto at = time_in(type.removal, record)) {
    update(removable, std::pair(*at, RecordKey{&type, key}), comes);
  }
  switch (type.place) {
    case place_of<Execution>:
      return index(*static_cast<const Execution*>(record), comes);
    case place_of<Route>:
      return index(*static_cast<const Route*>(record), comes);
    case place_of<QuotaAdmission>: {
      const auto& admission = *static_cast<const QuotaAdmission*>(record);
      if (!admission.window_at_ms) return;
      return update(windows[{admission.partition_key, admission.quota_policy_id}],
                    std::pair(*admission.window_at_ms, admission.key()), comes);
    }
    case place_of<Flow>: {
      const auto& flow = *static_cast<const Flow*>(record);
      const core::ListPosition position{flow.created_at_ms, {flow.partition_key, flow.flow_id.uuid}};
      return update(flows_by_age, position, comes);
    }
    case place_of<Edge>: {
      const auto& edge = *static_cast<const Edge*>(record);
      update(edges_from[edge.upstream()], edge.key(), comes);
      return update(edges_into[edge.downstream()], edge.key(), comes);
    }
    case place_of<Waitpoint>: {
      const auto& waitpoint = *static_cast<const Waitpoint*>(record);
      return update(waitpoints_by_id, std::pair(waitpoint.waitpoint_id, waitpoint.key()), comes);
    }
    case place_of<Group>: {
      const auto& group = *static_cast<const Group*>(record);
      if (group.route_id) update(groups_of_route[*group.route_id], group.key(), comes);
      return;
    }
    default:
      return;
  }
}

void Database::index(const Execution& execution, bool comes) {
  const auto position = position_of(execution);
  if (execution.offer_order) {
    auto& offered = offers[execution.route_id];
    update(offered, Offer{*execution.offer_order, execution.key()}, comes);
    auto& offering = offering_routes[execution.lane_id];
    if (offered.empty())
      offering.erase(execution.route_id);
    else
      offering.insert(execution.route_id);
  }
  update(by_age, position, comes);
  const std::pair group(execution.group_id, execution.state.public_state);
  update(group_members[group], position, comes);
  if (!comes) drop_if_empty(group_members, group);
  if (execution.flow_id) update(flow_members[*execution.flow_id], position, comes);
  if (execution.state.eligibility_state == EligibilityState::blocked_by_route) {
    update(blocked_on_route[execution.route_id], position, comes);
  }
  if (execution.blocked_on) update(blocked_on[*execution.blocked_on], position, comes);
  if (core::is_held(execution)) update(held_by[execution.lease.worker_instance_id], execution.key(), comes);
}

void Database::index(const Route& route, bool comes) {
  if (route.next_due_at_ms) update(armed_routes[route.lane_id], route.route_id, comes);
  if (comes) return;
  drop_if_empty(offers, route.route_id);
  drop_if_empty(blocked_on_route, route.route_id);
  drop_if_empty(groups_of_route, route.route_id);
}

void Database::write(const RecordType& type, const core::AnySlot& slot, bool is_stored) {
  if (is_stored) index(type, slot.key, slot.stored.get(), false);
  index(type, slot.key, slot.changed.get(), true);
  if (slot.changed)
    tables[type.place].insert_or_assign(slot.key, slot.changed);
  else
    tables[type.place].erase(slot.key);
}

void Database::erase_of(const RecordType& type, const ExecutionId& id) {
  auto& all = tables[type.place];
  const AnyKey first(*type.key, [&](void* at) { type.key->make_first(at, id); });
  auto it = all.lower_bound(first);
  while (it != all.end() && type.key->owner(it->first.get()) == id) {
    index(type, it->first, it->second.get(), false);
    it = all.erase(it);
  }
}

}  // namespace flowfabric::store
