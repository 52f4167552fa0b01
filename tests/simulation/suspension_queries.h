// Reads around suspensions, at random: every store must answer the same, and exactly the stored data; only
// the request for a token shows one.
#pragma once

#include "core/suspension/suspension.h"
#include "simulation/replica_reads.h"

namespace flowfabric::simulation {

class SuspensionQueries : private ReplicaReads {
 public:
  using ReplicaReads::ReplicaReads;

  void compare(const State& state) {
    compare_read(ListWaitpointKids{});
    compare_suspended(state);
    for (int i = 0; i < 5; ++i) {
      const auto* row = some_suspension(state);
      if (row == nullptr) return;
      compare_waitpoints(state, row->owner());
      compare_read(ObserveSignals{row->owner(), row->details.attempt_index});
      compare_read(DescribeSuspension{row->owner()});
      compare_tokens(state, row->owner());
    }
  }

 private:
  const Suspension* some_suspension(const State& state) {
    const auto& all = state.rows<Suspension>();
    if (all.empty()) return nullptr;
    return &std::next(all.begin(), dice_.below(static_cast<std::int64_t>(all.size())))->second;
  }

  void compare_suspended(const State& state) {
    const auto* row = some_suspension(state);
    const std::uint16_t partition = row ? row->partition_key : std::uint16_t{7};
    std::vector<std::pair<std::int64_t, ExecutionId>> expected, found;
    for (const auto& [key, suspension] : state.rows<Suspension>()) {
      if (key.partition_key != partition || !core::is_open(suspension)) continue;
      expected.emplace_back(suspension.details.suspended_at_ms, suspension.owner());
    }
    std::ranges::sort(expected);
    for (const auto& page : pages(ListSuspended{.partition = partition, .limit = limit()})) {
      for (const auto& entry : page.suspended) found.emplace_back(entry.suspended_at_ms, entry.execution_id);
    }
    EXPECT_TRUE(found == expected) << "listed " << found.size() << " of " << expected.size() << " suspended";
  }

  static std::vector<const Waitpoint*> waitpoints_of(const State& state, const ExecutionId& id) {
    std::vector<const Waitpoint*> found;
    const auto& all = state.rows<Waitpoint>();
    for (auto it = all.lower_bound({id.partition, id.uuid, {}}); it != all.end() && it->second.owner() == id;
         ++it) {
      found.push_back(&it->second);
    }
    return found;
  }

  // An ended execution has none, even if a waitpoint's own clock has not closed it yet.
  static bool is_open(const State& state, const Waitpoint& waitpoint) {
    const auto& owner = state.rows<Execution>().at(waitpoint.owner());
    return waitpoint.state != WaitpointState::closed &&
           owner.state.lifecycle_phase != LifecyclePhase::terminal;
  }

  void compare_waitpoints(const State& state, const ExecutionId& id) {
    std::vector<WaitpointId> expected, found;
    for (const auto* waitpoint : waitpoints_of(state, id)) {
      if (is_open(state, *waitpoint)) expected.push_back(waitpoint->waitpoint_id);
    }
    for (const auto& page : pages(ListPendingWaitpoints{.execution_id = id, .limit = limit()})) {
      for (const auto& each : page.waitpoints) {
        found.push_back(each.waitpoint_id);
        expect_no_token(state, each);
      }
    }
    EXPECT_TRUE(found == expected) << "listed " << found.size() << " of " << expected.size() << " waitpoints";
  }
  static void expect_no_token(const State& state, const WaitpointView& view) {
    const auto& token =
        state.rows<Waitpoint>().at(core::waitpoint_key(view.execution_id, view.waitpoint_id)).token;
    const auto digest = token.substr(token.find(':') + 1);
    EXPECT_EQ(view.token_kid, token.substr(0, token.find(':')));
    EXPECT_EQ(view.token_fingerprint, digest.substr(0, 16));
    std::string shown = view.waitpoint_key + view.token_kid;
    for (const auto& name : view.required_signal_names) shown += name;
    EXPECT_EQ(shown.find(digest.substr(16)), std::string::npos) << "a token is shown";
  }

  void compare_tokens(const State& state, const ExecutionId& id) {
    for (const auto* waitpoint : waitpoints_of(state, id)) {
      const auto token = compare_read(ReadWaitpointToken{id, waitpoint->waitpoint_id});
      const bool is_late = waitpoint->state == WaitpointState::pending && waitpoint->expires_at_ms &&
                           *waitpoint->expires_at_ms <= state.now_ms;
      const bool open = is_open(state, *waitpoint) && !is_late;
      EXPECT_EQ(token.value(), open ? std::optional(waitpoint->token) : std::nullopt);
    }
  }
};

}  // namespace flowfabric::simulation
