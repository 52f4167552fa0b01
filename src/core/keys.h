// Keys that follow from an id and the number of partitions, and the ids of a submitted flow.
#pragma once

#include <string_view>

#include "model/partition.h"
#include "model/records.h"

namespace flowfabric::core {

inline FlowKey flow_key(const FlowId& id, const PartitionCounts& partitions) {
  return {partition_of(id.uuid, partitions.flow), id};
}
inline BudgetKey budget_key(const BudgetId& id, const PartitionCounts& partitions) {
  return {partition_of(id.uuid, partitions.budget), id};
}
inline QuotaPolicyKey quota_key(const QuotaPolicyId& id, const PartitionCounts& partitions) {
  return {partition_of(id.uuid, partitions.quota), id};
}

// An id within a submitted flow. It follows from the flow's id, so that a repeated call finds the same one;
// those of one flow are neighbours in every index. `number` tells apart what the text does not.
Uuid id_within(const FlowId& flow, std::string_view text, std::uint64_t number);

// Operations with the same affinity prefer the same committer. The members of a submitted flow share that of
// the flow: each that ends moves the next.
std::size_t affinity_of(const FlowId& id);
std::size_t affinity_of(const ExecutionId& id);

}  // namespace flowfabric::core
