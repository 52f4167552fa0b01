// Budgets, quota policies and fair lanes at random. There are few of each, so that they are used by many.
#pragma once

#include "model/partition.h"
#include "simulation/dice.h"
#include "simulation/steps.h"

namespace flowfabric::simulation {

class LimitCallers {
 public:
  explicit LimitCallers(Dice& dice) : dice_(dice) {}

  static BudgetId budget(std::int64_t number) { return {id(0xB0, number)}; }
  static QuotaPolicyId quota(std::int64_t number) { return {id(0xC0, number)}; }

  // Puts a new execution under some of them.
  static void limit(Dice& dice, ExecutionPolicy& policy) {
    if (dice.chance(12)) policy.budget_ids = {budget(dice.below(kEach)), budget(dice.below(kEach))};
    if (dice.chance(12)) policy.quota_policy_id = quota(dice.below(kEach));
  }

  Request next(const ExecutionId& execution, const std::string& lane) {
    switch (dice_.below(14)) {
      case 0:
        return create_budget(lane);
      case 1:
        return create_quota();
      case 2:
      case 3:
      case 4:
        return report(execution);
      case 5:
      case 6:
        return spend(execution);
      case 7:
        return ReleaseBudget{some_budget(), execution};
      case 8:
        if (dice_.chance(3)) return DeleteBudget{some_budget()};
        return ResetBudget{some_budget()};
      case 9:
        return SetBudgetLimits{some_budget(), {{"tokens", amount()}}, {}};
      case 10:
        return attach(execution, lane);
      case 11:
        return detach(execution, lane);
      case 12:
        if (dice_.chance(3)) return DeleteQuotaPolicy{some_quota()};
        if (dice_.chance(50)) return ReleaseAdmission{some_quota(), execution};
        // Asked twice, the answer is another one.
        if (!last_admission_ || dice_.chance(60)) last_admission_ = CheckAdmission{some_quota(), execution};
        return *last_admission_;
      default:
        return SetLaneFairness{
            .lane_id = lane,
            .fair_by = dice_.pick<std::string>({"", "namespace", "namespace", "tag:test.color", "x"}),
            .max_concurrent_per_key = static_cast<std::uint64_t>(dice_.below(3) * 5)};
    }
  }

  RecordKey due() {
    if (dice_.chance(50)) {
      const auto key = some_budget();
      return record_key<Budget>({partition_of(key.uuid, PartitionCounts{}.budget), key});
    }
    const auto key = some_quota();
    return record_key<QuotaPolicy>({partition_of(key.uuid, PartitionCounts{}.quota), key});
  }

 private:
  static constexpr std::int64_t kEach = 4;

  static Uuid id(std::uint8_t kind, std::int64_t number) {
    Uuid uuid;
    uuid.bytes[0] = kind;
    uuid.bytes[15] = static_cast<std::uint8_t>(number);
    return uuid;
  }
  BudgetId some_budget() { return budget(dice_.chance(3) ? 99 : dice_.below(kEach)); }
  QuotaPolicyId some_quota() { return quota(dice_.chance(3) ? 99 : dice_.below(kEach)); }
  std::uint64_t amount() { return static_cast<std::uint64_t>(dice_.between(0, 60)); }

  Request create_budget(const std::string& lane) {
    CreateBudget request{.budget_id = budget(dice_.below(kEach)),
                         .scope_type = dice_.pick<std::string>({"execution", "lane", "tenant", "planet"}),
                         .scope_id = "{fp:0}:00000000-0000-4000-8000-000000000001",
                         .dimensions = {"tokens", "cost"},
                         .hard_limits = {amount(), amount()},
                         .soft_limits = {amount(), 0}};
    if (request.scope_type == "lane") request.scope_id = lane;
    if (request.scope_type == "tenant") request.scope_id = "team";
    if (dice_.chance(20)) request.enforcement_mode = "advisory";
    if (dice_.chance(60)) request.reset_interval_ms = static_cast<std::uint64_t>(dice_.between(500, 5000));
    request.on_hard_limit = action();
    request.on_soft_limit = dice_.chance(70) ? "warn" : action();
    if (dice_.chance(40)) request.reserve_per_claim = {{"tokens", amount() / 8}};
    if (dice_.chance(5)) request.hard_limits.pop_back();
    return request;
  }
  std::string action() {
    return dice_.pick<std::string>({"fail", "reject", "suspend", "suspend", "reroute_fallback", "close_scope",
                                    "deny_child", "cancel_pending", "dance"});
  }
  Request create_quota() {
    return CreateQuotaPolicy{.quota_policy_id = quota(dice_.below(kEach)),
                             .window_seconds = static_cast<std::uint64_t>(dice_.between(0, 3)),
                             .max_requests_per_window = static_cast<std::uint64_t>(dice_.below(3) * 6),
                             .max_concurrent = static_cast<std::uint64_t>(dice_.below(3) * 4),
                             .jitter_ms = static_cast<std::uint64_t>(dice_.below(2) * 100)};
  }
  Request report(const ExecutionId& execution) {
    ReportUsage request{.budget_id = some_budget(), .dimensions = {"tokens"}, .deltas = {amount() / 8}};
    if (dice_.chance(30)) {
      request.dimensions.push_back(dice_.pick<std::string>({"cost", "else", "tokens"}));
      request.deltas.push_back(1);
    }
    if (dice_.chance(30)) request.dedup_key = dice_.name("u-", 5);
    if (dice_.chance(50)) request.execution_id = execution;
    return request;
  }
  Request spend(const ExecutionId& execution) {
    RecordSpend request{
        .budget_id = some_budget(), .execution_id = execution, .deltas = {{"tokens", amount() / 8}}};
    if (dice_.chance(30)) request.idempotency_key = dice_.name("u-", 5);
    return request;
  }
  std::pair<std::string, std::string> scope(const ExecutionId& execution, const std::string& lane) {
    switch (dice_.below(4)) {
      case 0:
        return {"lane", lane};
      case 1:
        return {"tenant", dice_.chance(50) ? "team" : ""};
      case 2:
        return {"flow", Uuid(execution.uuid).to_string()};
      default:
        return {"execution", execution.to_string()};
    }
  }
  Request attach(const ExecutionId& execution, const std::string& lane) {
    const auto [type, id] = scope(execution, lane);
    if (dice_.chance(50)) return AttachBudget{some_budget(), type, id};
    return AttachQuotaPolicy{some_quota(), type, id};
  }
  Request detach(const ExecutionId& execution, const std::string& lane) {
    const auto [type, id] = scope(execution, lane);
    if (dice_.chance(50)) return DetachBudget{some_budget(), type, id};
    return DetachQuotaPolicy{some_quota(), type, id};
  }

  Dice& dice_;
  std::optional<CheckAdmission> last_admission_;
};

}  // namespace flowfabric::simulation
