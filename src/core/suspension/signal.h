// Signals: who may deliver one, and what it does (specification 03 §6, §8).
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<SignalDelivered> deliver_signal(Unit& unit, const DeliverSignal& request, Context& at);
// Names what that will need.
void want_for(Unit& unit, const DeliverSignal& request);
Result<SignalDelivered> deliver_approval(Unit& unit, const DeliverApprovalSignal& request, Context& at);

// The signal that tells a resumed worker that time ran out.
void append_timeout_signal(Unit& unit, const ExecutionId& id, Context& at);

// Evaluates what came to a waitpoint before its suspension. True: it is enough, and nothing is to be
// suspended.
bool replay_buffered(Unit& unit, const WaitpointRecordKey& key, SuspensionDetails& details);

// `waitpoint` may be null: then its key is not known.
ResumeSignal view(const Signal& signal, const Waitpoint* waitpoint);

}  // namespace flowfabric::core
