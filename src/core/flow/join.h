// The decision of a join: a pure function of its policy and of how its upstreams have ended.
#pragma once

#include "core/unit.h"

namespace flowfabric::core {

struct JoinCounts {
  std::uint32_t edges{};  // in force
  std::uint32_t succeeded{};
  std::uint32_t failed{};  // or cancelled, or expired
  std::uint32_t skipped{};
};

// pending, satisfied or impossible. Impossible as soon as it is certain; a quorum larger than the number of
// edges waits for more edges.
GroupState decide(const JoinPolicy& policy, const JoinCounts& counts);

JoinPolicy policy_of(const EdgeGroup& group);
JoinCounts counts_of(const EdgeGroup& group);
// Counts an edge as it stands now. What it was resolved by is not known any more: a skip counts as a failure.
void count_in(JoinCounts& counts, const Edge& edge);
// Whether the join counts at least those; upstreams that retention has removed took their edges with them.
bool covers(const EdgeGroup& group, const JoinCounts& counts);
// Its member waits for it.
bool is_undecided(const EdgeGroup& group);
// Upstreams that have not ended yet.
std::uint32_t running_count(const EdgeGroup& group);

}  // namespace flowfabric::core
