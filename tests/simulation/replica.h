// One store under simulation: runs batches on its writing session and keeps the answers.
#pragma once

#include <algorithm>
#include <stdexcept>

#include "engine/batch.h"
#include "engine/dispatch.h"
#include "simulation/state.h"
#include "simulation/steps.h"

namespace flowfabric::simulation {

struct Ran {
  // By step. Absent: the engine put the operation aside too often and refused it; it has changed nothing.
  std::vector<std::optional<Answer>> answers;
  // The steps in the order in which they took effect.
  std::vector<std::size_t> order;
};

class Replica {
 public:
  Replica(std::string name, const std::string& url, std::function<std::int64_t()> now_ms)
      : name_(std::move(name)) {
    auto opened = store::open_store(url, {.partitions = {}, .now_ms = std::move(now_ms)});
    if (!opened) throw std::runtime_error(opened.error().to_string());
    store_ = *std::move(opened);
    writer_ = store_->open_writer();
    reader_ = store_->open_reader();
  }

  const std::string& name() const { return name_; }

  Ran run(const std::vector<Step>& steps) {
    std::vector<std::optional<Answer>> answers(steps.size());
    std::vector<std::size_t> last_run(steps.size(), 0);
    std::size_t runs = 0;
    std::vector<engine::Operation> operations;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      operations.push_back(operation(steps[i], answers[i], [&last_run, &runs, i] { last_run[i] = ++runs; }));
    }
    const auto result = engine::run_batch(*writer_, operations, PartitionCounts{});
    if (result.failure) throw std::runtime_error(name_ + ": " + result.failure->to_string());

    Ran ran{.answers = std::move(answers), .order = {}};
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

  State state(const Known& known) { return read_state(*reader_, known); }

  std::vector<store::DueKey> due(std::size_t limit) {
    core::Unit unit(*reader_);
    const auto now = reader_->begin(unit);
    auto keys = reader_->due(now, limit);
    reader_->rollback();
    return keys;
  }

 private:
  template <class F>
  static engine::Operation operation(const Step& step, std::optional<Answer>& answer, F note_run) {
    engine::Operation made;
    made.seed = step.seed;
    std::visit(
        [&](const auto& request) {
          made.want = [&request](core::Unit& unit) { want(unit, request); };
          made.run = [&request, &answer, note_run](core::Unit& unit, core::Context& at) {
            note_run();
            auto result = apply(unit, request, at);
            const auto outcome = result ? engine::Outcome::keep : engine::Outcome::undo;
            answer = std::move(result);
            return outcome;
          };
        },
        step.request);
    return made;
  }

  template <class Request>
  static void want(core::Unit& unit, const Request& request) {
    if constexpr (!std::is_same_v<Request, RunDue>) engine::want(unit, request);
  }

  template <class Request>
  static Result<typename Request::Answer> apply(core::Unit& unit, const Request& request, core::Context& at) {
    if constexpr (std::is_same_v<Request, RunDue>)
      return std::visit([&](const auto& key) { return core::run_due(unit, key, at); }, request.key);
    else
      return engine::apply(unit, request, at);
  }

  std::string name_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<store::Session> writer_;
  std::unique_ptr<store::Session> reader_;
};

}  // namespace flowfabric::simulation
