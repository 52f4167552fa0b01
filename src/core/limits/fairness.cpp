#include "core/limits/fairness.h"

#include <algorithm>

#include "core/limits/quota.h"
#include "core/operation.h"
#include "core/registry/lane.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::uint32_t kWokenAtOnce = 1000;
constexpr std::uint64_t kLargest = std::numeric_limits<std::int32_t>::max();

Result<void> check_fair_by(const std::string& fair_by) {
  if (auto ok = check_text("fair_by", fair_by); !ok) return ok;
  const bool by_tag = fair_by.starts_with(kFairByTag) && fair_by.size() > kFairByTag.size();
  if (fair_by.empty() || fair_by == "namespace" || by_tag) return {};
  return fail_with(ErrorCode::invalid_input, "fair_by: unknown",
                   "Give \"namespace\", \"tag:<key>\", or nothing for first come, first served.");
}

// Made by our own rule (version 8), so that nobody has to look it up.
Uuid id_of(const std::string& lane, const std::string& key) {
  const auto identity = lane + '\0' + key;
  const std::uint64_t halves[]{fnv1a64(identity), fnv1a64("key" + identity)};
  Uuid uuid;
  for (std::size_t i = 0; i < 16; ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(halves[i / 8] >> (56 - 8 * (i % 8)));
  }
  uuid.bytes[6] = static_cast<std::uint8_t>(0x80 | (uuid.bytes[6] & 0x0F));
  uuid.bytes[8] = static_cast<std::uint8_t>(0x80 | (uuid.bytes[8] & 0x3F));
  return uuid;
}

// What waits under its keys may run now. Of a lane with more keys than this at their limit, the clock finds
// the rest within half a minute.
void wake_full_keys(Unit& unit, const std::string& lane_id, const Context& at) {
  for (const auto& key : unit.ask_with_changes<QuotaPolicy>(FullKeysOf{lane_id, kWokenAtOnce})) {
    const auto* policy = unit.find<QuotaPolicy>(key);
    if (policy && policy->lane_id == lane_id && policy->has_blocked) expect_room(unit, key, at.now_ms);
  }
}

std::int64_t virtual_time(Unit& unit, const std::string& lane, const Context& at) {
  const auto* clock = unit.find<LaneClock>({lane});
  return clock ? clock->virtual_time : at.now_ms;
}

}  // namespace

Result<LaneFairness> apply(Unit& unit, const SetLaneFairness& request, Context& at) {
  if (auto ok = check_lane(request.lane_id); !ok) return std::unexpected(ok.error());
  if (auto ok = check_fair_by(request.fair_by); !ok) return std::unexpected(ok.error());
  if (request.max_concurrent_per_key > kLargest) {
    return fail_with(ErrorCode::invalid_input, "max_concurrent_per_key: out of range",
                     "Give 0 for no limit, or at most 2147483647.");
  }
  if (request.fair_by.empty() && request.max_concurrent_per_key > 0) {
    return fail_with(ErrorCode::invalid_input, "max_concurrent_per_key: without a key",
                     "Say with fair_by what the key is: \"namespace\" or \"tag:<key>\".");
  }
  ensure_lane(unit, request.lane_id, "operator", at);
  auto& lane = unit.edit<Lane>({request.lane_id});
  const auto before = lane.max_concurrent_per_key;
  lane.fair_by = request.fair_by;
  lane.max_concurrent_per_key = static_cast<std::uint32_t>(request.max_concurrent_per_key);
  const bool is_raised =
      before > 0 && (lane.max_concurrent_per_key == 0 || lane.max_concurrent_per_key > before);
  if (is_raised) wake_full_keys(unit, request.lane_id, at);
  // Ranks continue where ages are, so that what waits already keeps its place.
  const bool starts = !request.fair_by.empty() && !unit.find<LaneClock>({request.lane_id});
  if (starts) unit.insert(LaneClock{request.lane_id, at.now_ms});
  return LaneFairness{request.lane_id, lane.fair_by, lane.max_concurrent_per_key};
}

QuotaPolicyKey key_policy(const std::string& lane, const std::string& fair_key, const Context& at) {
  const auto id = id_of(lane, fair_key);
  return {partition_of(id, at.partitions.quota), {id}};
}

void give_rank(Unit& unit, Execution& execution, const Context& at) {
  if (!execution.fair_key || execution.fair_rank) return;
  const auto key = key_policy(execution.lane_id, *execution.fair_key, at);
  if (!unit.find<QuotaPolicy>(key)) {
    unit.insert(QuotaPolicy{.partition_key = key.partition_key,
                            .quota_policy_id = key.quota_policy_id,
                            .created_at_ms = at.now_ms,
                            .lane_id = execution.lane_id,
                            .fair_key = *execution.fair_key});
  }
  auto& policy = unit.edit<QuotaPolicy>(key);
  const auto now = virtual_time(unit, execution.lane_id, at);
  execution.fair_rank = policy.last_rank ? std::max(now, *policy.last_rank + 1) : now;
  policy.last_rank = execution.fair_rank;
  expect_reconciliation(policy, at);
}

void pass_rank(Unit& unit, Execution& execution, const Context& at) {
  if (!execution.fair_rank) return;
  const auto rank = *std::exchange(execution.fair_rank, std::nullopt);
  if (rank <= virtual_time(unit, execution.lane_id, at)) return;
  if (unit.find<LaneClock>({execution.lane_id})) {
    unit.edit<LaneClock>({execution.lane_id}).virtual_time = rank;
  }
}

std::optional<QuotaPolicyKey> limit_of_key(Unit& unit, const Execution& execution, const Context& at) {
  if (!execution.fair_key) return std::nullopt;
  const auto* lane = unit.find<Lane>({execution.lane_id});
  if (!lane || lane->max_concurrent_per_key == 0) return std::nullopt;
  return key_policy(execution.lane_id, *execution.fair_key, at);
}

void apply_limit_of_lane(Unit& unit, const QuotaPolicyKey& key) {
  const auto* policy = unit.find<QuotaPolicy>(key);
  if (!policy || policy->lane_id.empty()) return;
  const auto* lane = unit.find<Lane>({policy->lane_id});
  const auto limit = lane ? lane->max_concurrent_per_key : 0;
  if (policy->active_concurrency_cap != limit) unit.edit<QuotaPolicy>(key).active_concurrency_cap = limit;
}

bool is_forgettable(Unit& unit, const QuotaPolicy& policy) {
  if (policy.lane_id.empty()) return policy.is_deleted;
  const auto* clock = unit.find<LaneClock>({policy.lane_id});
  return !clock || !policy.last_rank || *policy.last_rank < clock->virtual_time;
}

FLOWFABRIC_OPERATION(SetLaneFairness)

}  // namespace flowfabric::core
