#include "core/offer.h"

#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr int kPriorityShift = 49;
constexpr std::int64_t kAfterTheRest = std::int64_t{1} << 48;  // beyond any creation time

std::vector<std::string> split_capabilities(const std::string& joined) {
  std::vector<std::string> tokens;
  for (std::size_t start = 0; start < joined.size();) {
    const auto end = std::min(joined.find(',', start), joined.size());
    tokens.push_back(joined.substr(start, end - start));
    start = end + 1;
  }
  return tokens;
}

bool is_lost_and_may_be_reclaimed(const Execution& execution) {
  const auto owner = execution.state.ownership_state;
  return (owner == OwnershipState::lease_expired_reclaimable || owner == OwnershipState::lease_revoked) &&
         execution.lease_reclaim_count < execution.max_reclaim_count;
}

}  // namespace

std::optional<std::int64_t> offer_order(const Execution& execution) {
  const bool lost = is_lost_and_may_be_reclaimed(execution);
  const bool eligible = execution.state.lifecycle_phase == LifecyclePhase::runnable &&
                        execution.state.eligibility_state == EligibilityState::eligible_now;
  if (!lost && !eligible) return std::nullopt;
  const std::int64_t rank = std::int64_t{kMaxPriority - execution.priority} << kPriorityShift;
  return rank + (lost ? kAfterTheRest : 0) + execution.created_at_ms;
}

std::int64_t ensure_route(Unit& unit, const std::string& lane, const std::string& name_space,
                          const std::vector<std::string>& required_capabilities) {
  const std::string joined = join_capabilities(required_capabilities);
  std::string identity = lane;
  identity.append(1, '\0').append(name_space).append(1, '\0').append(joined);
  // The id is a hash, so that nobody has to hand out numbers; two that collide take neighbouring ids.
  for (auto id = static_cast<std::int64_t>(fnv1a64(identity) >> 1);; ++id) {
    const Route* known = unit.find<Route>({id});
    if (!known) return unit.insert(Route{id, lane, name_space, joined}).route_id;
    if (*known == Route{id, lane, name_space, joined}) return id;
  }
}

bool serves(const WorkerScope& worker, const Route& route) {
  if (worker.name_space && *worker.name_space != route.namespace_) return false;
  return covers(worker.capabilities, split_capabilities(route.required_capabilities));
}

}  // namespace flowfabric::core
