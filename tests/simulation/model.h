// A small model of what must be true, kept from the answers alone and compared with what is stored.
#pragma once

#include <gtest/gtest.h>

#include "simulation/state.h"
#include "simulation/steps.h"

namespace flowfabric::simulation {

class Model {
 public:
  void observe(const Step& step, const Answer& answer, std::int64_t now) {
    if (std::holds_alternative<Result<std::vector<ClaimedTask>>>(answer)) {
      observe_claim(std::get<ClaimTasks>(step.request), std::get<Result<std::vector<ClaimedTask>>>(answer),
                    now);
    } else if (const auto* renewal = std::get_if<Result<Renewal>>(&answer); renewal && *renewal) {
      const auto& request = std::get<RenewLease>(step.request);
      auto& lease = leases_[request.execution_id];
      EXPECT_EQ(lease.fence, request.fence) << "renewed by another than the holder";
      EXPECT_GT(lease.expires_at, now) << "renewed after it had run out";
      lease.expires_at = (*renewal)->expires_at;
    } else if (const auto* cancelled = std::get_if<Result<Cancelled>>(&answer); cancelled && *cancelled) {
      leases_.erase((*cancelled)->execution_id);
      ended_.insert((*cancelled)->execution_id);
    } else {
      observe_report(step.request, answer, now);
    }
  }

  void check(const State& state) {
    check_counts(state);
    check_epochs_and_invariants(state);
    check_completions(state);
    check_attempts(state);
    for (const auto& id : ended_) {
      const auto it = state.executions.find(id);
      ASSERT_NE(it, state.executions.end()) << id.to_string();
      EXPECT_EQ(it->second.state.lifecycle_phase, LifecyclePhase::terminal) << id.to_string();
    }
  }

  std::size_t claimed() const { return claimed_; }

 private:
  struct Held {
    LeaseFence fence;
    std::int64_t expires_at{};
    std::optional<std::int64_t> timeout_at;
  };

  void observe_claim(const ClaimTasks& request, const Result<std::vector<ClaimedTask>>& tasks,
                     std::int64_t now) {
    if (!tasks) return;
    EXPECT_LE(tasks->size(), request.max_tasks);
    const ClaimedTask* previous = nullptr;
    for (const auto& task : *tasks) {
      const auto id = task.execution_id.to_string();
      EXPECT_FALSE(ended_.contains(task.execution_id)) << id << " was handed out after its end";
      if (const auto held = leases_.find(task.execution_id); held != leases_.end()) {
        const auto& lease = held->second;
        const bool over = lease.expires_at <= now || (lease.timeout_at && *lease.timeout_at <= now);
        EXPECT_TRUE(over) << id << " was handed out while another lease was in force";
        EXPECT_GT(task.fence.lease_epoch, lease.fence.lease_epoch) << id;
      }
      EXPECT_EQ(task.lease_expires_at, now + request.lease_ttl_ms) << id;
      const bool one_lane = request.lanes.size() == 1;
      EXPECT_TRUE(!one_lane || !previous || previous->priority >= task.priority) << id;
      previous = &task;
      leases_[task.execution_id] = {task.fence, task.lease_expires_at, task.attempt_timeout_at};
      ++claimed_;
    }
  }

  // A report ends the lease it is made under. Repeating one that ended an earlier lease ends nothing.
  void observe_report(const Request& request, const Answer& answer, std::int64_t now) {
    std::visit(
        [&](const auto& asked) {
          using Asked = std::remove_cvref_t<decltype(asked)>;
          constexpr bool is_report = std::is_same_v<Asked, CompleteExecution> ||
                                     std::is_same_v<Asked, FailExecution> ||
                                     std::is_same_v<Asked, DelayExecution>;
          if constexpr (is_report) {
            const auto& result = std::get<Result<typename Asked::Answer>>(answer);
            const auto held = leases_.find(asked.execution_id);
            const bool ends = result && held != leases_.end() &&
                              (asked.fence == LeaseFence{} || asked.fence == held->second.fence);
            if (!ends) return;
            EXPECT_GT(held->second.expires_at, now) << "a report was accepted after the lease had run out";
            leases_.erase(held);
            if constexpr (std::is_same_v<Asked, CompleteExecution>) {
              ended_.insert(asked.execution_id);
              results_[asked.execution_id] = asked.result;
            } else if constexpr (std::is_same_v<Asked, FailExecution>) {
              if (!result->retry_scheduled) ended_.insert(asked.execution_id);
            }
          }
        },
        request);
  }

  static void check_counts(const State& state) {
    std::map<std::string, std::map<PublicState, std::int64_t>> counted;
    for (const auto& [lane, counts] : state.counts) counted[lane];
    for (const auto& [id, execution] : state.executions) {
      ++counted[execution.lane_id][execution.state.public_state];
    }
    EXPECT_EQ(counted, state.counts);
  }

  void check_epochs_and_invariants(const State& state) {
    for (const auto& [id, execution] : state.executions) {
      auto& epoch = epochs_[id];
      EXPECT_GE(execution.lease_epoch, epoch) << id.to_string();
      epoch = execution.lease_epoch;
      const auto broken = core::broken_invariants(nullptr, execution);
      EXPECT_TRUE(broken.empty()) << id.to_string() << ": " << broken.front();
      EXPECT_TRUE(state.specs.contains(id)) << id.to_string() << " has no spec";
      EXPECT_TRUE(state.routes.contains({execution.route_id})) << id.to_string() << " has no route";
    }
    EXPECT_EQ(state.specs.size(), state.executions.size());
  }

  void check_completions(const State& state) const {
    std::map<ExecutionId, int> completions;
    for (const auto& event : state.completions) {
      const ExecutionId id{event.partition_key, event.execution_id};
      ++completions[id];
      EXPECT_EQ(event.outcome, state.executions.at(id).state.terminal_outcome) << id.to_string();
    }
    for (const auto& [id, execution] : state.executions) {
      const bool ended = execution.state.lifecycle_phase == LifecyclePhase::terminal;
      const auto it = completions.find(id);
      EXPECT_EQ(it == completions.end() ? 0 : it->second, ended ? 1 : 0) << id.to_string();
    }
    for (const auto& [id, result] : results_) {
      const auto& execution = state.executions.at(id);
      const AttemptKey last{id.partition, id.uuid, execution.total_attempt_count - 1};
      EXPECT_EQ(state.attempts.at(last).result.data, result) << id.to_string();
    }
  }

  // Every attempt but one in progress has its row, and every lease its event.
  static void check_attempts(const State& state) {
    std::map<ExecutionId, std::uint32_t> rows;
    std::map<ExecutionId, std::int64_t> grants;
    for (const auto& [key, attempt] : state.attempts) ++rows[{key.partition_key, key.execution_id}];
    for (const auto& event : state.lease_events) {
      const bool grant =
          event.event_type == LeaseEventType::acquired || event.event_type == LeaseEventType::reclaimed;
      if (grant) ++grants[{event.partition_key, event.execution_id}];
    }
    for (const auto& [id, execution] : state.executions) {
      const bool in_progress = execution.state.attempt_state == AttemptState::running_attempt ||
                               execution.state.attempt_state == AttemptState::attempt_interrupted;
      EXPECT_EQ(rows[id] + (in_progress ? 1 : 0), execution.total_attempt_count) << id.to_string();
      EXPECT_EQ(grants[id], execution.lease_epoch) << id.to_string();
    }
  }

  std::map<ExecutionId, Held> leases_;
  std::set<ExecutionId> ended_;
  std::map<ExecutionId, std::string> results_;
  std::map<ExecutionId, std::int64_t> epochs_;
  std::size_t claimed_{0};
};

}  // namespace flowfabric::simulation
