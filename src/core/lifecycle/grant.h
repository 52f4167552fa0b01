// Grants: short reservations of one execution for one worker, and the calls that use them.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<ClaimGrant> issue_claim_grant(Unit& unit, const IssueClaimGrant& request, Context& at);
Result<std::optional<ClaimGrant>> claim_for_worker(Unit& unit, const ClaimForWorker& request, Context& at);
Result<ClaimedTask> claim_execution(Unit& unit, const ClaimExecution& request, Context& at);
Result<ClaimedTask> claim_resumed(Unit& unit, const ClaimResumedExecution& request, Context& at);
Result<ClaimedTask> claim_granted(Unit& unit, const ClaimGranted& request, Context& at);
Result<ClaimedTask> issue_grant_and_claim(Unit& unit, const IssueGrantAndClaim& request, Context& at);
Result<ReclaimAnswer> issue_reclaim_grant(Unit& unit, const IssueReclaimGrant& request, Context& at);
Result<ReclaimAnswer> reclaim(Unit& unit, const ReclaimExecution& request, Context& at);

}  // namespace flowfabric::core
