// The rules that fire because time passed, and which of them a clock sees to.
#pragma once

#include <initializer_list>

#include "flowfabric/scanner_filter.h"
#include "model/describe.h"

namespace flowfabric::core {

// By the names of the specification (08 §2 and §7).
enum class Rule {
  none,
  execution_deadline,
  attempt_timeout,
  lease_expiry,
  reclaim,
  grant_expiry,
  delayed_promoter,
  retention_trimmer,
  unblock,
  ttl_sweep,
  worker_registry_ttl_sweep,
  dead_worker,
  dependency_reconciler,
  cancel_reconciler,
  edge_cancel_dispatcher,
  // What else can become of a join whose siblings are to be cancelled.
  edge_cancel_orphaned,        // it is gone
  edge_cancel_reconciler,      // its siblings are not owed anything any more
  edge_cancel_skipped_locked,  // another server took care of it
  suspension_timeout,
  pending_wp_expiry,
  budget_reset,
  quota_reconciler,
};
BOOST_DESCRIBE_ENUM(Rule, none, execution_deadline, attempt_timeout, lease_expiry, reclaim, grant_expiry,
                    delayed_promoter, retention_trimmer, unblock, ttl_sweep, worker_registry_ttl_sweep,
                    dead_worker, dependency_reconciler, cancel_reconciler, edge_cancel_dispatcher,
                    edge_cancel_orphaned, edge_cancel_reconciler, edge_cancel_skipped_locked,
                    suspension_timeout, pending_wp_expiry, budget_reset, quota_reconciler)

class RuleSet {
 public:
  constexpr RuleSet() = default;
  constexpr RuleSet(std::initializer_list<Rule> rules) {
    for (const auto rule : rules) add(rule);
  }
  constexpr void add(Rule rule) { bits_ |= 1ull << static_cast<unsigned>(rule); }
  constexpr bool has(Rule rule) const { return (bits_ >> static_cast<unsigned>(rule)) & 1; }
  constexpr bool has_all(const RuleSet& others) const { return (others.bits_ & ~bits_) == 0; }
  constexpr bool is_empty() const { return bits_ == 0; }

 private:
  static_assert(enum_size<Rule>() <= 64);
  std::uint64_t bits_{0};
};

// What a clock sees to; stores leave out the rest where they look for what is due.
struct ClockScope {
  ScannerFilter filter{};
  RuleSet off{};

  // Some of these are not off.
  bool covers(const RuleSet& rules) const { return !off.has_all(rules); }
  bool removes() const { return !off.has(Rule::retention_trimmer); }
};

}  // namespace flowfabric::core
