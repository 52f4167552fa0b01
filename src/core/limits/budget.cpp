#include "core/limits/budget.h"

#include <algorithm>
#include <limits>

#include "core/limits/admission.h"
#include "core/limits/attachment.h"
#include "core/limits/breach.h"
#include "core/operation.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::uint64_t kLargestAmount = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kDayMs = 86'400'000;

std::uint64_t add(std::uint64_t left, std::uint64_t right) {
  return right > kLargestAmount - left ? kLargestAmount : left + right;
}

std::uint64_t amount_of(const Amounts& amounts, const std::string& dimension) {
  const auto it = amounts.find(dimension);
  return it == amounts.end() ? 0 : it->second;
}

std::unexpected<Error> bad_input(std::string detail, std::string advice) {
  return fail_with(ErrorCode::invalid_input, std::move(detail), std::move(advice));
}

Result<void> check_amounts(const Amounts& amounts) {
  if (amounts.size() > kMaxDimensions) {
    return bad_input("too_many_dimensions: limit=64, got=" + std::to_string(amounts.size()),
                     "Use at most 64 dimensions.");
  }
  for (const auto& [dimension, amount] : amounts) {
    if (dimension.empty()) return bad_input("dimension: empty", "Give every dimension a name.");
    if (auto ok = check_text("dimension", dimension, kMaxKeyBytes); !ok) return ok;
    if (amount > kLargestAmount) {
      return bad_input(dimension + ": out of range", "Give amounts of at most 9223372036854775807.");
    }
  }
  return {};
}

// Two lists of the same length, as a map.
Result<Amounts> pair_up(const std::string& operation, const std::vector<std::string>& dimensions,
                        const std::vector<std::uint64_t>& amounts) {
  if (dimensions.size() != amounts.size()) {
    return bad_input(operation + " length mismatch", "Give one amount for every dimension.");
  }
  if (dimensions.size() > kMaxDimensions) {
    return bad_input("too_many_dimensions: limit=64, got=" + std::to_string(dimensions.size()),
                     "Use at most 64 dimensions.");
  }
  Amounts paired;
  for (std::size_t i = 0; i < dimensions.size(); ++i) {
    if (!paired.emplace(dimensions[i], amounts[i]).second) {
      return bad_input("duplicate dimension", "Name every dimension once.");
    }
  }
  if (auto ok = check_amounts(paired); !ok) return std::unexpected(ok.error());
  return paired;
}

// What can never be set aside would keep everything from being handed out.
Result<void> check_reservation(const Amounts& reservation, const Amounts& hard_limits) {
  if (auto ok = check_amounts(reservation); !ok) return ok;
  for (const auto& [dimension, amount] : reservation) {
    const auto limit = hard_limits.find(dimension);
    if (limit == hard_limits.end() || amount == 0 || (limit->second > 0 && amount > limit->second)) {
      return bad_input(
          "reserve_per_claim: " + dimension,
          "Reserve more than nothing of a dimension of the budget, and no more than its hard limit.");
    }
  }
  return {};
}

// Unknown words mean the strictest: limits hold, and nothing else happens.
EnforcementMode mode_of(const std::string& word) {
  const bool only_counts = word == "advisory" || word == "warn" || word == "soft";
  return only_counts ? EnforcementMode::advisory : EnforcementMode::strict;
}
bool is_mode(const std::string& word) {
  return word.empty() || word == "strict" || word == "hard" || mode_of(word) == EnforcementMode::advisory;
}
LimitAction action_of(const std::string& word) {
  return enum_from_name<LimitAction>(word).value_or(LimitAction::reject);
}

void warn(Unit& unit, const BudgetId& id, const std::string& what) {
  unit.note(Noted::warning, "budget " + id.to_string() + ": " + what);
}

// The words themselves may be anything, and are not repeated.
void warn_of_words(Unit& unit, const CreateBudget& request) {
  const auto unknown = [&](const std::string& field, const std::string& meaning) {
    warn(unit, request.budget_id, field + " is not a known word, and means " + meaning);
  };
  if (!is_mode(request.enforcement_mode)) unknown("enforcement_mode", "strict");
  if (!enum_from_name<LimitAction>(request.on_hard_limit)) unknown("on_hard_limit", "reject");
  if (!enum_from_name<LimitAction>(request.on_soft_limit)) unknown("on_soft_limit", "reject");
}

void warn_of_limits(Unit& unit, const Budget& budget) {
  for (const auto& [dimension, soft] : budget.soft_limits) {
    const auto hard = amount_of(budget.hard_limits, dimension);
    if (hard == 0 || soft <= hard) continue;
    warn(unit, budget.budget_id,
         "the soft limit of " + dimension + ", " + std::to_string(soft) + ", is above the hard limit, " +
             std::to_string(hard));
  }
}

// When a deleted budget's id is free again: its ledger and its keys are forgotten by then.
std::int64_t forget_at(const Budget& budget) {
  return *budget.deleted_at_ms + kDayMs;
}

void set_clock(Budget& budget) {
  budget.next_due_at_ms = next_clock(budget);
}

// Nothing to look at as long as the budget itself holds back.
void recheck_now(Budget& budget, const Context& at) {
  if (!budget.has_blocked || exhausted(budget)) return;
  budget.recheck = Recheck{.recheck_at_ms = at.now_ms};
  set_clock(budget);
}

std::optional<std::int64_t> next_reset(const Budget& budget, const Context& at) {
  if (budget.reset_interval_ms == 0) return std::nullopt;
  return saturating_add(at.now_ms, budget.reset_interval_ms);
}

// Once for each time that a limit is passed: what is reported after that is no news.
void warn_of_breach(Unit& unit, const Budget& budget, const UsageReport& report, const char* which) {
  warn(unit, budget.budget_id,
       report.dimension + " " + std::to_string(report.current_usage) + "/" + std::to_string(report.limit) +
           ", " + which + " limit passed");
}

bool is_known(const Budget& budget, const UsageReport& hard_breach) {
  return budget.last_breach_at_ms && budget.last_breach_dim == hard_breach.dimension;
}

void warn_of_soft_breach(Unit& unit, const Budget& budget, const UsageReport& breach, std::uint64_t delta) {
  const bool only_warns =
      budget.enforcement_mode == EnforcementMode::advisory || budget.on_soft_limit == LimitAction::warn;
  const bool was_passed = breach.current_usage - delta > breach.limit;
  if (only_warns && !was_passed) warn_of_breach(unit, budget, breach, "soft");
}

void note_breach(Unit& unit, Budget& budget, const std::string& dimension, const Context& at) {
  unit.note(Noted::budget_breach, "hard");
  ++budget.breach_count;
  budget.last_breach_at_ms = at.now_ms;
  budget.last_breach_dim = dimension;
}

// The first dimension whose hard limit the report would pass. What is set aside is left to whom it is for.
std::optional<UsageReport> find_breach(const Budget& budget, const Amounts& deltas, const Amounts& own) {
  for (const auto& [dimension, delta] : deltas) {
    const auto limit = amount_of(budget.hard_limits, dimension);
    const auto used = amount_of(budget.current_usage, dimension);
    const auto reserved = amount_of(budget.reserved, dimension);
    const auto for_others = reserved - std::min(reserved, amount_of(own, dimension));
    if (limit > 0 && add(add(used, for_others), delta) > limit) {
      return UsageReport{UsageOutcome::hard_breach, dimension, used, limit};
    }
  }
  return std::nullopt;
}

void subtract(Amounts& amounts, const std::string& dimension, std::uint64_t amount) {
  const auto it = amounts.find(dimension);
  if (it == amounts.end()) return;
  it->second -= std::min(it->second, amount);
  if (it->second == 0) amounts.erase(it);
}

SpendKey ledger_key(const ExecutionId& id, const BudgetId& budget) {
  return {id.partition, id.uuid, budget};
}

// Nothing is left in it.
void tidy(Unit& unit, const SpendKey& key) {
  const auto& entry = unit.require<Spend>(key);
  if (entry.spent.empty() && entry.reserved.empty()) unit.erase<Spend>(key);
}

Spend& ledger_entry(Unit& unit, const SpendKey& key, const Budget& budget, const Context& at) {
  if (!unit.find<Spend>(key)) {
    unit.insert(Spend{
        .partition_key = key.partition_key, .execution_id = key.execution_id, .budget_id = key.budget_id});
  }
  auto& entry = unit.edit<Spend>(key);
  if (entry.reset_count != budget.reset_count) entry.spent.clear();
  entry.reset_count = budget.reset_count;
  entry.updated_at_ms = at.now_ms;
  return entry;
}

// What was really spent takes the place of what was set aside for it.
void use_reservation(Unit& unit, Budget& budget, const SpendKey& key, const Amounts& deltas) {
  if (!unit.find<Spend>(key)) return;
  auto& entry = unit.edit<Spend>(key);
  for (const auto& [dimension, delta] : deltas) {
    const auto used = std::min(amount_of(entry.reserved, dimension), delta);
    subtract(entry.reserved, dimension, used);
    subtract(budget.reserved, dimension, used);
  }
  tidy(unit, key);
}

// Counts it, and finds the first dimension that is over its soft limit then.
UsageReport count(Budget& budget, const Amounts& deltas) {
  UsageReport report{.outcome = UsageOutcome::ok};
  for (const auto& [dimension, delta] : deltas) {
    auto& used = budget.current_usage[dimension];
    used = add(used, delta);
    const auto limit = amount_of(budget.soft_limits, dimension);
    if (limit > 0 && used > limit && report.outcome == UsageOutcome::ok) {
      report = {UsageOutcome::soft_breach, dimension, used, limit};
    }
  }
  return report;
}

// What an advisory budget answers instead of refusing.
UsageReport over_advisory_limit(const Budget& budget, const std::string& dimension) {
  return {UsageOutcome::soft_breach, dimension, amount_of(budget.current_usage, dimension),
          amount_of(budget.hard_limits, dimension)};
}

struct Spender {
  std::optional<ExecutionId> id;
  bool has_ledger{false};
};

// What every report does.
Result<UsageReport> spend(Unit& unit, const BudgetKey& key, const Amounts& deltas,
                          const std::string& dedup_key, const Spender& by, Context& at) {
  if (!find_budget(unit, key)) return std::unexpected(no_such_budget(key.budget_id));
  // Reports of one budget take turns: it is locked before its keys are looked at.
  auto& budget = unit.edit<Budget>(key);
  const UsageDedupKey dedup{key.partition_key, key.budget_id, dedup_key};
  if (!dedup_key.empty()) {
    const auto* known = unit.find<UsageDedup>(dedup);
    if (known && known->next_due_at_ms > at.now_ms) return UsageReport{UsageOutcome::already_applied};
    if (known) unit.erase<UsageDedup>(dedup);
  }
  budget.updated_at_ms = at.now_ms;
  const bool may_have_reserved = by.id && !budget.reserved.empty();
  const auto* entry = may_have_reserved ? unit.find<Spend>(ledger_key(*by.id, key.budget_id)) : nullptr;
  const auto breach = find_breach(budget, deltas, entry ? entry->reserved : Amounts{});
  const bool is_news = breach && !is_known(budget, *breach);
  if (breach) note_breach(unit, budget, breach->dimension, at);
  if (breach && budget.enforcement_mode == EnforcementMode::strict) {
    if (is_news && budget.on_hard_limit == LimitAction::warn) warn_of_breach(unit, budget, *breach, "hard");
    follow_breach(unit, budget, *breach, deltas.at(breach->dimension), by.id, at);
    return *breach;
  }
  auto report = count(budget, deltas);
  if (report.outcome == UsageOutcome::soft_breach) {
    ++budget.soft_breach_count;
    unit.note(Noted::budget_breach, "soft");
    warn_of_soft_breach(unit, budget, report, deltas.at(report.dimension));
  }
  if (breach) report = over_advisory_limit(budget, breach->dimension);
  if (is_news) warn_of_breach(unit, budget, report, "hard");
  if (entry) use_reservation(unit, budget, entry->key(), deltas);
  if (!dedup_key.empty()) {
    unit.insert(UsageDedup{.partition_key = key.partition_key,
                           .budget_id = key.budget_id,
                           .dedup_key = dedup_key,
                           .applied_at_ms = at.now_ms,
                           .next_due_at_ms = at.now_ms + kDayMs});
  }
  if (by.has_ledger) {
    const auto ledger = ledger_key(*by.id, key.budget_id);
    auto& spent = ledger_entry(unit, ledger, budget, at).spent;
    for (const auto& [dimension, delta] : deltas) spent[dimension] = add(spent[dimension], delta);
    tidy(unit, ledger);
  }
  if (report.outcome == UsageOutcome::soft_breach) {
    follow_breach(unit, budget, report, deltas.at(report.dimension), by.id, at);
  }
  return report;
}

BudgetReset reset(Unit& unit, Budget& budget, const Context& at) {
  unit.note(Noted::budget_reset, "");
  for (auto& [dimension, used] : budget.current_usage) used = 0;
  ++budget.reset_count;  // which also voids the ledger
  budget.last_reset_at_ms = at.now_ms;
  budget.updated_at_ms = at.now_ms;
  budget.last_breach_at_ms.reset();
  budget.last_breach_dim.clear();
  budget.next_reset_at_ms = next_reset(budget, at);
  recheck_now(budget, at);
  set_clock(budget);
  return {budget.next_reset_at_ms.value_or(0)};
}

// With what is set aside, there is not enough left of a dimension for what is handed out next.
std::optional<Exhausted> at_hard_limit(const Budget& budget) {
  if (budget.enforcement_mode == EnforcementMode::advisory) return std::nullopt;
  for (const auto& [dimension, limit] : budget.hard_limits) {
    if (limit == 0) continue;
    const auto used = add(amount_of(budget.current_usage, dimension), amount_of(budget.reserved, dimension));
    const auto needed = std::max<std::uint64_t>(amount_of(budget.reserve_per_claim, dimension), 1);
    if (add(used, needed) > limit) return Exhausted{dimension, used, limit, budget.on_hard_limit};
  }
  return std::nullopt;
}

std::optional<Exhausted> over_soft_limit(const Budget& budget) {
  if (budget.enforcement_mode == EnforcementMode::advisory) return std::nullopt;
  for (const auto& [dimension, limit] : budget.soft_limits) {
    const auto used = amount_of(budget.current_usage, dimension);
    if (limit > 0 && used > limit) return Exhausted{dimension, used, limit, budget.on_soft_limit};
  }
  return std::nullopt;
}

}  // namespace

BudgetStatus view(const Budget& budget) {
  return {.budget_id = budget.budget_id,
          .scope_type = budget.scope_type,
          .scope_id = budget.scope_id,
          .enforcement_mode = budget.enforcement_mode,
          .on_hard_limit = budget.on_hard_limit,
          .on_soft_limit = budget.on_soft_limit,
          .usage = budget.current_usage,
          .hard_limits = budget.hard_limits,
          .soft_limits = budget.soft_limits,
          .reserve_per_claim = budget.reserve_per_claim,
          .reserved = budget.reserved,
          .breach_count = budget.breach_count,
          .soft_breach_count = budget.soft_breach_count,
          .last_breach_at = budget.last_breach_at_ms,
          .last_breach_dim =
              budget.last_breach_dim.empty() ? std::nullopt : std::optional(budget.last_breach_dim),
          .reset_interval_ms = budget.reset_interval_ms,
          .reset_count = budget.reset_count,
          .last_reset_at = budget.last_reset_at_ms,
          .next_reset_at = budget.next_reset_at_ms,
          .created_at = budget.created_at_ms,
          .last_updated_at = budget.updated_at_ms};
}

std::optional<Exhausted> exhausted(const Budget& budget) {
  if (auto full = at_hard_limit(budget)) return full;
  const bool closes =
      budget.on_soft_limit == LimitAction::close_scope || budget.on_soft_limit == LimitAction::cancel_pending;
  return closes ? over_soft_limit(budget) : std::nullopt;
}

std::optional<Exhausted> takes_no_members(const Budget& budget) {
  if (budget.on_hard_limit == LimitAction::deny_child) {
    if (auto full = at_hard_limit(budget)) return full;
  }
  return budget.on_soft_limit == LimitAction::deny_child ? over_soft_limit(budget) : std::nullopt;
}

void reserve(Unit& unit, const BudgetKey& key, Execution& execution, const Context& at) {
  const auto* found = find_budget(unit, key);
  if (!found || found->reserve_per_claim.empty() || found->enforcement_mode == EnforcementMode::advisory) {
    return;
  }
  auto& budget = unit.edit<Budget>(key);
  auto& entry = ledger_entry(unit, ledger_key(execution.key(), key.budget_id), budget, at);
  for (const auto& [dimension, amount] : budget.reserve_per_claim) {
    budget.reserved[dimension] = add(budget.reserved[dimension], amount);
    entry.reserved[dimension] = add(entry.reserved[dimension], amount);
  }
  execution.admitted_by +=
      (execution.admitted_by.empty() ? "" : ",") + kReservation + key.budget_id.to_string();
}

void give_back_reservations(Unit& unit, const ExecutionId& id, const std::vector<BudgetId>& budgets,
                            const Context& at) {
  for (const auto& budget_id : budgets) {
    const auto key = budget_key(budget_id, at.partitions);
    if (!unit.find<Budget>(key)) continue;
    auto& budget = unit.edit<Budget>(key);
    const auto entry_key = ledger_key(id, budget_id);
    if (!unit.find<Spend>(entry_key)) continue;
    auto& entry = unit.edit<Spend>(entry_key);
    for (const auto& [dimension, amount] : entry.reserved) subtract(budget.reserved, dimension, amount);
    entry.reserved.clear();
    tidy(unit, entry_key);
    recheck_now(budget, at);
  }
}

Result<BudgetCreation> apply(Unit& unit, const CreateBudget& request, Context& at) {
  const std::string what = "create_budget: dimensions / hard_limits / soft_limits";
  const auto hard = pair_up(what, request.dimensions, request.hard_limits);
  if (!hard) return std::unexpected(hard.error());
  const auto soft = pair_up(what, request.dimensions, request.soft_limits);
  if (!soft) return std::unexpected(soft.error());
  const auto scope = scope_of(request.scope_type, request.scope_id);
  if (!scope) return std::unexpected(scope.error());
  if (request.reset_interval_ms > kLargestAmount) {
    return bad_input("reset_interval_ms: out of range", "Give at most 9223372036854775807 ms.");
  }
  if (auto ok = check_reservation(request.reserve_per_claim, *hard); !ok) return std::unexpected(ok.error());
  const auto key = budget_key(request.budget_id, at.partitions);
  if (find_budget(unit, key)) return BudgetCreation{request.budget_id, false};
  if (unit.find<Budget>(key)) {
    return bad_input("budget_id: deleted",
                     "A budget with this id was deleted less than a day ago: choose another.");
  }
  Budget budget{.partition_key = key.partition_key,
                .budget_id = request.budget_id,
                .scope_type = scope->scope_type,
                .scope_id = scope->scope_id,
                .enforcement_mode = mode_of(request.enforcement_mode),
                .on_hard_limit = action_of(request.on_hard_limit),
                .on_soft_limit = action_of(request.on_soft_limit),
                .reset_interval_ms = request.reset_interval_ms,
                .hard_limits = *hard,
                .soft_limits = *soft,
                .reserve_per_claim = request.reserve_per_claim,
                .created_at_ms = at.now_ms,
                .updated_at_ms = at.now_ms};
  budget.next_reset_at_ms = next_reset(budget, at);
  set_clock(budget);
  warn_of_words(unit, request);
  warn_of_limits(unit, budget);
  attach_new_budget(unit, budget, at);
  unit.insert(std::move(budget));
  return BudgetCreation{request.budget_id, true};
}

Result<UsageReport> apply(Unit& unit, const ReportUsage& request, Context& at) {
  const auto deltas = pair_up("report_usage: dimensions / deltas", request.dimensions, request.deltas);
  if (!deltas) return std::unexpected(deltas.error());
  if (auto ok = check_text("dedup_key", request.dedup_key, kMaxKeyBytes); !ok)
    return std::unexpected(ok.error());
  return spend(unit, budget_key(request.budget_id, at.partitions), *deltas, request.dedup_key,
               {request.execution_id}, at);
}

Result<UsageReport> apply(Unit& unit, const RecordSpend& request, Context& at) {
  if (auto ok = check_amounts(request.deltas); !ok) return std::unexpected(ok.error());
  if (auto ok = check_text("idempotency_key", request.idempotency_key, kMaxKeyBytes); !ok) {
    return std::unexpected(ok.error());
  }
  return spend(unit, budget_key(request.budget_id, at.partitions), request.deltas, request.idempotency_key,
               {request.execution_id, true}, at);
}

Result<BudgetReleased> apply(Unit& unit, const ReleaseBudget& request, Context& at) {
  const auto key = budget_key(request.budget_id, at.partitions);
  if (!find_budget(unit, key)) return std::unexpected(no_such_budget(request.budget_id));
  auto& budget = unit.edit<Budget>(key);
  const auto ledger = ledger_key(request.execution_id, request.budget_id);
  if (!unit.find<Spend>(ledger)) return BudgetReleased{};
  auto& entry = ledger_entry(unit, ledger, budget, at);
  for (const auto& [dimension, amount] : entry.spent) {
    auto& used = budget.current_usage[dimension];
    used -= std::min(used, amount);
  }
  if (!entry.spent.empty()) {
    budget.updated_at_ms = at.now_ms;
    recheck_now(budget, at);
  }
  entry.spent.clear();
  tidy(unit, ledger);
  return BudgetReleased{};
}

Result<BudgetReset> apply(Unit& unit, const ResetBudget& request, Context& at) {
  const auto key = budget_key(request.budget_id, at.partitions);
  if (!find_budget(unit, key)) return std::unexpected(no_such_budget(request.budget_id));
  return reset(unit, unit.edit<Budget>(key), at);
}

Result<BudgetStatus> apply(Unit& unit, const SetBudgetLimits& request, Context& at) {
  const auto key = budget_key(request.budget_id, at.partitions);
  if (!find_budget(unit, key)) return std::unexpected(no_such_budget(request.budget_id));
  auto& budget = unit.edit<Budget>(key);
  // Every dimension has both limits, if only of 0.
  for (const auto& [dimension, limit] : request.hard_limits) {
    budget.hard_limits[dimension] = limit;
    budget.soft_limits.try_emplace(dimension, 0);
  }
  for (const auto& [dimension, limit] : request.soft_limits) {
    budget.soft_limits[dimension] = limit;
    budget.hard_limits.try_emplace(dimension, 0);
  }
  for (const auto* limits : {&budget.hard_limits, &budget.soft_limits}) {
    if (auto ok = check_amounts(*limits); !ok) return std::unexpected(ok.error());
  }
  warn_of_limits(unit, budget);
  budget.updated_at_ms = at.now_ms;
  recheck_now(budget, at);
  return view(budget);
}

Result<BudgetDeleted> apply(Unit& unit, const DeleteBudget& request, Context& at) {
  const auto key = budget_key(request.budget_id, at.partitions);
  if (!find_budget(unit, key)) return std::unexpected(no_such_budget(request.budget_id));
  auto& budget = unit.edit<Budget>(key);
  detach_everywhere(unit, request.budget_id);
  const auto history = breach_keys(key);
  unit.fetch<Breach>(history);
  for (const auto& breach : history) {
    if (unit.find<Breach>(breach)) unit.erase<Breach>(breach);
  }
  budget.hard_limits.clear();
  budget.soft_limits.clear();
  budget.reserve_per_claim.clear();
  budget.deleted_at_ms = at.now_ms;
  recheck_all(unit, key, at);
  return BudgetDeleted{};
}

void recheck_all(Unit& unit, const BudgetKey& key, const Context& at) {
  auto& budget = unit.edit<Budget>(key);
  budget.recheck = Recheck{.recheck_at_ms = at.now_ms};
  set_clock(budget);
}

std::optional<std::int64_t> next_clock(const Budget& budget, const RuleSet& off) {
  const auto when_on = [&](Rule rule, const std::optional<std::int64_t>& clock) {
    return off.has(rule) ? std::nullopt : clock;
  };
  const auto other = budget.deleted_at_ms ? when_on(Rule::ttl_sweep, forget_at(budget))
                                          : when_on(Rule::budget_reset, budget.next_reset_at_ms);
  const auto look = when_on(Rule::unblock, budget.recheck.recheck_at_ms);
  return other && look ? std::min(other, look) : (other ? other : look);
}

Rule run_budget_clock(Unit& unit, const BudgetKey& key, Context& at) {
  const auto* found = unit.find<Budget>(key);
  if (!found || !found->next_due_at_ms || *found->next_due_at_ms > at.now_ms) return Rule::none;
  const bool changed_before = unit.is_changed<Budget>(key);
  const auto is_due = [&](Rule rule, const std::optional<std::int64_t>& clock) {
    return clock && *clock <= at.now_ms && !at.off.has(rule);
  };
  const bool looks = is_due(Rule::unblock, found->recheck.recheck_at_ms);
  if (found->deleted_at_ms && !looks && is_due(Rule::ttl_sweep, forget_at(*found))) {
    unit.erase<Budget>(key);
    return Rule::ttl_sweep;
  }
  if (!found->deleted_at_ms && is_due(Rule::budget_reset, found->next_reset_at_ms)) {
    reset(unit, unit.edit<Budget>(key), at);
    return Rule::budget_reset;
  }
  if (!looks) {
    if (found->next_due_at_ms != next_clock(*found)) set_clock(unit.edit<Budget>(key));
    return Rule::none;
  }
  auto& budget = unit.edit<Budget>(key);
  look_at_blocked(unit, budget.budget_id.uuid, budget.recheck, budget.has_blocked, changed_before, at);
  set_clock(budget);
  return Rule::unblock;
}

Rule run_usage_dedup_clock(Unit& unit, const UsageDedupKey& key, Context& at) {
  const auto* dedup = unit.find<UsageDedup>(key);
  if (!dedup || !dedup->next_due_at_ms || *dedup->next_due_at_ms > at.now_ms) return Rule::none;
  unit.erase<UsageDedup>(key);
  return Rule::ttl_sweep;
}

FLOWFABRIC_OPERATION(CreateBudget)
FLOWFABRIC_OPERATION(ReportUsage)
FLOWFABRIC_OPERATION(RecordSpend)
FLOWFABRIC_OPERATION(ReleaseBudget)
FLOWFABRIC_OPERATION(ResetBudget)
FLOWFABRIC_OPERATION(SetBudgetLimits)
FLOWFABRIC_OPERATION(DeleteBudget)

}  // namespace flowfabric::core
