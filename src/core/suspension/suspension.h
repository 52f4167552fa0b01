// What becomes of a suspension: it opens, and it is closed by a signal, an operator, its timeout, or the end
// of its execution (specification 03 §7–§10).
#pragma once

#include "core/context.h"
#include "core/suspension/resume_condition.h"
#include "core/unit.h"

namespace flowfabric::core {

SuspensionKey suspension_key(const ExecutionId& id);
WaitpointRecordKey waitpoint_key(const ExecutionId& id, const WaitpointId& waitpoint_id);

// Numbers are stored as texts.
std::vector<SignalKey> signal_keys(const ExecutionId& id, const std::vector<std::string>& numbers);

// The row that is there from the first suspension, waitpoint or refused token on.
Suspension& suspension_row(Unit& unit, const ExecutionId& id);
bool is_open(const Suspension& suspension);

Satisfied satisfied_of(const SuspensionDetails& details);
void set_satisfied(SuspensionDetails& details, const Satisfied& satisfied);

// What the resumed worker gets to see, in the order of acceptance.
std::vector<ResumeSignal> signals_of(Unit& unit, const ExecutionId& id, const SuspensionDetails& details);
// It was closed by a signal, or by its timeout with one.
bool is_shown_to_worker(const SuspensionDetails& details);
// For a claim of an attempt that was suspended: none, unless a signal or its timeout has resumed it.
std::vector<ResumeSignal> resume_signals(Unit& unit, const ExecutionId& id, std::uint32_t attempt_index);
// What that will need, for several executions at once.
void fetch_resume_signals(Unit& unit, const std::vector<ExecutionId>& ids);

// The first that it waits on; none if it is closed.
std::optional<WaitpointId> primary_waitpoint(const Suspension& suspension);
std::vector<WaitpointRecordKey> waitpoints_of(const ExecutionId& id, const SuspensionDetails& details);
void close(Waitpoint& waitpoint, const std::string& reason, const Context& at);
// Without its waitpoints.
void close(Suspension& suspension, const std::string& reason, ResumeTrigger trigger, const Context& at);

// Back in line, or to its resume delay. The suspension and its waitpoints are closed.
struct HowResumed {
  ResumeTrigger trigger{};
  std::string close_reason{"resumed"};
  std::int64_t delay_ms{0};
  std::string delay_detail{};
  std::string requested_by{};
};
void resume(Unit& unit, const ExecutionId& id, const HowResumed& how, const Context& at);

// The execution ends while it is suspended: its waitpoints, pending ones included, are closed with it.
void close_with_execution(Unit& unit, const Execution& execution, const std::string& reason,
                          const Context& at);
// What that will need, for several executions at once.
void fetch_suspensions(Unit& unit, const std::vector<ExecutionId>& ids);

Result<Resumed> apply(Unit& unit, const ResumeExecution& request, Context& at);

Rule run_suspension_clock(Unit& unit, const SuspensionKey& key, Context& at);

}  // namespace flowfabric::core
