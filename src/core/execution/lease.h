// Leases: who may speak for a running execution, and keeping that right alive.
#pragma once

#include <string>

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

inline constexpr std::int64_t kMinLeaseTtlMs = 1000;
inline constexpr std::int64_t kMaxLeaseTtlMs = 3'600'000;
Result<void> check_lease_ttl(std::int64_t ttl_ms);
// When a holder should have renewed: two thirds of the time to live.
std::int64_t renewal_deadline(std::int64_t now_ms, std::int64_t ttl_ms);

enum class Unfenced { never, by_operator };
// The fence is whole, or absent where `source` allows that.
Result<void> check_fence_shape(const LeaseFence& fence, Unfenced allowed, const std::string& source);

enum class OnExpiry { mark, only_refuse };
// The execution, if the caller holds its lease: specification 02 §2.2, first failure wins. A lease found
// expired is marked as such, and the mark outlives the refusal.
Result<const Execution*> check_lease(Unit& unit, const ExecutionId& id, const LeaseFence& fence,
                                     OnExpiry on_expiry, Context& at);

// The fence is that of the lease that ended last.
bool was_last(const Execution& execution, const LeaseFence& fence);
// True when that lease ended by this very operation: its answer was lost.
bool repeats(const Execution& execution, const LeaseFence& fence, LeaseEnd operation);
// A later lease than the fence's has ended.
bool is_outlived(const Execution& execution, const LeaseFence& fence);

Error not_active(const Execution& execution);
Error not_found(const ExecutionId& id);

// Its time is over, whether somebody noticed or not.
bool has_lapsed(const Execution& execution, const Context& at);
// The holder stopped renewing: the execution waits to be reclaimed.
void mark_lease_expired(Unit& unit, Execution& execution, const Context& at);
// The same before its time, for the holder is gone.
void end_lease_of_dead(Unit& unit, Execution& execution, const Context& at);
inline constexpr const char* kWorkerDead = "worker_dead";

Result<Renewal> apply(Unit& unit, const RenewLease& request, Context& at);
// Takes the lease away from its holder, who learns of it at the next call.
Result<Revocation> apply(Unit& unit, const RevokeLease& request, Context& at);
Result<ProgressUpdated> apply(Unit& unit, const UpdateProgress& request, Context& at);

}  // namespace flowfabric::core
