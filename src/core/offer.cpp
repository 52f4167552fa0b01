#include "core/offer.h"

#include "core/keys.h"
#include "core/standing.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr int kPriorityShift = 49;
constexpr std::int64_t kAfterTheRest = std::int64_t{1} << 48;  // beyond any creation time

// Its grace, if there is one, is over.
bool is_lost_and_may_be_reclaimed(const Execution& execution) {
  return is_lost(execution) && !is_lost_for_good(execution) && !execution.delay_until_ms;
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

void want_for_taking(Unit& unit, const Execution& execution, const PartitionCounts& partitions) {
  const auto key = execution.key();
  unit.want<ExecutionSpec>(key);
  if (execution.flow_id) unit.want<Flow>({key.partition, *execution.flow_id});
  for (const auto& id : split_ids<BudgetId>(execution.budget_ids)) {
    unit.want<Budget>(budget_key(id, partitions));
  }
  if (const auto& id = execution.quota_policy_id) {
    const auto policy = quota_key(*id, partitions);
    unit.want<QuotaPolicy>(policy);
    unit.want<QuotaAdmission>({policy.partition_key, *id, key.partition, key.uuid});
  }
  if (SuspensionId::parse(execution.attempt.attempt_suspension))
    unit.want<Suspension>({key.partition, key.uuid});
}

}  // namespace flowfabric::core
