#include "engine/await_end.h"

#include "core/execution/lease.h"
#include "core/views/read.h"

namespace flowfabric::engine {

namespace {

constexpr std::int64_t kMaxWaitMs = 30'000;

Result<ExecutionEnd> look(Readers& readers, const ExecutionId& id) {
  return readers.read([&](Reading& reading) -> Result<ExecutionEnd> {
    const auto* execution = reading.find<Execution>(id);
    if (!execution) return std::unexpected(core::not_found(id));
    ExecutionEnd end{.ended = execution->state.lifecycle_phase == LifecyclePhase::terminal,
                     .execution_id = id,
                     .public_state = execution->state.public_state,
                     .result = "",
                     .failure_reason = execution->failure_reason.empty() ? execution->cancellation_reason
                                                                         : execution->failure_reason};
    if (const auto completed = core::result_attempt(*execution)) {
      if (const auto* attempt = reading.find<Attempt>(*completed)) end.result = attempt->result.data;
    }
    return end;
  });
}

}  // namespace

void await_end(Readers& readers, Watchers& watchers, AwaitExecution request,
               std::function<void(Result<ExecutionEnd>)> answer) {
  if (request.wait_ms < 0 || request.wait_ms > kMaxWaitMs) {
    return answer(fail_with(ErrorCode::invalid_input, "wait_ms: out of range", "Wait for 0 to 30000 ms."));
  }
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(request.wait_ms);
  const auto id = request.execution_id;
  const bool waits = watchers.watch(stream_of(id), until, [&readers, id, answer](bool last) {
    auto seen = look(readers, id);
    const bool done = last || !seen || seen->ended;
    if (done) answer(std::move(seen));
    return done;
  });
  if (!waits) answer(std::unexpected(too_many_wait()));
}

}  // namespace flowfabric::engine
