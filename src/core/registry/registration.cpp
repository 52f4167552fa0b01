#include "core/registry/registration.h"

#include <algorithm>

#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::int64_t kHourMs = 3'600'000;
constexpr std::int64_t kKeptUnusedMs = 24 * kHourMs;
constexpr std::int64_t kNotedEveryMs = kHourMs;
// For routes and groups that are needed although nobody has used them for a day.
constexpr std::int64_t kLookedAtEveryMs = 6 * kHourMs;
// Of the groups of a route that are looked at, in case this batch has removed them.
constexpr std::uint32_t kGroupsLookedAt = 100;

bool same(const Route& left, const Route& right) {
  return left.lane_id == right.lane_id && left.namespace_ == right.namespace_ &&
         left.required_capabilities == right.required_capabilities;
}
bool same(const Group& left, const Group& right) {
  return left.lane_id == right.lane_id && left.namespace_ == right.namespace_ &&
         left.execution_kind == right.execution_kind && left.route_id == right.route_id;
}

// The id of a route or group is a hash of what it is, so that nobody has to hand out numbers.
std::int64_t id_of(std::initializer_list<const std::string*> identity) {
  std::string joined;
  for (const auto* part : identity) {
    if (part != *identity.begin()) joined.append(1, '\0');
    joined.append(*part);
  }
  return static_cast<std::int64_t>(fnv1a64(joined) >> 1);
}

bool was_noted_lately(std::int64_t purge_at_ms, const Context& at) {
  return purge_at_ms > saturating_add(at.now_ms, kKeptUnusedMs - kNotedEveryMs);
}

// The id of the record that `make` describes, which is inserted if it is new. Two that collide take
// neighbouring ids.
template <class Record, class Make>
std::int64_t registered(Unit& unit, std::int64_t first_id, const Context& at, Make make) {
  for (auto id = first_id;; ++id) {
    const Record* known = unit.find<Record>({id});
    if (known && !same(*known, make(id))) continue;
    const auto purge_at_ms = saturating_add(at.now_ms, kKeptUnusedMs);
    if (!known)
      unit.insert(make(id)).purge_at_ms = purge_at_ms;
    else if (!was_noted_lately(known->purge_at_ms, at))
      unit.edit<Record>({id}).purge_at_ms = purge_at_ms;
    return id;
  }
}

// `is_needed` is asked when nobody else can change the record any more: whoever uses it from then on comes
// after this.
template <class Record, class IsNeeded>
Rule remove_unless(Unit& unit, const typename Record::Key& key, const Context& at, IsNeeded is_needed) {
  const auto* found = unit.find<Record>(key);
  if (!found || found->purge_at_ms > at.now_ms || at.off.has(Rule::retention_trimmer)) return Rule::none;
  auto& record = unit.edit<Record>(key);
  if (is_needed(record)) {
    record.purge_at_ms = saturating_add(at.now_ms, kLookedAtEveryMs);
    return Rule::none;
  }
  unit.erase<Record>(key);
  return Rule::retention_trimmer;
}

bool has_group(Unit& unit, const Route& route) {
  const auto& groups = unit.ask(GroupsOf{route.route_id, route.lane_id, route.namespace_, kGroupsLookedAt});
  unit.fetch<Group>(groups);
  const auto is_there = [&](const GroupKey& key) { return unit.find<Group>(key) != nullptr; };
  return groups.size() == kGroupsLookedAt || std::ranges::any_of(groups, is_there);
}

}  // namespace

Registration ensure_registered(Unit& unit, const std::string& lane, const std::string& name_space,
                               const std::vector<std::string>& required_capabilities, const std::string& kind,
                               const Context& at) {
  const std::string joined = join_capabilities(required_capabilities);
  const auto route_id =
      registered<Route>(unit, id_of({&lane, &name_space, &joined}), at, [&](std::int64_t id) {
        return Route{.route_id = id,
                     .lane_id = lane,
                     .namespace_ = name_space,
                     .required_capabilities = joined,
                     .next_due_at_ms = std::nullopt};
      });
  const auto group_id =
      registered<Group>(unit, id_of({&lane, &name_space, &joined, &kind}), at, [&](std::int64_t id) {
        return Group{.group_id = id,
                     .lane_id = lane,
                     .namespace_ = name_space,
                     .execution_kind = kind,
                     .route_id = route_id};
      });
  return {route_id, group_id};
}

void want_registered(Unit& unit, const std::string& lane, const std::string& name_space,
                     const std::vector<std::string>& required_capabilities, const std::string& kind) {
  const std::string joined = join_capabilities(required_capabilities);
  unit.want<Route>({id_of({&lane, &name_space, &joined})});
  unit.want<Group>({id_of({&lane, &name_space, &joined, &kind})});
}

Rule remove_if_unused(Unit& unit, const RouteKey& key, const Context& at) {
  return remove_unless<Route>(unit, key, at, [&](const Route& route) { return has_group(unit, route); });
}

Rule run_group_clock(Unit& unit, const GroupKey& key, Context& at) {
  return remove_unless<Group>(
      unit, key, at, [&](const Group& group) { return !unit.ask(ExecutionsIn{group.group_id}).empty(); });
}

}  // namespace flowfabric::core
