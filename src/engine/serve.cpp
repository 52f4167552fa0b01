#include "engine/serve.h"

#include "engine/await_end.h"
#include "engine/cancel_members.h"
#include "engine/check.h"
#include "engine/dead_worker.h"
#include "engine/event_reads.h"
#include "engine/handles.h"
#include "engine/stream_reads.h"

namespace flowfabric::engine {

namespace {

using std::chrono::steady_clock;

// The lane is known only of an execution that was claimed.
template <class Request>
void serve_grant_claim(Runtime& runtime, Request request, AnswerTo<Request> done, const OrderedWith& order) {
  auto then = [&tally = runtime.tally, began = steady_clock::now(),
               done = std::move(done)](Result<ClaimedTask> task) {
    const std::chrono::duration<double> taken = steady_clock::now() - began;
    tally.count_grant_claim(task ? task->lane_id : "unknown", taken.count());
    done(std::move(task));
  };
  enqueue<Request>(runtime, std::move(request), std::move(then), order);
}

// Who came with a handle is given one of the suspended attempt.
AnswerTo<SuspendExecution> with_handle(std::optional<OpaqueHandle> handle, AnswerTo<SuspendExecution> done) {
  if (!handle) return done;
  handle->kind = HandleKind::suspended;
  return [handle = *std::move(handle), done = std::move(done)](Result<Suspended> result) {
    if (result && !result->already_satisfied) result->handle = handle;
    done(std::move(result));
  };
}

}  // namespace

void enqueue(Runtime& runtime, Operation operation, const OrderedWith& order) {
  if (order) {
    operation.affinity = core::affinity_of(*order);
    operation.in_order = true;
  }
  runtime.committers.submit(std::move(operation));
}

void serve(Runtime& runtime, ClaimTasks request, AnswerTo<ClaimTasks> done, const OrderedWith& order) {
  if (!request.abandoned) return enqueue(runtime, std::move(request), std::move(done), order);
  // A claim that was woken and then abandoned leaves its work to others who wait.
  auto then = [&runtime, gone = request.abandoned, lanes = request.lanes,
               done = std::move(done)](Result<std::vector<ClaimedTask>> tasks) {
    if (*gone) runtime.heard(lanes);
    done(std::move(tasks));
  };
  enqueue<ClaimTasks>(runtime, std::move(request), std::move(then), order);
}

void serve(Runtime& runtime, ClaimGranted request, AnswerTo<ClaimGranted> done, const OrderedWith& order) {
  serve_grant_claim(runtime, std::move(request), std::move(done), order);
}

void serve(Runtime& runtime, ClaimExecution request, AnswerTo<ClaimExecution> done,
           const OrderedWith& order) {
  serve_grant_claim(runtime, std::move(request), std::move(done), order);
}

void serve(Runtime& runtime, ClaimResumedExecution request, AnswerTo<ClaimResumedExecution> done,
           const OrderedWith& order) {
  serve_grant_claim(runtime, std::move(request), std::move(done), order);
}

void serve(Runtime& runtime, RenewLease request, AnswerTo<RenewLease> done, const OrderedWith& order) {
  auto then = [&tally = runtime.tally, done = std::move(done)](Result<Renewal> renewal) {
    tally.count_renewal(renewal.has_value());
    done(std::move(renewal));
  };
  enqueue<RenewLease>(runtime, std::move(request), std::move(then), order);
}

void serve(Runtime& runtime, SuspendExecution request, AnswerTo<SuspendExecution> done,
           const OrderedWith& order) {
  const auto now_ms = runtime.options.now_ms ? runtime.options.now_ms() : store::system_now_ms();
  if (auto ok = resolve_handle(request, runtime.backend, now_ms); !ok) {
    return done(std::unexpected(ok.error()));
  }
  auto then = with_handle(request.handle, std::move(done));
  enqueue(runtime, std::move(request), std::move(then), order);
}

void serve(Runtime& runtime, CancelFlow request, AnswerTo<CancelFlow> done, const OrderedWith& order) {
  if (request.wait) {
    done = finish_cancel({runtime.committers, runtime.readers, runtime.watchers, runtime.options, request},
                         std::move(done));
  }
  enqueue(runtime, std::move(request), std::move(done), order);
}

void serve(Runtime& runtime, MarkWorkerDead request, AnswerTo<MarkWorkerDead> done,
           const OrderedWith& order) {
  auto then = offer_leases({request.namespace_, request.worker_instance_id}, runtime.committers,
                           runtime.options, std::move(done));
  enqueue(runtime, std::move(request), std::move(then), order);
}

// Many operations that are answered as one.
void serve(Runtime& runtime, CreateExecutions request, AnswerTo<CreateExecutions> done, const OrderedWith&) {
  const auto count = request.executions.size();
  if (count < 1 || count > kMaxCreates) {
    return done(fail_with(ErrorCode::invalid_input, "executions: out of range",
                          "Submit 1 to 1000 executions in one call."));
  }
  struct State {
    CreateExecutions::Answer results;
    std::atomic<std::size_t> missing;
    AnswerTo<CreateExecutions> done;
  };
  auto state = std::make_shared<State>();
  state->results.resize(count);
  state->missing = count;
  state->done = std::move(done);
  std::vector<Operation> operations;
  for (std::size_t i = 0; i < count; ++i) {
    operations.push_back(operation_for<CreateExecution>(
        std::move(request.executions[i]),
        [state, i](Result<Creation> result) {
          state->results[i] = std::move(result);
          if (--state->missing == 0) state->done(std::move(state->results));
        },
        runtime.options));
  }
  runtime.committers.submit(std::move(operations));
}

void serve(Runtime& runtime, CheckStore request, AnswerTo<CheckStore> done, const OrderedWith&) {
  done(check_store(runtime.readers, runtime.committers, request, runtime.options));
}

void serve(Runtime& runtime, TailStream request, AnswerTo<TailStream> done, const OrderedWith&) {
  tail(runtime.readers, runtime.watchers, std::move(request), std::move(done));
}

void serve(Runtime& runtime, AwaitExecution request, AnswerTo<AwaitExecution> done, const OrderedWith&) {
  await_end(runtime.readers, runtime.watchers, std::move(request), std::move(done));
}

void serve(Runtime& runtime, FollowEvents request, AnswerTo<FollowEvents> done, const OrderedWith&) {
  follow(runtime.readers, runtime.watchers, std::move(request), std::move(done));
}

}  // namespace flowfabric::engine
