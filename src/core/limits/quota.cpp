#include "core/limits/quota.h"

#include <algorithm>
#include <limits>

#include "core/index_rules.h"
#include "core/limits/admission.h"
#include "core/limits/attachment.h"
#include "core/limits/fairness.h"
#include "core/operation.h"

namespace flowfabric::core {

namespace {

constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr std::uint64_t kLongestWindowSeconds = kLargest / 1000;
constexpr std::uint32_t kTrimmedPerStep = 256;
constexpr std::int64_t kReconcileMs = 30'000;
// There is room, but nobody takes what was let go: others may find takers.
constexpr std::int64_t kStillRoomMs = 250;

bool is_limited(const QuotaPolicy& policy) {
  return policy.max_requests_per_window > 0 || policy.active_concurrency_cap > 0;
}

QuotaAdmissionKey admission_key(const QuotaPolicyKey& policy, const ExecutionId& id) {
  return {policy.partition_key, policy.quota_policy_id, id.partition, id.uuid};
}

void set_clock(QuotaPolicy& policy) {
  policy.next_due_at_ms = next_clock(policy);
}

bool is_in_window(const QuotaPolicy& policy, const QuotaAdmission* admission, const Context& at) {
  return admission && admission->window_at_ms && *admission->window_at_ms > at.now_ms - window_ms(policy);
}

// Erased when it neither counts nor holds a slot.
void tidy(Unit& unit, const QuotaAdmissionKey& key) {
  const auto& admission = unit.require<QuotaAdmission>(key);
  if (!admission.window_at_ms && !admission.holds_slot) unit.erase<QuotaAdmission>(key);
}

void leave_window(Unit& unit, QuotaPolicy& policy, const QuotaAdmissionKey& key) {
  auto& admission = unit.edit<QuotaAdmission>(key);
  if (!admission.window_at_ms) return;
  admission.window_at_ms.reset();
  if (policy.window_count > 0) --policy.window_count;
  tidy(unit, key);
}

struct Trimmed {
  std::optional<std::int64_t> oldest;  // that still counts
  bool whole{true};                    // all that had left the window were found
  std::optional<std::uint64_t> left;   // how many still count, if all were seen
};
Trimmed trim(Unit& unit, const QuotaPolicyKey& key, const Context& at) {
  const auto entries = unit.ask(WindowOf{key, kTrimmedPerStep});
  const auto left_at = at.now_ms - window_ms(unit.require<QuotaPolicy>(key));
  std::vector<QuotaAdmissionKey> gone;
  Trimmed trimmed;
  for (const auto& entry : entries) {
    if (entry.window_at_ms > left_at) {
      trimmed.oldest = entry.window_at_ms;
      break;
    }
    gone.push_back(entry.admission);
  }
  trimmed.whole = gone.size() < kTrimmedPerStep;
  if (entries.size() < kTrimmedPerStep) trimmed.left = entries.size() - gone.size();
  unit.fetch<QuotaAdmission>(gone);
  for (const auto& admission_key : gone) {
    // This batch may have moved or removed it.
    const auto* admission = unit.find<QuotaAdmission>(admission_key);
    if (!admission || !admission->window_at_ms || *admission->window_at_ms > left_at) continue;
    leave_window(unit, unit.edit<QuotaPolicy>(key), admission_key);
  }
  return trimmed;
}

void enter_window(QuotaPolicy& policy, QuotaAdmission& admission, const Context& at) {
  if (is_in_window(policy, &admission, at)) return;
  // One that has left the window but was not trimmed yet is still counted.
  if (!admission.window_at_ms) ++policy.window_count;
  admission.window_at_ms = at.now_ms;
}

void free_slot(Unit& unit, const QuotaPolicyKey& key, const ExecutionId& id, const Context& at) {
  const auto admission_id = admission_key(key, id);
  const auto* policy = unit.find<QuotaPolicy>(key);
  const auto* admission = policy ? unit.find<QuotaAdmission>(admission_id) : nullptr;
  if (!admission || !admission->holds_slot) return;
  unit.edit<QuotaAdmission>(admission_id).holds_slot = false;
  tidy(unit, admission_id);
  auto& changed = unit.edit<QuotaPolicy>(key);
  if (changed.active_concurrency > 0) --changed.active_concurrency;
  if (changed.has_blocked) expect_room(unit, key, at.now_ms);
}

std::uint64_t left(std::uint64_t limit, std::uint64_t used) {
  if (limit == 0) return kLargest;
  return limit - std::min(limit, used);
}
std::uint64_t slots_left(const QuotaPolicy& policy) {
  return left(policy.active_concurrency_cap, policy.active_concurrency);
}
// How many more it would let through.
std::uint64_t room(const QuotaPolicy& policy) {
  return std::min(left(policy.max_requests_per_window, policy.window_count), slots_left(policy));
}

// Whoever the rate counts already needs no more than a slot: they are among the oldest that wait.
void let_go_counted(Unit& unit, const QuotaPolicyKey& key, Context& at) {
  const auto oldest = unit.ask(BlockedOn{key.quota_policy_id.uuid, std::nullopt, kLookedAtPerStep});
  std::vector<QuotaAdmissionKey> admissions;
  for (const auto& position : oldest) admissions.push_back(admission_key(key, position.execution_id));
  unit.fetch<QuotaAdmission>(admissions);
  const auto& policy = unit.require<QuotaPolicy>(key);
  std::vector<ExecutionId> counted;
  for (std::size_t i = 0; i < oldest.size(); ++i) {
    if (is_in_window(policy, unit.find<QuotaAdmission>(admissions[i]), at))
      counted.push_back(oldest[i].execution_id);
  }
  if (counted.size() > slots_left(policy)) counted.resize(slots_left(policy));
  unit.fetch<Execution>(counted);
  fetch_limits(unit, counted, at);
  for (const auto& id : counted) recheck(unit, id, at);
}

void let_go_as_there_is_room(Unit& unit, const QuotaPolicyKey& key, bool changed_before, Context& at) {
  const auto trimmed = trim(unit, key, at);
  auto& policy = unit.edit<QuotaPolicy>(key);
  const auto free = room(policy);
  if (free > 0) {
    const auto step = static_cast<std::uint32_t>(std::min<std::uint64_t>(free, kLookedAtPerStep));
    policy.recheck = {};
    policy.has_blocked = false;
    if (let_go(unit, key.quota_policy_id.uuid, step, at)) {
      expect_room(unit, key, free > step ? at.now_ms : at.now_ms + kStillRoomMs);
    } else if (changed_before) {
      // What this batch has held back is not among the answers yet.
      expect_room(unit, key, at.now_ms + 1);
    }
    return;
  }
  policy.recheck = {};
  const bool window_is_full =
      policy.max_requests_per_window > 0 && policy.window_count >= policy.max_requests_per_window;
  if (window_is_full) {
    if (slots_left(policy) > 0) let_go_counted(unit, key, at);
    policy.recheck.recheck_at_ms = trimmed.oldest.value_or(at.now_ms) + window_ms(policy);
  }
}

void correct(Unit& unit, const QuotaPolicy& policy, std::uint64_t& count, std::uint64_t truth,
             const char* what) {
  if (count == truth) return;
  unit.note(Noted::warning, name_of(policy) + " counted " + std::to_string(count) + " " + what + ", " +
                                std::to_string(truth) + " are: corrected");
  count = truth;
}

// Somebody has asked for it (`check_admission`) and may be about to claim the execution.
bool is_awaited(const QuotaAdmission& admission, const Context& at) {
  return admission.window_at_ms && *admission.window_at_ms > at.now_ms - kReconcileMs;
}

// What is neither leased nor granted holds no slot. True: there may be more.
bool free_stray_slots(Unit& unit, const QuotaPolicyKey& key, const Context& at) {
  const auto strays = unit.ask(StraySlotsOf{key, kTrimmedPerStep});
  if (strays.empty()) return false;
  std::vector<ExecutionId> executions;
  for (const auto& stray : strays) executions.push_back({stray.execution_partition, stray.execution_id});
  unit.fetch<QuotaAdmission, Execution>(strays, executions);
  std::size_t freed = 0;
  for (const auto& stray : strays) {
    const ExecutionId id{stray.execution_partition, stray.execution_id};
    const auto* admission = unit.find<QuotaAdmission>(stray);
    const auto* execution = unit.find<Execution>(id);
    // It may have been taken since the store was asked, also by this batch.
    const bool is_stray = admission && admission->holds_slot && !is_awaited(*admission, at) &&
                          !(execution && may_hold_slot(*execution));
    if (!is_stray) continue;
    free_slot(unit, key, id, at);
    ++freed;
  }
  if (freed > 0) {
    unit.note(Noted::warning, name_of(unit.require<QuotaPolicy>(key)) + " freed " + std::to_string(freed) +
                                  " of its slots, whose executions do not run");
  }
  return freed > 0 && strays.size() == kTrimmedPerStep;
}

void reconcile(Unit& unit, const QuotaPolicyKey& key, bool changed_before, const Context& at) {
  const auto trimmed = trim(unit, key, at);
  auto& policy = unit.edit<QuotaPolicy>(key);
  // What this batch has changed is not among the answers yet.
  if (!changed_before) {
    correct(unit, policy, policy.active_concurrency, unit.ask(SlotsOf{key}).size(), "running");
    if (trimmed.left) correct(unit, policy, policy.window_count, *trimmed.left, "in its window");
  }
  const bool more_strays = free_stray_slots(unit, key, at);
  const bool in_use = policy.active_concurrency > 0 || policy.window_count > 0 || policy.has_blocked;
  if (!in_use && !changed_before && is_forgettable(unit, policy)) return unit.erase<QuotaPolicy>(key);
  policy.reconcile_at_ms.reset();
  if (in_use || !policy.lane_id.empty() || policy.is_deleted)
    policy.reconcile_at_ms = trimmed.whole && !more_strays ? at.now_ms + kReconcileMs : at.now_ms + 1;
  const bool may_let_go = !policy.recheck.recheck_at_ms || room(policy) > 0;
  if (policy.has_blocked && may_let_go) policy.recheck.recheck_at_ms = at.now_ms;
}

}  // namespace

std::string name_of(const QuotaPolicy& policy) {
  if (!policy.lane_id.empty()) return "lane " + policy.lane_id + ", key '" + policy.fair_key + "':";
  return "quota " + policy.quota_policy_id.to_string() + ":";
}

std::int64_t window_ms(const QuotaPolicy& policy) {
  const auto seconds =
      policy.requests_per_window_seconds == 0 ? kDefaultWindowSeconds : policy.requests_per_window_seconds;
  return static_cast<std::int64_t>(seconds) * 1000;
}

void expect_reconciliation(QuotaPolicy& policy, const Context& at) {
  if (policy.reconcile_at_ms) return;
  policy.reconcile_at_ms = at.now_ms + kReconcileMs;
  set_clock(policy);
}

QuotaStatus view(const QuotaPolicy& policy) {
  return {.quota_policy_id = policy.quota_policy_id,
          .window_seconds = policy.requests_per_window_seconds,
          .max_requests_per_window = policy.max_requests_per_window,
          .max_concurrent = policy.active_concurrency_cap,
          .jitter_ms = policy.jitter_ms,
          .admitted_in_window = policy.window_count,
          .active = policy.active_concurrency,
          .created_at = policy.created_at_ms};
}

Result<QuotaCreation> apply(Unit& unit, const CreateQuotaPolicy& request, Context& at) {
  const bool in_range = request.window_seconds <= kLongestWindowSeconds &&
                        request.max_requests_per_window <= kLargest && request.max_concurrent <= kLargest &&
                        request.jitter_ms <= kLargest;
  if (!in_range) {
    return fail_with(ErrorCode::invalid_quota_spec, "out of range",
                     "Give numbers of at most 9223372036854775807, and a window of at most 9223372036854775 "
                     "seconds.");
  }
  const auto key = quota_key(request.quota_policy_id, at.partitions);
  if (find_policy(unit, key)) return QuotaCreation{request.quota_policy_id, false};
  if (unit.find<QuotaPolicy>(key)) {
    return fail_with(
        ErrorCode::invalid_quota_spec, "quota_policy_id: deleted",
        "A policy with this id was deleted lately, and what it had let through still runs: choose "
        "another id.");
  }
  unit.insert(QuotaPolicy{.partition_key = key.partition_key,
                          .quota_policy_id = request.quota_policy_id,
                          .requests_per_window_seconds = request.window_seconds,
                          .max_requests_per_window = request.max_requests_per_window,
                          .active_concurrency_cap = request.max_concurrent,
                          .jitter_ms = request.jitter_ms,
                          .created_at_ms = at.now_ms});
  return QuotaCreation{request.quota_policy_id, true};
}

Admission look(Unit& unit, const QuotaPolicyKey& key, const ExecutionId& id, const Context& at) {
  const auto* policy = unit.find<QuotaPolicy>(key);
  if (!policy || !is_limited(*policy)) return {AdmissionOutcome::admitted};
  const auto* admission = unit.find<QuotaAdmission>(admission_key(key, id));
  const bool counted = is_in_window(*policy, admission, at);
  const bool holds_slot = admission && admission->holds_slot;
  if (policy->max_requests_per_window > 0 && !counted &&
      policy->window_count >= policy->max_requests_per_window) {
    const auto trimmed = trim(unit, key, at);
    policy = unit.find<QuotaPolicy>(key);
    if (policy->window_count >= policy->max_requests_per_window) {
      const auto clears = trimmed.oldest.value_or(at.now_ms) + window_ms(*policy);
      return {AdmissionOutcome::rate_exceeded, static_cast<std::uint64_t>(clears - at.now_ms)};
    }
  }
  const auto cap = policy->active_concurrency_cap;
  if (cap > 0 && !holds_slot && policy->active_concurrency >= cap) {
    return {AdmissionOutcome::concurrency_exceeded};
  }
  const bool known = counted || (holds_slot && policy->max_requests_per_window == 0);
  return {known ? AdmissionOutcome::already_admitted : AdmissionOutcome::admitted};
}

void record_admission(Unit& unit, const QuotaPolicyKey& key, const ExecutionId& id, const Context& at) {
  const auto* found = unit.find<QuotaPolicy>(key);
  if (!found || !is_limited(*found)) return;
  auto& policy = unit.edit<QuotaPolicy>(key);
  const auto admission_id = admission_key(key, id);
  if (!unit.find<QuotaAdmission>(admission_id)) {
    unit.insert(QuotaAdmission{.partition_key = key.partition_key,
                               .quota_policy_id = key.quota_policy_id,
                               .execution_partition = id.partition,
                               .execution_id = id.uuid});
  }
  auto& admission = unit.edit<QuotaAdmission>(admission_id);
  if (policy.max_requests_per_window > 0) enter_window(policy, admission, at);
  if (policy.active_concurrency_cap > 0 && !admission.holds_slot) {
    admission.holds_slot = true;
    ++policy.active_concurrency;
  }
  expect_reconciliation(policy, at);
}

void record_admission(Unit& unit, const QuotaPolicyKey& key, Execution& execution, const Context& at) {
  record_admission(unit, key, execution.key(), at);
  const auto holding = split_ids<QuotaPolicyId>(execution.admitted_by);
  if (std::ranges::find(holding, key.quota_policy_id) != holding.end()) return;
  const auto* admission = unit.find<QuotaAdmission>(admission_key(key, execution.key()));
  if (!admission || !admission->holds_slot) return;
  execution.admitted_by += (execution.admitted_by.empty() ? "" : ",") + key.quota_policy_id.to_string();
}

void free_slots(Unit& unit, const ExecutionId& execution, const std::vector<QuotaPolicyId>& holding,
                const Context& at) {
  std::vector<QuotaPolicyKey> policies;
  std::vector<QuotaAdmissionKey> admissions;
  for (const auto& id : holding) {
    policies.push_back(quota_key(id, at.partitions));
    admissions.push_back(admission_key(policies.back(), execution));
  }
  unit.fetch<QuotaPolicy, QuotaAdmission>(policies, admissions);
  for (const auto& policy : policies) free_slot(unit, policy, execution, at);
}

void withdraw(Unit& unit, const QuotaPolicyKey& key, const ExecutionId& id, const Context& at) {
  free_slot(unit, key, id, at);
  if (!unit.find<QuotaPolicy>(key) || !unit.find<QuotaAdmission>(admission_key(key, id))) return;
  auto& policy = unit.edit<QuotaPolicy>(key);
  leave_window(unit, policy, admission_key(key, id));
  if (policy.has_blocked) expect_room(unit, key, at.now_ms);
}

Result<Admission> apply(Unit& unit, const CheckAdmission& request, Context& at) {
  const auto key = quota_key(request.quota_policy_id, at.partitions);
  if (!find_policy(unit, key)) return std::unexpected(no_such_quota_policy(request.quota_policy_id));
  auto admission = look(unit, key, request.execution_id, at);
  if (admission.outcome == AdmissionOutcome::rate_exceeded) {
    admission.retry_after_ms += at.random.between(0, unit.require<QuotaPolicy>(key).jitter_ms);
  } else if (admission.outcome != AdmissionOutcome::concurrency_exceeded) {
    record_admission(unit, key, request.execution_id, at);
    // Also when nothing limits the rate: the entry says how old a slot is that no claim has come for.
    if (is_limited(unit.require<QuotaPolicy>(key))) {
      enter_window(unit.edit<QuotaPolicy>(key),
                   unit.edit<QuotaAdmission>(admission_key(key, request.execution_id)), at);
    }
  }
  return admission;
}

Result<AdmissionReleased> apply(Unit& unit, const ReleaseAdmission& request, Context& at) {
  const auto key = quota_key(request.quota_policy_id, at.partitions);
  if (!find_policy(unit, key)) return std::unexpected(no_such_quota_policy(request.quota_policy_id));
  withdraw(unit, key, request.execution_id, at);
  return AdmissionReleased{};
}

Result<QuotaPolicyDeleted> apply(Unit& unit, const DeleteQuotaPolicy& request, Context& at) {
  const auto key = quota_key(request.quota_policy_id, at.partitions);
  const auto* found = find_policy(unit, key);
  // Policies of a lane's keys are the engine's own.
  if (!found || !found->lane_id.empty())
    return std::unexpected(no_such_quota_policy(request.quota_policy_id));
  auto& policy = unit.edit<QuotaPolicy>(key);
  policy.max_requests_per_window = 0;
  policy.active_concurrency_cap = 0;
  policy.is_deleted = true;
  policy.reconcile_at_ms = at.now_ms + 1;
  detach_everywhere(unit, request.quota_policy_id);
  recheck_all(unit, key, at);
  return QuotaPolicyDeleted{};
}

void expect_room(Unit& unit, const QuotaPolicyKey& key, std::int64_t at_ms) {
  auto& policy = unit.edit<QuotaPolicy>(key);
  policy.has_blocked = true;
  auto& due = policy.recheck.recheck_at_ms;
  due = std::min(due.value_or(at_ms), at_ms);
  set_clock(policy);
}

void recheck_all(Unit& unit, const QuotaPolicyKey& key, const Context& at) {
  auto& policy = unit.edit<QuotaPolicy>(key);
  policy.recheck = Recheck{.recheck_at_ms = at.now_ms, .recheck_after_ms = 0};
  set_clock(policy);
}

std::optional<std::int64_t> next_clock(const QuotaPolicy& policy, const RuleSet& off) {
  const auto look = off.has(Rule::unblock) ? std::nullopt : policy.recheck.recheck_at_ms;
  const auto count = off.has(Rule::quota_reconciler) ? std::nullopt : policy.reconcile_at_ms;
  return look && count ? std::min(look, count) : (look ? look : count);
}

Rule run_quota_policy_clock(Unit& unit, const QuotaPolicyKey& key, Context& at) {
  const auto* found = unit.find<QuotaPolicy>(key);
  if (!found || !found->next_due_at_ms || *found->next_due_at_ms > at.now_ms) return Rule::none;
  const auto is_due = [&](Rule rule, const std::optional<std::int64_t>& clock) {
    return clock && *clock <= at.now_ms && !at.off.has(rule);
  };
  const bool looks = is_due(Rule::unblock, found->recheck.recheck_at_ms);
  if (!looks && !is_due(Rule::quota_reconciler, found->reconcile_at_ms)) {
    if (found->next_due_at_ms != next_clock(*found)) set_clock(unit.edit<QuotaPolicy>(key));
    return Rule::none;
  }
  const bool changed_before = unit.is_changed<QuotaPolicy>(key);
  apply_limit_of_lane(unit, key);
  auto& policy = unit.edit<QuotaPolicy>(key);
  auto rule = Rule::unblock;
  if (looks) {
    // A time after which to go on means that all are looked at, whether there is room or not.
    if (policy.recheck.recheck_after_ms)
      look_at_blocked(unit, key.quota_policy_id.uuid, policy.recheck, policy.has_blocked, changed_before, at);
    else
      let_go_as_there_is_room(unit, key, changed_before, at);
  } else {
    reconcile(unit, key, changed_before, at);
    rule = Rule::quota_reconciler;
  }
  if (unit.find<QuotaPolicy>(key)) set_clock(unit.edit<QuotaPolicy>(key));
  return rule;
}

FLOWFABRIC_OPERATION(CreateQuotaPolicy)
FLOWFABRIC_OPERATION(CheckAdmission)
FLOWFABRIC_OPERATION(ReleaseAdmission)
FLOWFABRIC_OPERATION(DeleteQuotaPolicy)

}  // namespace flowfabric::core
