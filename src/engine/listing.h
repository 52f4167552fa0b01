// Listings. Every one walks indexes in order and stops after a bounded number of candidates, so that a page
// costs the same however many executions there are.
//
// Executions are found in one of four ways, chosen by the filter: those of a flow, those with a tag, those of
// the groups (lane, namespace, kind) and states that the filter matches, or all of them. The walks are merged
// by age, and what the chosen way does not settle is checked on the execution itself.
#pragma once

#include "core/views/listing.h"
#include "engine/readers.h"

namespace flowfabric::engine {

struct ListQuery {
  ExecutionFilter filter;
  ListOrder order{};
  std::optional<core::ListPosition> after;
  std::uint32_t limit{};
};
struct ListResult {
  std::vector<std::pair<ListedExecution, const Group*>> found;  // the groups are those of the unit
  std::optional<core::ListPosition> next;                       // absent: there is no more
};
ListResult list(store::Session& session, core::Unit& unit, const ListQuery& query);

Result<ExecutionPage> answer(Readers& readers, const ListExecutions& request);
Result<PartitionPage> answer(Readers& readers, const ListPartition& request);
Result<ExpiredLeasePage> answer(Readers& readers, const ListExpiredLeases& request);
Result<LanePage> answer(Readers& readers, const ListLanes& request);
Result<WorkerPage> answer(Readers& readers, const ListWorkers& request);

}  // namespace flowfabric::engine
