// How each request is served: a read is answered at once, a write is queued. The functions at the end serve
// those that need more than that.
#pragma once

#include "engine/pending.h"
#include "engine/runtime.h"

namespace flowfabric::engine {

template <class Request>
concept IsRead = boost::mp11::mp_contains<core::Reads, Request>::value;
template <class Request>
concept IsWrite = boost::mp11::mp_contains<core::Writes, Request>::value;

// The execution whose operations this one is to run in order with, if any.
using OrderedWith = std::optional<ExecutionId>;

template <IsRead Request>
void serve(Runtime& runtime, const Request& request, const AnswerTo<Request>& done, const OrderedWith&) {
  done(answer(runtime.readers, request));
}

void enqueue(Runtime& runtime, Operation operation, const OrderedWith& order);

template <IsWrite Request>
void enqueue(Runtime& runtime, Request request, AnswerTo<Request> done, const OrderedWith& order) {
  enqueue(runtime, operation_for(std::move(request), std::move(done), runtime.options), order);
}

template <IsWrite Request>
void serve(Runtime& runtime, Request request, AnswerTo<Request> done, const OrderedWith& order) {
  enqueue(runtime, std::move(request), std::move(done), order);
}

void serve(Runtime&, ClaimTasks, AnswerTo<ClaimTasks>, const OrderedWith&);
void serve(Runtime&, ClaimGranted, AnswerTo<ClaimGranted>, const OrderedWith&);
void serve(Runtime&, ClaimExecution, AnswerTo<ClaimExecution>, const OrderedWith&);
void serve(Runtime&, ClaimResumedExecution, AnswerTo<ClaimResumedExecution>, const OrderedWith&);
void serve(Runtime&, RenewLease, AnswerTo<RenewLease>, const OrderedWith&);
void serve(Runtime&, SuspendExecution, AnswerTo<SuspendExecution>, const OrderedWith&);
void serve(Runtime&, CancelFlow, AnswerTo<CancelFlow>, const OrderedWith&);
void serve(Runtime&, MarkWorkerDead, AnswerTo<MarkWorkerDead>, const OrderedWith&);
void serve(Runtime&, CreateExecutions, AnswerTo<CreateExecutions>, const OrderedWith&);
void serve(Runtime&, CheckStore, AnswerTo<CheckStore>, const OrderedWith&);
void serve(Runtime&, TailStream, AnswerTo<TailStream>, const OrderedWith&);
void serve(Runtime&, AwaitExecution, AnswerTo<AwaitExecution>, const OrderedWith&);
void serve(Runtime&, FollowEvents, AnswerTo<FollowEvents>, const OrderedWith&);

}  // namespace flowfabric::engine

namespace flowfabric {

// Defined here, so that the public header stays light; post_reads.cpp and post_writes.cpp compile them for
// each request.
template <class Request>
void Engine::post(Request request, std::function<void(Result<typename Request::Answer>)> done,
                  const std::optional<ExecutionId>& in_order_with) {
  engine::serve(*impl_, std::move(request), std::move(done), in_order_with);
}

template <class Request>
Result<typename Request::Answer> Engine::call(Request request) {
  if constexpr (engine::IsRead<Request>)
    return answer(impl_->readers, request);
  else
    return submit(std::move(request)).get();
}

#define FLOWFABRIC_INSTANTIATE(Request)                                                      \
  template void Engine::post(Request, std::function<void(Result<typename Request::Answer>)>, \
                             const std::optional<ExecutionId>&);                             \
  template Result<typename Request::Answer> Engine::call(Request);

}  // namespace flowfabric
