#include "core/execution/create.h"

#include <algorithm>

#include "core/execution/tags.h"
#include "core/operation.h"
#include "core/registry/lane.h"
#include "core/registry/registration.h"
#include "core/transition.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kMaxTraceContext = 256;

// Why this create makes nothing new, if it does not.
std::optional<Creation> find_duplicate(Unit& unit, const CreateExecution& request, const Context& at) {
  const auto known = [&](const ExecutionId& id) {
    Creation duplicate{.execution_id = id, .duplicate = true, .public_state = std::nullopt};
    if (const auto* execution = unit.find<Execution>(id)) {
      duplicate.public_state = execution->state.public_state;
    }
    return duplicate;
  };
  if (!request.idempotency_key.empty()) {
    const auto* dedup = unit.find<CreateDedup>({request.namespace_, request.idempotency_key});
    const bool live = dedup && dedup->next_due_at_ms && *dedup->next_due_at_ms > at.now_ms;
    if (live) return known({dedup->partition_key, dedup->execution_id});
  }
  if (unit.find<Execution>(*request.execution_id)) return known(*request.execution_id);
  return std::nullopt;
}

void remember_key(Unit& unit, const CreateExecution& request, const Context& at) {
  const auto window = request.policy.dedup_window_ms.value_or(kDefaultDedupWindowMs);
  if (request.idempotency_key.empty() || window == 0) return;
  unit.insert(CreateDedup{.namespace_ = request.namespace_,
                          .idempotency_key = request.idempotency_key,
                          .partition_key = request.execution_id->partition,
                          .execution_id = request.execution_id->uuid,
                          .next_due_at_ms = saturating_add(at.now_ms, window)});
}

std::optional<std::int64_t> deadline_of(const CreateExecution& request, const Context& at) {
  if (request.execution_deadline_at) return request.execution_deadline_at;
  const auto& timeouts = request.policy.timeout_policy;
  if (!timeouts || !timeouts->execution_deadline_ms) return std::nullopt;
  return saturating_add(at.now_ms, *timeouts->execution_deadline_ms);
}

std::optional<std::int64_t> retention_of(const ExecutionPolicy& policy) {
  if (!policy.stream_policy || !policy.stream_policy->retention_ttl_ms) return std::nullopt;
  return saturating_add(0, *policy.stream_policy->retention_ttl_ms);
}

}  // namespace

Result<std::vector<std::string>> required_capabilities(const ExecutionPolicy& policy) {
  if (!policy.routing_requirements) return std::vector<std::string>();
  return normalize_capabilities("required", policy.routing_requirements->required_capabilities);
}

Result<void> check_create(const CreateExecution& request, const Context& at) {
  if (request.execution_id->partition >= at.partitions.flow) {
    return fail_with(ErrorCode::invalid_input, "execution_id: partition out of range",
                     "The id names partition " + std::to_string(request.execution_id->partition) +
                         ", but this store has partitions 0 to " + std::to_string(at.partitions.flow - 1) +
                         ".");
  }
  if (auto ok = check_lane(request.lane_id); !ok) return ok;
  if (auto ok = check_namespace(request.namespace_); !ok) return ok;
  if (auto ok = check_text("execution_kind", request.execution_kind, kMaxKeyBytes); !ok) return ok;
  if (auto ok = check_text("creator_identity", request.creator_identity, kMaxKeyBytes); !ok) return ok;
  if (auto ok = check_text("idempotency_key", request.idempotency_key, kMaxKeyBytes); !ok) return ok;
  if (auto ok = check_text("payload_encoding", request.payload_encoding, kMaxKeyBytes); !ok) return ok;
  if (auto ok = check_text("trace_context", request.trace_context); !ok) return ok;
  if (request.trace_context.size() > kMaxTraceContext) {
    return fail_with(ErrorCode::invalid_input, "trace_context: too long",
                     "A W3C traceparent has 55 characters; up to 256 are kept.");
  }
  if (auto ok = check_create_tags(request.tags); !ok) return ok;
  for (const auto& time : {request.delay_until, request.execution_deadline_at}) {
    if (time && *time < 0) {
      return fail_with(ErrorCode::invalid_input, "delay_until or execution_deadline_at: negative",
                       "Give times in milliseconds since the Unix epoch.");
    }
  }
  return {};
}

Result<PublicState> create_new(Unit& unit, const CreateExecution& request,
                               const std::optional<Membership>& member, Context& at) {
  const auto& lane = ensure_lane(unit, request.lane_id, "create_execution", at);
  const auto lane_state = lane.state;
  if (!takes_in(lane_state)) {
    return fail_with(ErrorCode::lane_not_accepting, std::string(enum_name(lane_state)),
                     "The lane accepts no new work: submit to another lane, or set it active again.");
  }
  if (auto ok = validate(request.policy); !ok) return std::unexpected(ok.error());
  const auto required = required_capabilities(request.policy);
  if (!required) return std::unexpected(required.error());
  const auto registration =
      ensure_registered(unit, request.lane_id, request.namespace_, *required, request.execution_kind, at);
  Execution execution{.partition_key = request.execution_id->partition,
                      .execution_id = request.execution_id->uuid,
                      .lane_id = request.lane_id,
                      .namespace_ = request.namespace_,
                      .route_id = registration.route_id,
                      .group_id = registration.group_id,
                      .created_at_ms = at.now_ms,
                      .max_reclaim_count = request.policy.reclaim_cap(),
                      .retention_ms = retention_of(request.policy),
                      .budget_ids = join_ids(request.policy.budget_ids),
                      .quota_policy_id = request.policy.quota_policy_id,
                      .tags = request.tags};
  const auto priority = request.priority != 0 ? request.priority : request.policy.priority;
  execution.priority = std::clamp(priority, kMinPriority, kMaxPriority);
  execution.deadline_at_ms = deadline_of(request, at);
  execution.fair_key = fair_key(lane, execution);
  if (member) execution.flow_id = member->flow_id;
  const auto delay_until = request.delay_until ? request.delay_until : request.policy.delay_until;
  if (delay_until && *delay_until > at.now_ms) execution.delay_until_ms = delay_until;
  if (member && member->dependencies > 0) {
    execution.dependencies_pending = true;
    enter(unit, execution, vectors::waiting(AttemptState::pending_first_attempt),
          std::to_string(member->dependencies) + " dep(s) unresolved", at);
  } else if (execution.delay_until_ms) {
    enter(unit, execution,
          vectors::delayed(BlockingReason::waiting_for_delay, AttemptState::pending_first_attempt),
          "delayed until " + time_to_text(*delay_until), at);
  } else {
    enter(unit, execution, vectors::waiting(AttemptState::pending_first_attempt), "", at);
  }
  const auto state = execution.state.public_state;
  attach_first_tags(unit, execution, at);
  unit.insert(std::move(execution));
  unit.insert(ExecutionSpec{.partition_key = request.execution_id->partition,
                            .execution_id = request.execution_id->uuid,
                            .execution_kind = request.execution_kind,
                            .creator_identity = request.creator_identity,
                            .idempotency_key = request.idempotency_key,
                            .node_name = member ? member->node_name : "",
                            .trace_context = request.trace_context,
                            .policy = request.policy,
                            .payload_encoding = request.payload_encoding,
                            .payload = Bytes{request.input}})
      .policy.delay_until = delay_until;  // whichever way it was given
  return state;
}

Result<Creation> apply(Unit& unit, const CreateExecution& request, Context& at) {
  if (auto ok = check_create(request, at); !ok) return std::unexpected(ok.error());
  ensure_lane(unit, request.lane_id, "create_execution", at);
  if (auto duplicate = find_duplicate(unit, request, at)) return *duplicate;
  const auto state = create_new(unit, request, std::nullopt, at);
  if (!state) return std::unexpected(state.error());
  remember_key(unit, request, at);
  return Creation{.execution_id = *request.execution_id, .duplicate = false, .public_state = *state};
}

namespace {

void want(Unit& unit, const CreateExecution& request, const PartitionCounts&) {
  unit.want<Execution>(*request.execution_id);
  if (const auto required = required_capabilities(request.policy)) {
    want_registered(unit, request.lane_id, request.namespace_, *required, request.execution_kind);
  }
  unit.want<Lane>({request.lane_id});
  if (!request.idempotency_key.empty()) {
    unit.want<CreateDedup>({request.namespace_, request.idempotency_key});
  }
}

bool take_id(CreateExecution& request, const Uuid& minted, const PartitionCounts& partitions) {
  if (request.execution_id) return false;
  request.execution_id = ExecutionId{partition_of_lane(request.lane_id, partitions.flow), minted};
  return true;
}

void expect_absent(Unit& unit, const CreateExecution& request, const PartitionCounts&) {
  unit.put<Execution>(*request.execution_id, nullptr);
}

std::size_t affinity(const CreateExecution& request) {
  // Of several with the same key, the first is to be the one that counts.
  if (!request.idempotency_key.empty()) return std::hash<std::string>{}(request.idempotency_key);
  return affinity_of(*request.execution_id);
}

std::size_t weight(const CreateExecution& request) {
  return sizeof(request) + request.input.size();
}

}  // namespace

FLOWFABRIC_OPERATION(CreateExecution, .want = want, .take_id = take_id, .expect_absent = expect_absent,
                     .affinity = affinity, .weight = weight)

}  // namespace flowfabric::core
