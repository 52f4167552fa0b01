// Makes random requests, the way many callers, workers and operators would: mostly sensible, often late,
// repeated, stale or malformed. Learns ids, fences and grants from the answers.
#pragma once

#include "simulation/flow_callers.h"
#include "simulation/limit_callers.h"
#include "simulation/steps.h"
#include "simulation/submitter.h"
#include "simulation/suspension_callers.h"

namespace flowfabric::simulation {

class Callers {
 public:
  Callers(std::uint64_t seed, const std::int64_t& now_ms)
      : dice_(seed),
        submitter_(dice_, now_ms),
        flows_(dice_, submitter_, now_ms),
        suspensions_(dice_, now_ms),
        limits_(dice_),
        now_(now_ms) {}

  Dice& dice() { return dice_; }
  // When a limit looks again at what it holds back depends on what its batch has done before.
  void go_without_limits() { has_limits_ = false; }

  Step next() {
    auto roll = dice_.below(kWeights);
    for (const auto& choice : kChoices) {
      roll -= choice.weight;
      if (roll < 0) return step((this->*choice.make)());
    }
    return step(due());
  }
  Step step(Request request) { return {std::move(request), dice_.next()}; }
  // Uses the id of an execution that is about to be removed.
  CreateExecution create_again(const ExecutionId& id) {
    auto request = submitter_.create(ids_);
    request.execution_id = id;
    return request;
  }

  void learn(const Step& asked, const Answer& answer) {
    match(asked, answer, [this](const auto& request, const auto& result) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(request)>, CreateExecution>) {
        remember(ids_, *request.execution_id, 400);
        lanes_[*request.execution_id] = request.lane_id;
      }
      if (result) learn(request, *result);
    });
  }

  // The advance of the clock before the next batch.
  std::int64_t pause() {
    const auto roll = dice_.below(1000);
    if (roll < 300) return 0;
    if (roll < 900) return dice_.between(1, 200);
    if (roll < 995) return dice_.between(200, 5000);
    return dice_.between(5000, 90'000'000);
  }

  ExecutionId some_id() {
    if (ids_.empty() || dice_.chance(3)) return ExecutionId{3, dice_.uuid(now_)};
    return dice_.pick_late(ids_, 80);
  }

 private:
  struct Choice {
    std::int64_t weight;
    Request (Callers::*make)();
  };
  static const std::vector<Choice> kChoices;
  static const std::int64_t kWeights;

  struct KnownGrant {
    ClaimGrant grant;
    std::string worker_id;
  };

  // ---- learning ----

  void learn_task(const ClaimedTask& task) { remember(tasks_, task, 80); }
  void learn_grant(const ClaimGrant& grant, const GrantTerms& terms) {
    remember(grants_, KnownGrant{grant, terms.worker_id}, 30);
  }
  void learn_end(const ExecutionId& id) { remember(ended_, id, 40); }

  template <class Asked, class Value>
  void learn(const Asked& request, const Value& answer) {
    if constexpr (std::is_same_v<Value, ClaimedTask>) {
      learn_task(answer);
    } else if constexpr (std::is_same_v<Value, std::vector<ClaimedTask>>) {
      for (const auto& task : answer) learn_task(task);
    } else if constexpr (std::is_same_v<Value, ClaimGrant>) {
      learn_grant(answer, request.terms);
    } else if constexpr (std::is_same_v<Value, std::optional<ClaimGrant>>) {
      if (answer) learn_grant(*answer, request.terms);
    } else if constexpr (std::is_same_v<Asked, IssueReclaimGrant>) {
      if (answer.grant) learn_grant(*answer.grant, request.terms);
    } else if constexpr (std::is_same_v<Asked, ReclaimExecution>) {
      if (answer.task) learn_task(*answer.task);
    } else if constexpr (std::is_same_v<Value, Completed> || std::is_same_v<Value, Cancelled>) {
      learn_end(request.execution_id);
    } else if constexpr (std::is_same_v<Value, Failed>) {
      if (!answer.retry_scheduled) learn_end(request.execution_id);
    } else if constexpr (std::is_same_v<Asked, StartBulkOperation>) {
      remember(bulk_operations_, answer.operation_id, 5);
    } else if constexpr (requires { flows_.learn(request, answer); }) {
      flows_.learn(request, answer);
    } else if constexpr (requires { suspensions_.learn(request, answer); }) {
      suspensions_.learn(request, answer);
    }
    if constexpr (std::is_same_v<Asked, SubmitFlow>) {
      for (const auto& node : request.nodes) {
        const auto& id = answer.executions.at(node.name);
        if (!answer.already_existed) remember(ids_, id, 400);
        lanes_[id] = node.execution.lane_id;
      }
    }
  }

  // ---- submitting and working ----

  Request create() { return submitter_.create(ids_); }

  std::string worker() { return dice_.name("w", 4); }
  std::string lane() { return dice_.pick<std::string>({"a", "b", "default"}); }
  std::optional<std::string> name_space() {
    if (!dice_.chance(40)) return std::nullopt;
    return dice_.pick<std::string>({"", "team", "nobody"});
  }
  std::vector<std::string> capabilities() {
    if (dice_.chance(1)) return {"a,b"};
    return dice_.chance(60) ? std::vector<std::string>{"gpu", "ssd", "more"} : std::vector<std::string>{};
  }
  std::int64_t lease_ttl() {
    return dice_.chance(2) ? 999 : dice_.pick({1000, 1000, 3000, 30'000, 3'600'000});
  }

  Request claim() {
    ClaimTasks request{.worker_id = worker()};
    if (dice_.chance(50)) request.worker_instance_id = request.worker_id + dice_.name("-", 2);
    request.namespace_ = name_space();
    request.lanes.clear();
    for (const auto* name : {"a", "b", "default", "empty"}) {
      if (dice_.chance(45)) request.lanes.emplace_back(name);
    }
    if (request.lanes.empty() && !dice_.chance(2)) request.lanes = {"a"};
    request.capabilities = capabilities();
    request.max_tasks =
        static_cast<std::uint32_t>(dice_.chance(3) ? dice_.pick({0, 257, 20}) : dice_.between(1, 5));
    request.lease_ttl_ms = lease_ttl();
    return request;
  }

  // Right most of the time; otherwise another's, a part, or none.
  template <class R>
  R aimed() {
    R request{};
    if (tasks_.empty()) {
      request.execution_id = some_id();
      return request;
    }
    const auto& held = dice_.pick_late(tasks_, 12);
    request.execution_id = held.execution_id;
    request.fence = held.fence;
    const auto roll = dice_.below(100);
    if (roll < 5) request.fence = dice_.pick(tasks_).fence;
    if (roll >= 5 && roll < 8) request.fence.lease_id.reset();
    if (roll >= 8 && roll < 10) request.fence.attempt_id.reset();
    if (roll >= 10 && roll < 14) request.fence = {};
    if (roll >= 14 && roll < 17) ++*request.fence.lease_epoch;
    if (roll >= 17 && roll < 20) request.execution_id = some_id();
    if constexpr (requires { request.attempt_index; }) request.attempt_index = held.attempt_index;
    return request;
  }

  Request renew() {
    auto request = aimed<RenewLease>();
    const auto index = dice_.below(100);
    if (index < 3) ++*request.attempt_index;
    if (index >= 90) request.attempt_index.reset();
    request.lease_ttl_ms = dice_.pick({1000, 2000, 30'000, 5});
    return request;
  }
  Request progress() {
    auto request = aimed<UpdateProgress>();
    if (dice_.chance(70)) request.percent = static_cast<std::int32_t>(dice_.between(-2, 102));
    if (dice_.chance(50)) request.message = dice_.name("step ", 10);
    return request;
  }
  Request append() {
    auto request = aimed<AppendFrame>();
    const auto index = dice_.below(100);
    if (index < 3) ++*request.attempt_index;
    if (index >= 90) request.attempt_index.reset();
    request.payload = dice_.bytes(30);
    if (dice_.chance(2)) request.payload = std::string(65'537, 'f');
    if (dice_.chance(50)) request.frame_type = dice_.name("type-", 3);
    if (dice_.chance(2)) request.frame_type = "\xff";
    if (dice_.chance(30)) request.correlation_id = dice_.name("c-", 9);
    if (dice_.chance(20)) request.seq = static_cast<std::uint64_t>(dice_.below(5));
    if (dice_.chance(5)) request.source = dice_.pick<std::string>({"system", "operator", "else"});
    request.mode = dice_.pick({FrameMode::durable, FrameMode::durable, FrameMode::summary,
                               FrameMode::best_effort, FrameMode::best_effort});
    if (request.mode == FrameMode::summary && !dice_.chance(5)) {
      request.payload = dice_.pick<std::string>({R"({"a":1})", R"({"a":null,"b":{"c":[1,"__ff_null__"]}})",
                                                 R"({"b":{"d":2}})", R"({"b":3})", "[]"});
    }
    request.best_effort.ttl_ms = static_cast<std::uint64_t>(dice_.pick({0, 100, 2000, 20'000}));
    request.best_effort.maxlen_floor = dice_.pick({0, 2, 64});
    request.best_effort.maxlen_ceiling = dice_.pick({0, 1, 4, 1000});
    return request;
  }
  std::string source() { return dice_.chance(90) ? kLeaseHolder : kOperatorOverride; }
  Request complete() {
    auto request = aimed<CompleteExecution>();
    request.result = dice_.bytes(40);
    request.source = source();
    return request;
  }
  Request fail() {
    auto request = aimed<FailExecution>();
    request.reason = dice_.chance(3) ? std::string(5000, 'r') : dice_.name("reason ", 5);
    request.category = dice_.pick<std::string>(
        {"transient", "transient", "timeout", "permanent", "cancelled", "infra_crash", "handler_error", ""});
    request.source = source();
    return request;
  }
  Request delay() {
    auto request = aimed<DelayExecution>();
    request.delay_until = dice_.chance(3) ? -1 : now_ + dice_.between(-500, 3000);
    if (dice_.chance(1)) request.delay_until = std::numeric_limits<std::int64_t>::max();
    request.source = source();
    return request;
  }
  Request cancel() {
    auto request = aimed<CancelExecution>();
    if (dice_.chance(50)) request.execution_id = some_id();
    if (dice_.chance(60)) request.fence = {};
    request.reason = "because";
    request.source = dice_.pick<std::string>(
        {kOperatorOverride, "flow_cascade", "system_timeout", kLeaseHolder, kLeaseHolder, "", "somebody"});
    return request;
  }

  // ---- grants ----

  GrantTerms terms() {
    GrantTerms terms{.worker_id = worker(), .capabilities = capabilities()};
    if (dice_.chance(30)) terms.worker_instance_id = terms.worker_id + dice_.name("-", 2);
    if (dice_.chance(70)) terms.grant_ttl_ms = dice_.pick({1, 100, 500, 2000, 60'000});
    if (dice_.chance(2)) terms.grant_ttl_ms = dice_.pick({0, 60'001});
    if (dice_.chance(20)) terms.admission_summary = R"({"admitted":true})";
    if (dice_.chance(10)) terms.capability_hash = dice_.name("hash-", 9);
    if (dice_.chance(1)) terms.worker_id.clear();
    return terms;
  }
  // Where the execution waits, mostly.
  std::string lane_of(const ExecutionId& id) {
    const auto it = lanes_.find(id);
    return it == lanes_.end() || dice_.chance(5) ? lane() : it->second;
  }
  Request issue_grant() {
    const auto id = some_id();
    return IssueClaimGrant{.execution_id = id, .lane_id = lane_of(id), .terms = terms()};
  }
  Request claim_for_worker() {
    return ClaimForWorker{.lane_id = lane(), .namespace_ = name_space(), .terms = terms()};
  }
  Request issue_reclaim() { return IssueReclaimGrant{.execution_id = lost_id(), .terms = terms()}; }
  Request grant_and_claim() {
    const auto id = some_id();
    return IssueGrantAndClaim{.execution_id = id, .lane_id = lane_of(id), .lease_duration_ms = lease_ttl()};
  }

  // A request about an execution that a worker has claimed.
  ExecutionId lost_id() {
    return tasks_.empty() || dice_.chance(10) ? some_id() : dice_.pick(tasks_).execution_id;
  }

  GrantUse use_by(const std::string& worker_id) {
    GrantUse use{.worker_id = dice_.chance(5) ? worker() : worker_id, .lease_ttl_ms = lease_ttl()};
    if (dice_.chance(15)) use.lease_id = LeaseId{dice_.uuid(now_)};
    if (dice_.chance(15)) use.attempt_id = AttemptId{dice_.uuid(now_)};
    if (dice_.chance(20)) use.worker_instance_id = "another-instance";
    return use;
  }
  // Mostly a grant that was issued, by the call that it is for.
  Request use_grant() {
    KnownGrant known{.grant = {.execution_id = some_id()}, .worker_id = worker()};
    if (!grants_.empty() && !dice_.chance(5)) known = dice_.pick_late(grants_, 8);
    const auto id = known.grant.execution_id;
    auto use = use_by(known.worker_id);
    if (dice_.chance(60)) use.grant_key = dice_.chance(90) ? known.grant.grant_key : "grant:claim:unknown";
    if (dice_.chance(25)) return ClaimGranted{.execution_id = id, .use = std::move(use)};
    const auto kind = dice_.chance(85)
                          ? known.grant.kind
                          : dice_.pick({GrantKind::claim, GrantKind::resume, GrantKind::reclaim});
    if (kind == GrantKind::resume) return ClaimResumedExecution{.execution_id = id, .use = std::move(use)};
    const auto few = [&](int percent) {
      return dice_.chance(percent) ? std::optional(static_cast<std::uint32_t>(dice_.below(3))) : std::nullopt;
    };
    if (kind == GrantKind::claim)
      return ClaimExecution{.execution_id = id, .use = std::move(use), .expected_attempt_index = few(15)};
    // A cap of the caller counts only where there is no policy.
    return ReclaimExecution{.execution_id = id, .use = std::move(use), .max_reclaim_count = few(70)};
  }

  // ---- operators ----

  BlockingReason reason() {
    using enum BlockingReason;
    return dice_.pick({waiting_for_budget, waiting_for_quota, waiting_for_capable_worker,
                       waiting_for_capable_worker, waiting_for_capable_worker, paused_by_operator,
                       paused_by_policy, waiting_for_signal});
  }
  Request block() {
    const BlockExecution request{.execution_id = some_id(), .reason = reason(), .detail = "blocked"};
    remember(blocked_, std::pair{request.execution_id, request.reason}, 20);
    return request;
  }
  Request unblock() {
    if (blocked_.empty() || dice_.chance(10)) return UnblockExecution{some_id(), reason()};
    const auto& [id, why] = dice_.pick_late(blocked_, 10);
    return UnblockExecution{id, dice_.chance(90) ? why : reason()};
  }
  Request hold() {
    const HoldExecution request{.execution_id = some_id(), .reason = dice_.chance(50) ? "wait" : ""};
    remember(held_, request.execution_id, 20);
    return request;
  }
  Request release() {
    return ReleaseExecution{held_.empty() || dice_.chance(10) ? some_id() : dice_.pick_late(held_, 10)};
  }
  Request revoke() {
    RevokeLease request{.execution_id = lost_id()};
    if (!tasks_.empty() && dice_.chance(30)) request.expected_lease_id = dice_.pick(tasks_).fence.lease_id;
    if (dice_.chance(20)) request.worker_instance_id = worker();
    return request;
  }
  Request change_priority() {
    return ChangePriority{.execution_id = some_id(),
                          .new_priority = dice_.pick({0, 1, 5, 5, 9000, -1, 90'000})};
  }
  Request replay() {
    const auto id = ended_.empty() || dice_.chance(20) ? some_id() : dice_.pick_late(ended_, 20);
    return ReplayExecution{.execution_id = id, .reason = dice_.name("again ", 3), .requested_by = "operator"};
  }
  Request set_tags() {
    SetTags request{.execution_id = some_id(), .tags = {}};
    for (const auto* key : {"test.color", "test.size", "cairn.instance_id"}) {
      if (dice_.chance(50)) request.tags[key] = dice_.pick<std::string>({"", "red", "green", "i-1"});
      if (dice_.chance(20)) request.tags[key] = std::nullopt;
    }
    if (dice_.chance(3)) request.tags["no dot"] = "refused";
    return request;
  }
  Request start_bulk() {
    using enum PublicState;
    StartBulkOperation request{.operation_id = OperationId{dice_.uuid(now_)}, .filter = {}, .reason = "all"};
    request.action = dice_.pick({BulkAction::cancel, BulkAction::replay, BulkAction::change_priority});
    request.new_priority = dice_.pick({2, 4000});
    if (!bulk_operations_.empty() && dice_.chance(20)) request.operation_id = bulk_operations_.front();
    if (dice_.chance(50)) request.rate_per_second = static_cast<std::uint32_t>(dice_.between(0, 30));
    if (dice_.chance(70)) request.filter.tags = {{"test.color", dice_.chance(70) ? "red" : "green"}};
    if (dice_.chance(40)) request.filter.lane_id = lane();
    if (dice_.chance(40)) request.filter.states = {dice_.pick({waiting, delayed, completed, failed})};
    return request;
  }
  Request cancel_bulk() {
    return CancelBulkOperation{bulk_operations_.empty() ? OperationId{dice_.uuid(now_)}
                                                        : dice_.pick(bulk_operations_)};
  }

  // ---- lanes and workers ----

  Request register_lane() {
    return RegisterLane{.lane_id = dice_.pick<std::string>({"a", "b", "default", "new", ""}),
                        .registered_by = dice_.name("operator-", 2)};
  }
  Request set_lane_state() {
    using enum LaneState;
    return SetLaneState{.lane_id = dice_.chance(3) ? std::string(65, 'x') : lane(),
                        .state = dice_.chance(70) ? active : dice_.pick({paused, draining, disabled})};
  }
  // Some of them are those that claim.
  std::string instance() {
    if (dice_.chance(1)) return "";
    return dice_.chance(40) ? worker() : dice_.name("instance-", 6);
  }
  Request register_worker() {
    RegisterWorker request{.worker_id = dice_.chance(80) ? "pool" : "another-pool",
                           .worker_instance_id = instance(),
                           .namespace_ = dice_.chance(50) ? "" : "team",
                           .lanes = {lane(), lane()},
                           .capabilities = capabilities()};
    request.liveness_ttl_ms = dice_.pick({1000, 3000, 20'000, 20'000, 999});
    return request;
  }
  Request heartbeat() {
    return HeartbeatWorker{.worker_instance_id = instance(), .namespace_ = dice_.chance(50) ? "" : "team"};
  }
  Request mark_dead() {
    return MarkWorkerDead{.worker_instance_id = instance(),
                          .namespace_ = dice_.chance(50) ? "" : "team",
                          .reason = dice_.chance(90) ? "deployed" : "line\nbreak"};
  }

  // ---- flows ----

  Request submit_flow() { return flows_.submit(); }
  Request create_flow() { return flows_.create(); }
  Request add_member() { return flows_.add(ids_); }
  Request set_join_policy() { return flows_.set_policy(); }
  Request stage_edge() { return flows_.stage(); }
  Request apply_edge() { return flows_.apply(); }
  Request set_flow_tags() { return flows_.set_tags(); }
  Request cancel_flow() { return flows_.cancel(); }
  Request acknowledge() { return flows_.acknowledge(); }
  Request wait_for_children() {
    auto request = aimed<WaitForChildren>();
    request.source = source();
    return request;
  }
  Request promote() { return PromoteBlocked{flows_.member().value_or(some_id())}; }

  // ---- suspension ----

  Request suspend() { return suspensions_.suspend(aimed<SuspendExecution>()); }
  Request create_waitpoint() { return suspensions_.create_waitpoint(aimed<CreateWaitpoint>()); }
  Request signal() { return suspensions_.signal(some_id()); }
  Request approve() {
    return suspensions_.approve(some_id(), [this](const ExecutionId& id) { return lane_of(id); });
  }
  Request resume() { return suspensions_.resume(some_id()); }
  Request close_waitpoint() { return suspensions_.close(some_id()); }
  Request cancel_suspended() {
    return CancelExecution{.execution_id = suspensions_.some_execution(some_id()), .reason = "no more"};
  }
  Request seed_secret() { return suspensions_.seed(); }
  Request rotate_secret() { return suspensions_.rotate(); }

  Request limit() {
    if (!has_limits_) return ResetBudget{LimitCallers::budget(99)};
    return limits_.next(some_id(), lane());
  }

  Request due() {
    if (dice_.chance(10)) return RunDue{limits_.due()};
    const auto roll = dice_.below(100);
    if (roll < 20) {
      return RunDue{record_key<CreateDedup>({dice_.chance(50) ? "" : "team", dice_.name("key-", 40)})};
    }
    if (roll < 25) return RunDue{record_key<Worker>({dice_.chance(50) ? "" : "team", instance()})};
    if (roll < 30) return RunDue{record_key<DeadWorker>({dice_.chance(50) ? "" : "team", instance()})};
    if (roll < 45) return RunDue{suspensions_.due(some_id())};
    return RunDue{record_key<Execution>(roll < 75 ? some_id() : lost_id())};
  }

  Dice dice_;
  Submitter submitter_;
  FlowCallers flows_;
  SuspensionCallers suspensions_;
  LimitCallers limits_;
  bool has_limits_{true};
  const std::int64_t& now_;
  std::map<ExecutionId, std::string> lanes_;
  // The latest first.
  std::deque<ExecutionId> ids_;
  std::deque<ClaimedTask> tasks_;
  std::deque<KnownGrant> grants_;
  std::deque<ExecutionId> ended_;
  std::deque<std::pair<ExecutionId, BlockingReason>> blocked_;
  std::deque<ExecutionId> held_;
  std::deque<OperationId> bulk_operations_;
};

inline const std::vector<Callers::Choice> Callers::kChoices{{220, &Callers::create},
                                                            {110, &Callers::claim},
                                                            {40, &Callers::renew},
                                                            {30, &Callers::progress},
                                                            {60, &Callers::append},
                                                            {90, &Callers::complete},
                                                            {70, &Callers::fail},
                                                            {60, &Callers::delay},
                                                            {30, &Callers::cancel},
                                                            {60, &Callers::issue_grant},
                                                            {20, &Callers::claim_for_worker},
                                                            {90, &Callers::use_grant},
                                                            {12, &Callers::grant_and_claim},
                                                            {25, &Callers::issue_reclaim},
                                                            {25, &Callers::block},
                                                            {12, &Callers::unblock},
                                                            {10, &Callers::hold},
                                                            {12, &Callers::release},
                                                            {15, &Callers::revoke},
                                                            {20, &Callers::change_priority},
                                                            {30, &Callers::replay},
                                                            {25, &Callers::set_tags},
                                                            {2, &Callers::start_bulk},
                                                            {1, &Callers::cancel_bulk},
                                                            {4, &Callers::register_lane},
                                                            {8, &Callers::set_lane_state},
                                                            {15, &Callers::register_worker},
                                                            {10, &Callers::heartbeat},
                                                            {4, &Callers::mark_dead},
                                                            {40, &Callers::due},
                                                            {40, &Callers::submit_flow},
                                                            {15, &Callers::create_flow},
                                                            {40, &Callers::add_member},
                                                            {10, &Callers::set_join_policy},
                                                            {40, &Callers::stage_edge},
                                                            {40, &Callers::apply_edge},
                                                            {6, &Callers::set_flow_tags},
                                                            {12, &Callers::cancel_flow},
                                                            {12, &Callers::acknowledge},
                                                            {20, &Callers::wait_for_children},
                                                            {15, &Callers::promote},
                                                            {150, &Callers::suspend},
                                                            {60, &Callers::create_waitpoint},
                                                            {220, &Callers::signal},
                                                            {30, &Callers::approve},
                                                            {12, &Callers::resume},
                                                            {12, &Callers::close_waitpoint},
                                                            {8, &Callers::cancel_suspended},
                                                            {3, &Callers::seed_secret},
                                                            {6, &Callers::rotate_secret},
                                                            {100, &Callers::limit}};

inline const std::int64_t Callers::kWeights = [] {
  std::int64_t sum = 0;
  for (const auto& choice : kChoices) sum += choice.weight;
  return sum;
}();

}  // namespace flowfabric::simulation
