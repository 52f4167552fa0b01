#include "engine/pending.h"

#include "engine/random_seed.h"
#include "store/store.h"

namespace flowfabric::engine {

namespace {

using std::chrono::steady_clock;

class PendingClaim : public Pending<ClaimTasks> {
 public:
  using Pending::Pending;

  Outcome run(core::Unit& unit, core::Context& at) override {
    if (!is_abandoned(request_)) return Pending::run(unit, at);
    result_.emplace();
    return Outcome::undo;
  }
  bool came_back_empty() const { return *result_ && (*result_)->empty() && !is_abandoned(request_); }
};

}  // namespace

Uuid mint() {
  Random random(random_seed());
  return mint_uuid(store::system_now_ms(), random);
}

Operation make_operation(std::shared_ptr<AnyPending> pending, const Queueing& queueing,
                         const EngineOptions& options) {
  Operation operation;
  operation.want = [pending](core::Unit& unit) { pending->want(unit); };
  operation.run = [pending](core::Unit& unit, core::Context& at) { return pending->run(unit, at); };
  operation.answer = [pending](const Error* refusal) { pending->answer(refusal); };
  operation.seed = random_seed();
  operation.bytes = queueing.bytes;
  operation.affinity = queueing.affinity;
  operation.in_order = queueing.in_order;
  operation.deadline = steady_clock::now() + options.operation_deadline;
  return operation;
}

Operation operation_for(ClaimTasks request, AnswerTo<ClaimTasks> done, const EngineOptions& options) {
  const auto& definition = core::definition_of<ClaimTasks>();
  const Queueing queueing{definition.weight(request), definition.affinity(request)};
  auto claim = std::make_shared<const ClaimTasks>(request);
  auto pending =
      std::make_shared<PendingClaim>(std::move(request), std::move(done), false, partitions_of(options));
  auto operation = make_operation(pending, queueing, options);
  operation.wait_until = steady_clock::now() + std::chrono::milliseconds(claim->wait_ms);
  operation.deadline = std::max(operation.deadline, operation.wait_until + options.operation_deadline);
  operation.claim = std::move(claim);
  operation.came_back_empty = [pending = std::move(pending)] { return pending->came_back_empty(); };
  return operation;
}

}  // namespace flowfabric::engine
