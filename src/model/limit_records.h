// The records of budgets and quota policies.
#pragma once

#include <algorithm>
#include <boost/describe.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flowfabric/budgets.h"
#include "flowfabric/quotas.h"

namespace flowfabric {

inline std::string_view trim_spaces(std::string_view text) {
  constexpr std::string_view spaces = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(spaces), text.size()));
  return text.substr(0, text.find_last_not_of(spaces) + 1);
}

// A list of ids in one column: comma-joined, in the order given; spaces around them do not matter. What is no
// id, or begins otherwise, is left out.
template <class Id>
std::vector<Id> split_ids(std::string_view joined, std::string_view beginning = "") {
  std::vector<Id> ids;
  while (!joined.empty()) {
    const auto comma = std::min(joined.find(','), joined.size());
    const auto item = trim_spaces(joined.substr(0, comma));
    const auto id = item.starts_with(beginning) ? Id::parse(item.substr(beginning.size())) : std::nullopt;
    if (id) ids.push_back(*id);
    joined.remove_prefix(std::min(comma + 1, joined.size()));
  }
  return ids;
}
template <class Id>
std::string join_ids(const std::vector<Id>& ids) {
  std::string joined;
  for (const auto& id : ids) joined += (joined.empty() ? "" : ",") + id.to_string();
  return joined;
}

// Where the look at what a limit has held back goes on.
struct Recheck {
  std::optional<std::int64_t> recheck_at_ms;     // absent: there is no reason to look
  std::optional<std::int64_t> recheck_after_ms;  // the last one seen was created then
  std::string recheck_after_id;
  bool operator==(const Recheck&) const = default;
};
BOOST_DESCRIBE_STRUCT(Recheck, (), (recheck_at_ms, recheck_after_ms, recheck_after_id))

struct BudgetKey {
  std::uint16_t partition_key{};
  BudgetId budget_id;
  auto operator<=>(const BudgetKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(BudgetKey, (), (partition_key, budget_id))

struct Budget {
  static constexpr const char* table = "ff_budget_policy";
  using Key = BudgetKey;
  Key key() const { return {partition_key, budget_id}; }

  std::uint16_t partition_key{};
  BudgetId budget_id;
  LimitScope scope_type{};
  std::string scope_id;
  EnforcementMode enforcement_mode{};
  LimitAction on_hard_limit{};
  LimitAction on_soft_limit{};
  std::uint64_t reset_interval_ms{};
  Amounts hard_limits;
  Amounts soft_limits;
  Amounts current_usage;
  Amounts reserve_per_claim;
  Amounts reserved;
  std::uint64_t breach_count{};
  std::uint64_t soft_breach_count{};
  std::optional<std::int64_t> last_breach_at_ms;
  std::string last_breach_dim;
  std::uint64_t reset_count{};
  std::optional<std::int64_t> last_reset_at_ms;
  std::optional<std::int64_t> next_reset_at_ms;
  std::int64_t created_at_ms{};
  std::int64_t updated_at_ms{};
  bool has_blocked{false};  // something may be held back by it
  Recheck recheck;
  std::optional<std::int64_t> deleted_at_ms;   // since then it only remembers that its id was in use
  std::optional<std::int64_t> next_due_at_ms;  // of its reset, or of a look at what it holds back
  bool operator==(const Budget&) const = default;
};
BOOST_DESCRIBE_STRUCT(Budget, (),
                      (partition_key, budget_id, scope_type, scope_id, enforcement_mode, on_hard_limit,
                       on_soft_limit, reset_interval_ms, hard_limits, soft_limits, current_usage,
                       reserve_per_claim, reserved, breach_count, soft_breach_count, last_breach_at_ms,
                       last_breach_dim, reset_count, last_reset_at_ms, next_reset_at_ms, created_at_ms,
                       updated_at_ms, has_blocked, recheck, deleted_at_ms, next_due_at_ms))

struct BreachKey {
  std::uint16_t partition_key{};
  BudgetId budget_id;
  std::uint32_t place{};  // of a ring: the latest takes that of the oldest
  auto operator<=>(const BreachKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(BreachKey, (), (partition_key, budget_id, place))

struct Breach {
  static constexpr const char* table = "ff_budget_breach";
  using Key = BreachKey;
  Key key() const { return {partition_key, budget_id, place}; }

  std::uint16_t partition_key{};
  BudgetId budget_id;
  std::uint32_t place{};
  std::uint64_t breach_number{};
  std::int64_t occurred_at_ms{};
  UsageOutcome kind{};
  std::string dimension;
  std::uint64_t reported{};
  std::uint64_t counted{};
  std::uint64_t limit_then{};
  std::string execution;  // empty: nobody has said
  bool operator==(const Breach&) const = default;
};
BOOST_DESCRIBE_STRUCT(Breach, (),
                      (partition_key, budget_id, place, breach_number, occurred_at_ms, kind, dimension,
                       reported, counted, limit_then, execution))

struct UsageDedupKey {
  std::uint16_t partition_key{};
  BudgetId budget_id;
  std::string dedup_key;
  auto operator<=>(const UsageDedupKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(UsageDedupKey, (), (partition_key, budget_id, dedup_key))

// A report that was counted.
struct UsageDedup {
  static constexpr const char* table = "ff_budget_usage_dedup";
  using Key = UsageDedupKey;
  Key key() const { return {partition_key, budget_id, dedup_key}; }

  std::uint16_t partition_key{};
  BudgetId budget_id;
  std::string dedup_key;
  std::int64_t applied_at_ms{};
  std::optional<std::int64_t> next_due_at_ms;  // when the key is forgotten
  bool operator==(const UsageDedup&) const = default;
};
BOOST_DESCRIBE_STRUCT(UsageDedup, (), (partition_key, budget_id, dedup_key, applied_at_ms, next_due_at_ms))

struct SpendKey {
  std::uint16_t partition_key{};
  Uuid execution_id;
  BudgetId budget_id;
  auto operator<=>(const SpendKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(SpendKey, (), (partition_key, execution_id, budget_id))

// What an execution has spent of a budget since one of its resets; void after the next. And what was set
// aside for it while it runs.
struct Spend {
  static constexpr const char* table = "ff_budget_usage_by_exec";
  using Key = SpendKey;
  Key key() const { return {partition_key, execution_id, budget_id}; }

  std::uint16_t partition_key{};
  Uuid execution_id;
  BudgetId budget_id;
  std::uint64_t reset_count{};
  Amounts spent;
  Amounts reserved;
  std::int64_t updated_at_ms{};
  bool operator==(const Spend&) const = default;
};
BOOST_DESCRIBE_STRUCT(Spend, (),
                      (partition_key, execution_id, budget_id, reset_count, spent, reserved, updated_at_ms))

struct QuotaPolicyKey {
  std::uint16_t partition_key{};
  QuotaPolicyId quota_policy_id;
  auto operator<=>(const QuotaPolicyKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(QuotaPolicyKey, (), (partition_key, quota_policy_id))

struct QuotaPolicy {
  static constexpr const char* table = "ff_quota_policy";
  using Key = QuotaPolicyKey;
  Key key() const { return {partition_key, quota_policy_id}; }

  std::uint16_t partition_key{};
  QuotaPolicyId quota_policy_id;
  std::uint64_t requests_per_window_seconds{};
  std::uint64_t max_requests_per_window{};
  std::uint64_t active_concurrency_cap{};
  std::uint64_t jitter_ms{};
  std::uint64_t active_concurrency{};  // admissions that hold a slot
  std::uint64_t window_count{};        // admissions that the rate counts
  std::int64_t created_at_ms{};
  // Of a policy that counts a key of a lane (core/limits/fairness.h): both, and the rank that was given last.
  std::string lane_id;
  std::string fair_key;
  std::optional<std::int64_t> last_rank;
  bool has_blocked{false};  // something may be held back by it
  Recheck recheck;
  bool is_deleted{false};                       // it lets everything through, and goes when it is empty
  std::optional<std::int64_t> reconcile_at_ms;  // when the counts are compared with the admissions, if any
  std::optional<std::int64_t> next_due_at_ms;
  bool operator==(const QuotaPolicy&) const = default;
};
BOOST_DESCRIBE_STRUCT(QuotaPolicy, (),
                      (partition_key, quota_policy_id, requests_per_window_seconds, max_requests_per_window,
                       active_concurrency_cap, jitter_ms, active_concurrency, window_count, created_at_ms,
                       lane_id, fair_key, last_rank, has_blocked, recheck, is_deleted, reconcile_at_ms,
                       next_due_at_ms))

struct QuotaAdmissionKey {
  std::uint16_t partition_key{};
  QuotaPolicyId quota_policy_id;
  std::uint16_t execution_partition{};
  Uuid execution_id;
  auto operator<=>(const QuotaAdmissionKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(QuotaAdmissionKey, (),
                      (partition_key, quota_policy_id, execution_partition, execution_id))

// An execution that a policy has let through: counted by the rate, or holding a slot, or both.
struct QuotaAdmission {
  static constexpr const char* table = "ff_quota_admitted";
  using Key = QuotaAdmissionKey;
  Key key() const { return {partition_key, quota_policy_id, execution_partition, execution_id}; }

  std::uint16_t partition_key{};
  QuotaPolicyId quota_policy_id;
  std::uint16_t execution_partition{};
  Uuid execution_id;
  std::optional<std::int64_t> window_at_ms;  // when the rate counted it, while it does
  bool holds_slot{false};
  bool operator==(const QuotaAdmission&) const = default;
};
BOOST_DESCRIBE_STRUCT(QuotaAdmission, (),
                      (partition_key, quota_policy_id, execution_partition, execution_id, window_at_ms,
                       holds_slot))

struct ScopeLimitsKey {
  LimitScope scope_type{};
  std::string scope_id;
  auto operator<=>(const ScopeLimitsKey&) const = default;
};
BOOST_DESCRIBE_STRUCT(ScopeLimitsKey, (), (scope_type, scope_id))

// What is attached to a flow, a lane or a tenant.
struct ScopeLimits {
  static constexpr const char* table = "ff_limit_attachment";
  using Key = ScopeLimitsKey;
  Key key() const { return {scope_type, scope_id}; }

  LimitScope scope_type{};
  std::string scope_id;
  std::vector<std::string> budget_ids;  // sorted
  std::vector<std::string> quota_policy_ids;
  bool operator==(const ScopeLimits&) const = default;
};
BOOST_DESCRIBE_STRUCT(ScopeLimits, (), (scope_type, scope_id, budget_ids, quota_policy_ids))

}  // namespace flowfabric
