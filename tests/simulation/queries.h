// Listings with random conditions: every store must give the same pages, and together they must hold exactly
// what the conditions mean.
#pragma once

#include <gtest/gtest.h>

#include "simulation/suspension_queries.h"

namespace flowfabric::simulation {

class Queries : private ReplicaReads {
 public:
  Queries(Dice& dice, const std::vector<Replica*>& replicas)
      : ReplicaReads(dice, replicas), suspensions_(dice, replicas) {}

  void compare(const State& state) {
    for (int i = 0; i < 6; ++i) compare_executions(state);
    compare_partition(state);
    for (int i = 0; i < 2; ++i) compare_expired_leases(state);
    compare_lanes(state);
    compare_workers(state);
    for (int i = 0; i < 5; ++i) compare_reads(state);
    suspensions_.compare(state);
  }

 private:
  std::optional<std::string> name_space() {
    if (!dice_.chance(30)) return std::nullopt;
    return dice_.pick<std::string>({"", "team", "nobody"});
  }
  ExecutionFilter filter(const State& state) {
    using enum PublicState;
    ExecutionFilter filter;
    if (dice_.chance(40)) filter.lane_id = dice_.pick<std::string>({"a", "b", "default", "empty"});
    filter.namespace_ = name_space();
    if (dice_.chance(30)) filter.execution_kind = dice_.pick<std::string>({"kind", "other", ""});
    if (dice_.chance(40)) filter.states = {dice_.pick({waiting, delayed, active, completed, failed})};
    if (dice_.chance(15)) filter.states = {cancelled, rate_limited, expired};
    if (dice_.chance(25)) filter.tags["test.color"] = dice_.pick<std::string>({"", "red", "green"});
    if (dice_.chance(15)) filter.tags["cairn.instance_id"] = dice_.name("i-", 3);
    const auto* somebody = some_execution(state);
    if (somebody && dice_.chance(20)) filter.created_after = somebody->created_at_ms;
    if (somebody && dice_.chance(20)) filter.created_before = somebody->created_at_ms + dice_.below(2000);
    return filter;
  }

  template <class T>
  static bool is_or_any(const std::optional<T>& wanted, const T& value) {
    return !wanted || *wanted == value;
  }
  static bool matches(const State& state, const ExecutionFilter& filter, const Execution& execution) {
    const auto& states = filter.states;
    const auto state_of = execution.state.public_state;
    const auto& kind = state.rows<ExecutionSpec>().at(execution.key()).execution_kind;
    const bool tagged = std::ranges::all_of(filter.tags, [&](const auto& tag) {
      const auto it = execution.tags.find(tag.first);
      return it != execution.tags.end() && it->second == tag.second;
    });
    return tagged && is_or_any(filter.lane_id, execution.lane_id) &&
           is_or_any(filter.namespace_, execution.namespace_) && is_or_any(filter.execution_kind, kind) &&
           (states.empty() || std::ranges::count(states, state_of) > 0) &&
           (!filter.created_after || execution.created_at_ms > *filter.created_after) &&
           (!filter.created_before || execution.created_at_ms < *filter.created_before);
  }

  void compare_executions(const State& state) {
    const ListExecutions request{.filter = filter(state),
                                 .order = dice_.chance(50) ? ListOrder::newest : ListOrder::oldest,
                                 .limit = std::max(limit(), 3u)};
    std::vector<std::pair<std::int64_t, ExecutionId>> expected;
    for (const auto& [id, execution] : state.rows<Execution>()) {
      if (matches(state, request.filter, execution)) expected.emplace_back(execution.created_at_ms, id);
    }
    std::ranges::sort(expected);
    if (request.order == ListOrder::newest) std::ranges::reverse(expected);
    std::vector<std::pair<std::int64_t, ExecutionId>> found;
    for (const auto& page : pages(request)) {
      EXPECT_LE(page.executions.size(), request.limit);
      for (const auto& entry : page.executions) found.emplace_back(entry.created_at, entry.execution_id);
    }
    EXPECT_TRUE(found == expected) << "listed " << found.size() << " of " << expected.size();
  }

  void compare_partition(const State& state) {
    const auto* somebody = some_execution(state);
    const std::uint16_t partition = somebody ? somebody->partition_key : std::uint16_t{7};
    std::vector<ExecutionId> expected, found;
    for (const auto& [id, execution] : state.rows<Execution>()) {
      if (id.partition == partition) expected.push_back(id);
    }
    for (const auto& page : pages(ListPartition{.partition = partition, .limit = limit()})) {
      found.insert(found.end(), page.executions.begin(), page.executions.end());
    }
    EXPECT_TRUE(found == expected) << "partition " << partition;
  }

  void compare_expired_leases(const State& state) {
    ListExpiredLeases request{.namespace_ = name_space(), .limit = limit()};
    if (dice_.chance(40)) request.as_of = state.now_ms - dice_.between(-1000, 3000);
    const auto as_of = std::min(request.as_of.value_or(state.now_ms), state.now_ms);
    std::vector<std::pair<std::int64_t, ExecutionId>> expected, found;
    for (const auto& [id, execution] : state.rows<Execution>()) {
      const auto owner = execution.state.ownership_state;
      const auto expires_at = execution.lease.lease_expires_at_ms;
      const bool held = owner == OwnershipState::leased || owner == OwnershipState::lease_expired_reclaimable;
      if (!held || !is_or_any(request.namespace_, execution.namespace_)) continue;
      if (expires_at && *expires_at <= as_of) expected.emplace_back(*expires_at, id);
    }
    std::ranges::sort(expected);
    for (const auto& page : pages(request)) {
      for (const auto& lease : page.leases) found.emplace_back(lease.expires_at, lease.execution_id);
    }
    EXPECT_TRUE(found == expected) << "listed " << found.size() << " of " << expected.size();
  }

  void compare_lanes(const State& state) {
    std::map<std::string, std::optional<std::int64_t>> expected, found;  // the oldest that waits
    for (const auto& [key, lane] : state.rows<Lane>()) expected[key.lane_id];
    for (const auto& [id, execution] : state.rows<Execution>()) {
      if (execution.state.public_state != PublicState::waiting) continue;
      auto& oldest = expected[execution.lane_id];
      oldest = std::min(oldest.value_or(execution.created_at_ms), execution.created_at_ms);
    }
    LaneCounts counts;
    for (const auto& page : pages(ListLanes{.limit = limit()})) {
      for (const auto& lane : page.lanes) {
        found[lane.lane_id] = lane.oldest_waiting_at;
        for (const auto& [public_state, count] : lane.counts) counts[{lane.lane_id, public_state}] = count;
      }
    }
    EXPECT_TRUE(found == expected) << "lanes, and how long they let wait";
    EXPECT_TRUE(counts == state.counts) << "counts of lanes";
  }

  void compare_workers(const State& state) {
    const ListWorkers request{.namespace_ = name_space(), .limit = limit()};
    std::vector<std::pair<WorkerKey, std::uint64_t>> expected, found;  // with what they run
    for (const auto& [key, worker] : state.rows<Worker>()) {
      const bool alive = worker.last_heartbeat_ms + worker.liveness_ttl_ms > state.now_ms;
      if (alive && is_or_any(request.namespace_, key.namespace_)) {
        expected.emplace_back(key, leases_of(state, key));
      }
    }
    for (const auto& page : pages(request)) {
      for (const auto& worker : page.workers) {
        found.emplace_back(WorkerKey{worker.namespace_, worker.worker_instance_id}, worker.leases);
      }
    }
    EXPECT_TRUE(found == expected) << "listed " << found.size() << " of " << expected.size() << " workers";
  }

  static std::uint64_t leases_of(const State& state, const WorkerKey& key) {
    std::uint64_t leases = 0;
    for (const auto& [id, execution] : state.rows<Execution>()) {
      const auto& lease = execution.lease;
      const bool held = execution.state.ownership_state == OwnershipState::leased &&
                        lease.worker_instance_id == key.worker_instance_id &&
                        *lease.lease_expires_at_ms > state.now_ms;
      if (!held) continue;
      const bool is_anothers = state.rows<Worker>().contains({execution.namespace_, key.worker_instance_id});
      if (execution.namespace_ == key.namespace_ || (key.namespace_.empty() && !is_anothers)) ++leases;
    }
    return leases;
  }

  void compare_reads(const State& state) {
    const auto* somebody = some_execution(state);
    const auto id = somebody ? somebody->key() : ExecutionId{};
    compare_read(DescribeExecution{id});
    compare_read(ListAttempts{id});
    compare_read(ReadContext{id});
    compare_read(ReadResult{id});
  }

  SuspensionQueries suspensions_;
};

}  // namespace flowfabric::simulation
