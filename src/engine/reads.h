// Which read answers which request. Listings are in listing.h.
#pragma once

#include "engine/readers.h"

namespace flowfabric::engine {

Result<ExecutionSnapshot> answer(Readers& readers, const DescribeExecution& request);
Result<PublicState> answer(Readers& readers, const ReadState& request);
Result<ExecutionContext> answer(Readers& readers, const ReadContext& request);
Result<Tags> answer(Readers& readers, const ReadTags& request);
Result<std::optional<std::string>> answer(Readers& readers, const ReadResult& request);
Result<std::vector<AttemptSnapshot>> answer(Readers& readers, const ListAttempts& request);
Result<std::map<PublicState, std::int64_t>> answer(Readers& readers, const CountLane& request);
Result<BulkOperation> answer(Readers& readers, const ReadBulkOperation& request);
Result<std::vector<LeaseEventView>> answer(Readers& readers, const ReadLeaseEvents& request);
Result<std::vector<CompletionEventView>> answer(Readers& readers, const ReadCompletions& request);
Result<std::vector<OperatorEventView>> answer(Readers& readers, const ReadOperatorEvents& request);
Result<std::vector<WorkerEventView>> answer(Readers& readers, const ReadWorkerEvents& request);
Result<std::vector<SignalEventView>> answer(Readers& readers, const ReadSignalEvents& request);

}  // namespace flowfabric::engine
