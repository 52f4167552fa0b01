#include "core/suspension/suspend.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/execution/report.h"
#include "core/operation.h"
#include "core/suspension/signal.h"
#include "core/suspension/suspension.h"
#include "core/suspension/waitpoint.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kMaxBindings = 64;
constexpr std::int64_t kTimeoutSkewMs = 600'000;
constexpr std::int64_t kDedupMarginMs = 60'000;
constexpr std::int64_t kMaxDedupMs = 604'800'000;

std::unexpected<Error> refuse(const std::string& rule, const std::string& advice) {
  return fail_with(ErrorCode::invalid_input, rule, advice);
}

// ---- what is asked for, before the store is looked at ----

struct Wait {
  std::vector<WaitpointBinding> bindings;
  ResumeCondition condition;
};

// The waitpoints as they were given, or one for each key that the condition names. A key that neither the
// waitpoint nor the condition gives stays empty in both until it is minted.
Wait wait_of(const SuspendExecution& request) {
  Wait wait{request.waitpoints, request.resume_condition};
  auto& bindings = wait.bindings;
  const auto keys = keys_of(wait.condition);
  if (bindings.empty()) {
    for (const auto& key : keys) {
      if (!key.empty() || bindings.empty()) bindings.push_back({.waitpoint_key = key});
    }
    if (bindings.empty()) bindings.emplace_back();
  }
  const bool takes_key = bindings.size() == 1 && !bindings[0].use_pending && !keys.empty();
  if (takes_key && bindings[0].waitpoint_key.empty()) bindings[0].waitpoint_key = keys[0];
  if (!bindings[0].use_pending) name_waitpoint(wait.condition, bindings[0].waitpoint_key);
  return wait;
}

bool contains(const std::vector<std::string>& keys, const std::string& key) {
  return std::ranges::find(keys, key) != keys.end();
}

Result<void> check_keys(const std::vector<WaitpointBinding>& bindings, const ResumeCondition& condition) {
  const auto named = keys_of(condition);
  std::vector<std::string> bound;
  for (const auto& binding : bindings) bound.push_back(binding.waitpoint_key);
  for (const auto& key : named) {
    if (!contains(bound, key)) {
      return refuse("referenced_waitpoint_key_missing_binding: " + key,
                    "Bind a waitpoint for every key that the condition names.");
    }
  }
  for (const auto& key : bound) {
    if (!contains(named, key)) {
      return refuse("extra_binding_not_referenced_by_condition: " + key,
                    "Bind only waitpoints whose keys the condition names.");
    }
  }
  return {};
}

Result<void> check_bindings(const std::vector<WaitpointBinding>& bindings, const ResumeCondition& condition) {
  const auto& primary = bindings.front();
  const auto* single = std::get_if<SingleSignal>(&condition.node);
  if (single && !primary.use_pending && single->waitpoint_key != primary.waitpoint_key) {
    return refuse("waitpoint_key_mismatch", "The condition names another key than the waitpoint's.");
  }
  if (bindings.size() > kMaxBindings) {
    return refuse("more than 64 waitpoints", "Wait on fewer waitpoints.");
  }
  for (std::size_t i = 1; i < bindings.size(); ++i) {
    const auto place = " at waitpoints[" + std::to_string(i) + "]";
    if (bindings[i].use_pending) {
      return refuse("additional_waitpoint_binding_must_be_fresh" + place,
                    "Only the first may have been made before.");
    }
    if (bindings[i].waitpoint_key.empty()) {
      return refuse("additional_waitpoint_binding_empty_key" + place, "Give every waitpoint a key.");
    }
  }
  if (bindings.size() > 1 && primary.use_pending) {
    return refuse("use_pending_with_extras_unsupported",
                  "Suspend on the waitpoint that was made before alone, or on new ones.");
  }
  std::set<std::string> keys;
  std::set<WaitpointId> ids;
  for (const auto& binding : bindings) {
    if (binding.waitpoint_key.size() > kMaxWaitpointKeyLength) {
      return refuse("waitpoint_key: longer than 256 bytes", "Use shorter keys.");
    }
    if (auto ok = check_text("waitpoint_key", binding.waitpoint_key); !ok) return ok;
    const bool id_is_new = !binding.waitpoint_id || ids.insert(*binding.waitpoint_id).second;
    if (!keys.insert(binding.waitpoint_key).second || !id_is_new) {
      return refuse("duplicate_waitpoint_binding", "Bind each waitpoint once.");
    }
  }
  const bool names_none = keys_of(condition).empty() && bindings.size() == 1;
  if (primary.use_pending || names_none) return {};
  return check_keys(bindings, condition);
}

Result<void> check_request(const SuspendExecution& request, const Wait& wait, std::int64_t now_ms) {
  if (auto ok = check_bindings(wait.bindings, wait.condition); !ok) return ok;
  const auto& policy = request.resume_policy;
  if (!policy.consume_matched_signals || policy.retain_signal_buffer_until_closed ||
      !policy.close_waitpoint_on_resume || policy.resume_delay_ms.value_or(0) < 0) {
    return refuse("resume_policy: not supported", "Leave the flags of the resume policy at their defaults.");
  }
  if (request.timeout_at && request.timeout_ms) {
    return refuse("timeout_at and timeout_ms", "Give one of them.");
  }
  if (request.timeout_at && saturating_add(std::max<std::int64_t>(*request.timeout_at, 0), kTimeoutSkewMs) <
                                request.now.value_or(now_ms)) {
    return refuse("timeout_at_in_past", "Give a timeout that lies ahead.");
  }
  if (request.timeout_signal_name.empty() || request.timeout_signal_name.starts_with("__")) {
    return refuse("timeout_signal_name: empty or reserved", "Name the signal that a timeout sends.");
  }
  for (const auto& [name, text] : {std::pair{"timeout_signal_name", &request.timeout_signal_name},
                                   {"continuation_metadata_pointer", &request.continuation_metadata_pointer},
                                   {"idempotency_key", &request.idempotency_key}}) {
    if (auto ok = check_text(name, *text, kMaxKeyBytes); !ok) return ok;
  }
  return {};
}

std::unexpected<Error> satisfied_before() {
  return fail_with(ErrorCode::already_satisfied, "",
                   "What it would wait for has arrived: go on, or suspend without `strict` to see it.");
}

// ---- timeouts ----

struct Deadline {
  std::optional<std::int64_t> at_ms;
  TimeoutBehavior behavior{};
};

// Given, or as the execution's policy says.
Deadline deadline_of(const SuspendExecution& request, const ExecutionPolicy& policy, const Context& at) {
  Deadline deadline{request.timeout_at, request.timeout_behavior.value_or(TimeoutBehavior::fail)};
  if (request.timeout_ms) deadline.at_ms = saturating_add(at.now_ms, *request.timeout_ms);
  if (!policy.suspension_policy) return deadline;
  const auto& defaults = *policy.suspension_policy;
  if (!deadline.at_ms && defaults.default_timeout_ms) {
    deadline.at_ms = saturating_add(at.now_ms, *defaults.default_timeout_ms);
  }
  if (!request.timeout_behavior) {
    const auto known = enum_from_name<TimeoutBehavior>(defaults.timeout_behavior);
    deadline.behavior = known.value_or(TimeoutBehavior::fail);
  }
  return deadline;
}

BlockingReason blocking_reason(SuspensionReason reason) {
  switch (reason) {
    case SuspensionReason::waiting_for_approval:
      return BlockingReason::waiting_for_approval;
    case SuspensionReason::waiting_for_callback:
      return BlockingReason::waiting_for_callback;
    case SuspensionReason::waiting_for_tool_result:
      return BlockingReason::waiting_for_tool_result;
    case SuspensionReason::waiting_for_operator_review:
    case SuspensionReason::manual_pause:
      return BlockingReason::paused_by_operator;
    case SuspensionReason::paused_by_policy:
      return BlockingReason::paused_by_policy;
    case SuspensionReason::paused_by_budget:
      return BlockingReason::waiting_for_budget;
    default:
      return BlockingReason::waiting_for_signal;
  }
}

// ---- answers ----

Suspended answer_of(Unit& unit, const ExecutionId& id, const SuspensionDetails& details,
                    bool already_satisfied) {
  Suspended answer{.already_satisfied = already_satisfied,
                   .suspension_id = details.suspension_id.value_or(SuspensionId{}),
                   .waitpoints = {},
                   .signals = {},
                   .handle = std::nullopt};
  const auto keys = waitpoints_of(id, details);
  unit.fetch<Waitpoint>(keys);
  for (const auto& key : keys) {
    const auto& waitpoint = unit.require<Waitpoint>(key);
    answer.waitpoints.push_back({key.waitpoint_id, waitpoint.waitpoint_key, waitpoint.token});
  }
  if (already_satisfied) answer.signals = signals_of(unit, id, details);
  return answer;
}

// The suspension of this number: the latest, or one of the past.
const SuspensionDetails* details_of(Unit& unit, const ExecutionId& id, std::uint32_t index) {
  const auto* row = unit.find<Suspension>(suspension_key(id));
  if (row && row->suspension_count == index + 1) return &row->details;
  const auto* past = unit.find<PastSuspension>({id.partition, id.uuid, index});
  return past ? &past->details : nullptr;
}

// Signals that had come before were enough, and the lease went on: one of them has met the condition.
bool was_satisfied_at_once(Unit& unit, const ExecutionId& id, const SuspensionDetails& details) {
  if (details.resume_trigger != ResumeTrigger::signal) return false;
  const auto& primary = unit.require<Waitpoint>(waitpoints_of(id, details).front());
  return contains(primary.buffered_signals, details.satisfier_signals.back());
}

// The call repeats one that found its signals waiting.
std::optional<Suspended> answer_at_once(Unit& unit, const ExecutionId& id, const WaitpointBinding& primary) {
  const auto* row = unit.find<Suspension>(suspension_key(id));
  if (!primary.use_pending || !primary.waitpoint_id || !row || row->suspension_count == 0)
    return std::nullopt;
  const auto& details = row->details;
  const bool same = details.waitpoint_ids.front() == primary.waitpoint_id->to_string();
  if (!same || !was_satisfied_at_once(unit, id, details)) return std::nullopt;
  return answer_of(unit, id, details, true);
}

// The suspension that the last lease ended with.
const SuspensionDetails& details_of_last_end(Unit& unit, const ExecutionId& id) {
  const auto& row = unit.require<Suspension>(suspension_key(id));
  if (!was_satisfied_at_once(unit, id, row.details)) return row.details;
  std::vector<PastSuspensionKey> past;
  for (std::uint32_t i = 0; i + 1 < row.suspension_count; ++i) past.push_back({id.partition, id.uuid, i});
  unit.fetch<PastSuspension>(past);
  std::vector<WaitpointRecordKey> primaries;
  for (const auto& key : past) {
    primaries.push_back(waitpoints_of(id, unit.require<PastSuspension>(key).details).front());
  }
  unit.fetch<Waitpoint>(primaries);
  const auto found = std::find_if(past.rbegin(), past.rend(), [&](const PastSuspensionKey& key) {
    return !was_satisfied_at_once(unit, id, unit.require<PastSuspension>(key).details);
  });
  return found == past.rend() ? row.details : unit.require<PastSuspension>(*found).details;
}

std::optional<Suspended> earlier_answer(Unit& unit, const SuspendExecution& request, const Context& at) {
  if (request.idempotency_key.empty()) return std::nullopt;
  const auto& id = request.execution_id;
  const auto* known = unit.find<SuspendDedup>({id.partition, id.uuid, request.idempotency_key});
  if (!known || known->expires_at_ms <= at.now_ms) return std::nullopt;
  const auto* details = details_of(unit, id, known->suspension_index);
  if (!details) return std::nullopt;
  return answer_of(unit, id, *details, known->already_satisfied);
}

void remember(Unit& unit, const SuspendExecution& request, const Suspension& row, bool already_satisfied,
              const Context& at) {
  if (request.idempotency_key.empty()) return;
  std::int64_t kept_for = kMaxDedupMs;
  if (row.details.timeout_at_ms) {
    const auto left = std::max<std::int64_t>(*row.details.timeout_at_ms - at.now_ms, 0);
    kept_for = std::min(saturating_add(left, kDedupMarginMs), kMaxDedupMs);
  }
  const SuspendDedup entry{.partition_key = row.partition_key,
                           .execution_id = row.execution_id,
                           .idempotency_key = request.idempotency_key,
                           .suspension_index = row.suspension_count - 1,
                           .already_satisfied = already_satisfied,
                           .expires_at_ms = saturating_add(at.now_ms, static_cast<std::uint64_t>(kept_for))};
  if (unit.find<SuspendDedup>(entry.key()))
    unit.edit<SuspendDedup>(entry.key()) = entry;
  else
    unit.insert(entry);
}

// The latest suspension becomes one of the past.
void begin_next(Unit& unit, Suspension& row, SuspensionDetails details) {
  if (row.suspension_count > 0) {
    unit.insert(PastSuspension{.partition_key = row.partition_key,
                               .execution_id = row.execution_id,
                               .suspension_index = row.suspension_count - 1,
                               .details = std::move(row.details)});
  }
  ++row.suspension_count;
  row.details = std::move(details);
}

}  // namespace

Result<void> check_arguments(const SuspendExecution& request, std::int64_t now_ms) {
  // The condition comes first: it must not be larger than it may be when the others walk through it.
  if (auto ok = check(request.resume_condition); !ok) return ok;
  return check_request(request, wait_of(request), now_ms);
}

Result<Suspended> apply(Unit& unit, const SuspendExecution& request, Context& at) {
  const auto& id = request.execution_id;
  if (auto ok = check_arguments(request, at.now_ms); !ok) return std::unexpected(ok.error());
  const auto [bindings, condition] = wait_of(request);
  const auto* known = unit.find<Execution>(id);
  const auto policy = known ? unit.require<ExecutionSpec>(id).policy : ExecutionPolicy{};
  const auto deadline = deadline_of(request, policy, at);
  if (needs_deadline(request.resume_condition) && !deadline.at_ms) {
    return refuse("timeout_only_without_deadline", "Say when the timeout is.");
  }
  if (!known) return std::unexpected(not_found(id));
  if (auto answer = earlier_answer(unit, request, at)) {
    if (request.strict && answer->already_satisfied) return satisfied_before();
    return *std::move(answer);
  }
  if (repeats(*known, request.fence, LeaseEnd::suspend)) {
    return answer_of(unit, id, details_of_last_end(unit, id), false);
  }
  auto held =
      check_holder(unit, id, request.fence, request.attempt_index, ErrorCode::invalid_lease_for_suspend, at);
  if (!held) return std::unexpected(held.error());
  if (auto answer = answer_at_once(unit, id, bindings.front())) {
    if (request.strict) return satisfied_before();
    return *std::move(answer);
  }
  const auto attempt_index = (*held)->attempt.attempt_index;

  SuspensionDetails details{
      .suspension_id = request.suspension_id ? *request.suspension_id : at.mint<SuspensionId>(),
      .attempt_index = attempt_index,
      .waitpoint_ids = {},
      .reason_code = request.reason_code,
      .requested_by = request.requested_by,
      .suspended_at_ms = at.now_ms,
      .timeout_at_ms = deadline.at_ms,
      .timeout_behavior = deadline.behavior,
      .timeout_signal_name = request.timeout_signal_name,
      .resume_condition = condition,
      .resume_delay_ms = request.resume_policy.resume_delay_ms,
      .continuation_metadata_pointer = request.continuation_metadata_pointer};
  if (auto ok = bind(unit, **held, bindings, details, at); !ok) return std::unexpected(ok.error());
  const auto primary = waitpoints_of(id, details).front();
  const bool satisfied = bindings.front().use_pending && count_early_signals(unit, primary, details);
  if (satisfied && request.strict) return satisfied_before();
  if (satisfied) {
    auto& waitpoint = unit.edit<Waitpoint>(primary);
    close(waitpoint, "resumed", at);
    waitpoint.satisfied_at_ms = at.now_ms;
    details.closed_at_ms = at.now_ms;
    details.close_reason = "resumed";
    details.resume_trigger = ResumeTrigger::signal;
    details.resume_delay_ms.reset();  // it has not waited at all
    details.satisfied_set.clear();
  }
  auto& row = suspension_row(unit, id);
  begin_next(unit, row, std::move(details));
  row.next_due_at_ms = satisfied ? std::nullopt : row.details.timeout_at_ms;
  remember(unit, request, row, satisfied, at);
  if (!satisfied) {
    auto& execution = unit.edit<Execution>(id);
    pause_attempt(unit, execution, lease_end(execution, LeaseEnd::suspend), "suspend",
                  row.details.suspension_id->to_string(), at);
    move_to(unit, execution, vectors::suspended(blocking_reason(request.reason_code)),
            "suspended: waitpoint " + primary.waitpoint_id.to_string() + " awaiting " +
                std::string(enum_name(request.reason_code)),
            at);
  }
  return answer_of(unit, id, row.details, satisfied);
}

namespace {

void want(Unit& unit, const SuspendExecution& request, const PartitionCounts&) {
  const auto& id = request.execution_id;
  unit.want<Execution>(id);
  unit.want<ExecutionSpec>(id);
  unit.want<Suspension>(suspension_key(id));
  unit.want<Keystore>({});
  for (const auto& binding : request.waitpoints) {
    if (!binding.waitpoint_id) continue;
    if (binding.use_pending)
      unit.want<Waitpoint>(waitpoint_key(id, *binding.waitpoint_id));
    else
      unit.want_answer(WaitpointsNamed{*binding.waitpoint_id});
  }
  if (!request.idempotency_key.empty() &&
      check_text("idempotency_key", request.idempotency_key, kMaxKeyBytes)) {
    unit.want<SuspendDedup>({id.partition, id.uuid, request.idempotency_key});
  }
}

}  // namespace

FLOWFABRIC_OPERATION(SuspendExecution, .want = want)

}  // namespace flowfabric::core
