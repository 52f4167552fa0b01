// Quota policies: a sliding window over what was started, and slots for what is running.
//
// An admission is recorded before work is handed out. Its slot is freed when the execution is neither leased
// nor granted any more; the rate goes on counting it until it leaves the window.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<QuotaCreation> apply(Unit& unit, const CreateQuotaPolicy& request, Context& at);
Result<QuotaPolicyDeleted> apply(Unit& unit, const DeleteQuotaPolicy& request, Context& at);
Result<Admission> apply(Unit& unit, const CheckAdmission& request, Context& at);
Result<AdmissionReleased> apply(Unit& unit, const ReleaseAdmission& request, Context& at);
QuotaStatus view(const QuotaPolicy& policy);
// With a colon, for texts that say something of it.
std::string name_of(const QuotaPolicy& policy);
std::int64_t window_ms(const QuotaPolicy& policy);
// It is in use: the clock compares its counts with the admissions from time to time.
void expect_reconciliation(QuotaPolicy& policy, const Context& at);

// Would the policy let the execution through now? Records nothing.
Admission look(Unit& unit, const QuotaPolicyKey& key, const ExecutionId& id, const Context& at);
// It is let through.
void record_admission(Unit& unit, const QuotaPolicyKey& key, Execution& execution, const Context& at);
// Its lease or its grant has ended: the slots it holds are free.
void free_slots(Unit& unit, const ExecutionId& execution, const std::vector<QuotaPolicyId>& holding,
                const Context& at);
// It was let through, and then not handed out: as if it had not been.
void withdraw(Unit& unit, const QuotaPolicyKey& key, const ExecutionId& id, const Context& at);

// What the policy holds back is let go one by one as there is room, from `at_ms` on.
void expect_room(Unit& unit, const QuotaPolicyKey& key, std::int64_t at_ms);
// The policy was taken off a scope: what it holds back is looked at again.
void recheck_all(Unit& unit, const QuotaPolicyKey& key, const Context& at);

// When the policy is due next, by rules that are not off.
std::optional<std::int64_t> next_clock(const QuotaPolicy& policy, const RuleSet& off = {});
Rule run_quota_policy_clock(Unit& unit, const QuotaPolicyKey& key, Context& at);

}  // namespace flowfabric::core
