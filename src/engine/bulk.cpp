#include "engine/bulk.h"

#include <future>
#include <latch>

#include "core/keys.h"
#include "core/lifecycle/bulk.h"
#include "core/views/listing.h"
#include "engine/listing.h"
#include "engine/random_seed.h"

namespace flowfabric::engine {

namespace {

struct Step {
  BulkJob job;
  std::vector<ExecutionId> executions;
  std::optional<core::ListPosition> next;
};

// Absent: the operation is not running any more.
std::optional<Step> plan_step(store::Session& session, const BulkJobKey& key) {
  core::Unit unit(session);
  unit.want<BulkJob>(key);
  session.begin(unit);
  std::optional<Step> step;
  const auto* job = unit.find<BulkJob>(key);
  if (job && job->state == BulkState::running) {
    step = Step{.job = *job, .executions = {}, .next = std::nullopt};
    const auto filter = core::filter_of(*job);
    std::optional<core::ListPosition> after;
    if (!job->cursor.empty()) after = *core::position_of(job->cursor, ListOrder::oldest);
    if (!filter.states.empty()) {
      const auto listed = list(session, unit, {filter, ListOrder::oldest, after, core::bulk_step_size(*job)});
      for (const auto& [execution, group] : listed.found) step->executions.push_back(execution.key());
      step->next = listed.next;
    }
  }
  session.rollback();
  return step;
}

Operation operation_on(std::function<Outcome(core::Unit&, core::Context&)> run,
                       std::function<void(const Error*)> answer, const EngineOptions& options) {
  Operation operation;
  operation.run = std::move(run);
  operation.answer = std::move(answer);
  operation.seed = random_seed();
  operation.deadline = std::chrono::steady_clock::now() + options.operation_deadline;
  return operation;
}

// What became of the executions of a step.
struct StepTally {
  std::mutex mutex;
  std::uint64_t done{0};
  std::uint64_t failed{0};
  std::uint64_t not_run{0};
  std::string last_error;
};

void apply_to_all(const Step& step, Committers& committer, const EngineOptions& options, StepTally& tally) {
  auto all = std::make_shared<std::latch>(static_cast<std::ptrdiff_t>(step.executions.size()));
  std::vector<Operation> operations;
  for (const auto& id : step.executions) {
    auto result = std::make_shared<std::optional<Result<core::BulkItem>>>();
    auto operation = operation_on(
        [&step, id, result](core::Unit& unit, core::Context& at) {
          *result = core::apply_bulk(unit, step.job, id, at);
          return **result ? Outcome::keep : Outcome::undo;
        },
        [&tally, all, id, result](const Error* refusal) {
          {
            std::lock_guard lock(tally.mutex);
            if (refusal) {
              ++tally.not_run;
            } else if (!**result) {
              ++tally.failed;
              tally.last_error = id.to_string() + ": " + (*result)->error().to_string();
            } else if (***result == core::BulkItem::done) {
              ++tally.done;
            }
          }
          all->count_down();
        },
        options);
    operation.want = [id](core::Unit& unit) { unit.want<Execution>(id); };
    operation.affinity = core::affinity_of(id);
    operations.push_back(std::move(operation));
  }
  committer.submit(std::move(operations));
  all->wait();
}

}  // namespace

bool run_bulk_step(store::Session& session, Committers& committer, const BulkJobKey& key,
                   const EngineOptions& options) {
  const auto step = plan_step(session, key);
  if (!step) return true;
  StepTally tally;
  apply_to_all(*step, committer, options, tally);
  // What could not be run is done when the step is repeated.
  if (tally.not_run > 0) return false;
  const core::BulkStep progress{
      .operation_id = key.operation_id,
      .after = step->job.cursor,
      .next = step->next ? std::optional(core::cursor_of(*step->next, ListOrder::oldest)) : std::nullopt,
      .done = tally.done,
      .failed = tally.failed,
      .last_error = tally.last_error};
  auto recorded = std::make_shared<std::promise<bool>>();
  auto answer = recorded->get_future();
  committer.submit(operation_on(
      [progress](core::Unit& unit, core::Context& at) {
        core::record_bulk_step(unit, progress, at);
        return Outcome::keep;
      },
      [recorded](const Error* refusal) { recorded->set_value(refusal == nullptr); }, options));
  return answer.get();
}

}  // namespace flowfabric::engine
