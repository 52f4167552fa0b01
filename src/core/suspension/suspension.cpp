#include "core/suspension/suspension.h"

#include <algorithm>
#include <charconv>

#include "core/execution/lease.h"
#include "core/operation.h"
#include "core/suspension/signal.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

void close_waitpoints(Unit& unit, const std::vector<WaitpointRecordKey>& keys, const std::string& reason,
                      bool satisfied, const Context& at) {
  unit.fetch<Waitpoint>(keys);
  for (const auto& key : keys) {
    const auto* found = unit.find<Waitpoint>(key);
    if (!found || found->state == WaitpointState::closed) continue;
    auto& waitpoint = unit.edit<Waitpoint>(key);
    close(waitpoint, reason, at);
    if (satisfied) waitpoint.satisfied_at_ms = at.now_ms;
  }
}

// Those that are not closed; the index does not know of the ones that this batch has made.
std::vector<WaitpointRecordKey> open_waitpoints(Unit& unit, const ExecutionId& id) {
  auto keys = unit.ask(OpenWaitpoints{id});
  unit.for_each_dirty<Waitpoint>([&](const Slot<Waitpoint>& slot) {
    if (owner_of(slot.key) == id && std::ranges::find(keys, slot.key) == keys.end()) keys.push_back(slot.key);
  });
  return keys;
}

// ---- timeouts ----

void end_by_timeout(Unit& unit, const ExecutionId& id, TimeoutBehavior behavior, Context& at) {
  auto& execution = unit.edit<Execution>(id);
  const std::string name(enum_name(behavior));
  close_with_execution(unit, execution, "timed_out_" + name, at);
  execution.failure_reason = "suspension_timeout:" + name;
  execution.last_failure_message = "suspension_timeout";
  execution.cancellation_reason = "suspension_timeout_" + name;
  const bool cancels = behavior == TimeoutBehavior::cancel;
  end_attempt(unit, execution,
              {.how = cancels ? AttemptLifecycle::ended_cancelled : AttemptLifecycle::ended_failure,
               .failure_reason = execution.failure_reason},
              at);
  const auto outcome = behavior == TimeoutBehavior::fail     ? TerminalOutcome::failed
                       : behavior == TimeoutBehavior::cancel ? TerminalOutcome::cancelled
                                                             : TerminalOutcome::expired;
  finish(unit, execution, outcome, at);
}

void escalate(Unit& unit, const ExecutionId& id, Context& at) {
  auto& suspension = unit.edit<Suspension>(suspension_key(id));
  auto& details = suspension.details;
  auto& execution = unit.edit<Execution>(id);
  auto state = execution.state;
  state.blocking_reason = BlockingReason::paused_by_operator;
  move_to(unit, execution, state,
          "suspension escalated: timeout at " + time_to_text(details.timeout_at_ms.value_or(0)), at);
  details.reason_code = SuspensionReason::waiting_for_operator_review;
  details.timeout_at_ms.reset();  // it does not fire twice
  suspension.next_due_at_ms.reset();
  const auto keys = waitpoints_of(id, details);
  unit.fetch<Waitpoint>(keys);
  for (const auto& key : keys) {
    if (unit.find<Waitpoint>(key)) unit.edit<Waitpoint>(key).expires_at_ms.reset();
  }
  append_operator_event(unit, execution, OperatorEventType::suspension_escalated,
                        {{"suspension_id", details.suspension_id->to_string()}}, at);
}

void resume_by_timeout(Unit& unit, const ExecutionId& id, Context& at) {
  resume(unit, id,
         {.trigger = ResumeTrigger::timeout, .close_reason = "timed_out_auto_resume", .delay_ms = 0}, at);
}

}  // namespace

std::vector<WaitpointRecordKey> waitpoints_of(const ExecutionId& id, const SuspensionDetails& details) {
  std::vector<WaitpointRecordKey> keys;
  for (const auto& text : details.waitpoint_ids) {
    if (const auto waitpoint = WaitpointId::parse(text)) keys.push_back(waitpoint_key(id, *waitpoint));
  }
  return keys;
}

void close(Waitpoint& waitpoint, const std::string& reason, const Context& at) {
  waitpoint.state = WaitpointState::closed;
  waitpoint.closed_at_ms = at.now_ms;
  waitpoint.close_reason = reason;
  waitpoint.next_due_at_ms.reset();
}

void close(Suspension& suspension, const std::string& reason, ResumeTrigger trigger, const Context& at) {
  auto& details = suspension.details;
  details.closed_at_ms = at.now_ms;
  details.close_reason = reason;
  details.resume_trigger = trigger;
  details.satisfied_set.clear();
  suspension.next_due_at_ms.reset();
}

SuspensionKey suspension_key(const ExecutionId& id) {
  return {id.partition, id.uuid};
}
WaitpointRecordKey waitpoint_key(const ExecutionId& id, const WaitpointId& waitpoint_id) {
  return {id.partition, id.uuid, waitpoint_id};
}

std::vector<SignalKey> signal_keys(const ExecutionId& id, const std::vector<std::string>& numbers) {
  std::vector<SignalKey> keys;
  for (const auto& text : numbers) {
    std::uint32_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    keys.push_back({id.partition, id.uuid, number});
  }
  return keys;
}

Suspension& suspension_row(Unit& unit, const ExecutionId& id) {
  const auto key = suspension_key(id);
  if (unit.find<Suspension>(key)) return unit.edit<Suspension>(key);
  return unit.insert(Suspension{.partition_key = id.partition, .execution_id = id.uuid});
}

bool is_open(const Suspension& suspension) {
  return suspension.details.suspension_id && !suspension.details.closed_at_ms;
}

std::optional<WaitpointId> primary_waitpoint(const Suspension& suspension) {
  const auto& ids = suspension.details.waitpoint_ids;
  return is_open(suspension) && !ids.empty() ? WaitpointId::parse(ids.front()) : std::nullopt;
}

Satisfied satisfied_of(const SuspensionDetails& details) {
  Satisfied satisfied;
  for (const auto& text : details.satisfied_set) {
    const auto space = text.find(' ');
    if (space != text.npos) satisfied.insert({text.substr(0, space), text.substr(space + 1)});
  }
  return satisfied;
}

void set_satisfied(SuspensionDetails& details, const Satisfied& satisfied) {
  details.satisfied_set.clear();
  for (const auto& [path, who] : satisfied) details.satisfied_set.push_back(path + " " + who);
}

std::vector<ResumeSignal> signals_of(Unit& unit, const ExecutionId& id, const SuspensionDetails& details) {
  const auto keys = signal_keys(id, details.satisfier_signals);
  const auto waitpoints = waitpoints_of(id, details);
  unit.fetch<Signal, Waitpoint>(keys, waitpoints);
  std::vector<ResumeSignal> signals;
  for (const auto& key : keys) {
    const auto* signal = unit.find<Signal>(key);
    if (!signal) continue;
    const auto* waitpoint = unit.find<Waitpoint>(waitpoint_key(id, signal->waitpoint_id));
    signals.push_back(view(*signal, waitpoint));
  }
  return signals;
}

bool is_shown_to_worker(const SuspensionDetails& details) {
  return details.resume_trigger == ResumeTrigger::signal || details.resume_trigger == ResumeTrigger::timeout;
}

void fetch_resume_signals(Unit& unit, const std::vector<ExecutionId>& ids) {
  std::vector<SuspensionKey> keys;
  for (const auto& id : ids) keys.push_back(suspension_key(id));
  unit.fetch<Suspension>(keys);
  std::vector<SignalKey> signals;
  std::vector<WaitpointRecordKey> waitpoints;
  for (const auto& id : ids) {
    const auto* suspension = unit.find<Suspension>(suspension_key(id));
    if (!suspension || !is_shown_to_worker(suspension->details)) continue;
    std::ranges::copy(signal_keys(id, suspension->details.satisfier_signals), std::back_inserter(signals));
    std::ranges::copy(waitpoints_of(id, suspension->details), std::back_inserter(waitpoints));
  }
  unit.fetch<Signal, Waitpoint>(signals, waitpoints);
}

std::vector<ResumeSignal> resume_signals(Unit& unit, const ExecutionId& id, std::uint32_t attempt_index) {
  const auto* suspension = unit.find<Suspension>(suspension_key(id));
  if (!suspension) return {};
  const auto& details = suspension->details;
  if (!is_shown_to_worker(details) || details.attempt_index != attempt_index) return {};
  return signals_of(unit, id, details);
}

void resume(Unit& unit, const ExecutionId& id, const HowResumed& how, const Context& at) {
  auto& suspension = unit.edit<Suspension>(suspension_key(id));
  suspension.details.resume_requested_by = how.requested_by;
  // What it really was: its history tells of it.
  suspension.details.resume_delay_ms =
      how.delay_ms > 0 ? std::optional<std::int64_t>(how.delay_ms) : std::nullopt;
  close(suspension, how.close_reason, how.trigger, at);
  close_waitpoints(unit, waitpoints_of(id, suspension.details), how.close_reason,
                   how.trigger != ResumeTrigger::operator_, at);
  auto& execution = unit.edit<Execution>(id);
  if (how.delay_ms <= 0) {
    move_to(unit, execution, vectors::waiting(AttemptState::attempt_interrupted), "", at);
    return;
  }
  execution.delay_until_ms = saturating_add(at.now_ms, static_cast<std::uint64_t>(how.delay_ms));
  move_to(unit, execution,
          vectors::delayed(BlockingReason::waiting_for_resume_delay, AttemptState::attempt_interrupted),
          how.delay_detail, at);
}

void close_with_execution(Unit& unit, const Execution& execution, const std::string& reason,
                          const Context& at) {
  const auto id = execution.key();
  const auto* found = unit.find<Suspension>(suspension_key(id));
  if (!found) return;
  if (is_open(*found)) {
    close(unit.edit<Suspension>(suspension_key(id)), reason, ResumeTrigger::none, at);
  }
  close_waitpoints(unit, open_waitpoints(unit, id), reason, false, at);
}

void fetch_suspensions(Unit& unit, const std::vector<ExecutionId>& ids) {
  std::vector<SuspensionKey> keys;
  std::vector<OpenWaitpoints> questions;
  for (const auto& id : ids) {
    const auto* execution = unit.find<Execution>(id);
    if (!execution || execution->state.lifecycle_phase != LifecyclePhase::suspended) continue;
    keys.push_back(suspension_key(id));
    questions.push_back({id});
  }
  if (keys.empty()) return;
  unit.fetch<Suspension>(keys);
  unit.fetch_answers(questions);
  std::vector<WaitpointRecordKey> waitpoints;
  for (const auto& question : questions) {
    const auto& found = unit.ask(question);
    waitpoints.insert(waitpoints.end(), found.begin(), found.end());
  }
  unit.fetch<Waitpoint>(waitpoints);
}

Result<Resumed> apply(Unit& unit, const ResumeExecution& request, Context& at) {
  if (request.resume_delay_ms < 0) {
    return fail_with(ErrorCode::invalid_input, "resume_delay_ms: negative",
                     "Give a number of milliseconds, or none.");
  }
  if (auto ok = check_text("trigger_type", request.trigger_type, kMaxKeyBytes); !ok) {
    return std::unexpected(ok.error());
  }
  const auto& id = request.execution_id;
  const auto* execution = unit.find<Execution>(id);
  if (!execution) return std::unexpected(not_found(id));
  const auto* suspension = unit.find<Suspension>(suspension_key(id));
  const bool suspended = execution->state.lifecycle_phase == LifecyclePhase::suspended;
  if (!suspended || !suspension || !is_open(*suspension)) {
    return fail_with(ErrorCode::execution_not_suspended,
                     std::string(enum_name(execution->state.public_state)),
                     "Only a suspended execution can be resumed.");
  }
  resume(unit, id,
         {.trigger = ResumeTrigger::operator_,
          .delay_ms = request.resume_delay_ms,
          .delay_detail = "resume delay " + std::to_string(request.resume_delay_ms) + "ms",
          .requested_by = request.trigger_type},
         at);
  return Resumed{unit.find<Execution>(id)->state.public_state};
}

Rule run_suspension_clock(Unit& unit, const SuspensionKey& key, Context& at) {
  const ExecutionId id{key.partition_key, key.execution_id};
  const auto* execution = unit.find<Execution>(id);
  const auto* suspension = unit.find<Suspension>(key);
  if (!suspension || !suspension->next_due_at_ms || *suspension->next_due_at_ms > at.now_ms) {
    return Rule::none;
  }
  if (!execution || execution->state.lifecycle_phase != LifecyclePhase::suspended || !is_open(*suspension)) {
    unit.edit<Suspension>(key).next_due_at_ms.reset();
    return Rule::none;
  }
  const auto timeout_at = suspension->details.timeout_at_ms;
  if (!timeout_at || *timeout_at > at.now_ms) {
    unit.edit<Suspension>(key).next_due_at_ms = timeout_at;
    return Rule::none;
  }
  const auto behavior = suspension->details.timeout_behavior;
  switch (behavior) {
    case TimeoutBehavior::auto_resume_with_timeout_signal:
      append_timeout_signal(unit, id, at);
      resume_by_timeout(unit, id, at);
      break;
    case TimeoutBehavior::auto_resume:
      resume_by_timeout(unit, id, at);
      break;
    case TimeoutBehavior::escalate:
      escalate(unit, id, at);
      break;
    default:
      end_by_timeout(unit, id, behavior, at);
  }
  return Rule::suspension_timeout;
}

FLOWFABRIC_OPERATION(ResumeExecution)

}  // namespace flowfabric::core
