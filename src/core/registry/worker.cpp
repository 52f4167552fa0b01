#include "core/registry/worker.h"

#include <algorithm>

#include "core/operation.h"
#include "core/registry/unblock.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kMaxLanes = 64;
constexpr std::size_t kMaxReasonBytes = 256;
constexpr std::int64_t kMinTtlMs = 1000;
constexpr std::int64_t kMaxTtlMs = 3'600'000;

Result<void> check_identity(const std::string& name_space, const std::string& instance_id) {
  if (auto ok = check_namespace(name_space); !ok) return ok;
  return check_worker_name("worker_instance_id", instance_id);
}

Result<void> check_registration(const RegisterWorker& request) {
  if (auto ok = check_identity(request.namespace_, request.worker_instance_id); !ok) return ok;
  if (auto ok = check_worker_name("worker_id", request.worker_id); !ok) return ok;
  if (request.lanes.empty() || request.lanes.size() > kMaxLanes) {
    return fail_with(ErrorCode::invalid_input, "lanes: out of range", "Name 1 to 64 lanes that it serves.");
  }
  for (const auto& lane : request.lanes) {
    if (auto ok = check_lane(lane); !ok) return ok;
  }
  if (request.liveness_ttl_ms < kMinTtlMs || request.liveness_ttl_ms > kMaxTtlMs) {
    return fail_with(ErrorCode::invalid_input, "liveness_ttl_ms: out of range",
                     "Give a time to live between 1000 and 3600000 ms.");
  }
  return {};
}

Result<void> check_reason(const std::string& reason) {
  const bool plain = std::ranges::none_of(reason, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7F;
  });
  if (reason.size() <= kMaxReasonBytes && plain && is_valid_utf8(reason)) return {};
  return fail_with(ErrorCode::invalid_input, "reason: too long or not plain text",
                   "Give a reason of up to 256 bytes without control characters.");
}

void note(Unit& unit, const Worker& worker, WorkerEventKind kind, std::string reason, const Context& at) {
  unit.append(WorkerEvent{.namespace_ = worker.namespace_,
                          .worker_instance_id = worker.worker_instance_id,
                          .worker_id = worker.worker_id,
                          .event_kind = kind,
                          .reason = std::move(reason),
                          .occurred_at_ms = at.now_ms});
}

std::int64_t expiry(const Worker& worker) {
  return worker.last_heartbeat_ms + worker.liveness_ttl_ms;
}

const Worker* find_alive(Unit& unit, const WorkerKey& key, const Context& at) {
  const auto* worker = unit.find<Worker>(key);
  return worker && is_alive(*worker, at) ? worker : nullptr;
}

std::vector<std::string> sorted(std::vector<std::string> names) {
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

// Writes down that the leases of the worker are to be offered again (core/lifecycle/dead_worker.h).
void forsake_leases(Unit& unit, const WorkerKey& worker, const Context& at) {
  const DeadWorker dead{.namespace_ = worker.namespace_,
                        .worker_instance_id = worker.worker_instance_id,
                        .died_at_ms = at.now_ms,
                        .looked_up_to = "",
                        .next_due_at_ms = at.now_ms};
  if (unit.find<DeadWorker>(dead.key()))
    unit.edit<DeadWorker>(dead.key()) = dead;
  else
    unit.insert(dead);
}

}  // namespace

bool works_for(Unit& unit, const WorkerKey& worker, const std::string& name_space) {
  if (worker.namespace_ == name_space) return true;
  return worker.namespace_.empty() && !unit.find<Worker>({name_space, worker.worker_instance_id});
}

bool is_alive(const Worker& worker, const Context& at) {
  return expiry(worker) > at.now_ms;
}

Result<WorkerRegistration> apply(Unit& unit, const RegisterWorker& request, Context& at) {
  if (auto ok = check_registration(request); !ok) return std::unexpected(ok.error());
  const auto capabilities = normalize_capabilities("worker", request.capabilities);
  if (!capabilities) return std::unexpected(capabilities.error());
  const WorkerKey key{request.namespace_, request.worker_instance_id};
  const auto* alive = find_alive(unit, key, at);
  if (alive && alive->worker_id != request.worker_id) {
    return fail_with(ErrorCode::invalid_input, "instance_id reassigned",
                     "This instance is registered by worker '" + alive->worker_id +
                         "' and alive. Give every process an instance id of its own.");
  }
  Worker worker{.namespace_ = request.namespace_,
                .worker_instance_id = request.worker_instance_id,
                .worker_id = request.worker_id,
                .lanes = sorted(request.lanes),
                .capabilities_csv = join_capabilities(*capabilities),
                .last_heartbeat_ms = at.now_ms,
                .liveness_ttl_ms = request.liveness_ttl_ms,
                .registered_at_ms = alive ? alive->registered_at_ms : at.now_ms};
  worker.next_due_at_ms = expiry(worker) + 1;
  const WorkerRegistration answer{.refreshed = alive != nullptr, .expires_at = expiry(worker)};
  note(unit, worker, WorkerEventKind::registered, "", at);
  look_for_blocked(unit, worker, at);
  if (unit.find<Worker>(key)) {
    unit.edit<Worker>(key) = std::move(worker);
  } else {
    unit.insert(std::move(worker));
  }
  return answer;
}

Result<Heartbeat> apply(Unit& unit, const HeartbeatWorker& request, Context& at) {
  if (auto ok = check_identity(request.namespace_, request.worker_instance_id); !ok) {
    return std::unexpected(ok.error());
  }
  const WorkerKey key{request.namespace_, request.worker_instance_id};
  if (!find_alive(unit, key, at)) {
    return fail_with(ErrorCode::worker_not_found, request.worker_instance_id,
                     "The worker is not registered, or was not heard of in its time: register it again.");
  }
  auto& worker = unit.edit<Worker>(key);
  worker.last_heartbeat_ms = at.now_ms;
  note(unit, worker, WorkerEventKind::heartbeat, "", at);
  return Heartbeat{expiry(worker)};
}

Result<MarkedDead> apply(Unit& unit, const MarkWorkerDead& request, Context& at) {
  if (auto ok = check_identity(request.namespace_, request.worker_instance_id); !ok) {
    return std::unexpected(ok.error());
  }
  if (auto ok = check_reason(request.reason); !ok) return std::unexpected(ok.error());
  const WorkerKey key{request.namespace_, request.worker_instance_id};
  const auto* worker = find_alive(unit, key, at);
  if (!worker) return MarkedDead{false};
  note(unit, *worker, WorkerEventKind::marked_dead, request.reason, at);
  unit.erase<Worker>(key);
  forsake_leases(unit, key, at);
  return MarkedDead{true};
}

Rule run_worker_clock(Unit& unit, const WorkerKey& key, Context& at) {
  const auto* worker = unit.find<Worker>(key);
  if (!worker) return Rule::none;
  if (expiry(*worker) >= at.now_ms) {
    // It was heard of since: put the exact time into the index.
    if (worker->next_due_at_ms != expiry(*worker) + 1) {
      unit.edit<Worker>(key).next_due_at_ms = expiry(*worker) + 1;
    }
    return Rule::none;
  }
  note(unit, *worker, WorkerEventKind::ttl_swept, "", at);
  unit.erase<Worker>(key);
  return Rule::worker_registry_ttl_sweep;
}

namespace {

void want(Unit& unit, const RegisterWorker& request, const PartitionCounts&) {
  unit.want<Worker>({request.namespace_, request.worker_instance_id});
  for (const auto& lane : request.lanes) unit.want_routes(lane);
}

void want(Unit& unit, const MarkWorkerDead& request, const PartitionCounts&) {
  unit.want_lock<Worker>({request.namespace_, request.worker_instance_id});
  unit.want<DeadWorker>({request.namespace_, request.worker_instance_id});
}

}  // namespace

FLOWFABRIC_OPERATION(RegisterWorker, .want = want)
FLOWFABRIC_OPERATION(HeartbeatWorker)
FLOWFABRIC_OPERATION(MarkWorkerDead, .want = want)

}  // namespace flowfabric::core
