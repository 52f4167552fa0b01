// Budgets: the amounts that a scope may spend, by dimensions that the caller chooses (tokens, cost, …).
//
// Spending is reported after the fact, and counts whatever became of the lease. A report that would pass a
// hard limit is refused as a whole. Work that is attached to a budget at one of its limits is not handed out
// until the budget is below the limit again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "flowfabric/error.h"
#include "flowfabric/ids.h"

namespace flowfabric {

inline constexpr std::size_t kMaxDimensions = 64;

using Amounts = std::map<std::string, std::uint64_t>;  // by dimension

// The scopes that a budget or a quota policy may apply to.
enum class LimitScope : std::uint8_t { execution, flow, lane, tenant };
BOOST_DESCRIBE_ENUM(LimitScope, execution, flow, lane, tenant)

enum class EnforcementMode : std::uint8_t { strict, advisory };
BOOST_DESCRIBE_ENUM(EnforcementMode, strict, advisory)

// The action of a limit. When a report passes the limit, and names an execution that is running:
//   fail              the worker is told, and ends its attempt; if it does not, and the engine has a
//                     `budget_grace`, the attempt is failed after it
//   suspend           its attempt is paused, and continues when the budget is reset or raised
//   reroute_fallback  its attempt is failed, and the next one uses the next tier of its fallback policy
// While the budget is at the limit:
//   deny_child        a flow takes no more members
//   close_scope       nothing is handed out (at a hard limit this is so whatever the action)
//   cancel_pending    executions that a worker would have got are cancelled
// `reject` and `warn`: nothing.
enum class LimitAction : std::uint8_t {
  reject,
  fail,
  warn,
  deny_child,
  close_scope,
  suspend,
  reroute_fallback,
  cancel_pending
};
BOOST_DESCRIBE_ENUM(LimitAction, reject, fail, warn, deny_child, close_scope, suspend, reroute_fallback,
                    cancel_pending)

struct BudgetCreation {
  BudgetId budget_id;
  bool created{false};  // false: it exists already and is unchanged
  bool operator==(const BudgetCreation&) const = default;
};
// A budget of a flow, lane or tenant is attached to it at once. A limit of 0 means no limit.
struct CreateBudget {
  using Answer = BudgetCreation;
  BudgetId budget_id;
  std::string scope_type{};  // execution, flow, lane, or tenant (also `namespace`)
  std::string scope_id{};
  std::string enforcement_mode{"strict"};
  std::string on_hard_limit{"fail"};
  std::string on_soft_limit{"warn"};
  std::uint64_t reset_interval_ms{0};  // 0: never
  std::vector<std::string> dimensions{};
  std::vector<std::uint64_t> hard_limits{};
  std::vector<std::uint64_t> soft_limits{};
  // Reserved whenever work is handed out, until the same execution reports its real spending, or its lease
  // ends. Work is handed out only if that much is left.
  Amounts reserve_per_claim{};
};

struct BudgetStatus {
  BudgetId budget_id;
  LimitScope scope_type{};
  std::string scope_id;
  EnforcementMode enforcement_mode{};
  LimitAction on_hard_limit{};
  LimitAction on_soft_limit{};
  Amounts usage;  // of the dimensions that reports have named so far
  Amounts hard_limits;
  Amounts soft_limits;
  Amounts reserve_per_claim;
  Amounts reserved;  // by running executions
  std::uint64_t breach_count{};
  std::uint64_t soft_breach_count{};
  std::optional<std::int64_t> last_breach_at;
  std::optional<std::string> last_breach_dim;
  std::uint64_t reset_interval_ms{};
  std::uint64_t reset_count{};
  std::optional<std::int64_t> last_reset_at;
  std::optional<std::int64_t> next_reset_at;
  std::int64_t created_at{};
  std::int64_t last_updated_at{};
  bool operator==(const BudgetStatus&) const = default;
};
struct ReadBudget {
  using Answer = BudgetStatus;
  BudgetId budget_id;
};
struct BudgetPage {
  std::vector<BudgetStatus> budgets;
  std::optional<BudgetId> next_cursor;
  bool operator==(const BudgetPage&) const = default;
};
// In the store's own order.
struct ListBudgets {
  using Answer = BudgetPage;
  std::optional<BudgetId> cursor{};
  std::uint32_t limit{100};  // up to 1 000
};

// ---- spending ---------------------------------------------------------------------------------------------

enum class UsageOutcome : std::uint8_t { ok, soft_breach, hard_breach, already_applied };
BOOST_DESCRIBE_ENUM(UsageOutcome, ok, soft_breach, hard_breach, already_applied)

// A breach names its first dimension in byte order, the current usage of that dimension, and its limit.
struct UsageReport {
  UsageOutcome outcome{};
  std::string dimension{};
  std::uint64_t current_usage{};
  std::uint64_t limit{};
  bool operator==(const UsageReport&) const = default;
};
// A key makes repeated reports count once, for 24 hours. A refused report may be repeated with its key.
struct ReportUsage {
  using Answer = UsageReport;
  BudgetId budget_id;
  std::vector<std::string> dimensions{};
  std::vector<std::uint64_t> deltas{};
  std::string dedup_key{};  // empty: none
  // The execution that has spent the amounts. Its reservation is used first, and the action of a breach
  // applies to it.
  std::optional<ExecutionId> execution_id{};
};
// Like ReportUsage, and entered in the execution's ledger, so that it can be released.
struct RecordSpend {
  using Answer = UsageReport;
  BudgetId budget_id;
  ExecutionId execution_id;
  Amounts deltas{};
  std::string idempotency_key{};
};

struct BudgetReleased {
  bool operator==(const BudgetReleased&) const = default;
};
// Gives back the amounts that the execution has spent since the budget's last reset.
struct ReleaseBudget {
  using Answer = BudgetReleased;
  BudgetId budget_id;
  ExecutionId execution_id;
};

struct Spending {
  ExecutionId execution_id;
  Amounts spent;
  bool operator==(const Spending&) const = default;
};
struct SpendingPage {
  std::vector<Spending> spendings;
  std::optional<ExecutionId> next_cursor;
  bool operator==(const SpendingPage&) const = default;
};
// The spending of each execution since the budget's last reset, by execution id.
struct ListSpending {
  using Answer = SpendingPage;
  BudgetId budget_id;
  std::optional<ExecutionId> cursor{};
  std::uint32_t limit{100};  // up to 1 000
};

struct BudgetBreach {
  std::uint64_t number{};  // counted from 1
  std::int64_t at{};
  UsageOutcome kind{};  // a soft or a hard breach
  std::string dimension;
  std::uint64_t reported{};  // spent, or refused
  std::uint64_t usage{};     // the count then, with this report if it was accepted
  std::uint64_t limit{};
  std::optional<ExecutionId> execution_id;
  bool operator==(const BudgetBreach&) const = default;
};
struct BreachHistory {
  std::vector<BudgetBreach> breaches;  // the latest first
  bool operator==(const BreachHistory&) const = default;
};
inline constexpr std::uint64_t kKeptBreaches = 100;
// The latest, up to 100.
struct ListBreaches {
  using Answer = BreachHistory;
  BudgetId budget_id;
};

struct BudgetReset {
  std::int64_t next_reset_at{};  // 0: it has no interval
  bool operator==(const BudgetReset&) const = default;
};
struct ResetBudget {
  using Answer = BudgetReset;
  BudgetId budget_id;
};

// ---- changing a budget ------------------------------------------------------------------------------------

// An operator raises or lowers limits; dimensions that are not named keep theirs.
struct SetBudgetLimits {
  using Answer = BudgetStatus;
  BudgetId budget_id;
  Amounts hard_limits{};
  Amounts soft_limits{};
};

struct BudgetDeleted {
  bool operator==(const BudgetDeleted&) const = default;
};
// Executions that it holds back are released. Its id may be used again after a day.
struct DeleteBudget {
  using Answer = BudgetDeleted;
  BudgetId budget_id;
};

struct Attachment {
  LimitScope scope_type{};
  std::string scope_id;
  bool operator==(const Attachment&) const = default;
};
// Attaching twice is a conflict; detaching twice is not.
struct AttachBudget {
  using Answer = Attachment;
  BudgetId budget_id;
  std::string scope_type{};
  std::string scope_id{};
};
struct DetachBudget {
  using Answer = Attachment;
  BudgetId budget_id;
  std::string scope_type{};
  std::string scope_id{};
};

}  // namespace flowfabric
