#include "core/clock/clock_rules.h"

#include <algorithm>

#include "core/flow/cancel_flow.h"
#include "core/flow/dependency.h"
#include "core/lifecycle/bulk.h"
#include "core/lifecycle/dead_worker.h"
#include "core/lifecycle/expiry.h"
#include "core/limits/budget.h"
#include "core/limits/quota.h"
#include "core/registry/registration.h"
#include "core/registry/unblock.h"
#include "core/registry/worker.h"
#include "core/stream/stream.h"
#include "core/suspension/suspension.h"
#include "core/suspension/waitpoint.h"
#include "core/transition.h"

namespace flowfabric::core {

namespace {

template <class Record>
using RunClock = Rule (*)(Unit&, const typename Record::Key&, Context&);

template <class Record, RunClock<Record> run>
ClockRule rule_of(Belonging belonging, RuleSet rules) {
  return {.type = &record_type<Record>(),
          .rules = rules,
          .belonging = belonging,
          .run = [](Unit& unit, const void* key, Context& at) {
            return run(unit, *static_cast<const typename Record::Key*>(key), at);
          }};
}

template <class Record, std::optional<std::int64_t> (*next)(const Record&, const RuleSet&)>
ClockRule with_next(ClockRule rule) {
  rule.next = [](const void* record, const RuleSet& off) {
    return next(*static_cast<const Record*>(record), off);
  };
  return rule;
}

std::vector<ClockRule> all_rules() {
  using enum Belonging;
  using enum Rule;
  std::vector<ClockRule> rules{
      with_next<Execution, earliest_clock>(rule_of<Execution, run_execution_clock>(
          to_execution, {execution_deadline, attempt_timeout, lease_expiry, reclaim, grant_expiry,
                         delayed_promoter, unblock})),
      rule_of<Route, run_route_clock>(to_namespace, {unblock}),
      rule_of<Group, run_group_clock>(to_namespace, {retention_trimmer}),
      rule_of<CreateDedup, run_create_dedup_clock>(to_namespace, {ttl_sweep}),
      rule_of<Worker, run_worker_clock>(to_namespace, {worker_registry_ttl_sweep}),
      rule_of<DeadWorker, run_dead_worker_clock>(to_namespace, {dead_worker}),
      rule_of<BulkJob, run_bulk_job_clock>(to_nobody, {ttl_sweep}),
      rule_of<PendingCancelGroup, run_sibling_cancel_clock>(to_execution,
                                                            {edge_cancel_dispatcher, edge_cancel_reconciler}),
      rule_of<CancelBacklog, run_cancel_backlog_clock>(to_flow, {cancel_reconciler}),
      rule_of<DependencyDispatch, run_dependency_clock>(to_execution, {dependency_reconciler}),
      rule_of<Suspension, run_suspension_clock>(to_execution, {suspension_timeout}),
      rule_of<Waitpoint, run_waitpoint_clock>(to_execution, {pending_wp_expiry}),
      with_next<Budget, next_clock>(
          rule_of<Budget, run_budget_clock>(to_nobody, {budget_reset, unblock, ttl_sweep})),
      rule_of<UsageDedup, run_usage_dedup_clock>(to_nobody, {ttl_sweep}),
      with_next<QuotaPolicy, next_clock>(
          rule_of<QuotaPolicy, run_quota_policy_clock>(to_nobody, {unblock, quota_reconciler})),
      rule_of<Stream, run_stream_clock>(to_execution, {ttl_sweep}),
  };
  std::ranges::sort(rules, {}, [](const ClockRule& rule) { return rule.type->place; });
  return rules;
}

}  // namespace

std::span<const ClockRule> clock_rules() {
  static const auto rules = all_rules();
  return rules;
}

const ClockRule& clock_rule(const RecordType& type) {
  static const auto by_place = [] {
    std::array<const ClockRule*, kRecordTypes> places{};
    for (const auto& rule : clock_rules()) places[rule.type->place] = &rule;
    for (const auto& each : record_types()) {
      const bool comes_due = each.clock || each.removal;
      if (comes_due && !places[each.place])
        throw std::logic_error(std::string(each.table) + " has a clock and no rule");
    }
    return places;
  }();
  return *by_place[type.place];
}

}  // namespace flowfabric::core
