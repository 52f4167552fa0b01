// A request that is queued as an operation, with its answer.
#pragma once

#include "core/operations.h"
#include "engine/operation.h"
#include "flowfabric/engine.h"

namespace flowfabric::engine {

template <class Request>
using AnswerTo = std::function<void(Result<typename Request::Answer>)>;

// The part of a queued request that does not depend on its type.
class AnyPending {
 public:
  virtual ~AnyPending() = default;
  virtual void want(core::Unit& unit) = 0;
  virtual Outcome run(core::Unit& unit, core::Context& at) = 0;
  virtual void answer(const Error* refusal) = 0;
};

template <class Request>
class Pending : public AnyPending {
 public:
  Pending(Request request, AnswerTo<Request> done, bool has_new_id, const PartitionCounts& partitions)
      : request_(std::move(request)),
        done_(std::move(done)),
        has_new_id_(has_new_id),
        partitions_(partitions) {}

  void want(core::Unit& unit) override {
    expect_absent(unit);
    definition_.want(unit, request_, partitions_);
  }
  Outcome run(core::Unit& unit, core::Context& at) override {
    expect_absent(unit);
    result_ = definition_.apply(unit, request_, at);
    return *result_ ? Outcome::keep : Outcome::undo;
  }
  void answer(const Error* refusal) override {
    if (refusal)
      done_(std::unexpected(*refusal));
    else
      done_(*std::move(result_));
  }

 protected:
  // Once only: the batch may be run again although the store has kept it.
  void expect_absent(core::Unit& unit) {
    if (std::exchange(has_new_id_, false) && definition_.expect_absent) {
      definition_.expect_absent(unit, request_, partitions_);
    }
  }

  const core::OperationDefinition<Request>& definition_{core::definition_of<Request>()};
  Request request_;
  AnswerTo<Request> done_;
  std::optional<Result<typename Request::Answer>> result_;
  bool has_new_id_;
  const PartitionCounts partitions_;
};

// How an operation is queued.
struct Queueing {
  std::size_t bytes{};
  std::size_t affinity{};
  bool in_order{false};
};
Operation make_operation(std::shared_ptr<AnyPending> pending, const Queueing& queueing,
                         const EngineOptions& options);
Uuid mint();

// A worker's report about one task.
template <class Request>
concept HasFence = requires(const Request& request) {
  request.fence;
};

template <class Request>
Operation operation_for(Request request, AnswerTo<Request> done, const EngineOptions& options) {
  const auto& definition = core::definition_of<Request>();
  const auto partitions = partitions_of(options);
  const bool has_new_id = definition.take_id && definition.take_id(request, mint(), partitions);
  const Queueing queueing{definition.weight(request), definition.affinity(request), HasFence<Request>};
  return make_operation(
      std::make_shared<Pending<Request>>(std::move(request), std::move(done), has_new_id, partitions),
      queueing, options);
}
// A claim may wait for work.
Operation operation_for(ClaimTasks request, AnswerTo<ClaimTasks> done, const EngineOptions& options);

}  // namespace flowfabric::engine
