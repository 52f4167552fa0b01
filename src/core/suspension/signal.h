// Signals: who may deliver one, and what it does (specification 03 §6, §8).
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<SignalDelivered> apply(Unit& unit, const DeliverSignal& request, Context& at);
Result<SignalDelivered> apply(Unit& unit, const DeliverApprovalSignal& request, Context& at);

// The signal that tells a resumed worker that time ran out.
void append_timeout_signal(Unit& unit, const ExecutionId& id, Context& at);

// Evaluates the signals that reached a waitpoint before its suspension. True: they satisfy the condition, and
// nothing is to be suspended.
bool count_early_signals(Unit& unit, const WaitpointRecordKey& key, SuspensionDetails& details);

// `waitpoint` may be null: then its key is not known.
ResumeSignal view(const Signal& signal, const Waitpoint* waitpoint);

}  // namespace flowfabric::core
