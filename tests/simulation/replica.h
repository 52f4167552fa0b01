// One store under simulation: runs batches on its writing session and keeps the answers.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "core/clock/clock_rules.h"
#include "core/views/listing.h"
#include "engine/batch.h"
#include "engine/check.h"
#include "engine/listing.h"
#include "engine/reads.h"
#include "engine/suspension_reads.h"
#include "simulation/state.h"
#include "simulation/steps.h"

namespace flowfabric::simulation {

// Short enough that executions are removed within the simulated time.
inline constexpr std::int64_t kRetentionMs = 20'000;

struct Ran {
  // By step. Absent: the engine put the operation aside too often and refused it; it has changed nothing.
  std::vector<std::optional<Answer>> answers;
  // The steps in the order in which they took effect.
  std::vector<std::size_t> order;
  engine::BatchEffects effects;
};

class Replica {
 public:
  Replica(std::string name, const std::string& url, std::function<std::int64_t()> now_ms)
      : name_(std::move(name)), store_(open(url, std::move(now_ms))), readers_(*store_, kPartitions) {
    writer_ = store_->open_writer();
    reader_ = store_->open_reader();
  }

  const std::string& name() const { return name_; }
  bool is_shared() const { return store_->is_shared(); }

  Ran run(const std::vector<Step>& steps) {
    std::vector<std::optional<Answer>> answers(steps.size());
    std::vector<std::size_t> last_run(steps.size(), 0);
    std::size_t runs = 0;
    std::vector<engine::Operation> operations;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      operations.push_back(operation(steps[i], answers[i], [&last_run, &runs, i] { last_run[i] = ++runs; }));
    }
    auto result = run_once(operations);
    // Behaves like a committer, which may have to lock a record that it only meant to read.
    for (int reruns = 0; result.retry == store::Retry::now && reruns < 20; ++reruns) {
      result = run_once(operations);
    }
    if (result.failure) throw std::runtime_error(name_ + ": " + result.failure->to_string());

    Ran ran{.answers = std::move(answers), .order = {}, .effects = std::move(result.effects)};
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (const auto* refusal = result.refusals[i]) {
        if (refusal->code != ErrorCode::retry_exhausted)
          throw std::runtime_error(name_ + ": " + name_of(steps[i].request) + ": " + refusal->to_string());
        ran.answers[i].reset();
      } else {
        ran.order.push_back(i);
      }
    }
    std::sort(ran.order.begin(), ran.order.end(),
              [&](std::size_t a, std::size_t b) { return last_run[a] < last_run[b]; });
    return ran;
  }

  template <class Read>
  Result<typename Read::Answer> read(const Read& request) {
    writer_->await_durable();
    return engine::answer(readers_, request);
  }

  State state() { return read_state(reader()); }

  std::vector<RecordKey> due(std::size_t limit) {
    core::Unit unit(reader());
    const auto now = reader_->begin(unit);
    std::vector<RecordKey> keys;
    const store::DueScan scan{.until_ms = now, .limit = limit, .purge_limit = limit};
    for (auto& record : reader_->due(scan).found) keys.push_back(std::move(record.key));
    reader_->rollback();
    return keys;
  }

  std::optional<ExecutionId> best_offer(const RouteKey& route) {
    core::Unit unit(reader());
    reader_->begin(unit);
    const auto* offer = unit.best_offer(route.route_id, 1);
    const auto id = offer ? std::optional(offer->key()) : std::nullopt;
    reader_->rollback();
    return id;
  }

  // The requests of the next step of a bulk operation; empty when it has ended.
  std::vector<Request> bulk_step(const BulkJobKey& key) {
    core::Unit unit(reader());
    unit.want<BulkJob>(key);
    reader_->begin(unit);
    std::vector<Request> requests;
    if (const auto* job = unit.find<BulkJob>(key); job && job->state == BulkState::running) {
      requests = bulk_step(unit, *job);
    }
    reader_->rollback();
    return requests;
  }

  // The violations that the consistency check finds.
  StoreReport faults() {
    writer_->await_durable();
    EngineOptions options;
    options.retention = std::chrono::milliseconds(kRetentionMs);
    engine::WaitingClaims waiting(0, [](engine::SteadyTime) {});
    engine::Committers committers(*store_, options, waiting, [](const engine::BatchEffects&) {});
    auto report = engine::check_store(readers_, committers, CheckStore{}, options);
    if (!report) throw std::runtime_error(name_ + ": " + report.error().to_string());
    return *std::move(report);
  }

 private:
  static constexpr PartitionCounts kPartitions{};

  // The next batch is run while this one is being committed, where the store allows that.
  engine::BatchResult run_once(std::vector<engine::Operation>& operations) {
    auto [result, unit] = engine::work_out(*writer_, operations, {kPartitions, kRetentionMs});
    if (!unit) return std::move(result);
    engine::commit(*writer_, std::move(unit), true, result, [](const auto& failure) {
      if (failure) throw std::runtime_error(failure->error.to_string());
    });
    return std::move(result);
  }

  // Shows everything that was run.
  store::Session& reader() {
    writer_->await_durable();
    return *reader_;
  }

  static std::unique_ptr<store::Store> open(const std::string& url, std::function<std::int64_t()> now_ms) {
    auto opened = store::open_store(url, {.partitions = kPartitions, .now_ms = std::move(now_ms)});
    if (!opened) throw std::runtime_error(opened.error().to_string());
    return *std::move(opened);
  }

  std::vector<Request> bulk_step(core::Unit& unit, const BulkJob& job) {
    engine::ListQuery query{core::filter_of(job), ListOrder::oldest, std::nullopt, core::bulk_step_size(job)};
    if (!job.cursor.empty()) query.after = *core::position_of(job.cursor, ListOrder::oldest);
    core::BulkStep step{.operation_id = job.operation_id, .after = job.cursor, .next = std::nullopt};
    std::vector<Request> requests;
    if (!query.filter.states.empty()) {
      const auto listed = engine::list(*reader_, unit, query);
      for (const auto& [execution, group] : listed.found) {
        requests.push_back(ApplyBulk{job.operation_id, execution.key()});
      }
      if (listed.next) step.next = core::cursor_of(*listed.next, ListOrder::oldest);
    }
    step.done = requests.size();
    requests.push_back(RecordBulk{std::move(step)});
    return requests;
  }

  template <class F>
  static engine::Operation operation(const Step& step, std::optional<Answer>& answer, F note_run) {
    engine::Operation made;
    made.seed = step.seed;
    std::visit(
        [&]<class Asked>(const Asked& request) {
          made.want = [&request](core::Unit& unit) { want(unit, request); };
          made.run = [&request, &answer, note_run](core::Unit& unit, core::Context& at) {
            note_run();
            AnswerTo<Asked> result = apply(unit, request, at);
            const auto outcome = result ? engine::Outcome::keep : engine::Outcome::undo;
            answer.emplace(std::in_place_type<AnswerTo<Asked>>, std::move(result));
            return outcome;
          };
        },
        step.request);
    return made;
  }

  static void want(core::Unit& unit, const RunDue& request) {
    unit.want(request.key.type->place, request.key.key.get());
  }
  static void want(core::Unit& unit, const ApplyBulk& request) { unit.want<Execution>(request.execution_id); }
  static void want(core::Unit&, const RecordBulk&) {}
  template <class Asked>
  static void want(core::Unit& unit, const Asked& request) {
    core::definition_of<Asked>().want(unit, request, kPartitions);
  }

  static core::Rule apply(core::Unit& unit, const RunDue& request, core::Context& at) {
    return core::run_clock(unit, request.key, at);
  }
  static Result<core::BulkItem> apply(core::Unit& unit, const ApplyBulk& request, core::Context& at) {
    const auto* job = unit.find<BulkJob>({request.operation_id});
    if (!job) return core::BulkItem::left_alone;
    return core::apply_bulk(unit, *job, request.execution_id, at);
  }
  static core::BulkItem apply(core::Unit& unit, const RecordBulk& request, core::Context& at) {
    core::record_bulk_step(unit, request.step, at);
    return core::BulkItem::done;
  }
  template <class Asked>
  static AnswerTo<Asked> apply(core::Unit& unit, const Asked& request, core::Context& at) {
    return core::definition_of<Asked>().apply(unit, request, at);
  }

  std::string name_;
  std::unique_ptr<store::Store> store_;
  engine::Readers readers_;
  std::unique_ptr<store::Session> writer_;
  std::unique_ptr<store::Session> reader_;
};

}  // namespace flowfabric::simulation
