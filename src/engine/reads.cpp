#include "engine/reads.h"

#include "core/execution/lease.h"
#include "core/lifecycle/bulk.h"
#include "core/suspension/suspension.h"
#include "core/views/read.h"
#include "model/text.h"

namespace flowfabric::engine {

namespace {

constexpr std::uint32_t kMaxEvents = 1000;

// Reads something of one execution: f(reading, execution).
template <class Answer, class F>
Result<Answer> read_of(Readers& readers, const ExecutionId& id, F&& f) {
  return readers.read([&](Reading& reading) -> Result<Answer> {
    const auto* execution = reading.find<Execution>(id);
    if (!execution) return std::unexpected(core::not_found(id));
    return f(reading, *execution);
  });
}

template <class Event, class Request>
Result<typename Request::Answer> events(Readers& readers, const Request& request) {
  if (request.limit < 1 || request.limit > kMaxEvents) {
    return fail_with(ErrorCode::invalid_input, "limit: out of range", "Ask for 1 to 1000 events.");
  }
  return readers.read([&](Reading& reading) -> Result<typename Request::Answer> {
    typename Request::Answer shown;
    for (const auto& event : reading.session.events_after<Event>(request.after, request.limit)) {
      shown.push_back(core::view(event));
    }
    return shown;
  });
}

}  // namespace

Result<ExecutionSnapshot> answer(Readers& readers, const DescribeExecution& request) {
  return read_of<ExecutionSnapshot>(readers, request.execution_id, [&](Reading& reading, auto& execution) {
    const auto* lane = reading.find<Lane>({execution.lane_id});
    auto seen = core::snapshot(execution, reading.require<ExecutionSpec>(request.execution_id),
                               lane ? lane->state : LaneState::active);
    reading.run([&](core::Unit& unit) { core::show_if_parked(unit, execution, seen); });
    if (const auto* suspension = reading.find<Suspension>(core::suspension_key(request.execution_id))) {
      seen.last_hmac_validation_failed_at = suspension->last_hmac_validation_failed_at_ms;
      const bool suspended = execution.state.lifecycle_phase == LifecyclePhase::suspended;
      if (suspended) seen.current_waitpoint = core::primary_waitpoint(*suspension);
    }
    return seen;
  });
}

Result<PublicState> answer(Readers& readers, const ReadState& request) {
  return read_of<PublicState>(readers, request.execution_id,
                              [](Reading&, auto& execution) { return execution.state.public_state; });
}

Result<ExecutionContext> answer(Readers& readers, const ReadContext& request) {
  return read_of<ExecutionContext>(readers, request.execution_id, [&](Reading& reading, auto& execution) {
    const auto& spec = reading.require<ExecutionSpec>(request.execution_id);
    return ExecutionContext{spec.execution_kind, spec.payload.data, spec.payload_encoding, execution.tags};
  });
}

Result<Tags> answer(Readers& readers, const ReadTags& request) {
  return read_of<Tags>(readers, request.execution_id,
                       [](Reading&, auto& execution) { return execution.tags; });
}

Result<std::optional<std::string>> answer(Readers& readers, const ReadResult& request) {
  using Bytes = std::optional<std::string>;
  return read_of<Bytes>(readers, request.execution_id, [](Reading& reading, auto& execution) -> Bytes {
    const auto key = core::result_attempt(execution);
    if (!key) return std::nullopt;
    const auto* attempt = reading.find<Attempt>(*key);
    if (!attempt || attempt->result.data.empty()) return std::nullopt;
    return attempt->result.data;
  });
}

Result<std::vector<AttemptSnapshot>> answer(Readers& readers, const ListAttempts& request) {
  using Attempts = std::vector<AttemptSnapshot>;
  return read_of<Attempts>(readers, request.execution_id, [&](Reading& reading, auto& execution) {
    return core::attempts(execution, reading.session.attempts_of(request.execution_id));
  });
}

Result<std::map<PublicState, std::int64_t>> answer(Readers& readers, const CountLane& request) {
  if (auto ok = check_lane(request.lane_id); !ok) return std::unexpected(ok.error());
  return readers.read([&](Reading& reading) -> Result<std::map<PublicState, std::int64_t>> {
    return reading.session.count_lane(request.lane_id);
  });
}

Result<BulkOperation> answer(Readers& readers, const ReadBulkOperation& request) {
  return readers.read([&](Reading& reading) -> Result<BulkOperation> {
    const auto* job = reading.find<BulkJob>({request.operation_id});
    if (!job) return std::unexpected(core::no_such_operation(request.operation_id));
    return core::view(*job);
  });
}

Result<std::vector<LeaseEventView>> answer(Readers& readers, const ReadLeaseEvents& request) {
  return events<LeaseEvent>(readers, request);
}
Result<std::vector<CompletionEventView>> answer(Readers& readers, const ReadCompletions& request) {
  return events<CompletionEvent>(readers, request);
}
Result<std::vector<OperatorEventView>> answer(Readers& readers, const ReadOperatorEvents& request) {
  return events<OperatorEvent>(readers, request);
}
Result<std::vector<WorkerEventView>> answer(Readers& readers, const ReadWorkerEvents& request) {
  return events<WorkerEvent>(readers, request);
}
Result<std::vector<SignalEventView>> answer(Readers& readers, const ReadSignalEvents& request) {
  return events<SignalEvent>(readers, request);
}

}  // namespace flowfabric::engine
