#include "core/suspension/signal.h"

#include <algorithm>

#include "core/execution/lease.h"
#include "core/operation.h"
#include "core/suspension/keystore.h"
#include "core/suspension/suspension.h"
#include "core/suspension/waitpoint.h"
#include "core/transition.h"
#include "model/text.h"
#include "model/waitpoint_token.h"

namespace flowfabric::core {

namespace {

constexpr std::size_t kMaxPayloadBytes = 65'536;
// A sender may raise the lower bound and no more: else it could push out what others have sent.
constexpr std::size_t kMinFeed = 1000;
constexpr std::size_t kMaxFeed = 10'000;
constexpr std::string_view kReservedPrefix = "__";
constexpr std::int64_t kRefusalStampMs = 60'000;

ArrivedSignal arrived(const Signal& signal, const std::string& waitpoint_key) {
  return {.signal_id = signal.signal_id,
          .waitpoint_id = signal.waitpoint_id,
          .waitpoint_key = waitpoint_key,
          .signal_name = signal.signal_name,
          .source_type = signal.source_type,
          .source_identity = signal.source_identity};
}

// What subscribers are told of the effect.
EventEffect effect_on_feed(SignalEffect effect) {
  const std::string raw(enum_name(effect));
  switch (effect) {
    case SignalEffect::resume_condition_satisfied:
      return {"satisfied", raw};
    case SignalEffect::buffered_for_pending_waitpoint:
    case SignalEffect::appended_to_waitpoint:
      return {"buffered", raw};
    default:
      return {raw, raw};
  }
}

std::unexpected<Error> waitpoint_closed() {
  return fail_with(ErrorCode::waitpoint_closed, "", "The waitpoint takes no more signals.");
}

// Whether the waitpoint takes signals now.
Result<void> check_open(const Execution& execution, const Waitpoint& waitpoint, const Context& at) {
  const auto phase = execution.state.lifecycle_phase;
  if (phase == LifecyclePhase::terminal) {
    return fail_with(ErrorCode::target_not_signalable, "", "The execution has ended.");
  }
  if (has_expired(waitpoint, at.now_ms)) return waitpoint_closed();
  if (waitpoint.state != WaitpointState::closed) return {};
  if (phase == LifecyclePhase::suspended || !waitpoint.activated_at_ms) return waitpoint_closed();
  return fail_with(ErrorCode::target_not_signalable, "", "The execution has been resumed already.");
}

Result<void> check_content(const DeliverSignal& request) {
  if (request.payload && request.payload->size() > kMaxPayloadBytes) {
    return fail_with(ErrorCode::payload_too_large, std::to_string(request.payload->size()),
                     "Send at most 65536 bytes; keep larger data elsewhere and send where it is.");
  }
  if (request.signal_name.empty()) {
    return fail_with(ErrorCode::invalid_input, "signal_name: empty", "Name the signal.");
  }
  if (request.signal_name.starts_with(kReservedPrefix)) {
    return fail_with(ErrorCode::invalid_input, "signal_name: reserved",
                     "Names that begin with two underscores belong to the engine.");
  }
  if (request.resume_delay_ms.value_or(0) < 0 || request.dedup_ttl_ms < 0) {
    return fail_with(ErrorCode::invalid_input, "negative duration", "Give a number of milliseconds.");
  }
  for (const auto& [name, text] : {std::pair{"signal_name", &request.signal_name},
                                   {"signal_category", &request.signal_category},
                                   {"source_type", &request.source_type},
                                   {"target_scope", &request.target_scope},
                                   {"payload_encoding", &request.payload_encoding},
                                   {"correlation_id", &request.correlation_id}}) {
    if (auto ok = check_text(name, *text, kMaxKeyBytes); !ok) return ok;
  }
  return {};
}

// Zero means no limit; a caller can only lower what the policy says.
Result<void> check_cap(const ExecutionPolicy& policy, const DeliverSignal& request, std::uint32_t accepted) {
  auto cap = policy.max_signals_per_execution;
  const auto asked = request.max_signals_per_execution.value_or(0);
  if (asked > 0 && (cap == 0 || asked < cap)) cap = asked;
  if (cap == 0 || accepted < cap) return {};
  return fail_with(ErrorCode::signal_limit_exceeded, std::to_string(cap),
                   "The execution has accepted as many signals as it may.");
}

Signal& append_signal(Unit& unit, Suspension& row, Signal signal) {
  signal.partition_key = row.partition_key;
  signal.execution_id = row.execution_id;
  signal.signal_index = row.signal_count++;
  return unit.insert(std::move(signal));
}

Signal signal_from(const DeliverSignal& request, Context& at) {
  return {.signal_id = request.signal_id ? *request.signal_id : at.mint<SignalId>(),
          .waitpoint_id = request.waitpoint_id,
          .target_scope = request.target_scope,
          .signal_name = request.signal_name,
          .signal_category = request.signal_category,
          .source_type = request.source_type,
          .source_identity = request.source_identity,
          .correlation_id = request.correlation_id,
          .idempotency_key = request.idempotency_key,
          .payload_encoding = request.payload_encoding.empty() ? "json" : request.payload_encoding,
          .has_payload = request.payload.has_value(),
          .payload = Bytes{request.payload.value_or("")},
          .created_at_ms = request.created_at.value_or(at.now_ms),
          .accepted_at_ms = at.now_ms};
}

// The signal's part in the condition, and what follows from it.
SignalEffect evaluate(SuspensionDetails& details, const Signal& signal, const std::string& waitpoint_key) {
  auto satisfied = satisfied_of(details);
  const auto effect = deliver(details.resume_condition, satisfied, arrived(signal, waitpoint_key));
  set_satisfied(details, satisfied);
  if (is_satisfier(effect)) details.satisfier_signals.push_back(std::to_string(signal.signal_index));
  details.last_signal_at_ms = signal.accepted_at_ms;
  return effect;
}

bool looks_for_duplicates(const DeliverSignal& request) {
  return !request.idempotency_key.empty() && request.dedup_ttl_ms > 0;
}

enum class Sender { token_holder, operator_ };

// Who holds a token cannot use up the key of an operator's word.
SignalDedupKey dedup_key(const DeliverSignal& request, Sender sender) {
  return {request.execution_id.partition, request.execution_id.uuid, request.waitpoint_id,
          (sender == Sender::operator_ ? "" : ":") + request.idempotency_key};
}

void remember(Unit& unit, const SignalDedupKey& key, const DeliverSignal& request, const SignalId& signal_id,
              const Context& at) {
  const SignalDedup entry{
      .partition_key = key.partition_key,
      .execution_id = key.execution_id,
      .waitpoint_id = key.waitpoint_id,
      .idempotency_key = key.idempotency_key,
      .signal_id = signal_id,
      .expires_at_ms = saturating_add(at.now_ms, static_cast<std::uint64_t>(request.dedup_ttl_ms))};
  if (unit.find<SignalDedup>(key))
    unit.edit<SignalDedup>(key) = entry;
  else
    unit.insert(entry);
}

// Whoever delivers it may: what is left are the rules of the waitpoint.
Result<SignalDelivered> accept(Unit& unit, const DeliverSignal& request, Sender sender, Context& at) {
  const auto& id = request.execution_id;
  const auto key = waitpoint_key(id, request.waitpoint_id);
  const auto& execution = unit.require<Execution>(id);
  // These two are kept even if the signal only repeats one.
  for (const auto& [name, text] : {std::pair{"idempotency_key", &request.idempotency_key},
                                   {"source_identity", &request.source_identity}}) {
    if (auto ok = check_text(name, *text, kMaxKeyBytes); !ok) return std::unexpected(ok.error());
  }
  const auto dedup = dedup_key(request, sender);
  if (looks_for_duplicates(request)) {
    const auto* known = unit.find<SignalDedup>(dedup);
    if (known && known->expires_at_ms > at.now_ms) {
      const Signal again{.signal_id = known->signal_id,
                         .waitpoint_id = request.waitpoint_id,
                         .source_identity = request.source_identity};
      append_signal_event(unit, execution, again, {"deduped", "duplicate"}, at);
      return SignalDelivered{.duplicate = true, .signal_id = known->signal_id, .effect = std::nullopt};
    }
  }
  if (auto ok = check_open(execution, unit.require<Waitpoint>(key), at); !ok) {
    return std::unexpected(ok.error());
  }
  if (auto ok = check_content(request); !ok) return std::unexpected(ok.error());
  const auto& policy = unit.require<ExecutionSpec>(id).policy;
  auto& row = suspension_row(unit, id);
  if (auto ok = check_cap(policy, request, row.signal_count); !ok) return std::unexpected(ok.error());

  auto& signal = append_signal(unit, row, signal_from(request, at));
  if (looks_for_duplicates(request)) remember(unit, dedup, request, signal.signal_id, at);
  auto& waitpoint = unit.edit<Waitpoint>(key);
  ++waitpoint.signal_count;
  waitpoint.last_signal_at_ms = at.now_ms;
  if (waitpoint.state == WaitpointState::pending) {
    signal.observed_effect = SignalEffect::buffered_for_pending_waitpoint;
    auto& feed = waitpoint.buffered_signals;
    feed.push_back(std::to_string(signal.signal_index));
    const auto most = std::clamp<std::size_t>(request.signal_maxlen, kMinFeed, kMaxFeed);
    if (feed.size() > most) feed.erase(feed.begin(), feed.end() - static_cast<std::ptrdiff_t>(most));
  } else {
    signal.observed_effect = evaluate(row.details, signal, waitpoint.waitpoint_key);
    if (is_matched(signal.observed_effect)) ++waitpoint.matched_signal_count;
  }
  append_signal_event(unit, execution, signal, effect_on_feed(signal.observed_effect), at);
  if (signal.observed_effect == SignalEffect::resume_condition_satisfied) {
    const auto delay_ms = request.resume_delay_ms.value_or(row.details.resume_delay_ms.value_or(0));
    resume(unit, id,
           {.trigger = ResumeTrigger::signal,
            .delay_ms = delay_ms,
            .delay_detail =
                "resume delay " + std::to_string(delay_ms) + "ms after signal " + request.signal_name},
           at);
  }
  return SignalDelivered{.duplicate = false, .signal_id = signal.signal_id, .effect = signal.observed_effect};
}

// The stamp outlives the refusal. Whoever tries one token after the other does not cause a write for each.
void stamp_refused_token(Unit& unit, const ExecutionId& id, const Context& at) {
  const auto* row = unit.find<Suspension>(suspension_key(id));
  const auto last = row ? row->last_hmac_validation_failed_at_ms : std::nullopt;
  if (last && at.now_ms - *last < kRefusalStampMs) return;
  suspension_row(unit, id).last_hmac_validation_failed_at_ms = at.now_ms;
  unit.keep_despite_refusal();
}

}  // namespace

Result<SignalDelivered> apply(Unit& unit, const DeliverSignal& request, Context& at) {
  const auto& id = request.execution_id;
  if (!unit.find<Execution>(id)) return std::unexpected(not_found(id));
  const auto verified = verify(unit, waitpoint_key(id, request.waitpoint_id), request.waitpoint_token, at);
  if (!verified) {
    stamp_refused_token(unit, id, at);
    return std::unexpected(verified.error());
  }
  return accept(unit, request, Sender::token_holder, at);
}

Result<SignalDelivered> apply(Unit& unit, const DeliverApprovalSignal& request, Context& at) {
  const auto& id = request.execution_id;
  const auto* execution = unit.find<Execution>(id);
  if (!execution) return std::unexpected(not_found(id));
  if (execution->lane_id != request.lane_id) {
    return fail_with(
        ErrorCode::invalid_input,
        "lane_mismatch: args.lane_id=" + request.lane_id + " exec_core.lane_id=" + execution->lane_id,
        "Name the lane of the execution.");
  }
  const auto* waitpoint = unit.find<Waitpoint>(waitpoint_key(id, request.waitpoint_id));
  if (!waitpoint || waitpoint->token.empty()) {
    return fail_with(ErrorCode::unknown_waitpoint, request.waitpoint_id.to_string(),
                     "The execution has no such waitpoint.");
  }
  DeliverSignal signal{.execution_id = id, .waitpoint_id = request.waitpoint_id, .waitpoint_token = ""};
  signal.signal_name = request.signal_name;
  signal.signal_category = "approval";
  signal.source_type = "operator";
  signal.idempotency_key = "approval:" + request.signal_name + ":" + request.idempotency_suffix;
  signal.dedup_ttl_ms = request.signal_dedup_ttl_ms;
  signal.max_signals_per_execution = request.max_signals_per_execution;
  signal.signal_maxlen = request.maxlen;
  return accept(unit, signal, Sender::operator_, at);
}

void append_timeout_signal(Unit& unit, const ExecutionId& id, Context& at) {
  auto& row = unit.edit<Suspension>(suspension_key(id));
  auto& details = row.details;
  auto& signal = append_signal(
      unit, row,
      {.signal_id = at.mint<SignalId>(),
       .waitpoint_id = WaitpointId::parse(details.waitpoint_ids.front()).value_or(WaitpointId{}),
       .target_scope = "execution",
       .signal_name = details.timeout_signal_name,
       .signal_category = "timeout",
       .source_type = "system",
       .source_identity = "suspension_timeout",
       .correlation_id = details.suspension_id->to_string(),
       .payload_encoding = "json",
       .created_at_ms = at.now_ms,
       .accepted_at_ms = at.now_ms,
       .observed_effect = SignalEffect::resume_condition_satisfied});
  details.satisfier_signals.push_back(std::to_string(signal.signal_index));
  details.last_signal_at_ms = at.now_ms;
  append_signal_event(unit, unit.require<Execution>(id), signal, effect_on_feed(signal.observed_effect), at);
}

bool count_early_signals(Unit& unit, const WaitpointRecordKey& key, SuspensionDetails& details) {
  auto& waitpoint = unit.edit<Waitpoint>(key);
  const auto signals = signal_keys(waitpoint.owner(), waitpoint.buffered_signals);
  unit.fetch<Signal>(signals);
  for (const auto& signal_key : signals) {
    if (!unit.find<Signal>(signal_key)) continue;
    auto& signal = unit.edit<Signal>(signal_key);
    signal.observed_effect = evaluate(details, signal, waitpoint.waitpoint_key);
    if (is_matched(signal.observed_effect)) ++waitpoint.matched_signal_count;
    if (signal.observed_effect == SignalEffect::resume_condition_satisfied) return true;
  }
  return false;
}

ResumeSignal view(const Signal& signal, const Waitpoint* waitpoint) {
  return {.signal_id = signal.signal_id,
          .signal_name = signal.signal_name,
          .signal_category = signal.signal_category,
          .waitpoint_id = signal.waitpoint_id,
          .waitpoint_key = waitpoint ? waitpoint->waitpoint_key : "",
          .source_type = signal.source_type,
          .source_identity = signal.source_identity,
          .correlation_id = signal.correlation_id,
          .accepted_at = signal.accepted_at_ms,
          .payload_encoding = signal.payload_encoding,
          .payload = signal.has_payload ? std::optional(signal.payload.data) : std::nullopt};
}

namespace {

void want(Unit& unit, const DeliverSignal& request, const PartitionCounts&) {
  const auto& id = request.execution_id;
  unit.want<Execution>(id);
  unit.want<ExecutionSpec>(id);
  unit.want<Suspension>(suspension_key(id));
  unit.want<Waitpoint>(waitpoint_key(id, request.waitpoint_id));
  unit.want<Keystore>({});
  if (const auto parts = split_token(request.waitpoint_token)) {
    unit.want<HmacKey>({std::string(parts->kid)});
  }
  const bool is_key = check_text("idempotency_key", request.idempotency_key, kMaxKeyBytes).has_value();
  if (is_key && looks_for_duplicates(request)) {
    unit.want<SignalDedup>(dedup_key(request, Sender::token_holder));
  }
}

std::size_t weight(const DeliverSignal& request) {
  return sizeof(request) + request.payload.value_or("").size();
}

}  // namespace

FLOWFABRIC_OPERATION(DeliverSignal, .want = want, .weight = weight)
FLOWFABRIC_OPERATION(DeliverApprovalSignal)

}  // namespace flowfabric::core
