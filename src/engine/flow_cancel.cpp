#include "engine/flow_cancel.h"

#include <thread>

#include "core/flow_cancel.h"
#include "engine/random_seed.h"

namespace flowfabric::engine {

namespace {

constexpr std::chrono::milliseconds kLookAgain{20};

// One cancel on its way; it lives until it is answered.
class Cancelling : public std::enable_shared_from_this<Cancelling> {
 public:
  Cancelling(const FlowCancel& cancel, FlowCancellation header, CancelAnswer answer)
      : cancel_(cancel),
        key_{partition_of(cancel.flow_id.uuid, cancel.options.flow_partitions), cancel.flow_id},
        result_(std::move(header)),
        answer_(std::move(answer)) {}

  // A page of members in one transaction.
  void step() {
    auto self = shared_from_this();
    submit([self](core::Unit& unit,
                  core::Context& at) { self->last_ = core::cancel_members(unit, self->key_, at); },
           [self](const Error* refusal) { self->after_step(refusal); });
  }

 private:
  void after_step(const Error* refusal) {
    if (refusal && refusal->code != ErrorCode::invariant_violation &&
        refusal->code != ErrorCode::corruption) {
      return answer_(std::unexpected(*refusal));
    }
    // One of them cannot be cancelled; the others can.
    if (refusal) return one_by_one();
    if (last_.finished) result_.outcome = CancelOutcome::cancelled;
    if (last_.finished || last_.waits_for_active) return answer_(std::move(result_));
    step();
  }

  void one_by_one() {
    auto self = shared_from_this();
    const auto members = result_.member_execution_ids;
    auto missing = std::make_shared<std::atomic<std::size_t>>(members.size());
    for (const auto& id : members) {
      submit(
          [self, id](core::Unit& unit, core::Context& at) { core::cancel_member(unit, self->key_, id, at); },
          [self, id, missing](const Error* refusal) {
            {
              std::lock_guard lock(self->mutex_);
              if (refusal) self->result_.failed_member_execution_ids.push_back(id);
            }
            if (--*missing == 0) self->answer_partly();
          });
    }
  }

  void answer_partly() {
    auto& failed = result_.failed_member_execution_ids;
    std::ranges::sort(failed);
    result_.outcome = failed.empty() ? CancelOutcome::cancelled : CancelOutcome::partially_cancelled;
    answer_(std::move(result_));
  }

  void submit(std::function<void(core::Unit&, core::Context&)> run,
              std::function<void(const Error*)> answer) {
    Operation operation;
    operation.want = [key = key_](core::Unit& unit) { unit.want<CancelBacklog>(key); };
    operation.run = [run = std::move(run)](core::Unit& unit, core::Context& at) {
      run(unit, at);
      return Outcome::keep;
    };
    operation.answer = std::move(answer);
    operation.seed = random_seed();
    operation.affinity = affinity_of(key_.flow_id);
    operation.deadline = std::chrono::steady_clock::now() + cancel_.options.operation_deadline;
    cancel_.committers.submit(std::move(operation));
  }

  const FlowCancel cancel_;
  const FlowKey key_;
  std::mutex mutex_;
  FlowCancellation result_;
  core::CancelStep last_;
  CancelAnswer answer_;
};

}  // namespace

CancelAnswer finish_cancel(const FlowCancel& cancel, CancelAnswer answer) {
  return [cancel, answer = std::move(answer)](Result<FlowCancellation> header) mutable {
    if (!header || header->outcome != CancelOutcome::scheduled) return answer(std::move(header));
    std::make_shared<Cancelling>(cancel, *std::move(header), std::move(answer))->step();
  };
}

Result<FlowCancellation> await_cancel(Readers& readers, const CancelFlow& request,
                                      Result<FlowCancellation> answer) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(request.wait_ms);
  const FlowKey key{partition_of(request.flow_id.uuid, readers.partitions().flow), request.flow_id};
  while (answer && request.wait && answer->outcome == CancelOutcome::scheduled) {
    const auto finished = readers.read(
        [&](Reading& reading) -> Result<bool> { return reading.find<CancelBacklog>(key) == nullptr; });
    if (!finished) return std::unexpected(finished.error());
    if (*finished) {
      answer->outcome = CancelOutcome::cancelled;
    } else if (std::chrono::steady_clock::now() >= until) {
      return fail_with(ErrorCode::timeout, "cancel_flow: " + std::to_string(request.wait_ms) + " ms",
                       "The flow is cancelled; its members follow in the background. Look at it later.");
    } else {
      std::this_thread::sleep_for(kLookAgain);
    }
  }
  return answer;
}

}  // namespace flowfabric::engine
