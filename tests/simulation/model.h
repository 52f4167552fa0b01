// A small model, built from the answers alone and compared with the stored records.
#pragma once

#include <gtest/gtest.h>

#include "simulation/state.h"
#include "simulation/steps.h"
#include "simulation/suspension_model.h"

namespace flowfabric::simulation {

class Model {
 public:
  void observe(const Step& step, const Answer& answer, std::int64_t now_ms) {
    now_ = now_ms;
    match(step, answer, [this](const auto& request, const auto& result) {
      if (result)
        happened(request, *result);
      else
        refused(request, result.error());
    });
  }

  void check(const State& state) {
    check_existence(state);
    check_grants(state);
    check_workers(state);
    check_lanes(state);
    check_history(state);
    suspensions_.check(state, [this](const ExecutionId& id) { return is_member(id); });
    for (const auto& id : ended_) {
      EXPECT_EQ(state.rows<Execution>().at(id).state.lifecycle_phase, LifecyclePhase::terminal)
          << id.to_string();
    }
  }

  std::size_t claimed() const { return claimed_; }
  std::size_t purged() const { return purged_; }

 private:
  struct Held {
    LeaseFence fence;
    std::int64_t expires_at{};
    std::optional<std::int64_t> timeout_at;
    std::string worker_instance_id;
  };
  struct Reserved {
    std::string worker_id;
    ClaimGrant grant;
    bool certain{true};  // false: a call that was refused may have ended the execution
  };
  struct Alive {
    std::int64_t ttl_ms{};
    std::int64_t expires_at{};
  };

  template <class Asked, class Value>
  void happened(const Asked&, const Value&) {}
  template <class Asked>
  void refused(const Asked&, const Error&) {}

  // ---- flows ----

  // A member changes with other members of its flow, and no answer reports that: of members the model knows
  // only that they are there.
  bool is_member(const ExecutionId& id) const { return members_.contains(id); }
  void joined(const ExecutionId& id) {
    members_.insert(id);
    leases_.erase(id);
    grants_.erase(id);
    held_.erase(id);
  }
  void happened(const SubmitFlow& request, const FlowSubmission& answer) {
    if (answer.already_existed) return;
    for (const auto& node : request.nodes) {
      suspensions_.created(answer.executions.at(node.name), node.execution.policy);
    }
    for (const auto& [name, id] : answer.executions) {
      EXPECT_TRUE(exists_.insert(id).second) << id.to_string();
      joined(id);
    }
  }
  void happened(const AddFlowMember& request, const MemberAdded&) { joined(request.execution_id); }
  void happened(const WaitForChildren& request, const WaitingForChildren&) { ends_lease(request); }

  // ---- handing out ----

  bool hands_out(const std::string& lane) const {
    const auto it = lanes_.find(lane);
    return it == lanes_.end() || it->second == LaneState::active || it->second == LaneState::draining;
  }

  // A grant may still be used at the very moment it ends.
  bool may_be_granted(const ExecutionId& id) const {
    const auto it = grants_.find(id);
    return it != grants_.end() && it->second.grant.expires_at >= now_;
  }
  bool is_granted(const ExecutionId& id) const { return may_be_granted(id) && grants_.at(id).certain; }

  bool is_leased(const ExecutionId& id) const {
    const auto it = leases_.find(id);
    if (it == leases_.end()) return false;
    const auto& lease = it->second;
    return lease.expires_at > now_ && (!lease.timeout_at || *lease.timeout_at > now_);
  }

  void expect_free(const ExecutionId& id) const {
    EXPECT_TRUE(exists_.contains(id)) << id.to_string() << " was handed out and is not there";
    EXPECT_FALSE(ended_.contains(id)) << id.to_string() << " was handed out after its end";
    EXPECT_FALSE(held_.contains(id)) << id.to_string() << " was handed out while it was held back";
    EXPECT_FALSE(is_leased(id)) << id.to_string() << " was handed out while another lease was in force";
  }

  // By a worker, or by one of its instances.
  void leased(const ClaimedTask& task, std::int64_t ttl_ms, const std::string& worker,
              const std::string& instance) {
    const auto& id = task.execution_id;
    expect_free(id);
    EXPECT_EQ(task.lease_expires_at, now_ + ttl_ms) << id.to_string();
    auto& epoch = epochs_[id];
    EXPECT_GT(*task.fence.lease_epoch, epoch) << id.to_string();
    epoch = *task.fence.lease_epoch;
    if (!is_member(id)) {
      leases_[id] = {task.fence, task.lease_expires_at, task.attempt_timeout_at,
                     instance.empty() ? worker : instance};
    }
    grants_.erase(id);
    suspensions_.claimed(task);
    ++claimed_;
  }

  void happened(const ClaimTasks& request, const std::vector<ClaimedTask>& tasks) {
    EXPECT_LE(tasks.size(), request.max_tasks);
    const ClaimedTask* previous = nullptr;
    for (const auto& task : tasks) {
      const auto id = task.execution_id.to_string();
      EXPECT_FALSE(is_granted(task.execution_id)) << id << " was offered while it was granted";
      EXPECT_TRUE(hands_out(task.lane_id)) << id << " came from a lane that hands out nothing";
      const bool one_lane = request.lanes.size() == 1;
      EXPECT_TRUE(!one_lane || !previous || previous->priority >= task.priority) << id;
      previous = &task;
      leased(task, request.lease_ttl_ms, request.worker_id, request.worker_instance_id);
    }
  }

  void reserved(const ClaimGrant& grant, const GrantTerms& terms) {
    const auto& id = grant.execution_id;
    expect_free(id);
    EXPECT_FALSE(is_granted(id)) << id.to_string() << " was granted twice";
    EXPECT_TRUE(hands_out(grant.lane_id)) << id.to_string() << " is on a lane that hands out nothing";
    EXPECT_EQ(grant.expires_at, now_ + terms.grant_ttl_ms) << id.to_string();
    if (!is_member(id)) grants_[id] = {terms.worker_id, grant};
  }
  void happened(const IssueClaimGrant& request, const ClaimGrant& grant) { reserved(grant, request.terms); }
  void happened(const ClaimForWorker& request, const std::optional<ClaimGrant>& grant) {
    if (grant) reserved(*grant, request.terms);
  }
  void happened(const IssueReclaimGrant& request, const ReclaimAnswer& answer) {
    if (answer.grant) reserved(*answer.grant, request.terms);
    if (answer.status == ReclaimStatus::reclaim_cap_exceeded) ended(request.execution_id);
  }

  void used(const GrantUse& use, const ClaimedTask& task) {
    const auto& id = task.execution_id;
    const auto take = [&] { leased(task, use.lease_ttl_ms, use.worker_id, use.worker_instance_id); };
    if (is_member(id)) return take();
    EXPECT_TRUE(may_be_granted(id)) << id.to_string() << " was taken without a grant";
    const auto& known = grants_[id];
    EXPECT_EQ(known.worker_id, use.worker_id) << id.to_string() << " was granted to another";
    EXPECT_TRUE(use.grant_key.empty() || use.grant_key == known.grant.grant_key) << id.to_string();
    EXPECT_TRUE(hands_out(task.lane_id)) << id.to_string() << " is on a lane that hands out nothing";
    EXPECT_TRUE(!use.lease_id || use.lease_id == task.fence.lease_id) << id.to_string();
    take();
  }
  void happened(const ClaimExecution& request, const ClaimedTask& task) { used(request.use, task); }
  void happened(const ClaimResumedExecution& request, const ClaimedTask& task) { used(request.use, task); }
  void happened(const ClaimGranted& request, const ClaimedTask& task) { used(request.use, task); }
  void happened(const ReclaimExecution& request, const ReclaimAnswer& answer) {
    if (answer.task) used(request.use, *answer.task);
    const bool too_late = answer.detail == "execution_deadline";
    if (too_late || answer.status == ReclaimStatus::reclaim_cap_exceeded) ended(request.execution_id);
  }
  void happened(const IssueGrantAndClaim& request, const ClaimedTask& task) {
    EXPECT_FALSE(is_granted(task.execution_id)) << task.execution_id.to_string();
    leased(task, request.lease_duration_ms, "", "");
  }
  // A late call may find that the execution has ended.
  template <class Asked>
  requires requires(Asked request) { request.use; }
  void refused(const Asked& request, const Error& error) {
    const bool may_have_ended = error.code == ErrorCode::execution_not_leaseable ||
                                error.code == ErrorCode::execution_not_reclaimable ||
                                error.code == ErrorCode::max_reclaims_exceeded;
    const auto it = grants_.find(request.execution_id);
    if (may_have_ended && it != grants_.end()) it->second.certain = false;
  }

  // ---- leases and their ends ----

  void happened(const RenewLease& request, const Renewal& renewal) {
    if (is_member(request.execution_id)) return;
    auto& lease = leases_[request.execution_id];
    EXPECT_EQ(lease.fence, request.fence) << "renewed by another than the holder";
    EXPECT_GT(lease.expires_at, now_) << "renewed after it had run out";
    lease.expires_at = renewal.expires_at;
  }
  void happened(const RevokeLease& request, const Revocation& revocation) {
    if (revocation.already_satisfied || is_member(request.execution_id)) return;
    const auto& lease = leases_[request.execution_id];
    EXPECT_EQ(lease.fence.lease_id, revocation.lease_id) << "another lease than the one in force was revoked";
    EXPECT_GT(lease.expires_at, now_) << "revoked after it had run out";
    leases_.erase(request.execution_id);
  }

  void ended(const ExecutionId& id) {
    leases_.erase(id);
    grants_.erase(id);
    held_.erase(id);
    ended_.insert(id);
    suspensions_.ended(id);
  }
  // A report ends the lease it is made under. Repeating one that ended an earlier lease ends nothing.
  template <class Report>
  bool ends_lease(const Report& report) {
    const auto it = leases_.find(report.execution_id);
    if (it == leases_.end()) return false;
    if (report.fence != LeaseFence{} && report.fence != it->second.fence) return false;
    EXPECT_GT(it->second.expires_at, now_) << "a report was accepted after the lease had run out";
    leases_.erase(it);
    return true;
  }
  void happened(const CompleteExecution& request, const Completed&) {
    if (is_member(request.execution_id) || !ends_lease(request)) return;
    ended(request.execution_id);
    results_[request.execution_id] = request.result;
  }
  void happened(const FailExecution& request, const Failed& answer) {
    if (ends_lease(request) && !answer.retry_scheduled) ended(request.execution_id);
  }
  void happened(const DelayExecution& request, const Delayed&) { ends_lease(request); }
  void happened(const CancelExecution& request, const Cancelled&) {
    const bool by_holder = request.fence != LeaseFence{};
    if (!by_holder || ends_lease(request)) ended(request.execution_id);
  }

  // A budget may stop the attempt that has passed one of its limits, and the answer does not say so.
  void spent(const ExecutionId& id, const UsageReport& report) {
    const bool breach =
        report.outcome == UsageOutcome::soft_breach || report.outcome == UsageOutcome::hard_breach;
    if (breach && leases_.contains(id)) joined(id);
  }
  void happened(const ReportUsage& request, const UsageReport& report) {
    if (request.execution_id) spent(*request.execution_id, report);
  }
  void happened(const RecordSpend& request, const UsageReport& report) {
    spent(request.execution_id, report);
  }

  // ---- suspension ----

  void expect_holder(const ExecutionId& id, const LeaseFence& fence) const {
    if (is_member(id)) return;
    const auto it = leases_.find(id);
    ASSERT_NE(it, leases_.end()) << id.to_string() << ": there is no lease";
    EXPECT_TRUE(it->second.fence == fence && it->second.expires_at > now_) << id.to_string();
  }
  void happened(const SuspendExecution& request, const Suspended& answer) {
    if (!suspensions_.suspended(request, answer, now_)) return;
    expect_holder(request.execution_id, request.fence);
    if (!answer.already_satisfied) ends_lease(request);
  }
  void happened(const CreateWaitpoint& request, const TokenedWaitpoint& answer) {
    expect_holder(request.execution_id, request.fence);
    suspensions_.made_pending(request, answer, now_);
  }
  void happened(const CloseWaitpoint& request, const WaitpointClosed& answer) {
    suspensions_.closed(request, answer);
  }
  void happened(const DeliverSignal& request, const SignalDelivered& answer) {
    suspensions_.delivered(request, answer, now_);
  }
  void refused(const DeliverSignal& request, const Error& error) {
    suspensions_.refused(request, error, now_);
  }
  void happened(const DeliverApprovalSignal& request, const SignalDelivered& answer) {
    suspensions_.approved(request, answer, now_);
  }
  void happened(const ResumeExecution& request, const Resumed&) {
    suspensions_.resumed_by_operator(request.execution_id);
  }
  void happened(const SeedWaitpointSecret& request, const SecretSeeded& answer) {
    suspensions_.seeded(request, answer);
  }
  void happened(const RotateWaitpointSecret& request, const SecretRotated& answer) {
    suspensions_.rotated(request, answer, now_);
  }

  // ---- the life of an execution ----

  void happened(const CreateExecution& request, const Creation& creation) {
    if (creation.duplicate) return;
    EXPECT_TRUE(exists_.insert(creation.execution_id).second) << creation.execution_id.to_string();
    const auto lane = lanes_.find(request.lane_id);
    const bool takes_in =
        lane == lanes_.end() || lane->second == LaneState::active || lane->second == LaneState::paused;
    suspensions_.created(creation.execution_id, request.policy);
    EXPECT_TRUE(takes_in) << creation.execution_id.to_string() << " was accepted by a lane that is closed";
  }

  void replayed(const ExecutionId& id) {
    EXPECT_FALSE(held_.contains(id)) << id.to_string();
    leases_.erase(id);
    grants_.erase(id);
    ended_.erase(id);
    results_.erase(id);
    suspensions_.ended(id);
  }
  void happened(const ReplayExecution& request, const Replayed&) { replayed(request.execution_id); }

  void purge(const ExecutionId& id) {
    EXPECT_EQ(exists_.erase(id), 1u) << id.to_string();
    EXPECT_FALSE(is_leased(id)) << id.to_string() << " was removed while somebody worked on it";
    replayed(id);
    epochs_.erase(id);
    members_.erase(id);
    suspensions_.purged(id);
    lived_before_.insert(id);
    ++purged_;
  }

  void happened(const RunDue& request, core::Rule rule) {
    if (const auto* worker = request.key.key_of<Worker>()) worker_swept(*worker, rule);
    if (const auto* worker = request.key.key_of<DeadWorker>()) leases_offered(*worker, rule);
    if (const auto* suspension = request.key.key_of<Suspension>()) suspension_looked_at(*suspension, rule);
    if (const auto* waitpoint = request.key.key_of<Waitpoint>()) waitpoint_looked_at(*waitpoint, rule);
    if (const auto* id = request.key.key_of<Execution>()) rule_fired(*id, rule);
  }
  void worker_swept(const WorkerKey& worker, core::Rule rule) {
    if (rule == core::Rule::none) return;
    EXPECT_FALSE(is_alive(worker)) << "a worker was swept while it was alive";
    workers_.erase(worker);
  }
  // Whose namespace it works for is not known here: of what it held, nothing is certain any more.
  void leases_offered(const DeadWorkerKey& worker, core::Rule rule) {
    if (rule == core::Rule::none) return;
    std::vector<ExecutionId> held;
    for (const auto& [id, lease] : leases_) {
      if (lease.worker_instance_id == worker.worker_instance_id) held.push_back(id);
    }
    for (const auto& id : held) joined(id);
  }
  void suspension_looked_at(const SuspensionKey& key, core::Rule rule) {
    const auto id = owner_of(key);
    if (rule != core::Rule::none && suspensions_.timed_out(id, now_)) ended(id);
  }
  void waitpoint_looked_at(const WaitpointRecordKey& key, core::Rule rule) {
    if (rule != core::Rule::none) suspensions_.pending_expired(key, now_);
  }
  void rule_fired(const ExecutionId& id, core::Rule rule) {
    switch (rule) {
      case core::Rule::execution_deadline:
      case core::Rule::reclaim:
        return ended(id);
      case core::Rule::attempt_timeout:
        leases_.erase(id);
        return;
      case core::Rule::lease_expiry:
        if (is_member(id)) return;
        EXPECT_LE(leases_[id].expires_at, now_) << id.to_string() << ": its lease is in force";
        return;
      case core::Rule::grant_expiry:
        EXPECT_FALSE(is_granted(id)) << id.to_string() << ": its grant is in force";
        grants_.erase(id);
        return;
      case core::Rule::retention_trimmer:
        return purge(id);
      default:
        return;
    }
  }

  // ---- operators ----

  void blocked(const ExecutionId& id, BlockingReason reason) {
    EXPECT_FALSE(ended_.contains(id)) << id.to_string();
    grants_.erase(id);
    if (is_member(id)) return;
    // The clock lets these go; the others are held until somebody does.
    if (reason == BlockingReason::waiting_for_capable_worker ||
        reason == BlockingReason::waiting_for_budget || reason == BlockingReason::waiting_for_quota)
      held_.erase(id);
    else
      held_.insert(id);
  }
  void happened(const BlockExecution& request, const EligibilityChange&) {
    blocked(request.execution_id, request.reason);
  }
  void happened(const HoldExecution& request, const EligibilityChange&) {
    blocked(request.execution_id, BlockingReason::paused_by_operator);
  }
  void happened(const UnblockExecution& request, const EligibilityChange&) {
    held_.erase(request.execution_id);
  }
  void happened(const ReleaseExecution& request, const EligibilityChange&) {
    const bool held = held_.erase(request.execution_id) > 0;
    EXPECT_TRUE(held || is_member(request.execution_id)) << request.execution_id.to_string();
  }

  void happened(const StartBulkOperation&, const BulkOperation& started) {
    bulk_[started.operation_id] = started.action;
  }
  void happened(const ApplyBulk& request, core::BulkItem item) {
    if (item != core::BulkItem::done) return;
    switch (bulk_.at(request.operation_id)) {
      case BulkAction::cancel:
        return ended(request.execution_id);
      case BulkAction::replay:
        return replayed(request.execution_id);
      default:
        return;
    }
  }

  // ---- lanes and workers ----

  void happened(const SetLaneState& request, const LaneStatus& answer) {
    EXPECT_EQ(answer.state, request.state);
    lanes_[request.lane_id] = request.state;
  }
  void happened(const RegisterLane& request, const LaneStatus& answer) {
    const auto it = lanes_.find(request.lane_id);
    EXPECT_EQ(answer.state, it == lanes_.end() ? LaneState::active : it->second) << request.lane_id;
  }

  bool is_alive(const WorkerKey& key) const {
    const auto it = workers_.find(key);
    return it != workers_.end() && it->second.expires_at > now_;
  }
  template <class Asked>
  static WorkerKey key_of(const Asked& request) {
    return {request.namespace_, request.worker_instance_id};
  }
  void happened(const RegisterWorker& request, const WorkerRegistration& answer) {
    EXPECT_EQ(answer.refreshed, is_alive(key_of(request)));
    workers_[key_of(request)] = {request.liveness_ttl_ms, answer.expires_at};
    EXPECT_EQ(answer.expires_at, now_ + request.liveness_ttl_ms);
  }
  void happened(const HeartbeatWorker& request, const Heartbeat& answer) {
    EXPECT_TRUE(is_alive(key_of(request))) << "a worker that was not there has beaten";
    auto& worker = workers_[key_of(request)];
    EXPECT_EQ(answer.expires_at, now_ + worker.ttl_ms);
    worker.expires_at = answer.expires_at;
  }
  void refused(const HeartbeatWorker& request, const Error&) { EXPECT_FALSE(is_alive(key_of(request))); }
  void happened(const MarkWorkerDead& request, const MarkedDead& answer) {
    EXPECT_EQ(answer.was_registered, is_alive(key_of(request)));
    if (answer.was_registered) workers_.erase(key_of(request));
  }

  // ---- what is stored ----

  // Exactly the executions that were created and not removed are there, and nothing is left of the others.
  void check_existence(const State& state) const {
    for_each_type<boost::mp11::mp_push_back<OwnedRecords, Grant>>([&]<class Record>() {
      if constexpr (std::is_same_v<Record, Spend>) return;  // anybody's, whoever that was
      for (const auto& [key, record] : state.rows<Record>()) {
        EXPECT_TRUE(exists_.contains(owner_of(key))) << Record::table << " of " << owner_of(key).to_string();
      }
    });
    for (const auto& [key, tag] : state.rows<ExecutionTag>()) {
      const ExecutionId id{key.partition_key, key.execution_id};
      EXPECT_TRUE(exists_.contains(id)) << "a tag of " << id.to_string();
    }
    EXPECT_EQ(state.rows<Execution>().size(), exists_.size());
    for (const auto& id : exists_) {
      EXPECT_TRUE(state.rows<Execution>().contains(id)) << id.to_string() << " is not there";
    }
  }

  void check_grants(const State& state) const {
    for (const auto& [id, reserved] : grants_) {
      if (!reserved.certain || reserved.grant.expires_at < state.now_ms) continue;
      const auto it = state.rows<Grant>().find(id);
      ASSERT_NE(it, state.rows<Grant>().end()) << id.to_string() << " has lost its grant";
      EXPECT_EQ(it->second.expires_at_ms, reserved.grant.expires_at) << id.to_string();
      EXPECT_EQ(it->second.worker_id, reserved.worker_id) << id.to_string();
    }
  }

  void check_workers(const State& state) const {
    std::map<WorkerKey, std::int64_t> expected, stored;
    for (const auto& [key, worker] : workers_) {
      if (worker.expires_at > state.now_ms) expected[key] = worker.expires_at;
    }
    for (const auto& [key, worker] : state.rows<Worker>()) {
      const auto expires_at = worker.last_heartbeat_ms + worker.liveness_ttl_ms;
      if (expires_at > state.now_ms) stored[key] = expires_at;
    }
    EXPECT_EQ(stored, expected) << "the workers that are alive";
  }

  void check_lanes(const State& state) const {
    for (const auto& [lane, expected] : lanes_) {
      EXPECT_EQ(state.rows<Lane>().at({lane}).state, expected) << lane;
    }
  }

  // Every end has its event, and so has every lease.
  void check_history(const State& state) {
    std::map<ExecutionId, std::vector<TerminalOutcome>> ends;
    std::map<ExecutionId, std::int64_t> leases;
    for (const auto& event : state.log<CompletionEvent>()) {
      ends[{event.partition_key, event.execution_id}].push_back(event.outcome.known);
    }
    for (const auto& event : state.log<LeaseEvent>()) {
      const bool begins =
          event.event_type == LeaseEventType::acquired || event.event_type == LeaseEventType::reclaimed;
      if (begins) ++leases[{event.partition_key, event.execution_id}];
    }
    for (const auto& [id, execution] : state.rows<Execution>()) {
      auto& epoch = epochs_[id];
      EXPECT_GE(execution.lease_epoch, epoch) << id.to_string();
      epoch = execution.lease_epoch;
      const bool terminal = execution.state.lifecycle_phase == LifecyclePhase::terminal;
      const auto& outcomes = ends[id];
      if (terminal) {
        ASSERT_FALSE(outcomes.empty()) << id.to_string();
        EXPECT_EQ(outcomes.back(), execution.state.terminal_outcome) << id.to_string();
      }
      if (lived_before_.contains(id)) continue;
      EXPECT_EQ(outcomes.size(), execution.replay_count + (terminal ? 1u : 0u)) << id.to_string();
      EXPECT_EQ(leases[id], execution.lease_epoch) << id.to_string();
    }
    for (const auto& [id, result] : results_) {
      const auto last = state.rows<Execution>().at(id).total_attempt_count - 1;
      EXPECT_EQ(state.rows<Attempt>().at({id.partition, id.uuid, last}).result.data, result)
          << id.to_string();
    }
  }

  std::int64_t now_{};
  std::set<ExecutionId> exists_;
  std::set<ExecutionId> lived_before_;  // removed once, and perhaps created again
  std::map<ExecutionId, Held> leases_;
  std::map<ExecutionId, Reserved> grants_;
  std::set<ExecutionId> held_;
  std::set<ExecutionId> ended_;
  std::set<ExecutionId> members_;  // of flows
  std::map<ExecutionId, std::string> results_;
  std::map<ExecutionId, std::int64_t> epochs_;
  std::map<std::string, LaneState> lanes_;
  std::map<WorkerKey, Alive> workers_;
  std::map<OperationId, BulkAction> bulk_;
  SuspensionModel suspensions_;
  std::size_t claimed_{0};
  std::size_t purged_{0};
};

}  // namespace flowfabric::simulation
