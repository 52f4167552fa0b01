// Grants: short reservations of one execution for one worker, and the calls that use them.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<ClaimGrant> apply(Unit& unit, const IssueClaimGrant& request, Context& at);
Result<std::optional<ClaimGrant>> apply(Unit& unit, const ClaimForWorker& request, Context& at);
Result<ClaimedTask> apply(Unit& unit, const ClaimExecution& request, Context& at);
Result<ClaimedTask> apply(Unit& unit, const ClaimResumedExecution& request, Context& at);
Result<ClaimedTask> apply(Unit& unit, const ClaimGranted& request, Context& at);
Result<ClaimedTask> apply(Unit& unit, const IssueGrantAndClaim& request, Context& at);
Result<ReclaimAnswer> apply(Unit& unit, const IssueReclaimGrant& request, Context& at);
Result<ReclaimAnswer> apply(Unit& unit, const ReclaimExecution& request, Context& at);

}  // namespace flowfabric::core
