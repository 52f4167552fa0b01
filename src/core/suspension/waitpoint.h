// Waitpoints: where signals arrive. A suspend makes them, or takes one that was made before; each is
// somebody's for good (specification 03 §5, §7.3).
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

inline constexpr std::size_t kMaxWaitpointKeyLength = 256;

// The caller holds the lease of a running attempt.
Result<const Execution*> check_holder(Unit& unit, const ExecutionId& id, const LeaseFence& fence,
                                      const std::optional<std::uint32_t>& attempt_index, ErrorCode mismatch,
                                      Context& at);

// Makes the waitpoints of a suspension, or takes the pending one, and adds them to `details`.
Result<void> bind(Unit& unit, const Execution& execution, const std::vector<WaitpointBinding>& bindings,
                  SuspensionDetails& details, Context& at);

Result<TokenedWaitpoint> apply(Unit& unit, const CreateWaitpoint& request, Context& at);
Result<WaitpointClosed> apply(Unit& unit, const CloseWaitpoint& request, Context& at);

// It is pending, and nobody was suspended on it in time: it takes no signals, whether it is closed yet or
// not.
bool has_expired(const Waitpoint& waitpoint, std::int64_t now_ms);
// Closes such a one.
Rule run_waitpoint_clock(Unit& unit, const WaitpointRecordKey& key, Context& at);

}  // namespace flowfabric::core
