// Bulk operations: the same done to every execution that a filter matches.
//
// The engine walks the listing (engine/bulk.h) and asks here what to do with each execution, in an operation
// of its own; a step's progress is recorded afterwards. A step that is repeated after a crash does no harm:
// what was cancelled is no longer there to cancel, a priority is set to the same value, and a replay leaves
// alone what has not ended by the time the operation began.
#pragma once

#include "core/context.h"
#include "core/unit.h"

namespace flowfabric::core {

Result<BulkOperation> apply(Unit& unit, const StartBulkOperation& request, Context& at);
Result<BulkOperation> apply(Unit& unit, const CancelBulkOperation& request, Context& at);
BulkOperation view(const BulkJob& job);
Error no_such_operation(const OperationId& id);

// The executions that a bulk operation has to look at.
ExecutionFilter filter_of(const BulkJob& job);

enum class BulkItem { left_alone, done };
Result<BulkItem> apply_bulk(Unit& unit, const BulkJob& job, const ExecutionId& id, Context& at);

struct BulkStep {
  OperationId operation_id;
  std::string after;                // the cursor that the step began at; another one: somebody else did it
  std::optional<std::string> next;  // absent: there is no more
  std::uint64_t done{};
  std::uint64_t failed{};
  std::string last_error;
};
void record_bulk_step(Unit& unit, const BulkStep& step, Context& at);
// How many executions a step may look at.
std::uint32_t bulk_step_size(const BulkJob& job);

// Removes an operation that has ended, after its retention.
Rule run_bulk_job_clock(Unit& unit, const BulkJobKey& key, Context& at);

}  // namespace flowfabric::core
