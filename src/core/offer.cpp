#include "core/offer.h"

#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr int kPriorityShift = 49;
constexpr std::int64_t kAfterTheRest = std::int64_t{1} << 48;  // beyond any creation time

// Its grace, if there is one, is over.
bool is_lost_and_may_be_reclaimed(const Execution& execution) {
  const auto owner = execution.state.ownership_state;
  return (owner == OwnershipState::lease_expired_reclaimable || owner == OwnershipState::lease_revoked) &&
         execution.lease_reclaim_count < execution.max_reclaim_count && !execution.delay_until_ms;
}

bool same(const Route& left, const Route& right) {
  return left.lane_id == right.lane_id && left.namespace_ == right.namespace_ &&
         left.required_capabilities == right.required_capabilities;
}
bool same(const Group& left, const Group& right) {
  return left == right;
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

// The id of the record that `make` describes, which is inserted if it is new. Two that collide take
// neighbouring ids.
template <class Record, class Make>
std::int64_t registered(Unit& unit, std::int64_t first_id, Make make) {
  for (auto id = first_id;; ++id) {
    const Record* known = unit.find<Record>({id});
    if (!known) unit.insert(make(id));
    if (!known || same(*known, make(id))) return id;
  }
}

}  // namespace

std::optional<std::int64_t> offer_order(const Execution& execution) {
  if (execution.grant_expires_at_ms || execution.dependencies_pending || execution.blocked_on) {
    return std::nullopt;
  }
  const bool lost = is_lost_and_may_be_reclaimed(execution);
  const bool eligible = execution.state.lifecycle_phase == LifecyclePhase::runnable &&
                        execution.state.eligibility_state == EligibilityState::eligible_now;
  if (!lost && !eligible) return std::nullopt;
  const std::int64_t rank = std::int64_t{kMaxPriority - execution.priority} << kPriorityShift;
  return rank + (lost ? kAfterTheRest : 0) + execution.fair_rank.value_or(execution.created_at_ms);
}

std::int64_t ensure_group(Unit& unit, const std::string& lane, const std::string& name_space,
                          const std::string& kind) {
  return registered<Group>(unit, id_of({&lane, &name_space, &kind}), [&](std::int64_t id) {
    return Group{id, lane, name_space, kind};
  });
}

std::int64_t ensure_route(Unit& unit, const std::string& lane, const std::string& name_space,
                          const std::vector<std::string>& required_capabilities) {
  const std::string joined = join_capabilities(required_capabilities);
  return registered<Route>(unit, id_of({&lane, &name_space, &joined}), [&](std::int64_t id) {
    return Route{id, lane, name_space, joined, std::nullopt};
  });
}

void want_route(Unit& unit, const std::string& lane, const std::string& name_space,
                const std::vector<std::string>& required_capabilities) {
  const std::string joined = join_capabilities(required_capabilities);
  unit.want<Route>({id_of({&lane, &name_space, &joined})});
}

void want_group(Unit& unit, const std::string& lane, const std::string& name_space, const std::string& kind) {
  unit.want<Group>({id_of({&lane, &name_space, &kind})});
}

std::vector<std::string> split_capabilities(const std::string& joined) {
  std::vector<std::string> tokens;
  for (std::size_t start = 0; start < joined.size();) {
    const auto end = std::min(joined.find(',', start), joined.size());
    tokens.push_back(joined.substr(start, end - start));
    start = end + 1;
  }
  return tokens;
}

bool serves(const WorkerScope& worker, const Route& route) {
  if (worker.name_space && *worker.name_space != route.namespace_) return false;
  return covers(worker.capabilities, split_capabilities(route.required_capabilities));
}

}  // namespace flowfabric::core
