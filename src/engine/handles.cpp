#include "engine/handles.h"

#include "core/suspension/suspend.h"
#include "store/store.h"

namespace flowfabric::engine {

namespace {

HandleKind kind_of(ClaimKind claim) {
  switch (claim) {
    case ClaimKind::fresh:
      return HandleKind::fresh;
    case ClaimKind::resumed:
      return HandleKind::resumed;
    case ClaimKind::reclaimed:
      return HandleKind::reclaimed;
  }
  return HandleKind::fresh;
}

}  // namespace

HandleBackend backend_of(const std::string& url) {
  if (store::is_postgres_url(url)) return HandleBackend::postgres;
  return url.starts_with("sqlite:") ? HandleBackend::sqlite : HandleBackend::memory;
}

OpaqueHandle handle_of(const ClaimedTask& task, HandleBackend backend, const std::string& worker_instance_id,
                       std::int64_t lease_ttl_ms) {
  const Handle handle{.backend = backend,
                      .kind = kind_of(task.claim),
                      .execution_id = task.execution_id,
                      .attempt_index = task.attempt_index,
                      .attempt_id = task.fence.attempt_id.value_or(AttemptId{}),
                      .lease_id = task.fence.lease_id.value_or(LeaseId{}),
                      .lease_epoch = task.fence.lease_epoch.value_or(0),
                      .lease_ttl_ms = lease_ttl_ms,
                      .lane_id = task.lane_id,
                      .worker_instance_id = worker_instance_id};
  return {handle.backend, handle.kind, encode_handle(handle)};
}

Result<void> resolve_handle(SuspendExecution& request, HandleBackend backend, std::int64_t now_ms) {
  if (!request.handle) return {};
  if (request.handle->kind == HandleKind::suspended) {
    return fail_with(
        ErrorCode::already_suspended, "",
        "The handle is that of a suspended attempt: claim the execution again when it is resumed.");
  }
  if (auto ok = core::check_arguments(request, now_ms); !ok) return ok;
  const auto handle = decode_handle(request.handle->opaque, request.handle->kind);
  if (!handle) return std::unexpected(handle.error());
  if (auto ok = check_handle_backend(*handle, backend); !ok) return ok;
  request.execution_id = handle->execution_id;
  request.fence = {handle->lease_id, handle->lease_epoch, handle->attempt_id};
  request.attempt_index = handle->attempt_index;
  return {};
}

}  // namespace flowfabric::engine
