#include "engine/dead_worker.h"

#include <future>

#include "core/lifecycle/dead_worker.h"
#include "engine/cancel_members.h"
#include "engine/random_seed.h"

namespace flowfabric::engine {

namespace {

using Run = std::function<void(core::Unit&, core::Context&)>;

Operation operation_on(const DeadWorkerKey& key, const EngineOptions& options, Run run,
                       std::function<void(const Error*)> answer) {
  Operation operation;
  operation.want = [key](core::Unit& unit) { unit.want<DeadWorker>(key); };
  operation.run = [run = std::move(run)](core::Unit& unit, core::Context& at) {
    run(unit, at);
    return Outcome::keep;
  };
  operation.answer = std::move(answer);
  operation.seed = random_seed();
  operation.deadline = std::chrono::steady_clock::now() + options.operation_deadline;
  return operation;
}

std::vector<ExecutionId> next_page(store::Session& session, const DeadWorkerKey& key) {
  core::Unit unit(session);
  unit.want<DeadWorker>(key);
  session.begin(unit);
  std::vector<ExecutionId> page;
  if (const auto* dead = unit.find<DeadWorker>(key)) {
    const auto question = core::next_page(*dead);
    unit.want_answer(question);
    session.load(unit);
    page = unit.ask(question);
  }
  session.rollback();
  return page;
}

}  // namespace

DeadAnswer offer_leases(const DeadWorkerKey& key, Committers& committers, const EngineOptions& options,
                        DeadAnswer answer) {
  return [=, &committers, &options](Result<MarkedDead> marked) {
    if (!marked || !marked->was_registered) return answer(std::move(marked));
    committers.submit(operation_on(
        key, options,
        [key](core::Unit& unit, core::Context& at) { core::run_dead_worker_clock(unit, key, at); },
        [answer, marked](const Error*) { answer(marked); }));
  };
}

bool offer_each(store::Session& session, Committers& committers, const DeadWorkerKey& key,
                const EngineOptions& options) {
  const auto refusal_of = [&](Run run) {
    auto done = std::make_shared<std::promise<std::optional<ErrorCode>>>();
    auto refusal = done->get_future();
    committers.submit(operation_on(key, options, std::move(run), [done](const Error* error) {
      done->set_value(error ? std::optional(error->code) : std::nullopt);
    }));
    return refusal.get();
  };
  const auto page = next_page(session, key);
  for (const auto& id : page) {
    const auto refused = refusal_of(
        [key, id](core::Unit& unit, core::Context& at) { core::end_lease_if_dead(unit, key, id, at); });
    if (refused && !is_hopeless(*refused)) return false;
  }
  return !refusal_of([key, page](core::Unit& unit, core::Context& at) { core::pass(unit, key, page, at); });
}

}  // namespace flowfabric::engine
