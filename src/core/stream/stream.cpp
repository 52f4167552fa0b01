#include "core/stream/stream.h"

#include <algorithm>
#include <cmath>

#include "core/execution/lease.h"
#include "core/flow/dependency.h"
#include "core/lifecycle/expiry.h"
#include "core/operation.h"
#include "core/suspension/suspension.h"
#include "core/transition.h"
#include "model/merge_patch.h"
#include "model/text.h"

namespace flowfabric::core {

namespace {

constexpr std::uint64_t kDefaultMaxLen = 10'000;
constexpr std::uint64_t kSummaryMaxLen = 64;
constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
constexpr const char* kMergePatch = "json-merge-patch";
constexpr const char* kMergePatchVariant = "JsonMergePatch";  // what the reference's workers call it
constexpr const char* kWorker = "worker";

std::unexpected<Error> closed() {
  return fail_with(ErrorCode::stream_closed, "",
                   "The attempt is not running: its stream takes no more frames.");
}
std::unexpected<Error> stale() {
  return fail_with(ErrorCode::stale_owner_cannot_append, "",
                   "The lease is not this worker's any more: stop, somebody else may go on with it.");
}

// Specification 06 §2, first failure wins.
Result<void> check_right_to_append(Unit& unit, const AppendFrame& request, const Context& at) {
  if (request.payload.size() > kMaxFrameBytes) {
    return fail_with(ErrorCode::retention_limit_exceeded, std::to_string(request.payload.size()),
                     "A frame has at most 65536 bytes: split it, or keep the data elsewhere.");
  }
  const auto* execution = unit.find<Execution>(request.execution_id);
  if (!execution) return std::unexpected(not_found(request.execution_id));
  const bool is_current =
      !request.attempt_index || execution->attempt.attempt_index == *request.attempt_index;
  if (request.source != kWorker) {
    // Who needs no lease still needs an attempt that goes on: one whose lease was lost does not.
    const auto index = execution->attempt.attempt_index;
    const bool goes_on = has_live_attempt(*execution) && !closing_of(execution, index, nullptr);
    return goes_on && is_current ? Result<void>{} : closed();
  }
  if (execution->state.lifecycle_phase != LifecyclePhase::active) return closed();
  const bool holds = execution->state.ownership_state == OwnershipState::leased &&
                     !has_lapsed(*execution, at) && is_current &&
                     execution->attempt.attempt_id == request.fence.attempt_id &&
                     execution->lease.lease_id == request.fence.lease_id &&
                     execution->lease_epoch == request.fence.lease_epoch;
  return holds ? Result<void>{} : stale();
}

Result<void> check_frame(const AppendFrame& request) {
  const bool known_source =
      request.source == kWorker || request.source == "system" || request.source == "operator";
  if (!known_source) {
    return fail_with(ErrorCode::invalid_input, "source", "A frame comes from worker, system or operator.");
  }
  if (auto ok = check_text("frame_type", request.frame_type, kMaxKeyBytes); !ok) return ok;
  if (auto ok = check_text("correlation_id", request.correlation_id.value_or(""), kMaxKeyBytes); !ok)
    return ok;
  if (request.seq.value_or(0) > kLargest || request.best_effort.ttl_ms > kLargest) {
    return fail_with(ErrorCode::invalid_input, "out of range",
                     "Give numbers of at most 9223372036854775807.");
  }
  // Whatever the mode: who names a patch has a summary in mind.
  if (request.patch_kind != kMergePatch && request.patch_kind != kMergePatchVariant) {
    return fail_with(ErrorCode::invalid_input, "patch_kind",
                     "The only kind of patch is json-merge-patch (or JsonMergePatch): leave patch_kind out.");
  }
  return {};
}

Stream& stream_of(Unit& unit, const AppendFrame& request, const StreamKey& key, const Context& at) {
  if (unit.find<Stream>(key)) return unit.edit<Stream>(key);
  const auto& policy = unit.require<ExecutionSpec>(request.execution_id).policy;
  const auto wanted = policy.stream_policy ? policy.stream_policy->retention_maxlen : kDefaultMaxLen;
  return unit.insert(Stream{.partition_key = key.partition_key,
                            .execution_id = key.execution_id,
                            .attempt_index = key.attempt_index,
                            .created_at_ms = at.now_ms,
                            .retention_maxlen = wanted == 0 ? kDefaultMaxLen : std::min(wanted, kLargest)});
}

// The version that the patch makes.
Result<std::uint64_t> change_summary(Unit& unit, const StreamKey& key, const AppendFrame& request,
                                     const Context& at) {
  const auto* known = unit.find<StreamSummary>(key);
  auto merged = merge_patch(known ? known->document_json : "{}", request.payload);
  if (!merged) return std::unexpected(merged.error());
  if (merged->size() > kMaxSummaryBytes) {
    return fail_with(ErrorCode::payload_too_large, "summary document",
                     "A summary has at most 1048576 bytes: remove something from it first.");
  }
  if (!known) {
    unit.insert(StreamSummary{.partition_key = key.partition_key,
                              .execution_id = key.execution_id,
                              .attempt_index = key.attempt_index,
                              .first_applied_ms = at.now_ms});
  }
  auto& summary = unit.edit<StreamSummary>(key);
  summary.document_json = *std::move(merged);
  summary.patch_kind = kMergePatch;
  summary.last_updated_ms = at.now_ms;
  return ++summary.version;
}

// Never smaller than the one before, whatever the clock does.
FrameId next_id(Stream& stream, const Context& at) {
  const auto now = static_cast<std::uint64_t>(std::max<std::int64_t>(at.now_ms, 0));
  const bool same = stream.frame_count > 0 && stream.last_ms >= now;
  stream.last_seq = same ? stream.last_seq + 1 : 0;
  if (!same) stream.last_ms = now;
  return {stream.last_ms, stream.last_seq};
}

void keep_newest(Unit& unit, Stream& stream, std::uint64_t count) {
  if (stream.frames_kept <= count) return;
  unit.drop_frames(stream.key(), stream.frames_kept - count);
  stream.frames_kept = count;
}

void forget_frames(Unit& unit, Stream& stream) {
  keep_newest(unit, stream, 0);
  stream.expires_at_ms.reset();
  stream.next_due_at_ms.reset();
}

// As many as come in twice their time to live, at the rate at which they come.
std::uint64_t size_by_rate(Stream& stream, const BestEffort& given, const Context& at) {
  const auto floor = given.maxlen_floor <= 0 ? 64 : given.maxlen_floor;
  const auto ceiling = std::max(given.maxlen_ceiling <= 0 ? 16'384 : given.maxlen_ceiling, floor);
  const bool usable = given.ema_alpha > 0 && given.ema_alpha <= 1;
  const double alpha = usable ? given.ema_alpha : 0.2;
  const double ttl_s = static_cast<double>(std::max<std::uint64_t>(given.ttl_ms, 1)) / 1000;
  double rate = static_cast<double>(floor) / (ttl_s * 2);
  if (stream.last_append_ts_ms) {
    const auto dt = std::max<std::int64_t>(at.now_ms - *stream.last_append_ts_ms, 1);
    const double before = static_cast<double>(stream.ema_rate_micro_hz) / 1e6;
    rate = alpha * (1000.0 / static_cast<double>(dt)) + (1 - alpha) * before;
  }
  const double wanted = std::ceil(rate * ttl_s * 2);
  const auto kept = std::clamp(wanted, static_cast<double>(floor), static_cast<double>(ceiling));
  stream.ema_rate_micro_hz = static_cast<std::int64_t>(std::llround(std::min(rate, 1e12) * 1e6));
  stream.last_append_ts_ms = at.now_ms;
  stream.maxlen_applied_last = static_cast<std::uint64_t>(kept);
  return stream.maxlen_applied_last;
}

void trim(Unit& unit, Stream& stream, const AppendFrame& request, const Context& at) {
  if (request.mode == FrameMode::best_effort) {
    keep_newest(unit, stream, size_by_rate(stream, request.best_effort, at));
    if (stream.has_durable_frame || request.best_effort.ttl_ms == 0) return;
    const auto twice = request.best_effort.ttl_ms > kLargest / 2 ? kLargest : request.best_effort.ttl_ms * 2;
    stream.expires_at_ms = saturating_add(at.now_ms, twice);
    // It is looked at when the first was due; most streams have gone on by then.
    if (!stream.next_due_at_ms || *stream.expires_at_ms < *stream.next_due_at_ms) {
      stream.next_due_at_ms = stream.expires_at_ms;
    }
    return;
  }
  stream.has_durable_frame = true;
  stream.expires_at_ms.reset();
  stream.next_due_at_ms.reset();
  keep_newest(unit, stream, request.mode == FrameMode::summary ? kSummaryMaxLen : stream.retention_maxlen);
}

}  // namespace

StreamKey stream_key(const ExecutionId& id, std::uint32_t attempt_index) {
  return {id.partition, id.uuid, attempt_index};
}

Result<FrameAppended> apply(Unit& unit, const AppendFrame& request, Context& at) {
  if (auto ok = check_right_to_append(unit, request, at); !ok) return std::unexpected(ok.error());
  if (auto ok = check_frame(request); !ok) return std::unexpected(ok.error());
  const auto key =
      stream_key(request.execution_id, unit.require<Execution>(request.execution_id).attempt.attempt_index);
  auto& stream = stream_of(unit, request, key, at);
  if (request.seq && stream.last_caller_seq && *request.seq <= *stream.last_caller_seq) {
    return FrameAppended{.stream_id = FrameId{stream.last_ms, stream.last_seq}.to_string(),
                         .frame_count = stream.frame_count,
                         .summary_version = std::nullopt,
                         .duplicate = true};
  }
  // What has expired is not brought back by what comes later, and takes nothing of that with it.
  if (has_expired(stream, at.now_ms)) forget_frames(unit, stream);
  std::optional<std::uint64_t> version;
  if (request.mode == FrameMode::summary) {
    const auto changed = change_summary(unit, key, request, at);
    if (!changed) return std::unexpected(changed.error());
    version = *changed;
  }
  const auto id = next_id(stream, at);
  const bool has_ttl = request.mode == FrameMode::best_effort && request.best_effort.ttl_ms > 0;
  unit.insert(Frame{
      .partition_key = key.partition_key,
      .execution_id = key.execution_id,
      .attempt_index = key.attempt_index,
      .frame_ms = id.ms,
      .frame_seq = id.seq,
      .frame_type = request.frame_type.empty() ? std::string(enum_name(request.kind)) : request.frame_type,
      .ts_ms = request.ts.value_or(at.now_ms),
      .source = request.source,
      .mode = request.mode,
      .correlation_id = request.correlation_id,
      .summary_version = version,
      .ttl_ms = has_ttl ? std::optional(request.best_effort.ttl_ms) : std::nullopt,
      .payload = Bytes{request.payload}});
  ++stream.frame_count;
  ++stream.frames_kept;
  stream.total_bytes += request.payload.size();
  stream.last_frame_at_ms = at.now_ms;
  if (request.seq) stream.last_caller_seq = request.seq;
  unit.note(Noted::frame, std::string(enum_name(request.mode)),
            static_cast<std::int64_t>(request.payload.size()));
  trim(unit, stream, request, at);
  return FrameAppended{
      .stream_id = id.to_string(), .frame_count = stream.frame_count, .summary_version = version};
}

bool has_expired(const Stream& stream, std::int64_t now_ms) {
  return stream.expires_at_ms && *stream.expires_at_ms <= now_ms;
}

std::optional<Closing> closing_of(const Execution* execution, std::uint32_t attempt_index,
                                  const Attempt* ended) {
  if (ended) {
    const bool by_clock =
        ended->failure_category == "timeout" &&
        (ended->failure_reason == kAttemptTimeout || ended->failure_reason == kExecutionDeadline);
    // What a worker says of its failure has a category.
    const bool by_suspension =
        ended->failure_category.empty() && ended->failure_reason.starts_with("suspension_timeout:");
    std::string reason = "attempt_failure";
    if (ended->attempt_state == AttemptLifecycle::ended_success)
      reason = "attempt_success";
    else if (ended->attempt_state == AttemptLifecycle::interrupted_reclaimed)
      reason = "reclaimed";
    else if (by_suspension)
      reason = "suspension_timeout";
    else if (ended->attempt_state == AttemptLifecycle::ended_cancelled)
      reason = ended->failure_reason == kDependencyImpossible ? kDependencyImpossible : "attempt_cancelled";
    else if (by_clock)
      reason = "expired";
    return Closing{ended->terminal_at_ms, std::move(reason)};
  }
  if (!execution) return std::nullopt;
  const auto& state = execution->state;
  if (execution->attempt.attempt_index == attempt_index &&
      state.ownership_state == OwnershipState::lease_expired_reclaimable) {
    return Closing{execution->lease.lease_expired_at_ms.value_or(execution->last_transition_at_ms),
                   "lease_expired"};
  }
  // It never ran, and will not.
  if (state.terminal_outcome == TerminalOutcome::skipped) {
    return Closing{*execution->terminal_at_ms, kDependencyImpossible};
  }
  if (state.lifecycle_phase == LifecyclePhase::terminal && execution->total_attempt_count == 0) {
    const bool cancelled = state.terminal_outcome == TerminalOutcome::cancelled;
    return Closing{*execution->terminal_at_ms, cancelled ? "attempt_cancelled" : "expired"};
  }
  return std::nullopt;
}

Rule run_stream_clock(Unit& unit, const StreamKey& key, Context& at) {
  const auto* found = unit.find<Stream>(key);
  if (!found || !found->next_due_at_ms || *found->next_due_at_ms > at.now_ms) return Rule::none;
  auto& stream = unit.edit<Stream>(key);
  if (!has_expired(stream, at.now_ms)) {
    stream.next_due_at_ms = stream.expires_at_ms;
    return Rule::none;
  }
  forget_frames(unit, stream);
  return Rule::ttl_sweep;
}

namespace {

void want(Unit& unit, const AppendFrame& request, const PartitionCounts&) {
  unit.want<Execution>(request.execution_id);
  unit.want<ExecutionSpec>(request.execution_id);
  if (!request.attempt_index) return;
  const auto key = stream_key(request.execution_id, *request.attempt_index);
  unit.want<Stream>(key);
  if (request.mode == FrameMode::summary) unit.want<StreamSummary>(key);
}

std::size_t weight(const AppendFrame& request) {
  return sizeof(request) + request.payload.size();
}

}  // namespace

FLOWFABRIC_OPERATION(AppendFrame, .want = want, .weight = weight)

}  // namespace flowfabric::core
